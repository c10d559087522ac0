//! The worker's agents seen from outside: what they report, and what a script must not say.
// Clippy knows only functions marked as tests, not what they share.
#![allow(clippy::unwrap_used)]

mod agents;
mod errors;
mod examples;
mod matching;
mod steps;
mod transcript;
