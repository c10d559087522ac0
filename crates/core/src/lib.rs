//! What is decided: pure steps, operations and loops. No socket, file, SQL or clock lives here.
#![forbid(unsafe_code)]

pub mod access;
pub mod approval;
pub mod budget;
pub mod caller;
pub mod descent;
pub mod dispatch;
pub mod error;
pub mod fleet;
pub mod held_bytes;
pub mod hub;
pub mod ids;
pub mod key;
pub mod keyring;
pub mod limits;
pub mod log;
pub mod loops;
pub mod map;
pub mod media;
pub mod notice;
pub mod page;
pub mod ports;
pub mod project;
pub mod push;
pub mod rate;
pub mod registry;
pub mod relevance;
pub mod rights;
pub mod roster;
pub mod steady;
pub mod task;
pub mod usage;
