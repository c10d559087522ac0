//! `chunks`: time whole SSE streams of many artifact updates.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::http::{Connection, Target};
use crate::request::Request;
use crate::stats::{median, print};

pub async fn run(url: &str, key: Option<&str>, chunks: usize, repeat: usize, as_json: bool) -> Result<()> {
    ensure!(chunks > 0 && repeat > 0, "--chunks and --repeat must be above zero");
    let target = Target::parse(url)?;
    let text = format!("chunks {chunks}");
    let mut request = Request::message(&target, key, "SendStreamingMessage", &text);
    let mut totals = Vec::with_capacity(repeat);
    let mut failed = 0;
    for sequence in 0.. {
        let mut connection = Connection::open(&target).await?;
        let started = Instant::now();
        let seen = read_stream(&mut connection, request.stamp(sequence)).await?;
        let elapsed = started.elapsed();
        if seen.updates == chunks && seen.completed {
            totals.push(elapsed.as_secs_f64() * 1000.0);
            if totals.len() == repeat {
                break;
            }
        } else {
            // A stream that broke off is counted and tried again, up to a point.
            failed += 1;
            eprintln!("a stream held {} of {chunks} artifact updates; its last event: {}", seen.updates, seen.last);
            ensure!(failed <= repeat, "too many streams failed");
        }
    }
    let total = median(totals);
    let figures = json!({
        "chunks": chunks,
        "repeat": repeat,
        "failed": failed,
        "total_ms": (total * 1000.0).round() / 1000.0,
        "us_per_chunk": (total * 100_000.0 / chunks as f64).round() / 100.0,
    });
    print(&figures, as_json);
    Ok(())
}

#[derive(Default)]
struct Seen {
    updates: usize,
    /// The last event says that the task is completed.
    completed: bool,
    last: String,
}

async fn read_stream(connection: &mut Connection, request: &[u8]) -> Result<Seen> {
    let status = connection.send(request).await?;
    let mut seen = Seen::default();
    let mut pending = Vec::new();
    let mut last = Vec::new();
    while connection.piece(&mut pending).await.context("the stream broke off")? {
        let mut start = 0;
        while let Some(length) = memchr::memchr(b'\n', &pending[start..]) {
            let line = &pending[start..start + length];
            start += length + 1;
            if let Some(data) = line.strip_prefix(b"data:") {
                let update = memchr::memmem::find(data, br#""artifactUpdate""#).is_some();
                seen.updates += usize::from(update);
                last.clear();
                last.extend_from_slice(data);
            }
        }
        pending.drain(..start);
    }
    // An answer that is no event stream is an error worth showing.
    last.extend_from_slice(&pending);
    seen.last = String::from_utf8_lossy(&last).trim().to_string();
    ensure!(status == 200, "the server answered {status} {}", seen.last);
    seen.completed = seen.last.contains("TASK_STATE_COMPLETED");
    Ok(seen)
}
