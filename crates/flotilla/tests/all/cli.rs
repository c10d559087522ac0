//! The command line as the a2a-cli specification describes it: the real program against a hub and against odd agents.

mod agent;
mod card;
mod config;
mod conformance;
mod credentials;
mod doctor;
mod errors;
mod help;
mod import;
mod interaction;
mod log;
mod old;
mod output;
mod parts;
pub mod program;
mod report;
mod secrets;
mod sign_in;
pub mod signatures;
mod stream;
mod task;
mod transport;
mod wait;
