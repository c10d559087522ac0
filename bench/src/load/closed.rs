//! The closed loop: each connection makes its next call once answered. It finds what a server can do at most.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::call::{Call, Channel, Endpoint};
use super::stats::Stats;
use crate::process;

/// How long after the end an outstanding answer is waited for.
pub const GRACE: Duration = Duration::from_secs(10);
/// How many calls in a thousand may fail before a figure is worth nothing.
const TOLERATED: u64 = 1;

#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub connections: usize,
    pub warmup: Duration,
    pub window: Duration,
}

#[derive(Debug)]
pub struct Capacity {
    pub per_second: f64,
    /// The middle of the latencies, in milliseconds.
    pub p50_ms: f64,
    /// The server's processor time for each call, in microseconds.
    pub cpu_us: f64,
}

/// Opens connections, each proven with one call whose answer is read in full.
pub async fn open(endpoint: &Endpoint, call: &Call, count: usize) -> Result<Vec<(Channel, Call)>> {
    let mut open = Vec::with_capacity(count);
    let mut body = Vec::new();
    for index in 0..count {
        let mut call = call.clone();
        let opened = async {
            let mut channel = Channel::open(endpoint).await?;
            if index == 0 {
                channel.call(&mut call, u64::MAX - index as u64, &mut body).await?;
                call.check_strictly(&body)?;
            }
            if channel.is_closing() {
                channel = Channel::open(endpoint).await?;
            }
            anyhow::Ok(channel)
        };
        let channel = timeout(GRACE, opened).await.context("no answer while connecting")??;
        open.push((channel, call));
    }
    Ok(open)
}

/// Measures the most a server does for so many connections.
pub async fn run(endpoint: &Endpoint, call: &Call, pace: Pace, pid: u32) -> Result<Capacity> {
    let open = open(endpoint, call, pace.connections).await?;
    let start = Instant::now() + pace.warmup;
    let end = start + pace.window;
    let mut tasks = JoinSet::new();
    for (index, (channel, call)) in open.into_iter().enumerate() {
        let endpoint = endpoint.clone();
        tasks.spawn(async move {
            let mut stats = Stats::default();
            let work = drive(&endpoint, channel, call, index, (start, end), &mut stats);
            if timeout_at(end + GRACE, work).await.is_err() {
                stats.fail("no answer after the end of the run");
            }
            stats
        });
    }
    sleep_until(start).await;
    let before = process::cpu_seconds(pid)?;
    sleep_until(end).await;
    let cpu = process::cpu_seconds(pid)? - before;
    let mut total = collect(tasks).await?;
    let count = total.count() as f64;
    let p50_ms = total.percentile(0.5);
    Ok(Capacity { per_second: count / pace.window.as_secs_f64(), p50_ms, cpu_us: cpu * 1e6 / count })
}

/// Adds up what the connections saw; an error if too much of it went wrong.
pub async fn collect(mut tasks: JoinSet<Stats>) -> Result<Stats> {
    let mut total = Stats::default();
    while let Some(stats) = tasks.join_next().await {
        total.merge(stats.context("a connection's task failed")?);
    }
    let why = total.first_error.as_deref().unwrap_or("no error was seen");
    ensure!(total.count() > 0, "no answer in time: {why}");
    ensure!(total.errors * 1000 <= total.count() as u64 * TOLERATED, "{} calls failed, first: {why}", total.errors);
    Ok(total)
}

/// One connection's loop. Answers that arrive between start and end count; all errors do.
async fn drive(
    endpoint: &Endpoint,
    mut channel: Channel,
    mut call: Call,
    index: usize,
    (start, end): (Instant, Instant),
    stats: &mut Stats,
) {
    let mut body = Vec::new();
    let mut sequence = (index as u64) << 40;
    let mut sent = Instant::now();
    while sent < end {
        sequence += 1;
        let answer = channel.call(&mut call, sequence, &mut body).await;
        let now = Instant::now();
        if let Err(error) = &answer {
            stats.fail(format!("{error:#}"));
        } else if now >= start && now < end {
            stats.record(now - sent);
        }
        if answer.is_err() || channel.is_closing() {
            match Channel::open(endpoint).await {
                Ok(fresh) => channel = fresh,
                Err(error) => return stats.fail(format!("{error:#}")),
            }
        }
        sent = now;
    }
}

/// Makes `count` tasks as fast as the server takes them; returns the ids of up to `keep` of them, evenly spaced.
pub async fn fill(
    endpoint: &Endpoint,
    count: u64,
    connections: usize,
    keep: u64,
    limit: Duration,
) -> Result<Vec<String>> {
    let call = Call::send(endpoint)?;
    let next = Rc::new(Cell::new(0));
    let every = (count / keep).max(1);
    let local = tokio::task::LocalSet::new();
    let mut tasks = JoinSet::new();
    for (mut channel, mut call) in open(endpoint, &call, connections).await? {
        let (next, endpoint) = (next.clone(), endpoint.clone());
        let work = async move {
            let (mut body, mut ids) = (Vec::new(), Vec::new());
            while next.get() < count {
                let sequence = next.get();
                next.set(sequence + 1);
                channel.call(&mut call, sequence, &mut body).await?;
                if sequence % every == 0 {
                    let answer: Value = serde_json::from_slice(&body).context("the answer is not JSON")?;
                    ids.push(answer["result"]["task"]["id"].as_str().context("no task id")?.to_owned());
                }
                if channel.is_closing() {
                    channel = Channel::open(&endpoint).await?;
                }
            }
            anyhow::Ok(ids)
        };
        tasks.spawn_local_on(work, &local);
    }
    let all = local.run_until(async {
        let mut ids = Vec::new();
        while let Some(some) = tasks.join_next().await {
            ids.extend(some.context("a connection's task failed")??);
        }
        anyhow::Ok(ids)
    });
    timeout(limit, all).await.with_context(|| format!("{count} tasks were not made within {limit:?}"))?
}
