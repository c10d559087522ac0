//! Budgets: what work has used is held against its ceilings, its parents' and the day's; told at levels, and stopped.

use super::halt::Under;
use super::run::RunHandle;
use super::{Hub, LiveRef};
use crate::budget::{ABOVE, Broke, Budgets, Ceiling, Figure, Held, OWN, TODAY};
use crate::caller::Scope;
use crate::error::{Error, Fault};
use crate::fleet::contract::{Carried, carried};
use crate::fleet::own::seconds;
use crate::ids::TaskId;
use crate::registry::Agent;
use crate::task::{Command, Head};
use crate::usage::{By, Day, UsageFilter, told_by};
use arc_swap::ArcSwap;
use flotilla_protocol::a2a::model::Message;
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::lineage::Origin;
use flotilla_protocol::usage::{Usage, dollars};
use metrics::counter;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

/// Contracts that are remembered; beyond that they are read again.
const REMEMBERED: usize = 10_000;

/// What budgets are made of: the ceilings in force, what tasks were promised, and what was told already.
#[derive(Default)]
pub struct Purses {
    pub(super) policy: ArcSwap<Budgets>,
    contracts: Mutex<HashMap<TaskId, Option<Ceiling>>>,
    told: Mutex<HashMap<(String, Figure), (Day, u64)>>,
    /// One is weighed after the other, so that each level is told once.
    scales: tokio::sync::Mutex<()>,
    /// One end of work is held against hard ceilings after the other, and booked before the next: of several at once no
    /// more fit than do.
    pub(super) settling: Arc<tokio::sync::Mutex<()>>,
    /// One run after the other tells what it used when it was over.
    pub(super) late: tokio::sync::Mutex<()>,
    /// The ledger could not be read, and is looked at again in a while.
    pub(super) looks_again: AtomicBool,
}

impl Purses {
    fn contracts(&self) -> MutexGuard<'_, HashMap<TaskId, Option<Ceiling>>> {
        self.contracts.lock().expect("no panic while holding the contracts")
    }

    /// Whether a level is news; then it is remembered.
    fn is_news(&self, purse: &str, figure: Figure, day: Day, level: u64, before: u64) -> bool {
        let mut told = self.told.lock().expect("no panic while holding what was told");
        if told.len() > REMEMBERED {
            told.retain(|_, (of, _)| *of == day);
        }
        let known = told.entry((purse.to_owned(), figure)).or_insert((day, before));
        if known.0 != day && !purse.starts_with("task") {
            *known = (day, 0);
        }
        let is_news = level > known.1;
        known.1 = known.1.max(level);
        is_news
    }
}

/// A ceiling, and what counts against it.
struct Purse {
    /// `task ID`, `agent NAME`, `workspace NAME` or `hub`.
    name: String,
    /// How callers are told of it; whose it is beyond that is not theirs to know.
    whose: &'static str,
    under: Under,
    ceiling: Ceiling,
    used: Usage,
}

impl Purse {
    fn is_of_the_day(&self) -> bool {
        self.whose == TODAY
    }
}

impl Hub {
    pub fn replace_budgets(self: &Arc<Self>, budgets: Budgets) {
        self.purses.policy.store(Arc::new(budgets));
        let hub = Arc::clone(self);
        self.runtime.spawn(async move {
            hub.look_at_allowances().await;
        });
    }

    /// A change was committed: if it tells of usage, that is weighed.
    pub(super) fn weigh_later(self: &Arc<Self>, live: &LiveRef, head: &Head, change: &Change) {
        if change.events.iter().any(|event| matches!(event, Event::Asked { .. })) {
            self.purses.contracts().remove(&head.id);
        }
        let Some(usage) = Usage::of(&change.events) else { return };
        let earlier = told_by(&change.events);
        let doer = match earlier {
            Some(worker) => self.registry.load().by_name(worker).cloned(),
            None => self.doer(head),
        };
        let (hub, live, head, is_its_own) = (Arc::clone(self), live.clone(), head.clone(), earlier.is_none());
        self.runtime.spawn(async move {
            let _alone = hub.purses.scales.lock().await;
            if let Err(error) = hub.weigh(&live, &head, (doer.as_deref(), is_its_own), &usage).await {
                tracing::error!(task = %head.id, %error, "what a task used could not be held against its budget");
            }
        });
    }

