//! The hub as its callers meet it: the real program, driven over both bindings and the command line.

mod cast;
mod crash;
mod errors;
mod idempotency;
mod keys;
mod limits;
mod operations;
mod scenarios;
mod streams;
