//! `reads`: GetTask and ListTasks from a store that holds many tasks.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::Bench;
use crate::load::call::{Binding, Call, Endpoint};
use crate::load::closed::{self, Pace};
use crate::server::{Running, Server};
use crate::table::counted;

const FILL_LIMIT: Duration = Duration::from_secs(300);
/// The ids that GetTask asks for in turn.
const IDS: u64 = 256;
pub const PAGE: usize = 50;
pub const GET_CONNECTIONS: usize = 32;
pub const LIST_CONNECTIONS: usize = 8;

pub fn get(tasks: u64) -> String {
    format!("GetTask, {}, requests/s", counted(tasks as usize, "task"))
}

pub fn list(tasks: u64) -> String {
    format!("ListTasks, {}, requests/s", counted(tasks as usize, "task"))
}

pub async fn run(bench: &mut Bench) {
    let all: Vec<Server> = bench.servers.iter().copied().filter(|server| server.has_tasks()).collect();
    read(bench, &all, bench.size.tasks).await;
    let hubs: Vec<Server> = bench.servers.iter().copied().filter(|server| server.is_hub()).collect();
    read(bench, &hubs, bench.size.many_tasks).await;
}

/// Fills all stores, then reads from one after the other, several times.
async fn read(bench: &mut Bench, servers: &[Server], tasks: u64) {
    let mut filled = Vec::new();
    for server in servers {
        let Some(running) = bench.start(*server) else { continue };
        let endpoint = running.endpoint(Binding::JsonRpc);
        eprintln!("  filling {} with {tasks} tasks", server.name());
        match closed::fill(&endpoint, tasks, 64, IDS, FILL_LIMIT).await {
            Ok(ids) => filled.push((running, endpoint, ids)),
            Err(error) => {
                bench.results.gap(&get(tasks), *server, "not filled");
                bench.results.gap(&list(tasks), *server, "not filled");
                bench.results.fault(*server, "filling the store", &error);
            }
        }
    }
    for round in 0..bench.size.short_rounds {
        for (running, endpoint, ids) in &filled {
            measure(bench, running, calls(endpoint, ids), endpoint, GET_CONNECTIONS, (&get(tasks), round)).await;
            let params = json!({"pageSize": PAGE, "includeArtifacts": true}).to_string();
            let list_call = Call::rpc(endpoint, "ListTasks", &params);
            measure(bench, running, list_call, endpoint, LIST_CONNECTIONS, (&list(tasks), round)).await;
        }
    }
}

/// GetTask for each of these ids in turn.
fn calls(endpoint: &Endpoint, ids: &[String]) -> Result<Call> {
    let calls = ids.iter().map(|id| Call::rpc(endpoint, "GetTask", &json!({"id": id}).to_string()));
    Call::in_turn(calls.collect::<Result<Vec<_>>>()?)
}

async fn measure(
    bench: &mut Bench,
    running: &Running,
    call: Result<Call>,
    endpoint: &Endpoint,
    connections: usize,
    (measure, round): (&str, usize),
) {
    if bench.results.gap_of(measure, running.server).is_some() {
        return;
    }
    let pace = Pace { connections, warmup: bench.size.warmup, window: bench.size.window };
    let measured = async { closed::run(endpoint, &call?, pace, running.pid()).await };
    match measured.await {
        Ok(capacity) => {
            eprintln!("  {measure}, {}: {:.0}", running.server.name(), capacity.per_second);
            bench.results.add(measure, running.server, round, capacity.per_second);
        }
        Err(error) => {
            bench.results.gap(measure, running.server, "failed");
            bench.results.fault(running.server, measure, &error);
        }
    }
}
