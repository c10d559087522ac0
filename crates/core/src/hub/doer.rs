//! Who does a task's work, and what that lets its owner see of work that was sent to the fleet.

use super::Hub;
use crate::caller::Caller;
use crate::error::Fault;
use crate::fleet::FLEET;
use crate::registry::Agent;
use crate::task::Head;
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::fleet::route::Step;
use std::sync::Arc;

impl Hub {
    /// Who does a task's work: the worker that has it, or else the agent it was sent to.
    pub(super) fn doer(&self, head: &Head) -> Option<Arc<Agent>> {
        let registry = self.registry.load();
        let worker = self.fleet.given(head.id).and_then(|name| registry.by_name(&name).cloned());
        worker.or_else(|| registry.by_id(head.agent).cloned())
    }

    /// The worker that does a task of the fleet, or did it last.
    pub(super) async fn worker_of(&self, head: &Head) -> Result<Option<Arc<Agent>>, Fault> {
        let registry = self.registry();
        if registry.by_id(head.agent).is_none_or(|agent| agent.name != FLEET) {
            return Ok(None);
        }
        let worker = match self.fleet.given(head.id) {
            Some(worker) => Some(worker),
            None => last_given(&self.whole_log(head.id).await?),
        };
        Ok(worker.and_then(|name| registry.by_name(&name).cloned()))
    }

    /// Whether a task of the fleet is, or was last, done by a worker of the caller's.
    pub(super) async fn owns_doer(&self, caller: &Caller, head: &Head) -> Result<bool, Fault> {
        let worker = self.worker_of(head).await?;
        Ok(worker.is_some_and(|worker| worker.owner == caller.principal && caller.may_call(&worker.name)))
    }
}

/// Who had the work last, unless it did not begin.
fn last_given(changes: &[Arc<Change>]) -> Option<Arc<str>> {
    let mut given = None;
    for event in changes.iter().flat_map(|change| &change.events) {
        if let Event::Routed { step, .. } = event {
            match &**step {
                Step::Assigned { worker, .. } | Step::Resumed { worker } => given = Some(worker.as_str().into()),
                Step::Blocked { .. } => given = None,
                _ => {}
            }
        }
    }
    given
}
