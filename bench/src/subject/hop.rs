//! `hop`: what it costs to reach an upstream through the hub, beside nginx and no hop at all.

use anyhow::Result;

use super::Bench;
use crate::load::call::{Binding, Call};
use crate::load::closed::{self, Pace};
use crate::load::stats::Spread;
use crate::results::Results;
use crate::server::{Running, Server, Way};
use crate::table::number;

const MANY: usize = 32;

/// The upstreams: the slowest peer, where a hop must not matter, and the fastest, where it shows.
const UPSTREAMS: [Server; 2] = [Server::Python, Server::Official];

fn p50(way: Way) -> String {
    format!("One hop, {}, 1 connection, p50", way.label())
}

fn rate(way: Way) -> String {
    format!("One hop, {}, {MANY} connections, requests/s", way.label())
}

pub async fn run(bench: &mut Bench) {
    for round in 0..bench.size.rounds {
        for upstream in upstreams(bench) {
            let Some(upstream) = bench.start(upstream) else { continue };
            // Each way is proven with a call before any is measured, so that all have had the same warm-up.
            let mut ways = Vec::new();
            for way in Way::ALL {
                match between(bench, way, &upstream) {
                    Ok(hop) => ways.push((way, hop)),
                    Err(error) => fault(bench, way, upstream.server, &error),
                }
            }
            for connections in [1, MANY] {
                for (way, hop) in &ways {
                    let entry = hop.as_ref().unwrap_or(&upstream);
                    if let Err(error) = cell(bench, (*way, &upstream), entry, connections, round).await {
                        fault(bench, *way, upstream.server, &error);
                    }
                }
            }
        }
    }
}

/// In a smoke run there are no peers; the ceiling takes their place.
fn upstreams(bench: &Bench) -> Vec<Server> {
    let there: Vec<Server> = UPSTREAMS.into_iter().filter(|server| bench.servers.contains(server)).collect();
    if there.is_empty() { vec![Server::Ceiling] } else { there }
}

/// What stands in between; None if nothing does.
fn between(bench: &Bench, way: Way, upstream: &Running) -> Result<Option<Running>> {
    match way {
        Way::Direct => Ok(None),
        Way::Nginx => bench.fleet.start_nginx(upstream).map(Some),
        Way::Hub => bench.fleet.start_hub_before(upstream).map(Some),
    }
}

/// A missing figure of the hub fails the run; nginx may be absent.
fn fault(bench: &mut Bench, way: Way, upstream: Server, error: &anyhow::Error) {
    let what = format!("one hop {} to {}", way.label(), upstream.label());
    let whose = if way == Way::Hub { Server::Hub } else { upstream };
    match way {
        Way::Nginx => bench.results.note(format!("{what}: {error:#}")),
        Way::Direct | Way::Hub => bench.results.fault(whose, &what, error),
    }
}

async fn cell(
    bench: &mut Bench,
    (way, upstream): (Way, &Running),
    entry: &Running,
    connections: usize,
    round: usize,
) -> Result<()> {
    let endpoint = entry.endpoint(Binding::JsonRpc);
    let pace = Pace { connections, warmup: bench.size.warmup, window: bench.size.window };
    let capacity = closed::run(&endpoint, &Call::send(&endpoint)?, pace, entry.pid()).await?;
    let (measure, value) = match connections {
        1 => (p50(way), capacity.p50_ms),
        _ => (rate(way), capacity.per_second),
    };
    eprintln!("  {measure}, to {}: {value:.3}", upstream.server.name());
    bench.results.add(&measure, upstream.server, round, value);
    Ok(())
}

/// A row for each upstream and way, with what the hop adds and what is left of the direct rate.
pub fn table(results: &Results, rounds: usize) -> String {
    let mut text = format!(
        "| Upstream | Way | p50 ms, 1 connection | added ms | requests/s, {MANY} connections | of the direct rate |\n\
         |---|---|---:|---:|---:|---:|\n"
    );
    for upstream in results.servers(&rate(Way::Direct)) {
        for way in Way::ALL {
            let compare = |measure: fn(Way) -> String, with: fn(f64, f64) -> f64| {
                Spread::of((0..rounds).filter_map(|round| {
                    let here = results.value(&measure(way), upstream, round)?;
                    Some(with(here, results.value(&measure(Way::Direct), upstream, round)?))
                }))
            };
            let cells = [
                results.spread(&p50(way), upstream),
                compare(p50, |here, direct| here - direct),
                results.spread(&rate(way), upstream),
                compare(rate, |here, direct| here / direct),
            ];
            let shown = cells.map(|spread| spread.map_or("-".to_owned(), |spread| number(spread.median)));
            text += &format!("| {} | {} | {} |\n", upstream.label(), way.label(), shown.join(" | "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hop_is_compared_within_its_round() {
        let mut results = Results::default();
        for (round, direct, hub) in [(0, 1.0, 1.5), (1, 3.0, 3.25), (2, 2.0, 2.375)] {
            results.add(&p50(Way::Direct), Server::Python, round, direct);
            results.add(&p50(Way::Hub), Server::Python, round, hub);
            results.add(&rate(Way::Direct), Server::Python, round, 100.0 * direct);
            results.add(&rate(Way::Hub), Server::Python, round, 90.0 * direct);
        }
        let text = table(&results, 3);
        assert!(text.contains("| a2a-sdk | directly | 2.00 | 0.00 | 200 | 1.00 |"), "{text}");
        assert!(text.contains("| a2a-sdk | through nginx | - | - | - | - |"), "{text}");
        assert!(text.contains("| a2a-sdk | through Flotilla, durable | 2.38 | 0.375 | 180 | 0.900 |"), "{text}");
    }
}
