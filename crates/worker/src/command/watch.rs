//! A program's two streams, read together and within bounds.

use super::aside::Aside;
use super::lines::Heard;
use super::{Bounds, Talk};
use crate::supervise::{Exit, Running};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::Instant;

/// Read at a time.
const CHUNK: usize = 16 * 1024;

/// Why nothing more is read.
#[derive(Debug, PartialEq, Eq)]
pub enum Silence {
    Quiet,
    TooMuch(String),
}

pub struct Reader {
    out: Stream<ChildStdout>,
    err: Stream<ChildStderr>,
    aside: Aside,
    bounds: Bounds,
    read: usize,
    /// When something was last said.
    heard_at: Instant,
}

struct Stream<R> {
    from: R,
    /// Read, and not yet a whole line or a whole character.
    rest: Vec<u8>,
    open: bool,
}

impl<R: AsyncRead + Unpin> Stream<R> {
    fn new(from: R) -> Self {
        Self { from, rest: Vec::new(), open: true }
    }

    /// Reads some more; none at the end. Nothing is lost when this is dropped half-way.
    async fn more(&mut self) -> usize {
        self.rest.reserve(CHUNK);
        self.from.read_buf(&mut self.rest).await.unwrap_or(0)
    }

    /// Whether something of it can be told.
    fn has_more(&self, talk: Talk) -> bool {
        match talk {
            Talk::JsonLines if self.open => self.rest.contains(&b'\n'),
            _ => !self.rest.is_empty(),
        }
    }

    /// The next whole line, without its end; at the end of the stream also what has none.
    fn line(&mut self) -> Option<String> {
        let (length, skip) = match self.rest.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end, end + 1),
            None if !self.open && !self.rest.is_empty() => (self.rest.len(), self.rest.len()),
            None => return None,
        };
        let line = String::from_utf8_lossy(&self.rest[..length]).trim_end_matches('\r').to_owned();
        self.rest.drain(..skip);
        Some(line)
    }

    /// All whole characters; at the end of the stream all there is.
    fn text(&mut self) -> Option<String> {
        let whole = match std::str::from_utf8(&self.rest) {
            Ok(_) => self.rest.len(),
            // One that has only begun waits for its rest; one that is wrong does not.
            Err(error) if error.error_len().is_none() && self.open => error.valid_up_to(),
            Err(_) => self.rest.len(),
        };
        let text = String::from_utf8_lossy(&self.rest[..whole]).into_owned();
        self.rest.drain(..whole);
        (!text.is_empty()).then_some(text)
    }
}

impl Reader {
    pub fn new(out: ChildStdout, err: ChildStderr, bounds: Bounds) -> Self {
        Self {
            out: Stream::new(out),
            err: Stream::new(err),
            aside: Aside::default(),
            bounds,
            read: 0,
            heard_at: Instant::now(),
        }
    }

    /// Whether a whole line is there without waiting.
    pub fn is_ready(&self) -> bool {
        self.out.rest.contains(&b'\n') || self.err.rest.contains(&b'\n')
    }

    /// Silence is counted from now on: it is not the program that keeps others waiting.
    pub fn excuse(&mut self) {
        self.heard_at = Instant::now();
    }

    /// What is said next on either stream; none when both have ended. May be dropped at any await.
    pub async fn next(&mut self, talk: Talk) -> Result<Option<Heard>, Silence> {
        loop {
            self.gather();
            // What was said aside before something else stands before it.
            let is_pressing = !self.aside.is_empty() && self.out.has_more(talk);
            if let Some(text) = self.aside.ready(is_pressing) {
                return Ok(Some(Heard::Aside(text)));
            }
            let said = match talk {
                Talk::Text => self.out.text().map(Heard::Text),
                Talk::JsonLines => self.out.line().map(Heard::Line),
            };
            if said.is_some() {
                return Ok(said);
            }
            if !self.out.open && !self.err.open {
                return Ok(self.aside.rest().map(Heard::Aside));
            }
            self.read_some().await?;
        }
    }

    fn gather(&mut self) {
        while let Some(line) = self.err.line() {
            self.aside.add(&line);
        }
    }

    /// What has been said aside by now, without waiting for more.
    pub async fn aside_now(&mut self) -> Option<String> {
        // What is there is seen only after the runtime has looked.
        tokio::task::yield_now().await;
        while self.err.open && self.read <= self.bounds.output {
            tokio::select! {
                biased;
                count = self.err.more() => {
                    self.err.open = count > 0;
                    self.read += count;
                }
                () = std::future::ready(()) => break,
            }
        }
        self.gather();
        self.aside.rest()
    }

    /// Reads on to the end, for nobody.
    pub async fn drain(&mut self) {
        while self.out.open || self.err.open {
            let (out, err) = (&mut self.out, &mut self.err);
            tokio::select! {
                count = out.more(), if out.open => out.open = count > 0,
                count = err.more(), if err.open => err.open = count > 0,
            }
            self.out.rest.clear();
            self.err.rest.clear();
        }
    }

    async fn read_some(&mut self) -> Result<(), Silence> {
        let Self { out, err, aside, bounds, read, heard_at } = self;
        let (out_open, err_open) = (out.open, err.open);
        let some = async {
            tokio::select! {
                count = out.more(), if out_open => (count, true),
                count = err.more(), if err_open => (count, false),
            }
        };
        let quiet_at = *heard_at + bounds.silence;
        let until = aside.due().map_or(quiet_at, |due| due.min(quiet_at));
        let (count, is_out) = match tokio::time::timeout_at(until, some).await {
            Ok(read) => read,
            Err(_) if until < quiet_at => return Ok(()),
            Err(_) => return Err(Silence::Quiet),
        };
        *heard_at = Instant::now();
        if count == 0 {
            if is_out { out.open = false } else { err.open = false }
        }
        *read += count;
        if *read > bounds.output {
            return Err(Silence::TooMuch(format!("it printed more than {} bytes", bounds.output)));
        }
        if out.rest.len().max(err.rest.len()) > bounds.line {
            return Err(Silence::TooMuch(format!("it printed a line of more than {} bytes", bounds.line)));
        }
        Ok(())
    }
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
