//! Who does the work: the agents that run inside this process, and their way to a hub elsewhere.
#![forbid(unsafe_code)]

pub mod agent;
pub mod attach;
pub mod command;
mod echo;
pub mod reaper;
pub mod script;
pub mod supervise;

pub use agent::{Agent, Outbox, Stop, Stopped};
