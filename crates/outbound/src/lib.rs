//! Whom we call: an A2A client for any agent, the hub's own API, and the servers that issue tokens.
#![forbid(unsafe_code)]

pub mod client;
pub mod guard;
pub mod hub;
pub mod net;
pub mod oauth;
