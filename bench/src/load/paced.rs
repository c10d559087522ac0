//! Calls at a fixed rate, whether or not the server keeps up: the latency of each counts from when it was due.
//!
//! A closed loop sends less while the server is slow, and so hides the slowness (coordinated omission). Here call
//! number i is due at start + i / rate. It goes out on the first free connection, and what it waited for one counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::call::{Call, Channel, Endpoint};
use super::closed::{GRACE, collect, open};
use super::stats::Stats;

/// The shortest nap of the clock's thread; shorter ones would take the processor from the server.
const NAP: Duration = Duration::from_micros(100);
/// This share of the window goes by before latencies count.
const WARMUP: f64 = 0.2;

/// Latencies in milliseconds.
#[derive(Debug)]
pub struct Latency {
    pub p50: f64,
    pub p99: f64,
}

/// The calls of one run, and when each is due.
struct Schedule {
    start: Instant,
    interval: f64,
    count: u64,
    next: AtomicU64,
    /// One permit for each call that is due and not taken.
    due: Semaphore,
}

impl Schedule {
    fn new(rate: f64, window: Duration) -> Schedule {
        Schedule {
            start: Instant::now() + Duration::from_millis(20),
            interval: 1.0 / rate,
            count: ((rate * window.as_secs_f64()) as u64).max(2),
            next: AtomicU64::new(0),
            due: Semaphore::new(0),
        }
    }

    fn time_of(&self, index: u64) -> Instant {
        self.start + Duration::from_secs_f64(index as f64 * self.interval)
    }

    /// Lets calls out as they become due. A thread, because the runtime's own timer only counts milliseconds.
    fn tick(&self) {
        let mut released = 0;
        while released < self.count && !self.due.is_closed() {
            let passed = Instant::now().saturating_duration_since(self.start).as_secs_f64();
            let due = ((passed / self.interval) as u64 + u64::from(Instant::now() >= self.start)).min(self.count);
            if due > released {
                self.due.add_permits((due - released) as usize);
                released = due;
            }
            std::thread::sleep(self.time_of(released).saturating_duration_since(Instant::now()).max(NAP));
        }
        // Whoever still waits has nothing to wait for.
        self.due.close();
    }
}

/// Measures latency at `rate` calls a second.
pub async fn run(endpoint: &Endpoint, call: &Call, connections: usize, rate: f64, window: Duration) -> Result<Latency> {
    ensure!(rate > 0.0, "no rate to send at");
    let open = open(endpoint, call, connections).await?;
    let mut total = follow(Arc::new(Schedule::new(rate, window)), endpoint, open).await?;
    Ok(Latency { p50: total.percentile(0.50), p99: total.percentile(0.99) })
}

async fn follow(schedule: Arc<Schedule>, endpoint: &Endpoint, open: Vec<(Channel, Call)>) -> Result<Stats> {
    let mut tasks = JoinSet::new();
    for (channel, call) in open {
        let (schedule, endpoint) = (schedule.clone(), endpoint.clone());
        tasks.spawn(async move {
            let mut stats = Stats::default();
            let give_up = schedule.time_of(schedule.count) + GRACE;
            if timeout_at(give_up, drive(&schedule, &endpoint, channel, call, &mut stats)).await.is_err() {
                stats.fail("no answer in time");
            }
            stats
        });
    }
    let clock = schedule.clone();
    let clock = std::thread::spawn(move || clock.tick());
    let total = collect(tasks).await;
    // Ends the clock's thread if the connections gave up first.
    schedule.due.close();
    let _ = clock.join();
    total
}

async fn drive(schedule: &Schedule, endpoint: &Endpoint, mut channel: Channel, mut call: Call, stats: &mut Stats) {
    let mut body = Vec::new();
    let warm = (schedule.count as f64 * WARMUP) as u64;
    loop {
        // A closed semaphore hands out no permits, and the last calls may still be there to take.
        if let Ok(permit) = schedule.due.acquire().await {
            permit.forget();
        }
        let index = schedule.next.fetch_add(1, Ordering::Relaxed);
        if index >= schedule.count {
            return;
        }
        let answer = channel.call(&mut call, index, &mut body).await;
        let latency = Instant::now().saturating_duration_since(schedule.time_of(index));
        if let Err(error) = &answer {
            stats.fail(format!("{error:#}"));
        } else if index >= warm {
            stats.record(latency);
        }
        if answer.is_err() || channel.is_closing() {
            match Channel::open(endpoint).await {
                Ok(fresh) => channel = fresh,
                Err(error) => return stats.fail(format!("{error:#}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::call::{Binding, TEXT};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// A closed loop would see one slow call in this run. Here all that came due meanwhile are slow.
    #[tokio::test]
    async fn a_stall_counts_for_every_call_that_came_due() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let endpoint = Endpoint { binding: Binding::JsonRpc, address, path: "/".into(), key: None };
        let mut call = Call::send(&endpoint).unwrap();
        let size = call.stamp(0).len();
        let schedule = Arc::new(Schedule::new(1000.0, Duration::from_millis(200)));
        let seen = schedule.clone();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut request, mut count) = (vec![0; size], 0);
            let body = format!(r#"["TASK_STATE_COMPLETED","{TEXT}"]"#);
            while stream.read_exact(&mut request).await.is_ok() {
                count += 1;
                while count == 50 && seen.due.available_permits() < 100 {
                    tokio::task::yield_now().await;
                }
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let channel = Channel::open(&endpoint).await.unwrap();
        let mut stats = follow(schedule, &endpoint, vec![(channel, call)]).await.unwrap();
        assert_eq!(stats.count(), 160);
        // A hundred calls were due a millisecond apart when the stall ended.
        assert!(stats.percentile(0.99) > 90.0, "p99 {}", stats.percentile(0.99));
        assert!(stats.percentile(0.50) > 10.0, "p50 {}", stats.percentile(0.50));
    }
}
