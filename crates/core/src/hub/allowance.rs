//! What workers may still use today: one that has used up a hard ceiling gets no work until the next day.

use super::Hub;
use crate::budget::Ceiling;
use crate::dispatch::Pause;
use crate::error::Fault;
use crate::ids::WorkspaceId;
use crate::usage::{By, Day};
use flotilla_protocol::usage::Usage;
use std::collections::HashMap;

const SPENT: &str = "its budget for today is used up";

impl Hub {
    /// Looks which workers have used up what they may today. Free where no ceilings are set.
    pub(super) async fn look_at_allowances(&self) -> Result<(), Fault> {
        if self.fleet.is_empty() {
            return Ok(());
        }
        let policy = self.purses.policy.load_full();
        if policy.is_empty() {
            self.fleet.allow(|_| None);
            return Ok(());
        }
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
