//! Places: of runs under way, of runs that wait for an agent which is not there, and of open tasks. Each kind is bounded
//! for itself.

use super::run::RunHandle;
use super::tally::Full;
use super::{Hub, Place};
use crate::held_bytes::{Account, Held};
use crate::ids::{AgentId, WorkspaceId};
use crate::limits::{Limit, Limits};
use crate::ports::Absence;
use crate::registry::Agent;
use crate::task::{Command, Effect, Head};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::request::SendMessageRequest;
use flotilla_protocol::time::Millis;
use std::sync::Arc;
use std::time::Duration;

/// What a run is counted as.
pub enum RunPlace {
    UnderWay { _of_agent: Place<AgentId>, _message: Option<Held> },
    Queued { agent: AgentId, _of_agent: Place<AgentId>, _of_workspace: Place<WorkspaceId>, message: Option<Held> },
}

/// A run's message is held in memory until its agent is done; smaller ones are not counted.
const COUNTED_MESSAGE: usize = 4096;

/// What a decision holds until its commit is settled.
pub struct Places {
    pub(super) run: Option<RunPlace>,
    /// Whether the task is new, and counts as open from now on.
    pub(super) opens: bool,
}

impl Hub {
    /// Takes the places a decision needs before anything is written. Only a caller is refused for want of one: what
    /// follows from the work itself must go on.
    pub(super) fn places(
        &self,
        head: &Head,
        effects: &[Effect],
        (from_caller, size): (Option<bool>, usize),
        limits: &Limits,
    ) -> Result<Places, Refusal> {
        let mut places = Places { run: None, opens: head.version == 0 };
        if !effects.is_empty() {
            places.run = match from_caller {
                Some(held) => Some(self.run_place(head, held, size, limits)?),
                None => self.free_place(head.agent, None),
            };
        }
        if places.opens {
            let most = limits.open_tasks_per_caller;
            self.open_tasks.enter(head.principal, most, usize::MAX).map_err(|_| {
                let text = format!(
                    "You have as many open tasks as you may ({most}). Cancel one, answer one that waits for you, or try \
                     again when one has ended."
                );
                Limit::OpenTasksPerCaller.refuse(most, text)
            })?;
        }
        Ok(places)
    }

    /// A place for a run that a caller starts, or the refusal for want of one.
    fn run_place(&self, head: &Head, held: bool, size: usize, limits: &Limits) -> Result<RunPlace, Refusal> {
        let message = self.message_held(head, size)?;
        if held {
            return self.queue_place(head, message, limits.queued_per_agent, limits.queued_per_workspace);
        }
        let place = self.runs.place(head.agent, limits.runs_per_agent, limits.live_runs);
        place.map(|_of_agent| RunPlace::UnderWay { _of_agent, _message: message }).map_err(|full| no_run(full, limits))
    }

    /// Counts a message for its caller, from here until its run is over.
    fn message_held(&self, head: &Head, size: usize) -> Result<Option<Held>, Refusal> {
        if size < COUNTED_MESSAGE {
            return Ok(None);
        }
        let mut held = self.held_bytes.open(Account::Caller(head.principal));
        held.grow(size)?;
        Ok(Some(held))
    }

    /// A place for a run that follows from others: it counts, and is not refused.
    fn free_place(&self, agent: AgentId, message: Option<Held>) -> Option<RunPlace> {
        let place = self.runs.place(agent, usize::MAX, usize::MAX).ok()?;
        Some(RunPlace::UnderWay { _of_agent: place, _message: message })
    }

    /// The same for one that was there before this process.
    pub(super) fn place_of_old(&self, agent: Option<&Arc<Agent>>, head: &Head, absent: bool) -> Option<RunPlace> {
        match agent {
            Some(_) if absent => self.queue_place(head, None, usize::MAX, usize::MAX).ok(),
            _ => self.free_place(head.agent, None),
        }
    }

    fn queue_place(
        &self,
        head: &Head,
        message: Option<Held>,
        each: usize,
        together: usize,
    ) -> Result<RunPlace, Refusal> {
        let workspace = self.registry.load().by_id(head.agent).map_or(WorkspaceId::DEFAULT, |agent| agent.workspace);
        let of_workspace = self.queued_by_workspace.place(workspace, together, usize::MAX).map_err(|_| {
            let text = format!(
                "As many messages wait for the agents of this workspace as may ({together}). Try again when some of \
                 them have connected."
            );
            Limit::QueuedPerWorkspace.refuse(together, text)
        })?;
        let of_agent = self.queued.place(head.agent, each, usize::MAX).map_err(|_: Full| {
            let text = format!(
                "The agent is not there, and as many messages wait for it as may ({each}). Try again when it has come."
            );
            Limit::QueuedPerAgent.refuse(each, text)
        })?;
        Ok(RunPlace::Queued { agent: head.agent, _of_agent: of_agent, _of_workspace: of_workspace, message })
    }

