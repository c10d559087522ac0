//! The closed loop behind `send` and `rpc`: each connection sends its next request once answered.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::http::{Connection, Target};
use crate::request::Request;
use crate::stats::{self, Stats};

/// How long after the end an outstanding answer is waited for.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Args)]
pub struct Pace {
    /// Connections, each with one request under way.
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Seconds measured.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Seconds under the same load before measuring.
    #[arg(long, default_value_t = 1.0)]
    warmup: f64,
    /// Also print the CPU time per request of this process, the server.
    #[arg(long)]
    pid: Option<u32>,
}

/// What an answer must hold.
#[derive(Clone, Copy)]
pub enum Expect {
    /// A result whose task is completed.
    Completed,
    /// Any result.
    Result,
}

impl Expect {
    /// Parse the answer: done for each connection's first one.
    fn strictly(self, body: &[u8]) -> bool {
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        match self {
            Expect::Completed => answer["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED",
            Expect::Result => answer.get("result").is_some(),
        }
    }

    /// Look for the words: cheap enough for every answer.
    pub fn quickly(self, body: &[u8]) -> bool {
        let found = |text: &str| memchr::memmem::find(body, text.as_bytes()).is_some();
        match self {
            Expect::Completed => found(r#""result""#) && found(r#""TASK_STATE_COMPLETED""#),
            Expect::Result => found(r#""result""#),
        }
    }
}

pub async fn run(target: Target, request: Request, expect: Expect, pace: Pace, json: bool) -> Result<()> {
    if pace.connections == 0 || pace.seconds <= 0.0 || pace.warmup < 0.0 {
        bail!("--connections and --seconds must be above zero, --warmup not below");
    }
    let mut open = Vec::with_capacity(pace.connections);
    for _ in 0..pace.connections {
        open.push(Connection::open(&target).await?);
    }
    let start = Instant::now() + Duration::from_secs_f64(pace.warmup);
    let end = start + Duration::from_secs_f64(pace.seconds);
    let mut tasks = Vec::with_capacity(pace.connections);
    for (index, connection) in open.into_iter().enumerate() {
        let (target, request) = (target.clone(), request.clone());
        tasks.push(tokio::spawn(async move {
            let mut stats = Stats::default();
            let work = drive(connection, &target, request, index, expect, start, end, &mut stats);
            if timeout_at(end + GRACE, work).await.is_err() {
                stats.fail("no answer after the end of the run");
            }
            stats
        }));
    }
    tokio::time::sleep_until(start).await;
    let cpu_before = pace.pid.map(cpu_seconds).transpose()?;
    tokio::time::sleep_until(end).await;
    let cpu_after = pace.pid.map(cpu_seconds).transpose()?;

    let mut total = Stats::default();
    for task in tasks {
        total.merge(task.await.context("a connection's task failed")?);
    }
    if let Some(why) = &total.first_error {
        eprintln!("first error: {why}");
    }
    let mut figures = total.figures(pace.seconds);
    if let (Some(before), Some(after)) = (cpu_before, cpu_after) {
        let requests = figures["requests"].as_f64().unwrap_or_default().max(1.0);
        figures["cpu_us"] = (((after - before) * 1e7 / requests).round() / 10.0).into();
    }
    stats::print(&figures, json);
    Ok(())
}

/// One connection's loop. Answers that arrive between `start` and `end` count; all errors do.
#[allow(clippy::too_many_arguments)]
async fn drive(
    mut connection: Connection,
    target: &Target,
    mut request: Request,
    index: usize,
    expect: Expect,
    start: Instant,
    end: Instant,
    stats: &mut Stats,
) {
    let mut body = Vec::new();
    let mut sequence = (index as u64) << 40;
    let mut sent = Instant::now();
    let mut first = true;
    while sent < end {
        sequence += 1;
        let answer = connection.call(request.stamp(sequence), &mut body).await;
        let now = Instant::now();
        match &answer {
            Ok(200) if expect.quickly(&body) && (!first || expect.strictly(&body)) => {
                if now >= start && now < end {
                    stats.record(now - sent);
                }
            }
            Ok(status) => stats.fail(format!("{status} {}", String::from_utf8_lossy(&body))),
            Err(error) => stats.fail(format!("{error:#}")),
        }
        first = false;
        if answer.is_err() || connection.closing {
            match Connection::open(target).await {
                Ok(fresh) => connection = fresh,
                Err(error) => return stats.fail(format!("{error:#}")),
            }
        }
        sent = now;
    }
}

/// User and system time a process has used, from /proc.
fn cpu_seconds(pid: u32) -> Result<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    // The name, in parentheses, may hold spaces: count the fields after it.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    Ok(ticks / TICKS_PER_SECOND)
}
