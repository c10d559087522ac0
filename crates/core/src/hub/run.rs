//! Runs: an agent's try at a task, from its start to its last report.

use super::judged::Turn;
use super::queue::RunPlace;
use super::{Hub, LiveRef};
use crate::caller::Scope;
use crate::error::{Error, Fault};
use crate::fleet::{contract::Contract, outcome::Judge};
use crate::ids::TaskId;
use crate::limits::{count_over, limit_of};
use crate::registry::Agent;
use crate::task::{Command, Head, Retry, RunState};
use flotilla_protocol::a2a::model::{Message, TaskState};
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::fleet::route::Step;
use flotilla_protocol::lineage::{Ancestor, Lineage};
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::{Assignment, Contents, Report, Trail};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long to wait before a report that could not be stored is tried again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What reports made together may hold to become one change.
const CHANGE_BYTES: usize = 256 * 1024;

/// An agent's hold on its run. Dropping it before the run is over fails the run, so none is left WORKING.
pub struct RunHandle {
    pub(super) hub: Arc<Hub>,
    pub(super) live: LiveRef,
    pub(super) run: u32,
    pub(super) over: bool,
    /// Given back with the handle.
    pub(super) place: Option<RunPlace>,
    /// Reads along, where the work is under a contract.
    pub(super) judge: Option<Box<Judge>>,
    /// What the worker had announced when it was chosen: the hub's count, and its own.
    pub(super) profile: (u64, Option<u64>),
    /// How often the worker answered before that it cannot do this work.
    pub(super) refusals: u32,
    /// Whoever is sent it says so within this time, or does not have it.
    pub(super) take: Option<Duration>,
    /// Its contract has a hard ceiling.
    pub(super) capped: bool,
    /// The last process left it at work.
    pub(super) resumed: bool,
    pub(super) turn: Turn,
    /// Whose last word was read: it is in the hub's words since.
    pub(super) ruled: Option<Arc<str>>,
    /// Dropped once it is with its agent, or waits for something else: whoever starts it may go on.
    pub(super) starting: Option<oneshot::Sender<()>>,
}

/// Which run is to be started, and why.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub run: u32,
    pub watched: bool,
    /// It was under way when the hub stopped.
    pub resumed: bool,
}

/// The run is over: canceled, replaced or ended. Nothing it says counts any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fenced;

impl RunHandle {
    /// Reports and waits until what was said is durable. What is said together becomes one change, unless it is large.
    pub async fn report(&mut self, reports: Vec<Report>) -> Result<(), Fenced> {
        if !self.is_current() {
            Box::pin(self.late(&reports)).await;
            self.over = true;
            return Err(Fenced);
        }
        let _settling = self.settling(&reports).await;
        let mut reports =
            if self.judge.is_some() { Box::pin(self.judged(reports)).await? } else { self.heeded(reports).await };
        if reports.is_empty() {
            // All of it was for the hub: that it was said at all means that the run was taken.
            Box::pin(self.taken()).await;
            return Ok(());
        }
        loop {
            let rest = reports.split_off(one_change(&reports));
            let told = self.report_together(reports).await;
            if told.is_err() {
                Box::pin(self.late(&rest)).await;
            }
            told?;
            if rest.is_empty() {
                return Ok(());
            }
            reports = rest;
        }
    }

