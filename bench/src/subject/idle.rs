//! `idle`: the memory that a quiet stream takes, each on a connection and a task of its own.

use std::time::Duration;

use anyhow::{Result, anyhow};
use tokio::time::timeout;

use super::Bench;
use crate::load::sse::Stream;
use crate::process;
use crate::server::Running;

const LIMIT: Duration = Duration::from_secs(30);
const SETTLE: Duration = Duration::from_secs(1);
/// Opened first and not counted: what a server sets up once.
const FIRST: usize = 20;

/// KiB for each stream.
pub const MEASURE: &str = "memory per idle stream";

pub async fn run(bench: &mut Bench) {
    for round in 0..bench.size.short_rounds {
        for server in bench.servers.clone() {
            if !server.has_tasks() || bench.results.gap_of(MEASURE, server).is_some() {
                continue;
            }
            let Some(running) = bench.start(server) else { continue };
            let grown = timeout(LIMIT, grown(&running, bench.size.idle_streams)).await;
            match grown.unwrap_or_else(|_| Err(anyhow!("over {LIMIT:?}"))) {
                Ok(kibibytes) => {
                    eprintln!("  {MEASURE}, {}: {kibibytes:.1} KiB", server.name());
                    bench.results.add(MEASURE, server, round, kibibytes);
                }
                Err(error) => {
                    bench.results.gap(MEASURE, server, "failed");
                    bench.results.fault(server, MEASURE, &error);
                }
            }
        }
    }
}

async fn grown(running: &Running, count: usize) -> Result<f64> {
    let mut streams = open(running, "first", FIRST).await?;
    tokio::time::sleep(SETTLE).await;
    let before = process::resident_bytes(running.pid())?;
    streams.extend(open(running, "more", count).await?);
    tokio::time::sleep(SETTLE).await;
    let after = process::resident_bytes(running.pid())?;
    Ok((after - before) / 1024.0 / count as f64)
}

/// Streams that have shown their first event and will show no other.
async fn open(running: &Running, name: &str, count: usize) -> Result<Vec<Stream>> {
    let endpoint = running.stream_endpoint();
    let mut streams = Vec::with_capacity(count);
    for index in 0..count {
        let mut stream = Stream::send(&endpoint, &format!("{name}-{index}"), "idle").await?;
        stream.first().await?;
        streams.push(stream);
    }
    Ok(streams)
}
