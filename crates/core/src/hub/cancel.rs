//! Canceling: the agent is stopped first, and only then is the task said to be canceled.

use super::run::fenced;
use super::{Hub, LiveRef, RunHandle};
use crate::caller::Scope;
use crate::error::{Error, Fault};
use crate::fleet::FLEET;
use crate::hub::trail::upstream_of;
use crate::ports::{Record, Stopped, Stopping};
use crate::project::Want;
use crate::task::{Command, Head, Retry, RunState, step};
use flotilla_protocol::a2a::model::{Task, TaskState};
use flotilla_protocol::work::Upstream;
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
        if let Stopped::Now(said) = self.stop(&live, &head).await? {
            let ended = self.end(&live, || Command::Cancel { said: said.clone() }).await;
            // Whoever heard that its run is gone may have canceled it at the same moment, and may be about to keep that.
            if ended.is_err() {
                let _ = tokio::time::timeout(KEPT_BY_THEN, fenced(&live, head.run)).await;
            }
            let is_canceled = || live.committed().is_some_and(|head| head.state == TaskState::Canceled);
            if !(matches!(ended, Err(Error::Refused(_))) && is_canceled()) {
                ended?;
            }
        }
        self.view(&live, Want::ALL).await
    }

    /// Has an agent elsewhere told; one in this process is stopped by the commit.
    pub(super) async fn stop(&self, live: &LiveRef, head: &Head) -> Result<Stopped, Error> {
        let agent = self.registry.load().by_id(head.agent).cloned();
        let Some(mut agent) = agent else { return Ok(Stopped::Now(None)) };
        if agent.name == FLEET {
            // Whoever has the work is told; what still waits for a worker just ends.
            let worker = self.fleet.given(head.id).and_then(|name| self.registry.load().by_name(&name).cloned());
            let Some(worker) = worker else { return Ok(Stopped::Now(None)) };
            agent = worker;
        }
        let upstream = if agent.link.is_remote() { self.upstream(live, head).await? } else { Upstream::default() };
        let stopping = Stopping { task: head.id, upstream, running: head.run_state != RunState::Idle };
        Ok(agent.link.stop(stopping).await?)
    }

    async fn upstream(&self, live: &LiveRef, head: &Head) -> Result<Upstream, Fault> {
        let changes = match live.whole() {
            Some((_, changes)) => changes,
            None => self.whole_log(live.id()).await?,
        };
        Ok(upstream_of(&Record { head: head.clone(), fold: None, changes }))
    }
}

impl RunHandle {
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
