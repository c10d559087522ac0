//! What is remembered: the store's implementations. SQLite is the embedded one.
#![forbid(unsafe_code)]

pub mod sqlite;
