//! Canceling: the agent is stopped first, and only then is the task said to be canceled.

use super::run::fenced;
use super::{Hub, LiveRef, RunHandle};
use crate::caller::Scope;
use crate::error::{Error, Fault};
use crate::fleet::FLEET;
use crate::hub::trail::{is_to_stop, upstream_of};
use crate::ports::{Record, Stopped, Stopping};
use crate::project::Want;
use crate::registry::Agent;
use crate::task::{Command, Head, Retry, RunState, step};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::{Task, TaskState};
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::work::{Contents, Upstream};
use std::sync::Arc;
use std::time::Duration;

/// How long it may take to keep that a task was canceled.
const KEPT_BY_THEN: Duration = Duration::from_secs(5);

impl Hub {
    /// CancelTask (spec 3.1.5). Work in this process stops at once: its run is fenced by the commit itself. A program
    /// is ended first. An agent elsewhere is asked, and what it refuses is refused.
    pub async fn cancel(self: &Arc<Self>, scope: Scope, id: &str) -> Result<Task, Error> {
        let live = self.task(scope, id).await?;
        let head = live.committed().ok_or_else(|| Fault::new("the task is not loaded"))?;
        // Refused without disturbing anybody, where it cannot be.
        step(&head, Command::Cancel { said: None })?;
        self.keep_wish(&live, &head).await?;
        match self.stop(&live, &head).await? {
            Stopped::Now(said) => self.canceled(&live, &head, said).await?,
            Stopped::Told => {}
            Stopped::Ended(refusal) => return Err(self.ended(&live, &head, refusal).await),
        }
        self.view(&live, Want::ALL).await
    }

    async fn canceled(self: &Arc<Self>, live: &LiveRef, head: &Head, said: Option<Contents>) -> Result<(), Error> {
        let ended = self.end(live, || Command::Cancel { said: said.clone() }).await;
        // Whoever heard that its run is gone may have canceled it at the same moment, and may be about to keep that.
        if ended.is_err() {
            let _ = tokio::time::timeout(KEPT_BY_THEN, fenced(live, head.run)).await;
        }
        let is_canceled = || live.committed().is_some_and(|head| head.state == TaskState::Canceled);
        if !(matches!(ended, Err(Error::Refused(_))) && is_canceled()) {
            ended?;
        }
        Ok(())
    }

    /// That a run is to end is in the log before whoever has it is told, where they may take longer than this process
    /// lives: what somebody wanted ended is not begun again.
    async fn keep_wish(self: &Arc<Self>, live: &LiveRef, head: &Head) -> Result<(), Error> {
        let Some(agent) = self.has_it(head).filter(|agent| agent.link.stops_later(head.id)) else { return Ok(()) };
        if !is_to_stop(&self.log_of(live).await?, head.run) {
            tracing::debug!(task = %head.id, agent = agent.name, "a run is asked to stop");
            self.change(live, || Command::AskToStop { run: head.run }).await?;
        }
        Ok(())
    }

    /// What the agent ended its task with is put into the log before anybody is told that it cannot be canceled.
    async fn ended(self: &Arc<Self>, live: &LiveRef, head: &Head, refusal: Refusal) -> Error {
        let moved = match self.upstream(live, head).await {
            Ok(upstream) => self.moved(live, head.run, &upstream).await,
            Err(fault) => Err(fault.into()),
        };
        match moved {
            Ok(()) => {
                let _ = tokio::time::timeout(KEPT_BY_THEN, fenced(live, head.run + 1)).await;
                refusal.into()
            }
            Err(error) => error,
        }
    }

    /// Who has the work; none if it still waits for somebody.
    fn has_it(&self, head: &Head) -> Option<Arc<Agent>> {
        let agent = self.registry.load().by_id(head.agent).cloned()?;
        if agent.name != FLEET {
            return Some(agent);
        }
        self.fleet.given(head.id).and_then(|name| self.registry.load().by_name(&name).cloned())
    }

    /// Has an agent elsewhere told; one in this process is stopped by the commit.
    pub(super) async fn stop(&self, live: &LiveRef, head: &Head) -> Result<Stopped, Error> {
        let Some(agent) = self.has_it(head) else { return Ok(Stopped::Now(None)) };
        let upstream = if agent.link.is_remote() { self.upstream(live, head).await? } else { Upstream::default() };
        let (lineage, running) = (self.lineage(head, &agent, head.run), head.run_state != RunState::Idle);
        let stopping = Stopping { task: head.id, upstream, lineage, running };
        Ok(agent.link.stop(stopping).await?)
    }

    /// A run has ended that the last process left at work: an agent that dials in, and took it, is told when it is back.
    pub(super) async fn stop_when_back(&self, live: &LiveRef, head: &Head) -> Result<(), Fault> {
        let changes = self.log_of(live).await?;
        let mut events = changes.iter().flat_map(|change| &change.events);
        if !events.any(|event| matches!(event, Event::RunStarted { run } if *run == head.run)) {
            return Ok(());
        }
        let worker = self.worker_of(head).await?;
        if let Some(agent) = worker.or_else(|| self.registry.load().by_id(head.agent).cloned()) {
            agent.link.stop_when_back(head.id, head.run, self.upstream(live, head).await?.task);
        }
        Ok(())
    }

    async fn upstream(&self, live: &LiveRef, head: &Head) -> Result<Upstream, Fault> {
        Ok(upstream_of(&Record { head: head.clone(), fold: None, changes: self.log_of(live).await? }))
    }

    pub(super) async fn log_of(&self, live: &LiveRef) -> Result<Vec<Arc<Change>>, Fault> {
        match live.whole() {
            Some((_, changes)) => Ok(changes),
            None => self.whole_log(live.id()).await,
        }
    }
}

impl RunHandle {
    /// The run's turn was over before its worker heard that it is to end. One that asks its caller back is canceled all the
    /// same: whoever wanted that may have been told so.
    pub async fn called_off(&self) {
        let asks_back = |head: Head| head.run == self.run && head.state.is_interrupted();
        if self.live.committed().is_some_and(asks_back) {
            // One who asked may have said so at the same moment.
            let _ = self.hub.end(&self.live, || Command::Cancel { said: None }).await;
        }
    }

    /// The run was asked to end, and nothing of it is left.
    pub async fn canceled(mut self) {
        if self.is_current() {
            let canceled = self.hub.end(&self.live, || Command::Cancel { said: None }).await;
            // One who asked may have said so at the same moment.
            if canceled.is_err() && self.is_current() {
                self.lose("it was asked to stop", Retry::Never).await;
            }
        }
        self.over = true;
    }
}
