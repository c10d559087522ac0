//! `fill`: send a number of messages as fast as possible and print the last task's id.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::closed::Expect;
use crate::http::{Connection, Target};
use crate::request::Request;

pub async fn run(url: &str, key: Option<&str>, count: u64, connections: usize, as_json: bool) -> Result<()> {
    ensure!(count > 0 && connections > 0, "--count and --connections must be above zero");
    let target = Target::parse(url)?;
    let request = Request::message(&target, key, "SendMessage", "hello from the bench");
    let next = Arc::new(AtomicU64::new(1));
    let started = Instant::now();
    let mut tasks = Vec::with_capacity(connections);
    for _ in 0..connections {
        tasks.push(tokio::spawn(worker(target.clone(), request.clone(), next.clone(), count)));
    }
    let mut last = None;
    for task in tasks {
        let id = task.await.context("a connection's task failed")??;
        last = last.or(id);
    }
    let last = last.context("the last answer holds no task id")?;
    let seconds = started.elapsed().as_secs_f64();
    if as_json {
        let figures = json!({"count": count, "seconds": seconds, "last_task_id": last});
        println!("{figures}");
    } else {
        eprintln!("{count} messages in {seconds:.2} s");
        println!("{last}");
    }
    Ok(())
}

/// Send until `count` messages are taken; the id of message number `count` if it was sent here.
async fn worker(target: Target, mut request: Request, next: Arc<AtomicU64>, count: u64) -> Result<Option<String>> {
    let mut connection = Connection::open(&target).await?;
    let mut body = Vec::new();
    let mut last = None;
    loop {
        let sequence = next.fetch_add(1, Ordering::Relaxed);
        if sequence > count {
            return Ok(last);
        }
        let status = connection.call(request.stamp(sequence), &mut body).await?;
        ensure!(
            status == 200 && Expect::Completed.quickly(&body),
            "message {sequence} failed: {status} {}",
            String::from_utf8_lossy(&body)
        );
        if sequence == count {
            let answer: Value = serde_json::from_slice(&body).context("answer is not JSON")?;
            last = answer["result"]["task"]["id"].as_str().map(str::to_string);
        }
        if connection.closing {
            connection = Connection::open(&target).await?;
        }
    }
}
