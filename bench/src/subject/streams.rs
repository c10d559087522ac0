//! `streams`: one task that streams many chunks, to one reader and to many.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::Bench;
use crate::load::sse::{Stream, task_id};
use crate::server::{Running, Server};

/// How long one stream may take.
const LIMIT: Duration = Duration::from_secs(20);
/// How long the agent waits before the first chunk, so that all readers are there.
const JOINING: Duration = Duration::from_millis(800);

/// The name of one measure; the value is the time for all chunks, in milliseconds.
pub fn measure(readers: usize, chunks: usize) -> String {
    format!("stream of {chunks} chunks, {readers} readers")
}

pub async fn run(bench: &mut Bench) -> Result<()> {
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
    Ok(())
}

async fn cell(bench: &mut Bench, server: Server, readers: usize, chunks: usize, round: usize) {
    let measure = measure(readers, chunks);
    if !server.has_tasks() || bench.results.gap_of(&measure, server).is_some() {
        return;
    }
    // A process for each stream: one that was too slow goes on with its work after its readers have left.
    let Some(running) = bench.start(server) else { return };
    match timeout(LIMIT, read(&running, readers, chunks)).await {
        Ok(Ok(took)) => {
            eprintln!("  {measure}, {}: {:.1} ms", server.name(), took.as_secs_f64() * 1000.0);
            bench.results.add(&measure, server, round, took.as_secs_f64() * 1000.0);
        }
        Ok(Err(error)) => bench.results.gap(&measure, server, "broke off", error),
        Err(_) => {
            let larger: Vec<usize> = bench.size.chunks.iter().copied().filter(|count| *count >= chunks).collect();
            for chunks in larger {
                let why = format!("over {} s", LIMIT.as_secs());
                bench.results.gap(&self::measure(readers, chunks), server, &why, format!("{chunks} chunks"));
            }
        }
    }
}

/// The time from when the agent begins to send until every reader has read everything.
async fn read(running: &Running, readers: usize, chunks: usize) -> Result<Duration> {
    let endpoint = running.stream_endpoint();
    // A short stream first, so that no figure holds the first use of anything.
    Stream::send(&endpoint, "warm", "chunks 10 1ms").await?.finish(10).await.context("warm-up")?;
    let delay = if readers > 1 { JOINING } else { Duration::from_millis(1) };
    let sent = Instant::now();
    let text = format!("chunks {chunks} {}ms", delay.as_millis());
    let mut first = Stream::send(&endpoint, "measured", &text).await?;
    let mut others = Vec::with_capacity(readers);
    if readers > 1 {
        let task = task_id(&first.first().await?)?;
        for _ in 1..readers {
            let mut other = Stream::subscribe(&endpoint, &task).await?;
            other.first().await?;
            others.push(other);
        }
        anyhow::ensure!(sent.elapsed() < delay, "{readers} readers did not join within {delay:?}");
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
