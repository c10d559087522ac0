//! Work that waits for a worker, and the order it is given out in.

use super::roster::Entry;
use super::{Fleet, State};
use crate::dispatch::{Choice, Health, Shunned, Target, Verdict, Wanted, Worker, choose};
use crate::fleet::Settings;
use crate::ids::{PrincipalId, TaskId, WorkspaceId};
use crate::registry::{Agent, Registry, Visibility};
use flotilla_protocol::fleet::Dispatch;
use flotilla_protocol::time::Millis;
use metrics::histogram;
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;

/// Work that looks for a worker.
#[derive(Debug, Clone)]
pub struct Order {
    pub task: TaskId,
    pub run: u32,
    pub dispatch: Arc<Dispatch>,
    pub target: Target,
    pub shunned: Vec<Shunned>,
    pub principal: PrincipalId,
    /// Whose workers of its kind it may see.
    pub workspace: WorkspaceId,
    pub context: Arc<str>,
    pub since: Millis,
    /// The worker itself was called, so its caller may call it.
    pub direct: bool,
    /// The only ones its caller may call; none means all that are there for it.
    pub agents: Option<Arc<[String]>>,
    /// The agents of this hub it was called for: it must not come back to one of them.
    pub passed: Arc<[String]>,
}

impl Order {
    fn wanted<'a>(&'a self, last: Option<&'a str>) -> Wanted<'a> {
        let Self { dispatch, target, shunned, passed, .. } = self;
        Wanted { dispatch, target, last, shunned, passed }
    }

    fn may_have(&self, entry: &Entry) -> bool {
        self.direct || (entry.is_for(self.principal, self.workspace) && self.names(&entry.worker.name))
    }

    /// The same of an agent that never announced itself.
    fn may_call(&self, agent: &Agent) -> bool {
        let there = match agent.visibility {
            Visibility::Public => true,
            Visibility::Workspace => agent.workspace == self.workspace,
            Visibility::Private => agent.owner == self.principal,
        };
        self.direct || (there && self.names(&agent.name))
    }

    fn names(&self, worker: &str) -> bool {
        self.agents.as_ref().is_none_or(|allowed| allowed.iter().any(|name| name == worker))
    }
}

/// A worker that was found, and all that were looked at.
#[derive(Debug)]
pub struct Placed {
    pub worker: Worker,
    pub unverified: Vec<String>,
    pub choice: Choice,
}

/// One that waits. It is taken out of the queue when its other half is dropped.
pub(crate) struct Waiting {
    order: Order,
    number: u64,
    tell: oneshot::Sender<Placed>,
}

/// Who has a task's work.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub worker: Arc<str>,
    context: Arc<str>,
    /// The repository whose files it changes.
    repository: Option<String>,
}

/// What goes first: the more urgent by now, then the sooner due, then the older.
pub(crate) fn rank(order: &Order, number: u64, now: Millis, settings: &Settings) -> impl Ord + use<> {
    let step = i64::try_from(settings.ageing.as_millis()).unwrap_or(i64::MAX).max(1);
    let aged = (now.0 - order.since.0).max(0) / step;
    let level = order.dispatch.task.priority as i64 + aged;
    (Reverse(level), order.dispatch.deadline.unwrap_or(Millis(i64::MAX)), number)
}

/// Work in the queue; dropped, it is there no more.
#[must_use]
pub struct Queued<'a> {
    fleet: &'a Fleet,
    work: (TaskId, u32),
    number: u64,
    pub placed: oneshot::Receiver<Placed>,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        let settings = self.fleet.settings();
        let mut state = self.fleet.state();
        state.waiting.remove(&self.number);
        // It was given in the moment its waiting ended.
        if self.placed.try_recv().is_ok() {
            state.take_back(self.work, &settings);
        }
    }
}

impl State {
    /// Who could do it, the best first.
    fn choice(&self, order: &Order, settings: &Settings, now: Millis) -> Choice {
        let begun = Instant::now();
        let seen = self.workers.values().filter(|entry| order.may_have(entry));
        let last = self.contexts.get(&order.context).map(|worker| &**worker);
        let choice = choose(seen.map(|entry| &entry.worker), order.wanted(last), &settings.policy, now);
        histogram!("flotilla_fleet_decision_seconds").record(begun.elapsed().as_secs_f64());
        choice
    }

    fn place(
        &mut self,
        order: &Order,
        registry: &Registry,
        settings: &Settings,
        now: Millis,
    ) -> Result<Placed, Choice> {
        if let Target::Worker(name) = &order.target
            && !self.workers.contains_key(name.as_str())
        {
            let placed = unknown(order, name, registry, settings, now)?;
            let given = Given { worker: name.as_str().into(), context: Arc::clone(&order.context), repository: None };
            self.given.insert((order.task, order.run), given);
            return Ok(placed);
        }
        let choice = self.choice(order, settings, now);
        self.give(order, choice, settings)
    }