    /// `doer` is who used it, and whether the work is its own still.
    async fn weigh(
        self: &Arc<Self>,
        live: &LiveRef,
        head: &Head,
        (doer, is_its_own): (Option<&Agent>, bool),
        added: &Usage,
    ) -> Result<(), Error> {
        let today = Day::of(self.clock.now());
        let mut reached = Vec::new();
        for purse in self.purses_of(doer, Some(head.id), head.origin.as_deref()).await? {
            for mark in purse.ceiling.marks(&purse.used) {
                let before = purse.ceiling.marks(&purse.used.beyond(added)).find(|before| before.figure == mark.figure);
                let before = before.map_or(0, |before| before.level());
                if self.purses.is_news(&purse.name, mark.figure, today, mark.level(), before) {
                    let limit = format!("budget of {} ({})", purse.name, mark.figure.name());
                    let near = || Command::NearBudget { limit: limit.clone(), used: mark.used, most: mark.most };
                    self.change(live, near).await?;
                    let text = format!("{} %: {} ({limit})", mark.level(), mark.told());
                    self.warn_owner(head, "budget", &text).await;
                }
            }
            if purse.ceiling.hard && purse.ceiling.reached(&purse.used).is_some() {
                reached.push(purse);
            }
        }
        // Before places become free: what waits for this worker is not given to it only to be taken back.
        if reached.iter().any(Purse::is_of_the_day) {
            self.look_at_allowances().await;
        }
        for purse in reached {
            let renewed = self.renewed(&purse);
            if is_its_own {
                self.stop_spending(live, head, Broke::after(purse.whose, renewed)).await?;
            }
            // Nobody else under it may use more, whether they say anything or not.
            self.stop_under(purse.under, renewed).await;
        }
        Ok(())
    }

    /// Seconds until a purse is filled again by itself.
    fn renewed(&self, purse: &Purse) -> Option<u64> {
        let now = self.clock.now();
        purse.is_of_the_day().then(|| seconds(now, Day::of(now).ends()))
    }

    pub(super) async fn stop_spending(
        self: &Arc<Self>,
        live: &LiveRef,
        head: &Head,
        broke: Broke,
    ) -> Result<(), Error> {
        if self.end(live, || Command::Overspent(broke.clone())).await?.is_some() {
            tracing::info!(task = %head.id, trace = %head.trace_id(), "a task's budget is used up");
            self.warn_owner(head, broke.reason, &broke.text).await;
            self.call_off(live.clone(), live.committed().unwrap_or_else(|| head.clone()));
        }
        Ok(())
    }

    async fn warn_owner(&self, head: &Head, reason: &str, text: &str) {
        counter!("flotilla_alerts_total", "reason" => reason.to_owned()).increment(1);
        self.tell_people(head, reason, text).await;
    }

    /// Whether there is any ceiling that work could count against.
    pub(super) fn may_be_broke(&self, origin: Option<&Origin>) -> bool {
        !self.purses.policy.load().is_empty() || origin.is_some_and(|origin| !origin.chain.is_empty())
    }

    /// Why work for an agent cannot begin, if a hard ceiling it would count against is reached already, or may be.
    pub async fn broke(&self, agent: &Agent, origin: Option<&Origin>) -> Option<Broke> {
        if !self.may_be_broke(origin) {
            return None;
        }
        self.spent_up(Some(agent), None, origin).await
    }

