//! `send`: blocking SendMessage over each binding, as fast as it goes and at a fixed rate.

use std::time::Duration;

use anyhow::Result;

use super::Bench;
use crate::load::call::{Binding, Call, Endpoint};
use crate::load::closed::{self, Capacity, Pace};
use crate::load::grpc::Unimplemented;
use crate::load::paced;
use crate::server::{Running, Server};
use crate::table::counted;

pub const CONNECTIONS: [usize; 3] = [1, 32, 256];
/// With this many connections latency is also measured at these percentages of what the server itself can do.
pub const LOADED_CONNECTIONS: usize = 32;
pub const LOADS: [u32; 2] = [50, 80];
/// The rate that all are measured at is this share of what the baseline can do.
const SAME_RATE: f64 = 0.5;
/// A server whose capacity is not this much above that rate would only show its queue.
const HEADROOM: f64 = 1.25;

const WARM: Duration = Duration::from_millis(700);
/// Calls that a percentile should rest on, and the most seconds spent on them.
const ENOUGH: f64 = 300.0;
const LONGEST: f64 = 3.0;

/// The name of one measure.
pub fn measure(binding: Binding, connections: usize, what: &str) -> String {
    format!("SendMessage, {}, {}, {what}", binding.name(), counted(connections, "connection"))
}

/// The names of the latency measures at the rate that is the same for all.
pub const SAME: [&str; 2] = ["p50 at the same rate", "p99 at the same rate"];

/// The names of the latency measures at this percentage of a server's own capacity.
pub fn own(load: u32) -> [String; 2] {
    [format!("p50 at {load} % of its own"), format!("p99 at {load} % of its own")]
}

/// Whether the servers were under different loads, so that a ratio says nothing.
pub fn is_own(measure: &str) -> bool {
    measure.ends_with("of its own")
}

pub const RATE: &str = "requests/s";
pub const CPU: &str = "CPU per request";

pub async fn run(bench: &mut Bench) {
    for round in 0..bench.size.rounds {
        // All are up at once, so that each measure is taken from one server right after the other. Idle ones cost
        // next to nothing.
        let mut running = Vec::new();
        for server in baseline_first(bench) {
            let Some(started) = bench.start(server) else { continue };
            if let Err(error) = warm(&started).await {
                bench.results.note(format!("{}, warm-up: {error:#}", server.label()));
            }
            running.push(started);
        }
        for binding in Binding::ALL {
            for connections in CONNECTIONS {
                for (server, capacity) in capacities(bench, &running, binding, connections).await {
                    cell(bench, server, capacity, binding, (connections, round)).await;
                }
            }
        }
    }
}

/// What each server can do: the middle of what it did in its turns. Those that have a gap here already are left out.
async fn capacities<'a>(
    bench: &Bench,
    running: &'a [Running],
    binding: Binding,
    connections: usize,
) -> Vec<(&'a Running, Result<Capacity>)> {
    let rate = measure(binding, connections, RATE);
    let mut measured: Vec<_> = running.iter().map(|server| (server, Ok(Vec::new()))).collect();
    measured.retain(|(server, _)| bench.results.gap_of(&rate, server.server).is_none());
    for _ in 0..bench.size.turns {
        for (server, turns) in &mut measured {
            let Ok(done) = turns else { continue };
            match capacity(bench, server, binding, connections).await {
                Ok(capacity) => done.push(capacity),
                Err(error) => *turns = Err(error),
            }
        }
    }
    measured.into_iter().map(|(server, turns)| (server, turns.map(middle))).collect()
}

async fn capacity(bench: &Bench, running: &Running, binding: Binding, connections: usize) -> Result<Capacity> {
    let endpoint = running.endpoint(binding);
    let pace = Pace { connections, warmup: bench.size.warmup, window: bench.size.window };
    closed::run(&endpoint, &Call::send(&endpoint)?, pace, running.pid()).await
}

fn middle(mut turns: Vec<Capacity>) -> Capacity {
    turns.sort_by(|one, other| one.per_second.total_cmp(&other.per_second));
    turns.swap_remove(turns.len() / 2)
}

/// The baseline's capacity sets the rate for the others.
fn baseline_first(bench: &Bench) -> Vec<Server> {
    let mut servers = bench.servers.clone();
    servers.sort_by_key(|server| *server != bench.baseline());
    servers
}

/// Lets compilers at run time and allocators settle.
async fn warm(running: &Running) -> Result<()> {
    let endpoint = running.endpoint(Binding::JsonRpc);
    let pace = Pace { connections: LOADED_CONNECTIONS, warmup: Duration::ZERO, window: WARM };
    closed::run(&endpoint, &Call::send(&endpoint)?, pace, running.pid()).await.map(drop)
}

/// One server, binding and number of connections in one round.
async fn cell(
    bench: &mut Bench,
    running: &Running,
    capacity: Result<Capacity>,
    binding: Binding,
    (connections, round): (usize, usize),
) {
    let (server, rate) = (running.server, measure(binding, connections, RATE));
    let endpoint = running.endpoint(binding);
    match capacity {
        Ok(capacity) => {
            eprintln!("  {rate}, {}: {:.0}", server.name(), capacity.per_second);
            bench.results.add(&rate, server, round, capacity.per_second);
            bench.results.add(&measure(binding, connections, CPU), server, round, capacity.cpu_us);
            same_rate(bench, server, &endpoint, (connections, round), capacity.per_second).await;
            if connections == LOADED_CONNECTIONS {
                for load in LOADS {
                    let rate = capacity.per_second * f64::from(load) / 100.0;
                    let names = own(load).map(|what| measure(binding, connections, &what));
                    latency(bench, server, &endpoint, (connections, round), rate, names).await;
                }
            }
        }
        Err(error) if error.is::<Unimplemented>() => {
            for connections in CONNECTIONS {
                bench.results.gap(&measure(binding, connections, RATE), server, "-");
            }
            bench.results.note(format!("{} has no {}", server.label(), binding.name()));
        }
        Err(error) => {
            if bench.results.spread(&rate, server).is_none() {
                bench.results.gap(&rate, server, "failed");
            }
            bench.results.fault(server, &rate, &error);
        }
    }
}

/// Latency at a rate that the baseline can do, for the servers that can do it too.
async fn same_rate(
    bench: &mut Bench,
    server: Server,
    endpoint: &Endpoint,
    (connections, round): (usize, usize),
    capacity: f64,
) {
    let reference = measure(endpoint.binding, connections, RATE);
    let Some(reference) = bench.results.value(&reference, bench.baseline(), round) else { return };
    let rate = reference * SAME_RATE;
    let names = SAME.map(|what| measure(endpoint.binding, connections, what));
    if capacity < rate * HEADROOM {
        for name in names {
            bench.results.gap(&name, server, "too slow");
        }
        return;
    }
    latency(bench, server, endpoint, (connections, round), rate, names).await;
}

async fn latency(
    bench: &mut Bench,
    server: Server,
    endpoint: &Endpoint,
    (connections, round): (usize, usize),
    rate: f64,
    [p50, p99]: [String; 2],
) {
    // Enough calls for a percentile, also of a slow server.
    let enough = Duration::from_secs_f64((ENOUGH / rate).min(LONGEST));
    let window = bench.size.window.max(enough);
    let measured = async { paced::run(endpoint, &Call::send(endpoint)?, connections, rate, window).await };
    match measured.await {
        Ok(latency) => {
            bench.results.add(&p50, server, round, latency.p50);
            bench.results.add(&p99, server, round, latency.p99);
        }
        Err(error) => bench.results.fault(server, &p99, &error),
    }
}
