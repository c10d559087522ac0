//! Whom we call: any A2A agent, the hub's own API, servers that issue tokens, and webhooks.
#![forbid(unsafe_code)]

pub mod client;
pub mod discover;
#[doc(hidden)]
pub mod fuzz;
pub mod guard;
pub mod hub;
pub mod net;
pub mod oauth;
pub mod remote;
pub mod signature;
pub mod webhook;
