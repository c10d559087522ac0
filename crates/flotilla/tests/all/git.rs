//! Git as evidence, working trees and probes call it: below a reaper, in repositories that runs have had in hand.
// Clippy knows only functions marked as tests, not what they share.
#![allow(clippy::unwrap_used)]

mod deceit;
mod evidence;
mod held;
mod inside;
mod vectors;
