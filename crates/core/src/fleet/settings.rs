//! What an operator may set about the fleet.

use crate::dispatch::Policy;
use flotilla_protocol::time::Millis;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How long a worker counts as present after it was last heard of.
    pub lease: Duration,
    /// How long a worker may take to take up what it was given.
    pub take: Duration,
    /// How long work waits for a worker, unless its deadline is sooner.
    pub wait: Duration,
    /// Work that waited so long goes before what came later and is one step more urgent.
    pub ageing: Duration,
    /// How many may change files in one repository at once.
    pub writers_per_repository: u32,
    pub policy: Policy,
    /// What is known of workers beside what they announce.
    pub workers: BTreeMap<String, WorkerSettings>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerSettings {
    pub labels: Vec<String>,
    pub account: Option<String>,
    /// Whether texts to it are read for a dispatch before it has announced itself.
    pub handshake: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(90),
            take: Duration::from_secs(30),
            wait: Duration::from_secs(3600),
            ageing: Duration::from_secs(600),
            writers_per_repository: 1,
            policy: Policy::default(),
            workers: BTreeMap::new(),
        }
    }
}

impl Settings {
    pub fn lease_from(&self, now: Millis) -> Millis {
        after(now, self.lease)
    }
}

pub fn after(at: Millis, span: Duration) -> Millis {
    Millis(at.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
}

pub fn between(now: Millis, then: Millis) -> Duration {
    Duration::from_millis(u64::try_from(then.0.saturating_sub(now.0)).unwrap_or(0))
}
