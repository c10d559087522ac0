//! What is said: every message that crosses a process boundary. No I/O lives here.
#![forbid(unsafe_code)]

pub mod a2a;
pub mod approval;
pub mod block;
pub mod canonical;
pub mod channel;
pub mod decode;
pub mod event;
pub mod fleet;
pub mod gopherhole;
pub mod held;
pub mod hub_frame;
pub mod jsonrpc;
pub mod lineage;
pub mod proto03;
pub mod relay;
pub mod time;
pub mod usage;
pub mod v03;
pub mod wire;
pub mod work;
