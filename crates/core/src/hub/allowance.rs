//! What workers may still use today: one that has used up a hard ceiling gets no work until the next day.

use super::Hub;
use crate::budget::{Budgets, Ceiling};
use crate::dispatch::Pause;
use crate::error::Fault;
use crate::ids::WorkspaceId;
use crate::usage::{By, Day};
use flotilla_protocol::usage::Usage;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const SPENT: &str = "its budget for today is used up";
const UNREADABLE: &str = "what it used today cannot be read, so whether its budget is used up is not known; the hub's log \
                          says why";
/// When a ledger that could not be read is looked at again.
const AGAIN: Duration = Duration::from_secs(10);

impl Hub {
    /// Looks which workers have used up what they may today. Free where no ceilings are set. While that cannot be read,
    /// whoever may be under a hard ceiling gets nothing.
    pub(super) async fn look_at_allowances(self: &Arc<Self>) {
        if self.fleet.is_empty() {
            return;
        }
        let policy = self.purses.policy.load_full();
        if policy.is_empty() {
            return self.fleet.allow(|_| None);
        }
        if let Err(fault) = self.look_up_allowances(&policy).await {
            tracing::error!(%fault, "which workers have a budget left is not known; those under a hard ceiling wait");
            let until = Day::of(self.clock.now()).ends();
            self.fleet.allow(|name| policy.may_stop(name).then(|| Pause { until, reason: UNREADABLE.into() }));
            self.look_again_later();
        }
    }

    fn look_again_later(self: &Arc<Self>) {
        if self.purses.looks_again.swap(true, Ordering::Relaxed) {
            return;
        }
        let hub = Arc::clone(self);
        self.runtime.spawn(async move {
            tokio::time::sleep(AGAIN).await; // polling
            hub.purses.looks_again.store(false, Ordering::Relaxed);
            hub.look_at_allowances().await;
        });
    }

    async fn look_up_allowances(&self, policy: &Budgets) -> Result<(), Fault> {
        let reached = |ceiling: &Ceiling, used: Option<&Usage>| {
            ceiling.hard && ceiling.reached(used.unwrap_or(&Usage::default())).is_some()
        };
        let day = Day::of(self.clock.now());
        let all = match &policy.day {
            Some(ceiling) => reached(ceiling, self.today(By::Day).await?.get(&day.name())),
            None => false,
        };
        let used = if policy.agents.is_empty() { HashMap::new() } else { self.today(By::Agent).await? };
        let agents = policy.agents.iter().filter(|(name, ceiling)| reached(ceiling, used.get(name)));
        let agents: Vec<&str> = agents.map(|(name, _)| name.as_str()).collect();
        let used = if policy.workspaces.is_empty() { HashMap::new() } else { self.today(By::Workspace).await? };
        let workspaces = policy.workspaces.iter().filter(|(name, ceiling)| reached(ceiling, used.get(name)));
        let workspaces = self.numbered(workspaces.map(|(name, _)| name.as_str()).collect()).await?;
        let registry = self.registry();
        self.fleet.allow(|name| {
            let workspace = registry.by_name(name).map(|agent| agent.workspace);
            let is_broke = all || agents.contains(&name) || workspace.is_some_and(|own| workspaces.contains(&own));
            is_broke.then(|| Pause { until: day.ends(), reason: SPENT.into() })
        });
        Ok(())
    }

    /// The workspaces of these names that agents are of.
    async fn numbered(&self, names: Vec<&str>) -> Result<Vec<WorkspaceId>, Fault> {
        let mut found = Vec::new();
        if names.is_empty() {
            return Ok(found);
        }
        let registry = self.registry();
        let mut own: Vec<WorkspaceId> = registry.agents().map(|agent| agent.workspace).collect();
        own.sort_unstable_by_key(|workspace| workspace.0);
        own.dedup();
        for id in own {
            if names.contains(&self.store.workspace_name(id).await?.as_str()) {
                found.push(id);
            }
        }
        Ok(found)
    }
}
