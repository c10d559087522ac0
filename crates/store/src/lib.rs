//! What is remembered: the store's implementations, equal in behaviour. SQLite is the durable one.
#![forbid(unsafe_code)]

mod herald;
pub mod memory;
pub mod sqlite;

use flotilla_core::error::Fault;
use flotilla_core::log::Epoch;

/// A new identity for a store.
fn fresh_epoch() -> Result<Epoch, Fault> {
    let mut bits = [0u8; 6];
    getrandom::fill(&mut bits).map_err(|error| Fault::new(format!("random numbers: {error}")))?;
    Ok(Epoch(bits.iter().map(|byte| format!("{byte:02x}")).collect()))
}
