//! Receives webhooks as fast as a plain loop over sockets can, and remembers when each task's last one came.

use anyhow::{Result, bail};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// How long nothing may come before waiting is given up.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Seen {
    count: AtomicUsize,
    ends: Mutex<HashMap<usize, Instant>>,
}

pub struct Receiver {
    pub port: u16,
    seen: Arc<Seen>,
}

impl Receiver {
    /// Acknowledges everything, at every loopback address.
    pub async fn start() -> Result<Self> {
        Self::listen("0.0.0.0:0", true).await
    }

    /// Takes connections and never answers.
    pub async fn dead() -> Result<Self> {
        Self::listen("127.0.0.1:0", false).await
    }

    async fn listen(address: &str, answers: bool) -> Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let port = listener.local_addr()?.port();
        let seen = Arc::new(Seen::default());
        let kept = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let seen = Arc::clone(&kept);
                tokio::spawn(async move {
                    // A connection that ends early is the hub's business.
                    let _ = serve(socket, &seen, answers).await;
                });
            }
        });
        Ok(Self { port, seen })
    }

    pub fn count(&self) -> usize {
        self.seen.count.load(Ordering::Relaxed)
    }

    pub fn ends(&self) -> HashMap<usize, Instant> {
        self.seen.ends.lock().map(|ends| ends.clone()).unwrap_or_default()
    }

    pub async fn wait(&self, count: usize) -> Result<()> {
        let (mut before, mut quiet) = (self.count(), Instant::now());
        while self.count() < count {
            tokio::time::sleep(Duration::from_millis(2)).await;
            if self.count() > before {
                (before, quiet) = (self.count(), Instant::now());
            } else if quiet.elapsed() > PATIENCE {
                bail!("only {before} of {count} webhooks came");
            }
        }
        Ok(())
    }
}

async fn serve(mut socket: TcpStream, seen: &Seen, answers: bool) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(8 * 1024);
    loop {
        let Some((head, length)) = head(&buffer) else {
            if socket.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
            continue;
        };
        while buffer.len() < head + length {
            if socket.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        seen.count.fetch_add(1, Ordering::Relaxed);
        if !answers {
            std::future::pending::<()>().await;
        }
        let ended = memchr::memmem::find(&buffer[head..head + length], b"TASK_STATE_COMPLETED").is_some();
        let number = std::str::from_utf8(&buffer[..head])
            .ok()
            .and_then(|text| text.split(' ').nth(1)?.trim_start_matches('/').parse::<usize>().ok());
        if let (true, Some(number), Ok(mut ends)) = (ended, number, seen.ends.lock()) {
            ends.insert(number, Instant::now());
        }
        buffer.drain(..head + length);
        socket.write_all(b"HTTP/1.1 204 x\r\n\r\n").await?;
    }
}

/// Where the body begins, and how long it is.
fn head(buffer: &[u8]) -> Option<(usize, usize)> {
    let end = memchr::memmem::find(buffer, b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&buffer[..end]).ok()?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then(|| value.parse().ok())?
    });
    Some((end, length.unwrap_or(0)))
}
