//! Runs that wait for an agent which is not there: counted apart from those under way, and bounded for themselves.

use super::run::RunHandle;
use super::tally::Full;
use super::{Hub, Place};
use crate::ids::{AgentId, WorkspaceId};
use crate::limits::{Limit, Limits};
use crate::ports::Absence;
use crate::registry::Agent;
use crate::task::{Command, Head};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::time::Millis;
use std::sync::Arc;
use std::time::Duration;

/// What a run is counted as.
pub enum RunPlace {
    UnderWay { _of_agent: Place<AgentId> },
    Queued { agent: AgentId, _of_agent: Place<AgentId>, _of_workspace: Place<WorkspaceId> },
}

impl Hub {
    /// A place for a run that a caller starts, or the refusal for want of one.
    pub(super) fn run_place(&self, head: &Head, held: bool, limits: &Limits) -> Result<RunPlace, Refusal> {
        if held {
            return self.queue_place(head, limits.queued_per_agent, limits.queued_per_workspace);
        }
        let place = self.runs.place(head.agent, limits.runs_per_agent, limits.live_runs);
        place.map(|_of_agent| RunPlace::UnderWay { _of_agent }).map_err(|full| super::no_run(full, limits))
    }

    /// A place for a run that follows from others: it counts, and is not refused.
    pub(super) fn free_place(&self, agent: AgentId) -> Option<RunPlace> {
        let place = self.runs.place(agent, usize::MAX, usize::MAX).ok()?;
        Some(RunPlace::UnderWay { _of_agent: place })
    }

    /// The same for one that was there before this process.
    pub(super) fn place_of_old(&self, agent: Option<&Arc<Agent>>, head: &Head, absent: bool) -> Option<RunPlace> {
        match agent {
            Some(_) if absent => self.queue_place(head, usize::MAX, usize::MAX).ok(),
            _ => self.free_place(head.agent),
        }
    }

    fn queue_place(&self, head: &Head, each: usize, together: usize) -> Result<RunPlace, Refusal> {
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
                "The agent is not connected, and as many messages wait for it as may ({each}). Try again when it has."
            );
            Limit::QueuedPerAgent.refuse(each, text)
        })?;
        Ok(RunPlace::Queued { agent: head.agent, _of_agent: of_agent, _of_workspace: of_workspace })
    }

    /// How many runs wait for agents that are not there.
    pub fn queued_runs(&self) -> usize {
        self.queued.all()
    }

    /// What a message waits for, if its agent is not there; refused at once where it may not wait.
    pub(super) fn held(&self, agent: &Agent, ttl: Option<u32>) -> Result<Option<String>, Refusal> {
        let Some(Absence { reason, ttl: usual }) = agent.link.absence() else { return Ok(None) };
        let ttl = ttl.map_or(usual, |seconds| Duration::from_secs(seconds.into()));
        if ttl.is_zero() {
            let text = format!(
                "The agent '{}' is not connected, and the message may not wait for it (ttl 0). Try again later, or let \
                 it wait with a ttl.",
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
        if let Some(RunPlace::Queued { agent, .. }) = self.place {
            self.place = self.hub.free_place(agent);
        }
    }

    /// The agent has the run, though it has not said anything of it.
    pub async fn taken(&mut self) {
        let run = self.run;
        if let Err(error) = self.hub.change(&self.live, || Command::Taken { run }).await {
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

    /// Waits until the hub stops.
    pub async fn stopping(&self) {
        self.hub.stopped().await;
    }

    /// Leaves the run as it is, for the next start to take up.
    pub fn detach(mut self) {
        self.over = true;
    }
}
