//! Measures sockets: what an idle agent costs, how fast a message reaches one of thousands, how fast all come back, and
//! that cuts at random lose nothing.
#![forbid(unsafe_code)]

mod agent;
mod cuts;
mod hub;

use agent::Agent;
use anyhow::{Context, Result, bail};
use flotilla_bench::load::http::Connection;
use flotilla_bench::load::stats::Stats;
use flotilla_bench::process::resident_bytes;
use hub::Hub;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Connections that are being opened at once.
const AT_ONCE: usize = 256;
/// Messages whose way to an agent is timed.
const MESSAGES: usize = 2_000;

/// So many agents are what the figures are asked of.
const ASKED: usize = 5_000;

/// What is asked, and what came to it.
struct Figures {
    /// With fewer agents, they are only told.
    count: bool,
    missed: Vec<&'static str>,
}

impl Figures {
    fn told(&mut self, name: &'static str, figure: String, asked: &str, holds: bool) {
        let missed = self.count && !holds;
        let verdict = if missed { ": MISSED" } else { "" };
        println!("{name}: {figure} (asked: {asked}{verdict})");
        if missed {
            self.missed.push(name);
        }
    }
}

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let usage = "usage: sockets PATH/TO/flotilla SCRATCH-FOLDER [AGENTS] [CUTS]";
    let (Some(binary), Some(scratch)) = (words.next(), words.next()) else { bail!(usage) };
    let agents: usize = words.next().map_or(Ok(ASKED), |text| text.parse()).context(usage)?;
    let cuts: usize = words.next().map_or(Ok(200), |text| text.parse()).context(usage)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let mut hub = Hub::start(&binary, &scratch)?;
        let mut figures = Figures { count: agents >= ASKED, missed: Vec::new() };
        idle(&mut hub, &binary, agents, &mut figures).await?;
        cuts::run(&hub, cuts).await?;
        anyhow::ensure!(figures.missed.is_empty(), "missed: {}", figures.missed.join(", "));
        Ok(())
    })
}

/// Opens one connection for each agent; how long it took until the last was welcome.
async fn open(hub: &Hub, agents: usize) -> Result<(Vec<Agent>, Duration)> {
    let started = Instant::now();
    let (mut opening, mut open) = (JoinSet::new(), Vec::with_capacity(agents));
    for number in 0..agents {
        if opening.len() == AT_ONCE {
            open.push(opening.join_next().await.context("one is being opened")???);
        }
        let (address, key) = (hub.address.clone(), hub.agent_key.clone());
        opening.spawn(async move { Agent::open(&address, &key, &format!("a{number}"), None).await });
    }
    while let Some(opened) = opening.join_next().await {
        open.push(opened??);
    }
    Ok((open, started.elapsed()))
}

async fn idle(hub: &mut Hub, binary: &str, agents: usize, figures: &mut Figures) -> Result<()> {
    // They register once; that is not what is measured.
    let (first, took) = open(hub, agents).await?;
    println!("{agents} agents registered and connected in {:.1} s", took.as_secs_f64());
    drop(first);
    hub.restart(binary)?;
    // All it needs before the first connection is in memory.
    hub.until_ready().await?;
    let before = resident_bytes(hub.pid())?;
    let (mut connected, took) = open(hub, agents).await?;
    let seconds = took.as_secs_f64();
    let figure = format!("{} back in {seconds:.1} s, none refused", connected.len());
    figures.told("Reconnect storm", figure, "all within 10 s", seconds < 10.0);
    hub.until_open(agents).await?;
    let after = resident_bytes(hub.pid())?;
    let each = (after - before) / agents as f64 / 1000.0;
    let (before, after) = (before / 1048576.0, after / 1048576.0);
    let figure = format!("{each:.1} KB each, {before:.0} MiB before and {after:.0} MiB after");
    figures.told("Idle connection", figure, "under 25 KB", each < 25.0);
    let mut stats = Stats::default();
    let mut connection = Connection::open(&hub.address).await?;
    let mut body = Vec::new();
    for number in 0..MESSAGES.min(agents * 4) {
        let chosen = number * 7_919 % connected.len();
        let agent = &mut connected[chosen];
        let request = hub.request(&agent.name, number);
        let started = Instant::now();
        let (status, frame) = tokio::join!(connection.call(&request, &mut body), agent.message());
        stats.record(started.elapsed());
        anyhow::ensure!(status? == 200, "{}", String::from_utf8_lossy(&body));
        let frame = frame?;
        agent.answer(&frame).await?;
    }
    let (p50, p99) = (stats.percentile(0.5), stats.percentile(0.99));
    let figure = format!("p50 {p50:.2} ms, p99 {p99:.2} ms until both it and its caller have been told");
    figures.told("A message to one of them", figure, "p50 under 5 ms", p50 < 5.0);
    Ok(())
}