    /// The same of a message to a task: what counts is the ceiling it is under, or that the message itself brings.
    pub(super) async fn broke_again(&self, agent: &Agent, head: &Head, message: &Message) -> Option<Box<Broke>> {
        let brought = match carried(message, self.reads_texts(agent)) {
            Ok(Carried::Dispatch(dispatch)) => Ceiling::of(&dispatch),
            _ => None,
        };
        let own = brought.is_none().then_some(head.id);
        let broke = self.spent_up(None, own, head.origin.as_deref()).await;
        let Some(brought) = brought.filter(|_| broke.is_none()) else { return broke.map(Box::new) };
        match tokio::try_join!(self.promised(head.id), self.store.usage_below(head.id)) {
            Ok((own, used)) => {
                let raises = own.is_none_or(|own| own.is_raised_by(&brought, &used));
                let has_room = raises && !(brought.hard && brought.reached(&used).is_some());
                (!has_room).then(|| Box::new(Broke::before(OWN, None)))
            }
            Err(_) => Some(Box::new(Broke::unknown())),
        }
    }

    /// The same of a run: with its own task, if that is under a hard ceiling, and the worker it is to go to.
    pub(super) async fn broke_for(&self, agent: Option<&Agent>, head: &Head, capped: bool) -> Option<Broke> {
        let origin = head.origin.as_deref();
        if !capped && !self.may_be_broke(origin) {
            return None;
        }
        self.spent_up(agent, capped.then_some(head.id), origin).await
    }

    async fn spent_up(&self, agent: Option<&Agent>, task: Option<TaskId>, origin: Option<&Origin>) -> Option<Broke> {
        let purses = match self.purses_of(agent, task, origin).await {
            Ok(purses) => purses,
            Err(fault) => {
                let name = agent.map(|agent| agent.name.as_str());
                tracing::error!(agent = name, %fault, "whether work has a budget left is not known");
                let is_part = task.is_some() || origin.is_some_and(|origin| !origin.chain.is_empty());
                let may_stop = is_part || name.is_some_and(|name| self.purses.policy.load().may_stop(name));
                return may_stop.then(Broke::unknown);
            }
        };
        let spent = |purse: &&Purse| purse.ceiling.hard && purse.ceiling.reached(&purse.used).is_some();
        purses.iter().find(spent).map(|purse| Broke::before(purse.whose, self.renewed(purse)))
    }

    /// The hard ceiling that work which has begun has reached, if there is one.
    pub(super) async fn overspent(&self, head: &Head) -> Result<Option<Broke>, Fault> {
        let doer = self.doer(head);
        let purses = self.purses_of(doer.as_deref(), Some(head.id), head.origin.as_deref()).await?;
        let spent = |purse: &&Purse| purse.ceiling.hard && purse.ceiling.reached(&purse.used).is_some();
        Ok(purses.iter().find(spent).map(|purse| Broke::after(purse.whose, self.renewed(purse))))
    }

    /// The hard ceilings that a task's last word may pass. None if they cannot be read.
    pub(super) async fn hard_ceilings(&self, doer: &Agent, head: &Head, capped: bool) -> Option<Vec<Held>> {
        let purses = self.purses_of(Some(doer), capped.then_some(head.id), head.origin.as_deref()).await;
        let purses = purses.inspect_err(|fault| tracing::error!(task = %head.id, %fault, "its budget cannot be read"));
        let hard = purses.ok()?.into_iter().filter(|purse| purse.ceiling.hard);
        Some(hard.map(|Purse { whose, ceiling, used, .. }| Held { whose, ceiling, used }).collect())
    }

    /// What work may still cost under all hard ceilings it counts against, in dollars.
    pub(super) async fn money_left(&self, doer: &Agent, run: &RunHandle) -> Option<f64> {
        let head = run.live.committed()?;
        if !run.capped && !self.may_be_broke(head.origin.as_deref()) {
            return None;
        }
        let held = self.hard_ceilings(doer, &head, run.capped).await?;
        held.iter().filter_map(|held| held.ceiling.left(&held.used).cost).min().map(dollars)
    }

    /// What is left under the hard ceilings of the tasks a task is part of.
    pub(super) async fn left_above(&self, head: &Head) -> Option<Ceiling> {
        let origin = head.origin.as_deref().filter(|origin| !origin.chain.is_empty())?;
        let purses = self.purses_of(None, None, Some(origin)).await;
        let purses =
            purses.inspect_err(|fault| tracing::error!(task = %head.id, %fault, "what it may use cannot be read"));
        let hard = purses.ok()?.into_iter().filter(|purse| purse.ceiling.hard);
        hard.map(|purse| purse.ceiling.left(&purse.used)).reduce(Ceiling::least)
    }

