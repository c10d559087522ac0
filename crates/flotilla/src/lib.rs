//! What others may read of the program: its configuration.
#![forbid(unsafe_code)]

pub mod config;
