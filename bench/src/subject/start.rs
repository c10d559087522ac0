//! `start`: the time from starting a process to its first answer, and the memory it then takes.

use std::time::Duration;

use super::Bench;
use crate::process;

/// How long after its first answer a server's memory is read.
const SETTLE: Duration = Duration::from_secs(1);

/// Milliseconds from exec to the first answered SendMessage.
pub const COLD: &str = "cold start";
/// MiB.
pub const MEMORY: &str = "idle memory";

pub async fn run(bench: &mut Bench) {
    for round in 0..bench.size.rounds {
        for server in bench.servers.clone() {
            let Some(running) = bench.start(server) else { continue };
            let cold = running.first_answer.as_secs_f64() * 1000.0;
            tokio::time::sleep(SETTLE).await;
            bench.results.add(COLD, server, round, cold);
            match process::resident_bytes(running.pid()) {
                Ok(bytes) => {
                    let memory = bytes / f64::from(1 << 20);
                    eprintln!("  {COLD}, {}: {cold:.1} ms, {memory:.1} MiB", server.name());
                    bench.results.add(MEMORY, server, round, memory);
                }
                Err(error) => bench.results.fault(server, MEMORY, &error),
            }
        }
    }
}