    /// Gives what waits for agents that never announced themselves to those that are there by now.
    fn offer_strangers(&mut self, registry: &Registry, settings: &Settings, now: Millis) {
        let named = |waiting: &Waiting| match &waiting.order.target {
            Target::Worker(name) if !self.workers.contains_key(name.as_str()) => {
                registry.by_name(name).is_some_and(|agent| agent.link.absence().is_none())
            }
            _ => false,
        };
        let there: Vec<u64> = self.waiting.iter().filter(|(_, waiting)| named(waiting)).map(|(n, _)| *n).collect();
        for number in there {
            let Some(waiting) = self.waiting.remove(&number) else { continue };
            match self.place(&waiting.order, registry, settings, now) {
                Ok(placed) => {
                    if let Err(unheard) = waiting.tell.send(placed) {
                        drop(unheard);
                        self.take_back((waiting.order.task, waiting.order.run), settings);
                    }
                }
                Err(_) => drop(self.waiting.insert(number, waiting)),
            }
        }
    }

    fn give(&mut self, order: &Order, choice: Choice, settings: &Settings) -> Result<Placed, Choice> {
        let Some(chosen) = choice.chosen() else { return Err(choice) };
        let unverified = match &chosen.verdict {
            Verdict::Fit { unverified, .. } => unverified.clone(),
            Verdict::Unfit(_) => Vec::new(),
        };
        let name = Arc::clone(&chosen.worker);
        let Some(entry) = self.workers.get_mut(&name) else { return Err(choice) };
        let worker = entry.worker.clone();
        self.count(&name, order, settings);
        Ok(Placed { worker, unverified, choice })
    }

    /// Counts work as a worker's own.
    fn count(&mut self, worker: &Arc<str>, order: &Order, settings: &Settings) {
        let Some(entry) = self.workers.get_mut(worker) else { return };
        entry.worker.active += 1;
        let writes = order.dispatch.requirements.write;
        let repository = entry.worker.announce.repository().filter(|_| writes);
        if let Some(repository) = &repository {
            *self.writers.entry(repository.clone()).or_default() += 1;
            self.crowd(repository, settings);
        }
        let given = Given { worker: Arc::clone(worker), context: Arc::clone(&order.context), repository };
        self.given.insert((order.task, order.run), given);
    }

    /// Whether a repository has room for another who changes its files is known to all who work in it.
    fn crowd(&mut self, repository: &str, settings: &Settings) {
        for entry in self.workers.values_mut() {
            if entry.worker.announce.repository().as_deref() == Some(repository) {
                entry.crowd(&self.writers, settings);
            }
        }
    }

    /// The best of what waits that a worker could do.
    fn for_worker(&self, entry: &Entry, settings: &Settings, now: Millis) -> Option<u64> {
        let mut best: Option<(u64, _)> = None;
        for (number, waiting) in &self.waiting {
            let order = &waiting.order;
            let rank = rank(order, *number, now, settings);
            if best.as_ref().is_some_and(|(_, known)| *known <= rank) || !order.may_have(entry) {
                continue;
            }
            if choose([&entry.worker], order.wanted(None), &settings.policy, now).chosen().is_some() {
                best = Some((*number, rank));
            }
        }
        best.map(|(number, _)| number)
    }

    /// Offers what waits to workers that something new is known of, until nobody takes more.
    fn offer(&mut self, settings: &Settings, now: Millis) {
        while let Some(name) = self.workers.iter().find(|(_, entry)| entry.open).map(|(name, _)| Arc::clone(name)) {
            let Some(entry) = self.workers.get(&name) else { return };
            let number = match entry.worker.health(now) {
                Health::Available => self.for_worker(entry, settings, now),
                _ => None,
            };
            let Some(waiting) = number.and_then(|number| self.waiting.remove(&number)) else {
                if let Some(entry) = self.workers.get_mut(&name) {
                    entry.open = false;
                }
                continue;
            };
            let choice = self.choice(&waiting.order, settings, now);
            match self.give(&waiting.order, choice, settings) {
                Ok(placed) => {
                    if let Err(unheard) = waiting.tell.send(placed) {
                        drop(unheard);
                        self.take_back((waiting.order.task, waiting.order.run), settings);
                    }
                }
                // It was found fit a moment ago, so this is not reached; it must not be lost if it is.
                Err(_) => {
                    self.waiting.insert(waiting.number, waiting);
                    return;
                }
            }
        }
    }

    fn take_back(&mut self, work: (TaskId, u32), settings: &Settings) -> Option<Given> {
        let given = self.given.remove(&work)?;
        if let Some(entry) = self.workers.get_mut(&given.worker) {
            entry.worker.active = entry.worker.active.saturating_sub(1);
            entry.open = true;
        }
        if let Some(repository) = &given.repository {
            if let Some(writers) = self.writers.get_mut(repository) {
                *writers = writers.saturating_sub(1);
            }
            self.crowd(repository, settings);
            self.writers.retain(|_, writers| *writers > 0);
        }
        Some(given)
    }
}

