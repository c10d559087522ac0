//! What is run: the `flotilla` program.
#![forbid(unsafe_code)]

mod assemble;
mod cli;
mod clock;
mod config;
mod data;
mod run;
mod telemetry;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
