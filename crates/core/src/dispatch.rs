//! Workers and the work they are fit for: which of those that are present gets a piece of work, and why. Pure.

pub mod choose;
pub mod fit;
pub mod policy;

pub use choose::{Choice, Considered, Shunned, Target, Verdict, Wanted, choose};
pub use fit::{Distance, Unfit, fit};
pub use policy::{Policy, Tiers};

use flotilla_protocol::fleet::Announce;
use flotilla_protocol::fleet::announce::McpStatus;
use flotilla_protocol::time::Millis;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One worker, as the hub knows it: what it announced, and what was seen of it since.
#[derive(Debug, Clone, PartialEq)]
pub struct Worker {
    /// The agent's name at this hub.
    pub name: Arc<str>,
    pub announce: Arc<Announce>,
    /// Whether it ever announced itself; of one that did not, nothing is known.
    pub announced: bool,
    /// Counts what it announced that was new: what stood in its way is looked at again when this rises.
    pub revision: u64,
    /// Words an operator gave it, for addressing a group.
    pub labels: BTreeSet<String>,
    /// What its card says it can do.
    pub skills: BTreeSet<String>,
    /// It is present until then, unless it is heard of again.
    pub lease_until: Millis,
    /// Whether it can be reached now, as far as the hub can see.
    pub present: bool,
    /// It was away since it last announced itself: what it says now is new, whatever its number.
    pub returned: bool,
    /// It connected anew since it last announced itself, and may be another program: what holds of its MCP servers is not
    /// known, and what it says now is new.
    pub unconfirmed: bool,
    /// Runs of dispatched work the hub has given it that have not ended.
    pub active: u32,
    /// Its other runs of the hub's, of plain messages.
    pub plain: u32,
    /// Runs it says it has beside those, from elsewhere.
    pub elsewhere: u32,
    pub draining: bool,
    pub turns: Turns,
    /// Whose usage limit it works under, if that is known.
    pub account: Option<Arc<str>>,
    /// Its account has used up what it may.
    pub paused: Option<Pause>,
    /// What it may use today is used up.
    pub broke: Option<Pause>,
    /// As many as may are changing files in its repository.
    pub repository_full: bool,
}

/// A worker gets nothing until a limit is reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    pub until: Millis,
    pub reason: Arc<str>,
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

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Well,
    /// The task could not be done, and its worker says so.
    Unsuccessful,
    /// By a fault of the worker's own.
    Failed(String),
}

impl Turns {
    pub fn count(&mut self, at: Millis, end: End) {
        let latest = if end == End::Well { 1.0 } else { 0.0 };
        self.success = Some(self.success.map_or(latest, |before| before + NEWEST * (latest - before)));
        match end {
            End::Well => (self.last_success, self.failures, self.last_failure) = (Some(at), 0, None),
            // It works, and says what it could not do.
            End::Unsuccessful => (self.failures, self.last_failure) = (0, None),
            End::Failed(failure) => (self.failures, self.last_failure) = (self.failures + 1, Some(failure)),
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
    pub const WORDS: [&'static str; 5] = ["AVAILABLE", "BUSY", "DRAINING", "BROKEN", "OFFLINE"];

    /// Its place among the words.
    pub fn number(&self) -> usize {
        match self {
            Self::Available => 0,
            Self::Busy => 1,
            Self::Draining => 2,
            Self::Broken { .. } => 3,
            Self::Offline => 4,
        }
    }

    pub fn name(&self) -> &'static str {
        Self::WORDS[self.number()]
    }
}

impl Worker {
    /// A worker of which nothing is known but its name.
    pub fn unknown(name: &str) -> Self {
        Self {
            name: name.into(),
            announce: Arc::default(),
            announced: false,
            revision: 0,
            labels: BTreeSet::new(),
            skills: BTreeSet::new(),
            lease_until: Millis(i64::MAX),
            present: true,
            returned: false,
            unconfirmed: false,
            active: 0,
            plain: 0,
            elsewhere: 0,
            draining: false,
            turns: Turns::default(),
            account: None,
            paused: None,
            broke: None,
            repository_full: false,
        }
    }

    /// The health of an MCP server by any spelling of its name; none if it has no such server.
    pub fn mcp(&self, server: &str) -> Option<McpStatus> {
        if self.unconfirmed { Some(McpStatus::Unknown) } else { self.announce.mcp(server) }
    }

    /// The pause it is under, if that is not over.
    pub fn pause(&self, now: Millis) -> Option<&Pause> {
        self.paused.as_ref().filter(|pause| now < pause.until)
    }

    /// The budget it is without, if that does not begin anew by now.
    pub fn broke(&self, now: Millis) -> Option<&Pause> {
        self.broke.as_ref().filter(|pause| now < pause.until)
    }

    /// Whether it has to wait for something beside a place.
    fn rests(&self, now: Millis) -> bool {
        self.pause(now).is_some() || self.broke(now).is_some()
    }

    pub fn health(&self, now: Millis) -> Health {
        if !self.present || now >= self.lease_until {
            return Health::Offline;
        }
        if let Some(reason) = &self.announce.session.broken {
            return Health::Broken { reason: reason.clone() };
        }
        if self.turns.failures >= BROKEN_AFTER {
            let last = self.turns.last_failure.as_deref().filter(|last| !last.is_empty());
            let last = last.unwrap_or("it did not say why");
            let reason = format!("{} turns in a row failed, the last: {last}", self.turns.failures);
            return Health::Broken { reason };
        }
        match () {
            () if self.draining => Health::Draining,
            () if self.taken() >= self.places() || self.rests(now) => Health::Busy,
            () => Health::Available,
        }
    }

    /// Runs it takes at once. One that never said anything is not counted at.
    pub fn places(&self) -> u32 {
        self.announce.capabilities.max_concurrent.unwrap_or(if self.announced { 1 } else { u32::MAX })
    }

    /// Runs the hub knows that it has.
    pub fn given(&self) -> u32 {
        self.active.saturating_add(self.plain)
    }

    /// Places that are taken. Work from elsewhere takes one only where it says how many there are.
    pub fn taken(&self) -> u32 {
        let counts = self.announce.capabilities.max_concurrent.is_some();
        self.given().saturating_add(if counts { self.elsewhere } else { 0 })
    }

    /// How full it is, from 0 to 1. What it says of itself counts too: it may have work from elsewhere.
    pub fn load(&self) -> f64 {
        f64::from(self.given().saturating_add(self.elsewhere)) / f64::from(self.places().max(1))
    }

    /// Takes a newer announcement; an older one changes nothing while the worker is there. One without an epoch is as
    /// new as its coming. Returns whether it was taken.
    pub fn take(&mut self, announce: Arc<Announce>, lease_until: Millis, now: Millis) -> bool {
        let is_older = matches!((announce.epoch, self.announce.epoch), (Some(new), Some(known)) if new < known);
        if is_older && !self.returned && !self.unconfirmed && self.health(now) != Health::Offline {
            return false;
        }
        // Whoever comes back with something new to say is given another chance.
        if !self.announced || announce != self.announce {
            self.turns.failures = 0;
            self.revision += 1;
        }
        // Its clock may be ahead of the hub's.
        let own = announce.session.last_successful_turn.map(|at| at.min(now));
        self.turns.last_success = self.turns.last_success.max(own);
        (self.announce, self.announced) = (announce, true);
        (self.returned, self.unconfirmed) = (false, false);
        self.lease_until = self.lease_until.max(lease_until);
        true
    }
}

#[cfg(test)]
mod tests;
