//! The fleet: workers that announced themselves, what they can do now, and who has which work.

mod agent;
mod contexts;
pub mod contract;
pub mod form;
pub mod outcome;
pub mod own;
pub mod queue;
pub mod reasons;
mod rest;
mod roster;
pub mod schema;
pub mod settings;
pub mod spent;
mod standing;
pub mod terms;

pub use agent::{extension, virtual_agent};
pub(crate) use rest::Rest;
pub use roster::{Seen, Via};
pub use settings::{Settings, WorkerSettings};

use crate::dispatch::{End, Health, Pause, Worker};
use crate::ids::{AgentId, PrincipalId, TaskId, WorkspaceId};
use crate::registry::{Agent, Registry};
use arc_swap::ArcSwap;
use contexts::Contexts;
use flotilla_protocol::fleet::{Announce, Version};
use flotilla_protocol::time::Millis;
use metrics::gauge;
use queue::{Given, Waiting};
use roster::Entry;
use settings::after;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;

/// The agent that stands for all workers: whoever calls it lets the hub choose.
pub const FLEET: &str = "fleet";

/// A worker's latest announcement, as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    pub agent: AgentId,
    /// What it said, as JSON.
    pub announce: String,
    pub at: Millis,
    pub draining: bool,
    /// What was seen of it since, as JSON (`standing`).
    pub standing: String,
}

/// What became of an announcement.
#[derive(Debug, Clone, PartialEq)]
pub struct Announced {
    /// False if the hub knows a newer one.
    pub taken: bool,
    /// Whether it said anything new.
    pub news: bool,
    pub epoch: Option<u64>,
    /// The version of the handshake it is spoken to in; none if that is plain text.
    pub version: Option<Version>,
    /// Be heard of again before this time.
    pub lease_until: Millis,
}

/// A worker's health, and whom that concerns.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    pub worker: Arc<str>,
    pub agent: AgentId,
    pub owner: PrincipalId,
    pub health: &'static str,
    pub epoch: Option<u64>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) workers: BTreeMap<Arc<str>, Entry>,
    /// Work that waits, by the order it came in.
    waiting: BTreeMap<u64, Waiting>,
    next: u64,
    /// Who has which task's work, by run: one that ends late must not take the place of the next.
    given: BTreeMap<(TaskId, u32), Given>,
    /// How many runs of plain messages agents have, whether they announced themselves or not.
    plain: HashMap<Arc<str>, u32>,
    /// Who did the last work of a context.
    contexts: Contexts,
    /// How many change files in a repository.
    writers: HashMap<String, u32>,
    /// Accounts that have used up what they may. An account is a word of a workspace: others may use the same.
    pauses: Pauses,
}

type Pauses = HashMap<(WorkspaceId, Arc<str>), Pause>;

/// The longest a worker's word keeps its account from work: no limit that is known resets later than in a week.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(8 * 24 * 60 * 60);

/// A pause until a limit is reset.
pub(crate) fn pause(until: Millis, detail: &str) -> Pause {
    if detail.is_empty() { reached(until) } else { Pause { until, reason: detail.into() } }
}

fn reached(until: Millis) -> Pause {
    Pause { until, reason: "its usage limit is reached".into() }
}

#[derive(Default)]
pub struct Fleet {
    state: Mutex<State>,
    settings: ArcSwap<Settings>,
    /// Whether anybody ever announced itself.
    populated: AtomicBool,
    /// One announcement is kept at a time, so that the newest is what stays.
    pub(crate) keeping: tokio::sync::Mutex<()>,
    /// Something may happen sooner than was thought.
    sooner: Notify,
    /// A worker may take something new that did not.
    relief: Notify,
}

