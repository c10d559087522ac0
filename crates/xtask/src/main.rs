//! Chores of this repository, run as `cargo run -q -p xtask -- CHORE`.
#![forbid(unsafe_code)]

mod proto;
mod tidy;

use anyhow::{Result, bail};
use std::process::ExitCode;

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy::run(),
        ["proto"] => proto::run().map(|()| ExitCode::SUCCESS),
        _ => bail!("usage: cargo run -q -p xtask -- tidy|proto"),
    }
}
