//! Workers and the work they are fit for: which of those that are present gets a piece of work, and why. Pure.

pub mod choose;
pub mod fit;
pub mod policy;

pub use choose::{Choice, Considered, Verdict, choose};
pub use fit::{Unfit, fit};
pub use policy::{Policy, Tiers};

use flotilla_protocol::fleet::Announce;
use flotilla_protocol::time::Millis;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One worker, as the hub knows it: what it announced, and what was seen of it since.
#[derive(Debug, Clone, PartialEq)]
pub struct Worker {
    /// The agent's name at this hub.
    pub name: Arc<str>,
    pub announce: Arc<Announce>,
    /// Words an operator gave it, for addressing a group.
    pub labels: BTreeSet<String>,
    /// What its card says it can do.
    pub skills: BTreeSet<String>,
    /// It is present until then, unless it is heard of again.
    pub lease_until: Millis,
    /// Runs the hub has given it that have not ended.
    pub active: u32,
    pub draining: bool,
    pub turns: Turns,
    /// Whose usage limit it works under, if that is known.
    pub account: Option<Arc<str>>,
}

/// How its work went lately.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Turns {
    pub last_success: Option<Millis>,
    /// Failures of the worker itself since its last success, and what the latest one was.
    pub failures: u32,
    pub last_failure: Option<String>,
    /// The share of turns that succeeded, newer ones counting more; none before the first.
    pub success: Option<f64>,
}

/// So many failures in a row and a worker gets no more work until it announces itself anew.
const BROKEN_AFTER: u32 = 3;
/// How much the latest turn counts among all.
const NEWEST: f64 = 0.2;

impl Turns {
    /// Counts a turn. `failure` is one of the worker's own making, not a task that could not be done.
    pub fn count(&mut self, at: Millis, failure: Option<String>) {
        let latest = if failure.is_none() { 1.0 } else { 0.0 };
        self.success = Some(self.success.map_or(latest, |before| before + NEWEST * (latest - before)));
        match failure {
            None => (self.last_success, self.failures, self.last_failure) = (Some(at), 0, None),
            Some(failure) => (self.failures, self.last_failure) = (self.failures + 1, Some(failure)),
        }
    }
}

/// What a person wants to know of a worker in one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    Available,
    Busy,
    /// It ends what it has and takes nothing new.
    Draining,
    Broken {
        reason: String,
    },
    Offline,
}

impl Health {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Available => "AVAILABLE",
            Self::Busy => "BUSY",
            Self::Draining => "DRAINING",
            Self::Broken { .. } => "BROKEN",
            Self::Offline => "OFFLINE",
        }
    }
}

impl Worker {
    pub fn health(&self, now: Millis) -> Health {
        if now >= self.lease_until {
            return Health::Offline;
        }
        if self.turns.failures >= BROKEN_AFTER {
            let last = self.turns.last_failure.as_deref().unwrap_or("it did not say why");
            let reason = format!("{} turns in a row failed, the last: {last}", self.turns.failures);
            return Health::Broken { reason };
        }
        match () {
            () if self.draining => Health::Draining,
            () if self.active >= self.places() => Health::Busy,
            () => Health::Available,
        }
    }

    /// Runs it takes at once.
    pub fn places(&self) -> u32 {
        self.announce.capabilities.max_concurrent.unwrap_or(1)
    }

    /// How full it is, from 0 to 1. What it says of itself counts too: it may have work from elsewhere.
    pub fn load(&self) -> f64 {
        let own = self.announce.session.active_tasks.unwrap_or(0);
        f64::from(self.active.max(own)) / f64::from(self.places().max(1))
    }

    /// Takes a newer announcement; an older one changes nothing. Returns whether it was taken.
    pub fn take(&mut self, announce: Arc<Announce>, lease_until: Millis) -> bool {
        if announce.epoch.unwrap_or(0) < self.announce.epoch.unwrap_or(0) {
            return false;
        }
        // Whoever comes back with something new to say is given another chance.
        if announce.epoch > self.announce.epoch {
            self.turns.failures = 0;
        }
        self.announce = announce;
        self.lease_until = self.lease_until.max(lease_until);
        true
    }
}

#[cfg(test)]
mod tests;
