//! What is run: the `flotilla` program.
#![forbid(unsafe_code)]

mod announcer;
mod assemble;
mod cli;
mod clock;
mod data;
mod import;
mod run;
mod signing;
mod telemetry;

use flotilla::config;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
