//! What the connections of one run saw, and the middle and spread of several values.

use std::time::Duration;

/// Latencies (in microseconds) and errors of one or more connections.
#[derive(Default)]
pub struct Stats {
    latencies: Vec<u32>,
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

    pub fn count(&self) -> usize {
        self.latencies.len()
    }

    /// The latency, in milliseconds, that this share of all calls did not exceed.
    pub fn percentile(&mut self, share: f64) -> f64 {
        self.latencies.sort_unstable();
        let rank = (share * self.latencies.len() as f64).ceil() as usize;
        let micros = self.latencies.get(rank.saturating_sub(1));
        f64::from(micros.copied().unwrap_or_default()) / 1000.0
    }
}

/// Several values in short.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    /// None for no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let upper = values[values.len() / 2];
        let median = if values.len() % 2 == 1 { upper } else { f64::midpoint(values[values.len() / 2 - 1], upper) };
        Some(Spread { median, least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        let mut stats = Stats::default();
        for micros in (1..=100).rev() {
            stats.record(Duration::from_micros(micros * 1000));
        }
        assert_eq!(stats.percentile(0.50), 50.0);
        assert_eq!(stats.percentile(0.99), 99.0);
        assert_eq!(stats.percentile(1.0), 100.0);
        assert_eq!(Stats::default().percentile(0.5), 0.0);
    }

    #[test]
    fn the_middle_and_both_ends() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, least: 1.0, most: 3.0 }));
        assert_eq!(Spread::of([1.0, 2.0]).map(|spread| spread.median), Some(1.5));
    }
}