    /// All that a task counts against: its own contract, those of the tasks it is part of, and the day's ceilings.
    async fn purses_of(
        &self,
        agent: Option<&Agent>,
        task: Option<TaskId>,
        origin: Option<&Origin>,
    ) -> Result<Vec<Purse>, Fault> {
        let here = self.store.hub_id();
        let chain = origin.iter().flat_map(|origin| &origin.chain).filter(|one| one.hub == here);
        let above = chain.filter_map(|one| Some((TaskId::parse(&one.task)?, ABOVE)));
        let mut purses = Vec::new();
        for (task, whose) in above.chain(task.map(|task| (task, OWN))) {
            if let Some(ceiling) = self.promised(task).await? {
                let used = self.store.usage_below(task).await?;
                purses.push(Purse { name: format!("task {task}"), whose, under: Under::Task(task), ceiling, used });
            }
        }
        let (policy, Some(agent)) = (self.purses.policy.load_full(), agent) else { return Ok(purses) };
        if policy.is_empty() {
            return Ok(purses);
        }
        let ceiling_of = |list: &[(String, Ceiling)], name: &str| {
            list.iter().find(|(known, _)| known == name).map(|(_, ceiling)| *ceiling)
        };
        if let Some(ceiling) = ceiling_of(&policy.agents, &agent.name) {
            let used = self.used_today(By::Agent, &agent.name).await?;
            let (name, under) = (format!("agent {}", agent.name), Under::Agent(agent.id));
            purses.push(Purse { name, whose: TODAY, under, ceiling, used });
        }
        if !policy.workspaces.is_empty() {
            let name = self.store.workspace_name(agent.workspace).await?;
            if let Some(ceiling) = ceiling_of(&policy.workspaces, &name) {
                let used = self.used_today(By::Workspace, &name).await?;
                let (name, under) = (format!("workspace {name}"), Under::Workspace(agent.workspace));
                purses.push(Purse { name, whose: TODAY, under, ceiling, used });
            }
        }
        if let Some(ceiling) = policy.day {
            let used = self.used_today(By::Day, &Day::of(self.clock.now()).name()).await?;
            purses.push(Purse { name: "hub".to_owned(), whose: TODAY, under: Under::Hub, ceiling, used });
        }
        Ok(purses)
    }

    async fn used_today(&self, by: By, key: &str) -> Result<Usage, Fault> {
        Ok(self.today(by).await?.remove(key).unwrap_or_default())
    }

    /// All that was used today.
    pub(super) async fn today(&self, by: By) -> Result<HashMap<String, Usage>, Fault> {
        let filter =
            UsageFilter { since: Some(Day::of(self.clock.now())), limit: usize::MAX >> 1, ..UsageFilter::default() };
        let sums = self.store.usage(Scope::Admin, by, filter).await?;
        Ok(sums.into_iter().map(|sum| (sum.key, sum.usage)).collect())
    }

    /// The ceiling a task's latest contract sets, if it has one.
    async fn promised(&self, task: TaskId) -> Result<Option<Ceiling>, Fault> {
        if let Some(known) = self.purses.contracts().get(&task) {
            return Ok(*known);
        }
        let record = self.store.record(Scope::Admin, task).await?;
        let found = record.and_then(|record| {
            let agent = self.registry.load().by_id(record.head.agent).cloned()?;
            let events = record.changes.iter().rev().flat_map(|change| change.events.iter().rev());
            let asked = events.filter_map(|event| match event {
                Event::Asked { message, .. } => Some(message),
                _ => None,
            });
            let texts = self.reads_texts(&agent);
            asked
                .filter_map(|message| match carried(message, texts) {
                    Ok(Carried::Dispatch(dispatch)) => Ceiling::of(&dispatch),
                    _ => None,
                })
                .next()
        });
        let mut contracts = self.purses.contracts();
        if contracts.len() >= REMEMBERED {
            contracts.clear();
        }
        contracts.insert(task, found);
        Ok(found)
    }
}
