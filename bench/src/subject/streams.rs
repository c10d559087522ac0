//! `streams`: one task that streams many chunks, to one reader and to many.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::Bench;
use crate::load::sse::{Stream, task_id};
use crate::server::{Running, Server};
use crate::table::counted;

/// How long one stream may take.
const LIMIT: Duration = Duration::from_secs(20);
/// How long the agent waits before the first chunk, so that all readers are there.
const JOINING: Duration = Duration::from_millis(800);
/// A server that needs longer for that gets this.
const JOINING_SLOWLY: Duration = Duration::from_secs(5);

/// The name of one measure; the value is the time for all chunks, in milliseconds.
pub fn measure(readers: usize, chunks: usize) -> String {
    format!("stream of {}, {}", counted(chunks, "chunk"), counted(readers, "reader"))
}

pub async fn run(bench: &mut Bench) {
    let size = bench.size.clone();
    for readers in size.readers {
        for chunks in size.chunks.clone() {
            for round in 0..size.short_rounds {
                for server in bench.servers.clone() {
                    cell(bench, server, readers, chunks, round).await;
                }
            }
        }
    }
}

async fn cell(bench: &mut Bench, server: Server, readers: usize, chunks: usize, round: usize) {
    let measure = measure(readers, chunks);
    if !server.has_tasks() || bench.results.gap_of(&measure, server).is_some() {
        return;
    }
    // A process for each stream: one that was too slow goes on with its work after its readers have left.
    let Some(running) = bench.start(server) else { return };
    let read = async {
        // A short stream first, so that no figure holds the first use of anything.
        Stream::send(&running.stream_endpoint(), "warm", "chunks 10 1ms").await?.finish(10).await.context("warm-up")?;
        if readers == 1 {
            return read(&running, 1, chunks, Duration::from_millis(1)).await;
        }
        match read(&running, readers, chunks, JOINING).await {
            Err(error) if error.is::<Late>() => read(&running, readers, chunks, JOINING_SLOWLY).await,
            took => took,
        }
    };
    match timeout(LIMIT, read).await {
        Ok(Ok(took)) => {
            eprintln!("  {measure}, {}: {:.1} ms", server.name(), took.as_secs_f64() * 1000.0);
            bench.results.add(&measure, server, round, took.as_secs_f64() * 1000.0);
        }
        Ok(Err(error)) => {
            bench.results.gap(&measure, server, "broke off");
            bench.results.fault(server, &measure, &error);
        }
        Err(_) => {
            let why = format!("over {} s", LIMIT.as_secs());
            // More chunks would take longer still.
            for chunks in bench.size.chunks.iter().filter(|count| **count >= chunks) {
                bench.results.gap(&self::measure(readers, *chunks), server, &why);
            }
            bench.results.fault(server, &measure, &anyhow!(why));
        }
    }
}

/// The agent began before all readers were there.
#[derive(Debug)]
struct Late;

impl std::fmt::Display for Late {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the readers did not join in time")
    }
}

impl std::error::Error for Late {}

/// The time from when the agent begins to send until every reader has read everything.
async fn read(running: &Running, readers: usize, chunks: usize, delay: Duration) -> Result<Duration> {
    let endpoint = running.stream_endpoint();
    let sent = Instant::now();
    let text = format!("chunks {chunks} {}ms", delay.as_millis());
    let mut first = Stream::send(&endpoint, &format!("measured after {delay:?}"), &text).await?;
    let mut others = Vec::with_capacity(readers);
    if readers > 1 {
        let task = task_id(&first.first().await?)?;
        for _ in 1..readers {
            let mut other = Stream::subscribe(&endpoint, &task).await?;
            other.first().await?;
            others.push(other);
        }
        ensure!(sent.elapsed() < delay, Late);
    }
    let mut tasks = JoinSet::new();
    for mut stream in others.into_iter().chain([first]) {
        tasks.spawn(async move { stream.finish(chunks).await });
    }
    while let Some(finished) = tasks.join_next().await {
        finished.context("a reader's task failed")??;
    }
    Ok(sent.elapsed().saturating_sub(delay))
}
