//! The hub as its callers meet it: the real program, driven over every binding and the command line.

mod cast;
mod cli;
mod command;
mod crash;
mod dialects;
mod doors;
mod errors;
mod fleet;
mod grpc;
mod grpc03;
mod idempotency;
mod keys;
mod ledger;
mod limits;
mod lineage;
mod operations;
mod push;
mod reaper;
mod remote;
mod scenarios;
mod socket;
mod streams;
mod tls;
