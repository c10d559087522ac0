//! Who does the work: the agents that run inside this process.
#![forbid(unsafe_code)]

pub mod agent;
mod echo;
pub mod script;

pub use agent::{Agent, Outbox, Stopped};
