//! What a connection saw, and the figures printed at the end of a run.

use std::time::Duration;

use serde_json::{Value, json};

/// Latencies (in microseconds) and errors of one or more connections.
#[derive(Default)]
pub struct Stats {
    pub latencies: Vec<u32>,
    pub errors: u64,
    pub first_error: Option<String>,
}

impl Stats {
    pub fn record(&mut self, latency: Duration) {
        let micros = u32::try_from(latency.as_micros()).unwrap_or(u32::MAX);
        self.latencies.push(micros);
    }

    pub fn fail(&mut self, why: impl ToString) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| why.to_string());
    }

    pub fn merge(&mut self, other: Stats) {
        self.latencies.extend(other.latencies);
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
    }

    /// The figures of a window of that many seconds.
    pub fn figures(mut self, seconds: f64) -> Value {
        self.latencies.sort_unstable();
        let count = self.latencies.len();
        let percentile = |share: f64| -> f64 {
            let rank = (share * count as f64).ceil() as usize;
            let micros = self.latencies.get(rank.saturating_sub(1));
            f64::from(micros.copied().unwrap_or_default()) / 1000.0
        };
        json!({
            "requests": count,
            "per_second": (count as f64 / seconds).round() as u64,
            "p50_ms": percentile(0.50),
            "p90_ms": percentile(0.90),
            "p99_ms": percentile(0.99),
            "max_ms": percentile(1.0),
            "errors": self.errors,
        })
    }
}

/// Print a flat object, as JSON or as one `name value` line for each figure.
pub fn print(figures: &Value, as_json: bool) {
    match figures.as_object() {
        Some(map) if !as_json => {
            for (name, value) in map {
                println!("{name:<14} {value}");
            }
        }
        _ => println!("{figures}"),
    }
}

/// The middle value; 0 for none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let upper = values.get(values.len() / 2).copied().unwrap_or_default();
    if values.len() % 2 == 1 || values.is_empty() { upper } else { (values[values.len() / 2 - 1] + upper) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_medians() {
        let mut stats = Stats::default();
        for micros in (1..=100).rev() {
            stats.record(Duration::from_micros(micros * 1000));
        }
        stats.fail("no");
        let figures = stats.figures(2.0);
        assert_eq!(figures["p50_ms"], 50.0);
        assert_eq!(figures["p99_ms"], 99.0);
        assert_eq!(figures["max_ms"], 100.0);
        assert_eq!(figures["per_second"], 50);
        assert_eq!(figures["errors"], 1);
        assert_eq!(median(vec![]), 0.0);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![1.0, 2.0]), 1.5);
    }
}