    /// How many runs are under way in this process.
    pub fn live_runs(&self) -> usize {
        self.runs.all()
    }

    /// Waits until no run is under way in this process.
    pub async fn idle(&self) {
        self.runs.emptied().await;
    }

    /// How many runs wait for agents that are not there.
    pub fn queued_runs(&self) -> usize {
        self.queued.all()
    }

    /// What a message waits for, if its agent is not there; refused at once where it may not wait.
    pub(super) fn held(&self, agent: &Agent, request: &SendMessageRequest) -> Result<Option<String>, Refusal> {
        let Some(Absence { reason, ttl: usual }) = self.absence(agent, request) else { return Ok(None) };
        let Some(usual) = usual else {
            return Err(Refusal::new(Reason::Unavailable, format!("Nothing is sent to '{}'. {reason}", agent.name)));
        };
        let ttl = request.ttl()?.map_or(usual, |seconds| Duration::from_secs(seconds.into()));
        if ttl.is_zero() {
            let why = if agent.link.absence().is_some() { "is not there" } else { "takes nothing new now" };
            let text = format!(
                "The agent '{}' {why}, and the message may not wait for it (ttl 0). Try again later, or let it wait with \
                 a ttl.",
                agent.name
            );
            return Err(Refusal::new(Reason::Unavailable, text));
        }
        Ok(Some(reason))
    }
}

impl RunHandle {
    /// How long ago something was.
    pub fn age(&self, at: Millis) -> Duration {
        Duration::from_millis(u64::try_from(self.hub.clock.now().0 - at.0).unwrap_or(0))
    }

    /// The run is on its way to its agent: it waits no more.
    pub fn delivered(&mut self) {
        if let Some(RunPlace::Queued { agent, message, .. }) = &mut self.place {
            let (agent, message) = (*agent, message.take());
            self.place = self.hub.free_place(agent, message);
        }
    }

    /// How long its agent may take to say that it has it, where it has to.
    pub fn take(&self) -> Option<Duration> {
        self.take
    }

    /// The agent has the run, though it has not said anything of it.
    pub async fn taken(&mut self) {
        self.record_taken(false).await;
        if std::mem::take(&mut self.resumed) {
            self.goes_on_if_affordable();
        }
    }

    /// The same, and its caller may know: what the agent will say is said of a task.
    pub async fn acknowledged(&mut self) {
        self.record_taken(true).await;
    }

    /// Whoever follows is shown a task, though its agent has said nothing of it.
    pub async fn open(&self) {
        if let Err(error) = self.hub.change(&self.live, || Command::Open).await {
            tracing::error!(task = %self.live.id(), %error, "a task could not be opened");
        }
    }

    async fn record_taken(&mut self, opens: bool) {
        let run = self.run;
        if let Err(error) = self.hub.change(&self.live, || Command::Taken { run, opens }).await {
            tracing::error!(task = %self.live.id(), %error, "that an agent took its run could not be recorded");
        }
    }

    /// The run has to wait again, and whoever looks is told why.
    pub async fn hold(&mut self, reason: &str) {
        let run = self.run;
        let hold = || Command::Hold { run, reason: reason.to_owned() };
        if let Err(error) = self.hub.change(&self.live, hold).await {
            tracing::error!(task = %self.live.id(), %error, "that a run waits could not be recorded");
        }
    }

    /// It waits no more, and whoever looks is not told any longer why it did.
    pub async fn waits_no_more(&self) {
        let run = self.run;
        if let Err(error) = self.hub.change(&self.live, || Command::Delivered { run }).await {
            tracing::error!(task = %self.live.id(), %error, "that a run waits no more could not be recorded");
        }
    }

    /// Waits until the hub stops.
    pub async fn stopping(&self) {
        self.hub.stopped().await;
    }

    /// Leaves the run as it is, for the next start to take up.
    pub fn detach(mut self) {
        self.over = true;
    }
}

fn no_run(full: Full, limits: &Limits) -> Refusal {
    let (limit, most, whose) = match full {
        Full::Each => (Limit::RunsPerAgent, limits.runs_per_agent, "The agent"),
        Full::All => (Limit::LiveRuns, limits.live_runs, "The hub"),
    };
    limit.refuse(most, format!("{whose} has as many runs under way as it may ({most}). Try again in a moment."))
}