impl Fleet {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while holding the fleet")
    }

    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    pub fn replace_settings(&self, settings: Settings, registry: &Registry) {
        self.settings.store(Arc::new(settings));
        self.describe(registry);
    }

    /// Takes over what agents' cards and the operator say of workers.
    pub fn describe(&self, registry: &Registry) {
        let settings = self.settings();
        let State { workers, pauses, writers, .. } = &mut *self.state();
        for (name, entry) in workers {
            entry.describe(registry.by_name(name), &settings);
            entry.rest(pauses);
            entry.crowd(writers, &settings);
        }
        self.relief.notify_waiters();
    }

    /// The same of one of them, which says something new of itself.
    pub(crate) fn describe_one(&self, agent: &Arc<Agent>) {
        if let Some(entry) = self.state().workers.get_mut(agent.name.as_str()) {
            entry.describe(Some(agent), &self.settings());
            entry.open = true;
        }
    }

    /// Whether an agent announced itself. Asked for every message, so a hub without workers does not look far.
    pub fn has(&self, worker: &str) -> bool {
        self.populated.load(Ordering::Relaxed) && self.state().workers.contains_key(worker)
    }

    /// A worker as it is known by now.
    pub(crate) fn worker(&self, name: &str) -> Worker {
        self.state().workers.get(name).map_or_else(|| Worker::unknown(name), |entry| entry.worker.clone())
    }

    /// What a worker has announced by now: the hub's count, and its own.
    pub(crate) fn profile(&self, worker: &str) -> (u64, Option<u64>) {
        let state = self.state();
        state.workers.get(worker).map_or((0, None), |entry| (entry.worker.revision, entry.worker.announce.epoch))
    }

    /// Remembers how a worker's turn went.
    pub(crate) fn turned(&self, worker: &str, end: End, now: Millis) {
        if let Some(entry) = self.state().workers.get_mut(worker) {
            entry.worker.turns.count(now, end);
        }
    }

    /// A worker's usage limit is reached: all of its account get nothing until it is reset. Returns who that is.
    pub(crate) fn pause(&self, worker: &str, pause: Pause) -> Vec<Arc<str>> {
        let mut paused = Vec::new();
        let mut state = self.state();
        let account = state.workers.get(worker).and_then(Entry::account);
        let owner = state.workers.get(worker).map(|entry| entry.owner);
        // What it said is its owner's to know.
        let told = reached(pause.until);
        if let Some(account) = &account {
            state.pauses.insert(account.clone(), told.clone());
        }
        for (name, entry) in &mut state.workers {
            let shares = account.is_some() && entry.account() == account;
            if shares || **name == *worker {
                entry.worker.paused = Some(if Some(entry.owner) == owner { pause.clone() } else { told.clone() });
                paused.push(Arc::clone(name));
            }
        }
        drop(state);
        self.sooner.notify_one();
        self.relief.notify_waiters();
        paused
    }

    /// Ends the pause of a worker and of all of its account. Returns who that is.
    pub(crate) fn resume(&self, worker: &str) -> Vec<Arc<str>> {
        let mut resumed = Vec::new();
        let mut state = self.state();
        let account = state.workers.get(worker).and_then(Entry::account);
        if let Some(account) = &account {
            state.pauses.remove(account);
        }
        for (name, entry) in &mut state.workers {
            let shares = account.is_some() && entry.account() == account;
            if (shares || **name == *worker) && entry.worker.paused.take().is_some() {
                entry.open = true;
                resumed.push(Arc::clone(name));
            }
        }
        drop(state);
        self.sooner.notify_one();
        self.relief.notify_waiters();
        resumed
    }

    /// Holds workers back that have used up what they may, and lets go of those that have not.
    pub(crate) fn allow(&self, broke: impl Fn(&str) -> Option<Pause>) {
        let mut changed = false;
        for (name, entry) in &mut self.state().workers {
            let broke = broke(name);
            changed |= entry.worker.broke != broke;
            entry.open |= entry.worker.broke.is_some() && broke.is_none();
            entry.worker.broke = broke;
        }
        if changed {
            self.sooner.notify_one();
        }
    }

    /// Whether anybody ever announced itself.
    pub fn is_empty(&self) -> bool {
        self.state().workers.is_empty()
    }

    /// Takes up what was kept. Leases are given once for their full time, so that a hub that was down shuns nobody.
    pub fn restore(&self, kept: Vec<Kept>, registry: &Registry, now: Millis) {
        let settings = self.settings();
        let mut state = self.state();
        for Kept { agent, announce, at, draining, standing } in kept {
            let Some(agent) = registry.by_id(agent) else { continue };
            let Ok(announce) = serde_json::from_str::<Announce>(&announce) else { continue };
            let mut entry = Entry::new(agent, Via::Kept, at);
            entry.worker.take(Arc::new(announce), settings.lease_from(now), now);
            entry.describe(Some(agent), &settings);
            entry.worker.draining = draining;
            entry.worker.plain = state.plain.get(&entry.worker.name).copied().unwrap_or(0);
            (entry.worker.turns, entry.worker.paused) = standing::read(&standing);
            if let Some(pause) = &mut entry.worker.paused {
                pause.until = pause.until.min(after(now, LONGEST_PAUSE));
            }
            if let (Some(account), Some(pause)) = (entry.account(), entry.worker.pause(now)) {
                state.pauses.insert(account, reached(pause.until));
            }
            state.workers.insert(Arc::clone(&entry.worker.name), entry);
            self.populated.store(true, Ordering::Relaxed);
        }
    }

    pub fn announce(&self, agent: &Arc<Agent>, announce: Announce, via: Via, now: Millis) -> Announced {
        let settings = self.settings();
        let mut state = self.state();
        let fresh = || (agent.name.as_str().into(), Entry::new(agent, via, now));
        let known = state.workers.contains_key(agent.name.as_str());
        if !known {
            state.workers.extend([fresh()]);
        }
        self.populated.store(true, Ordering::Relaxed);
        let State { workers, pauses, plain, writers, .. } = &mut *state;
        let entry = workers.get_mut(agent.name.as_str()).expect("it was just put there");
        entry.worker.plain = plain.get(agent.name.as_str()).copied().unwrap_or(0);
        entry.look(Some(agent), now, &settings);
        let before = entry.worker.revision;
        let line = if let Via::Socket(line) = via { line } else { entry.latest_line };
        // A connection that another has taken the place of speaks for the agent no more.
        let is_current = line == entry.latest_line;
        let taken = is_current && entry.worker.take(Arc::new(announce), settings.lease_from(now), now);
        if taken {
            entry.line = line;
            (entry.announced_at, entry.heard_at, entry.via) = (now, now, via);
            entry.describe(Some(agent), &settings);
            entry.look(Some(agent), now, &settings);
            pauses.retain(|_, pause| now < pause.until);
            entry.rest(pauses);
            // Others may be changing files there since before it came.
            entry.crowd(writers, &settings);
            entry.count_elsewhere(now);
            entry.open = true;
        }
        let news = taken && entry.worker.revision != before;
        let known = &entry.worker.announce;
        let (epoch, version, lease_until) = (known.epoch, known.spoken(), entry.worker.lease_until);
        drop(state);
        self.sooner.notify_one();
        self.relief.notify_waiters();
        Announced { taken, news, epoch, version, lease_until }
    }

    /// A worker did or said something: it is there.
    pub fn heard(&self, worker: &str, now: Millis) {
        let settings = self.settings();
        if let Some(entry) = self.state().workers.get_mut(worker) {
            entry.heard_at = now;
            entry.worker.lease_until = entry.worker.lease_until.max(settings.lease_from(now));
        }
    }

    /// Lets a worker end what it has and take nothing new, or takes that back. None if it is no worker.
    pub fn drain(&self, worker: &str, draining: bool) -> Option<Kept> {
        let mut state = self.state();
        let entry = state.workers.get_mut(worker)?;
        entry.worker.draining = draining;
        entry.open = true;
        let kept = entry.kept();
        drop(state);
        self.sooner.notify_one();
        self.relief.notify_waiters();
        Some(kept)
    }

    /// What is kept of a worker.
    pub fn kept(&self, worker: &str) -> Option<Kept> {
        self.state().workers.get(worker).map(Entry::kept)
    }

    /// Every worker as it is now.
    pub fn seen(&self, registry: &Registry, now: Millis) -> Vec<Seen> {
        let settings = self.settings();
        let mut state = self.state();
        let seen = state.workers.iter_mut().map(|(name, entry)| {
            entry.look(registry.by_name(name), now, &settings);
            entry.seen(now)
        });
        seen.collect()
    }

    /// Those whose health is another than was last told, which is told now; and when to look again.
    pub(crate) fn changed(&self, registry: &Registry, now: Millis) -> (Vec<Changed>, Option<Millis>) {
        let settings = self.settings();
        let mut state = self.state();
        let (mut changed, mut next) = (Vec::new(), None);
        let mut counts = [0u32; Health::WORDS.len()];
        for (name, entry) in &mut state.workers {
            entry.look(registry.by_name(name), now, &settings);
            let health = entry.worker.health(now);
            counts[health.number()] += 1;
            let stands = (health.name(), entry.worker.revision);
            if entry.told != Some(stands) {
                entry.open |= health == Health::Available;
                entry.told = Some(stands);
                changed.push(entry.changed(health.name()));
            }
            let worker = &entry.worker;
            let pauses = [&worker.paused, &worker.broke].map(|pause| pause.as_ref().map(|pause| pause.until));
            let due = [Some(worker.lease_until), pauses[0], pauses[1]];
            next = due.into_iter().flatten().filter(|at| *at > now).chain(next).min();
        }
        for (word, count) in Health::WORDS.into_iter().zip(counts) {
            gauge!("flotilla_workers", "health" => word).set(f64::from(count));
        }
        gauge!("flotilla_fleet_waiting").set(state.waiting.len() as f64);
        (changed, next)
    }

    /// Waits until something may be due sooner.
    pub(crate) async fn stirred(&self) {
        self.sooner.notified().await;
    }

    pub(crate) fn stir(&self) {
        self.sooner.notify_one();
    }
}
