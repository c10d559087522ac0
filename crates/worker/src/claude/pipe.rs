//! How a process of Claude Code is spoken to, and left.

pub use crate::command::watch::leave;

use crate::supervise::Exit;
use std::convert::Infallible;
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;

/// Writes what is to be said, for as long as this is polled.
pub async fn tell(mut stdin: ChildStdin, mut lines: mpsc::Receiver<String>) -> Infallible {
    while let Some(line) = lines.recv().await {
        // A program that does not read is told by its silence.
        let _ = stdin.write_all(line.as_bytes()).await;
        let _ = stdin.flush().await;
    }
    std::future::pending().await
}

/// In words for the caller.
pub fn cut_off(exit: Exit) -> String {
    match exit {
        Exit::TooMuch(_) | Exit::Unknown => format!("Claude Code {}.", exit.told()),
        _ => format!("Claude Code {} before it was done.", exit.told()),
    }
}
