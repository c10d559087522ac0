//! What is remembered: the store's implementations, equal in behaviour. SQLite is the durable one.
#![forbid(unsafe_code)]

mod herald;
pub mod memory;
pub mod sqlite;

use flotilla_core::error::Fault;
use flotilla_core::log::Epoch;

/// A new identity for a store.
fn fresh_epoch() -> Result<Epoch, Fault> {
    random::<6>().map(Epoch)
}

/// A new name for a hub, which no other has.
fn fresh_hub_id() -> Result<String, Fault> {
    random::<16>()
}

fn random<const N: usize>() -> Result<String, Fault> {
    let mut bits = [0u8; N];
    getrandom::fill(&mut bits).map_err(|error| Fault::new(format!("random numbers: {error}")))?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}
