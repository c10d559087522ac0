//! How a process of Claude Code is spoken to, and left.

use crate::command::watch::Reader;
use crate::supervise::{Exit, Running};
use std::convert::Infallible;
use std::time::Duration;
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

/// Waits for a program that was told to end, and ends it if it lingers.
pub async fn leave(running: &mut Running, reader: &mut Reader, grace: Duration) -> Exit {
    let leaving = async {
        let (exit, ()) = tokio::join!(running.ended(), reader.drain());
        exit
    };
    if let Ok(exit) = tokio::time::timeout(grace, leaving).await {
        return exit;
    }
    let (exit, ()) = tokio::join!(running.kill(), reader.drain());
    exit
}

/// In words for the caller.
pub fn cut_off(exit: Exit) -> String {
    let how = match exit {
        Exit::Code(code) => format!("ended with exit code {code}"),
        Exit::Signal(number) => format!("was ended by signal {number}"),
        Exit::NotStarted => "could not be run".into(),
        Exit::Unknown => "ended, nobody knows how,".into(),
    };
    format!("Claude Code {how} before it was done.")
}
