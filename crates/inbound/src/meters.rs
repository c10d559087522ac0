//! Counts and latencies per operation and binding, for `/metrics`.

use flotilla_core::limits::{count_over, limit_of};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::method::Method;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use std::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    JsonRpc,
    Rest,
    Grpc,
    Channel,
}

impl Binding {
    const ALL: [Self; 4] = [Self::JsonRpc, Self::Rest, Self::Grpc, Self::Channel];
    fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "jsonrpc",
            Self::Rest => "http_json",
            Self::Grpc => "grpc",
            Self::Channel => "channel",
        }
    }
}

/// Handles are looked up once: a request only touches atomics.
pub struct Meters {
    served: Vec<(Counter, Histogram)>,
    pub streams: Gauge,
}

impl Default for Meters {
    fn default() -> Self {
        let served = Binding::ALL
            .into_iter()
            .flat_map(|binding| Method::ALL.into_iter().map(move |method| (binding.name(), method.name())))
            .map(|(binding, method)| {
                (
                    counter!("flotilla_requests_total", "binding" => binding, "method" => method),
                    histogram!("flotilla_request_seconds", "binding" => binding, "method" => method),
                )
            })
            .collect();
        Self { served, streams: gauge!("flotilla_streams_open") }
    }
}

impl Meters {
    /// A request was answered; for a stream, this is when it began.
    pub fn served(&self, binding: Binding, method: Method, started: Instant) {
        let (count, seconds) = &self.served[binding as usize * Method::ALL.len() + method as usize];
        count.increment(1);
        seconds.record(started.elapsed().as_secs_f64());
    }

    pub fn refused(&self, binding: Binding, refusal: &Refusal) {
        let reason = refusal.reason.row().reason;
        counter!("flotilla_refusals_total", "binding" => binding.name(), "reason" => reason).increment(1);
        if let Some(limit) = limit_of(refusal) {
            count_over(limit, binding.name());
        }
    }
}
