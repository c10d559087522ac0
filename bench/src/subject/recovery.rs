//! `recovery`: the hub is killed under load with many tasks in its store, and started again.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use super::Bench;
use crate::load::call::{Binding, Call, Channel};
use crate::load::closed::{self, Pace};
use crate::server::{Running, Server};

const FILL_LIMIT: Duration = Duration::from_secs(120);

/// Milliseconds from exec to the first answered SendMessage of a hub that was killed.
pub const MEASURE: &str = "start after SIGKILL";

pub async fn run(bench: &mut Bench) {
    if !bench.servers.contains(&Server::Hub) {
        return;
    }
    let Some(running) = bench.start(Server::Hub) else { return };
    if let Err(error) = kill_and_start(bench, running).await {
        bench.results.fault(Server::Hub, MEASURE, &error);
    }
}

async fn kill_and_start(bench: &mut Bench, mut running: Running) -> Result<()> {
    let tasks = bench.size.recovered_tasks;
    eprintln!("  filling hub with {tasks} tasks");
    let ids = closed::fill(&running.endpoint(Binding::JsonRpc), tasks, 64, 16, FILL_LIMIT).await?;
    for round in 0..bench.size.short_rounds {
        kill_under_load(&mut running).await?;
        running = bench.fleet.start_again(Server::Hub)?;
        check(&running, &ids).await.context("after the restart")?;
        let took = running.first_answer.as_secs_f64() * 1000.0;
        eprintln!("  {MEASURE}: {took:.1} ms");
        bench.results.add(MEASURE, Server::Hub, round, took);
    }
    Ok(())
}

async fn kill_under_load(running: &mut Running) -> Result<()> {
    let endpoint = running.endpoint(Binding::JsonRpc);
    let call = Call::send(&endpoint)?;
    let pace = Pace { connections: 32, warmup: Duration::ZERO, window: Duration::from_secs(2) };
    let pid = running.pid();
    // The load fails when the hub dies, which is what is meant to happen.
    let load = tokio::spawn(async move { drop(closed::run(&endpoint, &call, pace, pid).await) });
    tokio::time::sleep(Duration::from_millis(500)).await;
    running.kill();
    load.abort();
    let _ = load.await;
    Ok(())
}

/// Tasks made before the first kill are still there.
async fn check(running: &Running, ids: &[String]) -> Result<()> {
    let endpoint = running.endpoint(Binding::JsonRpc);
    let mut channel = Channel::open(&endpoint).await?;
    let mut body = Vec::new();
    for id in ids {
        let mut call = Call::rpc(&endpoint, "GetTask", &json!({"id": id}).to_string())?;
        channel.call(&mut call, 0, &mut body).await?;
        let text = String::from_utf8_lossy(&body);
        anyhow::ensure!(text.contains(id) && text.contains("TASK_STATE_COMPLETED"), "task {id} is lost: {text}");
    }
    Ok(())
}