impl Fleet {
    /// Looks who of the workers is there, before one of them is chosen.
    fn looked(&self, registry: &Registry, now: Millis) -> (std::sync::MutexGuard<'_, State>, Arc<Settings>) {
        let settings = self.settings();
        let mut state = self.state();
        for (name, entry) in &mut state.workers {
            entry.look(registry.by_name(name), now, &settings);
        }
        (state, settings)
    }

    /// Gives work to the best worker there is now; if there is none, who was looked at.
    pub(crate) fn place(&self, order: &Order, registry: &Registry, now: Millis) -> Result<Placed, Choice> {
        let (mut state, settings) = self.looked(registry, now);
        let placed = state.place(order, registry, &settings, now);
        drop(state);
        self.stir();
        placed
    }

    /// Lets work wait for a worker. One that came meanwhile takes it at once.
    pub(crate) fn enqueue(&self, order: Order, registry: &Registry, now: Millis) -> Result<Queued<'_>, Box<Placed>> {
        let (tell, placed) = oneshot::channel();
        let (mut state, settings) = self.looked(registry, now);
        if let Ok(placed) = state.place(&order, registry, &settings, now) {
            return Err(Box::new(placed));
        }
        state.next += 1;
        let (number, work) = (state.next, (order.task, order.run));
        state.waiting.insert(number, Waiting { order, number, tell });
        drop(state);
        self.stir();
        Ok(Queued { fleet: self, work, number, placed })
    }

    /// Counts work as given that a worker has from before.
    pub(crate) fn regive(&self, order: &Order, worker: &Arc<str>) {
        let settings = self.settings();
        self.state().count(worker, order, &settings);
    }

    /// Offers what waits to whoever came, changed or became free.
    pub(crate) fn offer(&self, registry: &Registry, now: Millis) {
        let (mut state, settings) = self.looked(registry, now);
        state.offer(&settings, now);
        state.offer_strangers(registry, &settings, now);
    }

    /// A worker is done with a task's work, however that came about.
    pub(crate) fn release(&self, work: (TaskId, u32), registry: &Registry, now: Millis) {
        let (mut state, settings) = self.looked(registry, now);
        if let Some(given) = state.take_back(work, &settings)
            && let Some(entry) = state.workers.get_mut(&given.worker)
        {
            entry.ended(now);
            state.contexts.put(given.context, given.worker);
        }
        state.offer(&settings, now);
        drop(state);
        self.stir();
    }

    /// An agent has a run of a plain message, until it is told to leave it.
    pub(crate) fn occupy(&self, agent: &str) {
        let mut state = self.state();
        let State { plain, workers, .. } = &mut *state;
        match plain.get_mut(agent) {
            Some(runs) => *runs += 1,
            None => drop(plain.insert(agent.into(), 1)),
        }
        if let Some(entry) = workers.get_mut(agent) {
            entry.worker.plain += 1;
            drop(state);
            self.stir();
        }
    }

    /// A run of a plain message is over.
    pub(crate) fn vacate(&self, agent: &str, registry: &Registry, now: Millis) {
        let mut state = self.state();
        let State { plain, workers, .. } = &mut *state;
        if let Some(runs) = plain.get_mut(agent) {
            *runs = runs.saturating_sub(1);
            if *runs == 0 {
                plain.remove(agent);
            }
        }
        let Some(entry) = workers.get_mut(agent) else { return };
        entry.worker.plain = entry.worker.plain.saturating_sub(1);
        entry.ended(now);
        drop(state);
        self.offer(registry, now);
        self.stir();
    }

    pub(crate) fn given(&self, task: TaskId) -> Option<Arc<str>> {
        let state = self.state();
        let latest = state.given.range((task, 0)..=(task, u32::MAX)).next_back();
        latest.map(|(_, given)| Arc::clone(&given.worker))
    }

    /// How much work waits.
    pub fn waiting(&self) -> usize {
        self.state().waiting.len()
    }
}

/// An agent that never announced itself takes work that names it, as far as it is there.
fn unknown(order: &Order, name: &str, registry: &Registry, settings: &Settings, now: Millis) -> Result<Placed, Choice> {
    let agent = registry.by_name(name).filter(|agent| order.may_call(agent));
    let Some(agent) = agent else { return Err(Choice::default()) };
    let mut worker = Worker::unknown(name);
    worker.present = agent.link.absence().is_none();
    let choice = choose([&worker], order.wanted(None), &settings.policy, now);
    match choice.chosen().map(|chosen| chosen.verdict.clone()) {
        Some(Verdict::Fit { unverified, .. }) => Ok(Placed { worker, unverified, choice }),
        _ => Err(choice),
    }
}

#[cfg(test)]
mod tests;
