//! Who does the work: the agents that run inside this process, and their way to a hub elsewhere.
#![forbid(unsafe_code)]

pub mod acp;
pub mod agent;
pub mod attach;
pub mod claude;
pub mod codex;
pub mod command;
mod echo;
pub mod evidence;
pub mod probe;
pub mod reaper;
pub mod script;
pub mod sessions;
pub mod supervise;
mod words;

pub use agent::{Agent, Asked, More, Outbox, Stop, Stopped};