    pub(super) async fn report_together(&mut self, reports: Vec<Report>) -> Result<(), Fenced> {
        let mut pause = FIRST_PAUSE;
        loop {
            let command = || Command::Report { run: self.run, reports: reports.clone() };
            match self.hub.change(&self.live, command).await {
                Ok(Some(_)) => return Ok(()),
                // It was ended between what was said and this.
                Ok(None) => {
                    Box::pin(self.late(&reports)).await;
                    self.over = true;
                    return Err(Fenced);
                }
                Err(Error::Refused(_)) if reports.len() > 1 => return Box::pin(self.report_each(reports)).await,
                Err(Error::Refused(refusal)) => {
                    if let Some(limit) = limit_of(&refusal) {
                        count_over(limit, "run");
                    }
                    Box::pin(self.fail(refusal.message.trim_end_matches('.'))).await;
                    return Err(Fenced);
                }
                // What was said is not lost because the disk is full for a while.
                Err(Error::Failed(fault)) => {
                    let trace = self.trace();
                    tracing::error!(task = %self.live.id(), trace, %fault, "a report is not stored yet; trying again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// One of them cannot be taken: those before it can.
    async fn report_each(&mut self, reports: Vec<Report>) -> Result<(), Fenced> {
        let mut reports = reports.into_iter();
        while let Some(report) = reports.next() {
            if Box::pin(self.report_together(vec![report])).await.is_err() {
                Box::pin(self.late(reports.as_slice())).await;
                return Err(Fenced);
            }
        }
        Ok(())
    }

    /// Waits until the run is over, whoever ended it.
    pub async fn fenced(&self) {
        fenced(&self.live, self.run).await;
    }

    /// The same for whoever reports meanwhile.
    pub fn fence(&self) -> impl Future<Output = ()> + Send + use<> {
        let (live, run) = (self.live.clone(), self.run);
        async move { fenced(&live, run).await }
    }

    /// Waits for what the caller says after so many messages; none if the run is over before that.
    pub fn said_after(&self, turn: u32) -> impl Future<Output = Option<Arc<Message>>> + Send + use<> {
        let (hub, live, run) = (Arc::clone(&self.hub), self.live.clone(), self.run);
        async move {
            loop {
                let mut woken = pin!(live.woken());
                woken.as_mut().enable();
                if !is_current(&live, run) {
                    return None;
                }
                if live.committed().is_some_and(|head| head.turn > turn) {
                    break;
                }
                woken.await;
            }
            let changes = match live.whole() {
                Some((_, changes)) => changes,
                None => hub.whole_log(live.id()).await.ok()?,
            };
            match nth_asked(&changes, turn as usize) {
                Some((_, Event::Asked { message, .. })) => Some(Arc::clone(message)),
                _ => None,
            }
        }
    }

    /// The agent has nothing more to say. If it left the task open, the task fails.
    pub async fn finish(mut self) {
        if self.is_current() {
            self.lose("the agent stopped without a result", Retry::Never).await;
        }
        self.over = true;
    }

    /// The agent will not be heard of again, and nobody knows what it did. `again` lets another run follow; either
    /// way the log says why.
    pub async fn give_up(mut self, reason: &str, again: bool) {
        self.lose(reason, if again { Retry::Always } else { Retry::Never }).await;
        self.over = true;
    }

    /// It is where it is waited for.
    pub fn has_started(&mut self) {
        self.starting = None;
    }

    /// Whether it is still this run's turn.
    pub fn is_current(&self) -> bool {
        is_current(&self.live, self.run)
    }

    fn trace(&self) -> Option<String> {
        self.live.committed().map(|head| head.trace_id().to_string())
    }

    /// The task ends here, and says why.
    pub async fn fail(&mut self, reason: &str) {
        if self.passed_on(reason).await {
            return;
        }
        let contents = Some(Contents::text(reason));
        let report = Report::Status { state: TaskState::Failed, contents, metadata: None };
        let command = || Command::Report { run: self.run, reports: vec![report.clone()] };
        if self.hub.end(&self.live, command).await.is_err() {
            self.lose(reason, Retry::Never).await;
        }
        self.over = true;
    }

    pub(super) async fn lose(&mut self, reason: &str, retry: Retry) {
        let command = || Command::Lost { run: self.run, reason: reason.to_owned(), retry };
        if let Err(error) = self.hub.end(&self.live, command).await {
            tracing::error!(task = %self.live.id(), trace = self.trace(), %error, "a lost run could not be recorded");
        }
    }
}

pub(super) fn is_current(live: &LiveRef, run: u32) -> bool {
    live.committed().is_some_and(|head| head.run == run && head.run_state != RunState::Idle)
}

pub(super) async fn fenced(live: &LiveRef, run: u32) {
    loop {
        let mut woken = pin!(live.woken());
        woken.as_mut().enable();
        if !is_current(live, run) {
            return;
        }
        woken.await;
    }
}

/// What a caller asked, counted from the first time, and when that was.
pub(super) fn nth_asked(changes: &[Arc<Change>], number: usize) -> Option<(Millis, &Event)> {
    let events = changes.iter().flat_map(|change| change.events.iter().map(|event| (change.at, event)));
    events.filter(|(_, event)| matches!(event, Event::Asked { .. })).nth(number)
}

/// How many of the reports make a change that readers can take at once: a change is never read in part.
pub(super) fn one_change(reports: &[Report]) -> usize {
    let mut size = 0;
    let fits = |report: &&Report| {
        size += report.size();
        size <= CHANGE_BYTES
    };
    let count = reports.iter().take_while(fits).count().max(1).min(reports.len());
    // The number a worker's reports came under is kept with the last of them, or they would be taken again.
    let numbered = matches!(reports.get(count), Some(Report::Received { .. }));
    count + usize::from(numbered)
}

/// Who is to do a run, what it is, and what contract it is under.
pub(super) type Given = (Arc<Agent>, Assignment, Option<Contract>);

impl Hub {
    pub(super) fn handle(self: &Arc<Self>, live: &LiveRef, run: u32, place: Option<RunPlace>) -> RunHandle {
        RunHandle {
            hub: Arc::clone(self),
            live: live.clone(),
            run,
            over: false,
            place,
            judge: None,
            profile: (0, None),
            refusals: 0,
            take: None,
            capped: false,
            resumed: false,
            turn: Turn::default(),
            ruled: None,
            starting: None,
        }
    }

    pub(super) async fn assignment(self: &Arc<Self>, live: &LiveRef, start: Start) -> Result<Option<Given>, Fault> {
        let Some(head) = live.committed() else { return Err(Fault::new("the task is not loaded")) };
        let Some(agent) = self.registry.load().by_id(head.agent).cloned() else { return Ok(None) };
        let changes = self.log_of(live).await?;
        // The oldest message that no run has taken up: those after it still wait.
        let turn = head.turn - head.waiting;
        let asked = nth_asked(&changes, turn.saturating_sub(1) as usize);
        let Some(mut assignment) = asked.and_then(|asked| self.assigned(&head, &agent, asked, start)) else {
            return Err(Fault::new("no message in the log"));
        };
        let contract = self.contracted(live, &agent, &changes, start.run).await;
        if agent.link.is_remote() {
            let trail = self.trail(&head, &changes, &assignment.message, start).await?;
            assignment.trail = Trail { extensions: std::mem::take(&mut assignment.trail.extensions), ..trail };
        }
        Ok(Some((agent, assignment, contract)))
    }

    /// What an agent is given to do; none if the event is not one of asking.
    pub(super) fn assigned(
        &self,
        head: &Head,
        agent: &Agent,
        (asked_at, asked): (Millis, &Event),
        start: Start,
    ) -> Option<Assignment> {
        let Event::Asked { message, accepted_output_modes, metadata, from, ttl, extensions, .. } = asked else {
            return None;
        };
        Some(Assignment {
            task_id: head.id.to_string(),
            context_id: head.context.to_string(),
            run: start.run,
            caller: head.principal.0,
            turn: head.turn - head.waiting,
            message: Arc::clone(message),
            accepted_output_modes: accepted_output_modes.clone(),
            metadata: metadata.clone(),
            asked_at,
            from: from.clone(),
            ttl: *ttl,
            watched: start.watched,
            max_cost_usd: None,
            trail: Trail { extensions: extensions.clone(), ..Trail::default() },
            lineage: self.lineage(head, agent, start.run),
        })
    }

    /// The contract of a task is that of its first message, as later ones amend it. One in a version that is not spoken here is noted, once.
    async fn contracted(
        self: &Arc<Self>,
        live: &LiveRef,
        agent: &Agent,
        changes: &[Arc<Change>],
        run: u32,
    ) -> Option<Contract> {
        let Some((_, Event::Asked { message, .. })) = nth_asked(changes, 0) else { return None };
        let (contract, version) = self.contract(agent, message, changes);
        if let Some(version) = version {
            let step = Box::new(Step::Fallback { version });
            let command = || Command::Route { run, step: step.clone(), deadline: None };
            if let Err(error) = self.change(live, command).await {
                tracing::error!(task = %live.id(), %error, "the version of a dispatch is not recorded");
            }
        }
        contract
    }

    pub(super) fn lineage(&self, head: &Head, agent: &Agent, run: u32) -> Lineage {
        let (hub, agent, task) = (self.store.hub_id().to_owned(), agent.name.clone(), head.id.to_string());
        let here = Ancestor { hub, agent, task };
        Lineage { here, origin: head.origin.clone(), deadline: head.deadline, trace: head.trace(run) }
    }

    pub(super) async fn whole_log(&self, id: TaskId) -> Result<Vec<Arc<Change>>, Fault> {
        let record = self.store.record(Scope::Admin, id).await?;
        Ok(record.map(|record| record.changes).unwrap_or_default())
    }

    pub fn live_tasks(&self) -> usize {
        self.lives.count()
    }
}

#[cfg(test)]
mod tests {
    use super::{CHANGE_BYTES, one_change};
    use flotilla_protocol::work::{Contents, Report};

    fn reports(sizes: &[usize]) -> Vec<Report> {
        let note = |size: &usize| Report::Answer { contents: Contents::text("x".repeat(*size)), metadata: None };
        sizes.iter().map(note).collect()
    }

    #[test]
    fn small_reports_become_one_change_and_large_ones_several() {
        assert_eq!(one_change(&reports(&[1, 2, 3])), 3);
        assert_eq!(one_change(&reports(&[CHANGE_BYTES - 1, 1, 1])), 2);
        assert_eq!(one_change(&reports(&[CHANGE_BYTES + 1, 1])), 1, "one that is large goes alone");
        assert_eq!(one_change(&[]), 0);
        let mut large = reports(&[CHANGE_BYTES + 1]);
        large.push(Report::Received { number: 1, id: String::new() });
        assert_eq!(one_change(&large), 2, "its number goes with it");
    }
}
