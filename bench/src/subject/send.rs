//! `send`: blocking SendMessage over each binding, as fast as it goes and at a fixed rate.

use anyhow::Result;

use super::Bench;
use crate::load::call::{Binding, Call, Endpoint};
use crate::load::closed::{self, Pace};
use crate::load::paced;
use crate::server::{Running, Server};

pub const CONNECTIONS: [usize; 3] = [1, 32, 256];
/// Latency is measured at these percentages of the rate just measured; at more than half only with this many
/// connections.
pub const LOADS: [u32; 2] = [50, 80];
pub const LOADED_CONNECTIONS: usize = 32;

/// The name of one measure.
pub fn measure(binding: Binding, connections: usize, what: &str) -> String {
    format!("SendMessage, {}, {connections} connections, {what}", binding.name())
}

/// The names of the latency measures at this load.
pub fn latencies(load: u32) -> [String; 2] {
    [format!("p50 at {load} %"), format!("p99 at {load} %")]
}

pub const RATE: &str = "requests/s";
pub const CPU: &str = "CPU per request";

pub async fn run(bench: &mut Bench) -> Result<()> {
    for round in 0..bench.size.rounds {
        // All are up at once, so that each measure is taken from one server right after the other. Idle ones cost
        // next to nothing.
        let mut running = Vec::new();
        for server in bench.servers.clone() {
            running.extend(bench.start(server));
        }
        for binding in Binding::ALL {
            for connections in CONNECTIONS {
                for server in &running {
                    cell(bench, server, binding, connections, round).await?;
                }
            }
        }
    }
    Ok(())
}

/// One server, binding and number of connections in one round.
async fn cell(bench: &mut Bench, running: &Running, binding: Binding, connections: usize, round: usize) -> Result<()> {
    let rate = measure(binding, connections, RATE);
    if bench.results.gap_of(&rate, running.server).is_some() {
        return Ok(());
    }
    let endpoint = running.endpoint(binding);
    let call = Call::send(&endpoint)?;
    let pace = Pace { connections, warmup: bench.size.warmup, window: bench.size.window };
    let capacity = match closed::run(&endpoint, &call, pace, running.pid()).await {
        Ok(capacity) => capacity,
        Err(error) => {
            for connections in CONNECTIONS {
                bench.results.gap(&measure(binding, connections, RATE), running.server, "-", &error);
            }
            return Ok(());
        }
    };
    let server = running.server;
    eprintln!("  {rate}, {}: {:.0}", server.name(), capacity.per_second);
    bench.results.add(&rate, server, round, capacity.per_second);
    bench.results.add(&measure(binding, connections, CPU), server, round, capacity.cpu_us);
    latency(bench, server, &endpoint, connections, round, capacity.per_second).await
}

async fn latency(
    bench: &mut Bench,
    server: Server,
    endpoint: &Endpoint,
    connections: usize,
    round: usize,
    capacity: f64,
) -> Result<()> {
    for load in LOADS {
        if load > 50 && connections != LOADED_CONNECTIONS {
            continue;
        }
        let call = Call::send(endpoint)?;
        let rate = capacity * f64::from(load) / 100.0;
        let [p50, p99] = latencies(load).map(|what| measure(endpoint.binding, connections, &what));
        match paced::run(endpoint, &call, connections, rate, bench.size.window).await {
            Ok(latency) => {
                bench.results.add(&p50, server, round, latency.p50);
                bench.results.add(&p99, server, round, latency.p99);
            }
            Err(error) => bench.results.note(format!("{}, {p99}, round {round}: {error:#}", server.label())),
        }
    }
    Ok(())
}
