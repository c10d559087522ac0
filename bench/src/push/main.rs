//! Measures webhooks: how many a hub delivers in a second, and what one dead target among many does to the others.
#![forbid(unsafe_code)]

mod hub;
mod receiver;

use anyhow::{Context, Result, bail};
use flotilla_bench::load::http::Connection;
use flotilla_bench::load::stats::{Spread, Stats};
use hub::Hub;
use receiver::Receiver;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Events of an echo's task: the task, its artifact, its end.
const EVENTS: usize = 3;
const CONNECTIONS: usize = 32;
const TARGETS: usize = 1_000;
/// Tasks a second while the dead target is looked at.
const RATE: usize = 200;
const ROUNDS: usize = 5;

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let usage = "usage: push PATH/TO/flotilla SCRATCH-FOLDER [SECONDS]";
    let (Some(binary), Some(scratch)) = (words.next(), words.next()) else { bail!(usage) };
    let seconds: usize = words.next().map_or(Ok(10), |text| text.parse()).context(usage)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let window = Duration::from_secs(seconds as u64);
        throughput(&binary, &scratch, window).await?;
        // In turn, so that what else the machine does falls on both alike.
        let (mut alone, mut beside) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            alone.push(isolation(&binary, &scratch, seconds * RATE, false).await?);
            beside.push(isolation(&binary, &scratch, seconds * RATE, true).await?);
        }
        let median = |values: Vec<f64>| Spread::of(values).map_or(f64::NAN, |spread| spread.median);
        let (alone, beside) = (median(alone), median(beside));
        println!("p99, median of {ROUNDS} rounds: {alone:.1} ms all well, {beside:.1} ms with one dead of {TARGETS}: {:.2} times", beside / alone);
        Ok(())
    })
}

/// As many tasks as come through, each with a webhook of its own; counted is what was delivered and settled.
async fn throughput(binary: &str, scratch: &str, window: Duration) -> Result<()> {
    let receiver = Receiver::start().await?;
    let hub = Hub::start(binary, scratch)?;
    let sent = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let mut senders = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (address, key, sent) = (hub.address.clone(), hub.key.clone(), Arc::clone(&sent));
        let port = receiver.port;
        senders.spawn(async move {
            let mut connection = Connection::open(&address).await?;
            let mut body = Vec::new();
            while started.elapsed() < window {
                let number = sent.fetch_add(1, Ordering::Relaxed);
                let request = hub::request(&address, &key, &format!("http://127.0.0.1:{port}/{number}"), number);
                let status = connection.call(&request, &mut body).await?;
                anyhow::ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(&body));
            }
            Ok(())
        });
    }
    while let Some(done) = senders.join_next().await {
        done??;
    }
    let tasks = sent.load(Ordering::Relaxed);
    receiver.wait(tasks * EVENTS).await?;
    let took = started.elapsed().as_secs_f64();
    let delivered = receiver.count();
    println!(
        "{:.0} deliveries a second ({delivered} of {tasks} tasks in {took:.1} s, {CONNECTIONS} callers)",
        delivered as f64 / took
    );
    Ok(())
}

/// Tasks at a fixed rate, in turn to many targets; the time from the call to the last webhook of each, its p99.
async fn isolation(binary: &str, scratch: &str, tasks: usize, with_dead: bool) -> Result<f64> {
    let receiver = Receiver::start().await?;
    let dead = Receiver::dead().await?;
    let hub = Hub::start(binary, scratch)?;
    let started = Instant::now();
    let mut sent = Vec::with_capacity(tasks);
    let mut free: Vec<Connection> = Vec::new();
    for _ in 0..CONNECTIONS {
        free.push(Connection::open(&hub.address).await?);
    }
    let mut body = Vec::new();
    for number in 0..tasks {
        let due = started + Duration::from_secs_f64(number as f64 / RATE as f64);
        tokio::time::sleep_until(due).await;
        let target = number % TARGETS;
        let url = if with_dead && target == 0 {
            format!("http://127.0.0.1:{}/{number}", dead.port)
        } else {
            format!("http://127.1.{}.{}:{}/{number}", target / 250, target % 250 + 1, receiver.port)
        };
        sent.push((Instant::now(), with_dead && target == 0));
        let connection = &mut free[number % CONNECTIONS];
        let request = hub::request(&hub.address, &hub.key, &url, number);
        let status = connection.call(&request, &mut body).await?;
        anyhow::ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(&body));
    }
    let lively = sent.iter().filter(|(_, dead)| !dead).count();
    receiver.wait(lively * EVENTS).await?;
    let mut stats = Stats::default();
    let ends = receiver.ends();
    for (number, (at, _)) in sent.iter().enumerate().filter(|(_, (_, dead))| !dead) {
        let end = ends.get(&number).with_context(|| format!("task {number} was not told to its end"))?;
        stats.record(*end - *at);
    }
    let (p50, p99) = (stats.percentile(0.5), stats.percentile(0.99));
    let how =
        if with_dead { format!("one of them dead (called {} times)", dead.count()) } else { "all well".to_owned() };
    println!(
        "{TARGETS} targets, {how}, {RATE} tasks a second: from call to last webhook p50 {p50:.1} ms, p99 {p99:.1} ms"
    );
    Ok(p99)
}
