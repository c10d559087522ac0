//! The hub as its callers meet it: the real program, driven over every binding and the command line.

mod cast;
mod cli;
mod crash;
mod doors;
mod errors;
mod grpc;
mod idempotency;
mod keys;
mod limits;
mod operations;
mod push;
mod reaper;
mod scenarios;
mod streams;
mod tls;
