//! Whom we call.
#![forbid(unsafe_code)]

pub mod client;
