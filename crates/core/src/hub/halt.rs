//! What is at work under a hard ceiling that is reached: all of it is stopped, whoever reached it.

use super::live::Live;
use super::run::RunHandle;
use super::{Hub, LiveRef};
use crate::budget::{ABOVE, Broke, OWN, TODAY};
use crate::fleet::FLEET;
use crate::ids::{AgentId, TaskId, WorkspaceId};
use crate::registry::Agent;
use crate::task::{Head, RunState};
use flotilla_protocol::event::Event;
use flotilla_protocol::fleet::route::Step;
use std::sync::Arc;

/// What counts against a ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Under {
    /// A task, and all that are part of it.
    Task(TaskId),
    Agent(AgentId),
    Workspace(WorkspaceId),
    Hub,
}

impl RunHandle {
    /// A run goes on that the last process left at work. That one may have ended between what was used last and its stop:
    /// nobody else would look before the run uses more.
    pub(super) fn goes_on_if_affordable(&self) {
        let (hub, live, run) = (Arc::clone(&self.hub), self.live.clone(), self.run);
        self.hub.runtime.spawn(async move {
            let Some(head) = live.committed().filter(|head| head.run == run && !head.is_over()) else { return };
            let stopped = match hub.overspent(&head).await {
                Ok(Some(broke)) => hub.stop_spending(&live, &head, broke).await,
                Ok(None) => Ok(()),
                Err(fault) => Err(fault.into()),
            };
            if let Err(error) = stopped {
                tracing::error!(task = %head.id, %error, "whether a run that goes on has a budget left is not known");
            }
        });
    }

    /// The same of an agent that the hub reaches out to. One that dials in can be stopped once it is back.
    pub(super) fn goes_on_elsewhere(&self, agent: &Agent) {
        if self.resumed && agent.link.dialed().is_none() {
            self.goes_on_if_affordable();
        }
    }
}

impl Hub {
    /// Stops every run that counts against a ceiling and is at work. What waits for a worker or its caller uses nothing,
    /// and is looked at when it is about to go on.
    pub(super) async fn stop_under(self: &Arc<Self>, under: Under, retry_after: Option<u64>) {
        for live in self.lives.all() {
            let Some((head, whose)) = self.at_work_under(&live, under) else { continue };
            let live = self.lives.acquire(head.id);
            if live.committed().is_none() {
                // It came to its end meanwhile.
                continue;
            }
            if head.run_state == RunState::Claimed && !self.is_handed_over(&live, head.run).await {
                continue;
            }
            if let Err(error) = self.stop_spending(&live, &head, Broke::after(whose, retry_after)).await {
                tracing::error!(task = %head.id, %error, "a task whose budget is used up by others goes on");
            }
        }
    }

    /// Whether a run was given to its worker. Before that its ceilings are looked at, so it ends there as work that was not
    /// begun.
    async fn is_handed_over(&self, live: &LiveRef, run: u32) -> bool {
        let Ok(changes) = self.log_of(live).await else { return true };
        let mut events = changes.iter().rev().flat_map(|change| &change.events);
        events.any(|event| match event {
            Event::Routed { run: of, step } => {
                *of == run && matches!(**step, Step::Assigned { .. } | Step::Resumed { .. })
            }
            _ => false,
        })
    }

    /// A task that somebody is at work on, and whose ceiling it is to its caller; none if it does not count against it.
    fn at_work_under(&self, live: &Live, under: Under) -> Option<(Head, &'static str)> {
        let head = live.committed().filter(|head| !head.is_over())?;
        let at_work = match head.run_state {
            RunState::Idle => false,
            RunState::Claimed => self.fleet.given(head.id).is_some(),
            RunState::Started | RunState::Watching => true,
        };
        if !at_work {
            return None;
        }
        let doer = self.doer(&head).filter(|doer| doer.name != FLEET);
        let whose = match under {
            Under::Task(task) if head.id == task => Some(OWN),
            Under::Task(task) => self.is_part(&head, task).then_some(ABOVE),
            Under::Agent(agent) => doer.is_some_and(|doer| doer.id == agent).then_some(TODAY),
            Under::Workspace(workspace) => doer.is_some_and(|doer| doer.workspace == workspace).then_some(TODAY),
            Under::Hub => doer.map(|_| TODAY),
        };
        whose.map(|whose| (head, whose))
    }

    fn is_part(&self, head: &Head, whole: TaskId) -> bool {
        let here = self.store.hub_id();
        let mut chain = head.origin.iter().flat_map(|origin| &origin.chain).filter(|one| one.hub == here);
        chain.any(|one| TaskId::parse(&one.task) == Some(whole))
    }
}
