//! Approvals in memory, written with the commit that tells of them.

use super::Memory;
use flotilla_core::approval::{Approval, ApprovalFilter, Settled, Told, told};
use flotilla_core::caller::Scope;
use flotilla_core::ids::{ApprovalId, TaskId};
use flotilla_core::ports::{ApprovalStore, Commit, Later};
use flotilla_protocol::time::Millis;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

#[derive(Default)]
pub struct Approvals {
    by_id: HashMap<ApprovalId, Approval>,
    by_time: BTreeSet<(Millis, ApprovalId)>,
}

fn sees(scope: Scope, approval: &Approval) -> bool {
    match scope {
        Scope::Agent { owner } => approval.owner == owner,
        Scope::Admin => true,
        Scope::Caller { .. } | Scope::Own { .. } => false,
    }
}

impl Approvals {
    pub fn write(&mut self, commit: &Commit) {
        let (head, at) = (&commit.head, commit.change.at);
        for told in told(&commit.change.events) {
            match told {
                Told::Asked { id, run, request, expires, asker } => {
                    let Entry::Vacant(place) = self.by_id.entry(id) else { continue };
                    self.by_time.insert((at, id));
                    let (agent, owner) = asker.unwrap_or((head.agent, head.owner));
                    place.insert(Approval {
                        id,
                        task: head.id,
                        run,
                        agent,
                        owner,
                        request: Arc::clone(request),
                        created_at: at,
                        expires_at: expires,
                        settled: None,
                    });
                }
                Told::Settled { id, answer } => {
                    if let Some(approval) = self.by_id.get_mut(&id).filter(|approval| approval.settled.is_none()) {
                        approval.settled = Some(Settled { at, answer });
                    }
                }
            }
        }
    }

    pub fn remove_task(&mut self, task: TaskId) {
        self.by_id.retain(|_, approval| approval.task != task);
        let known = &self.by_id;
        self.by_time.retain(|(_, id)| known.contains_key(id));
    }

    fn page(&self, scope: Scope, filter: &ApprovalFilter) -> Vec<Approval> {
        let before = filter.before.map(|id| self.by_id.get(&id).map_or((Millis(i64::MIN), id), |a| (a.created_at, id)));
        let newest = self.by_time.iter().rev().filter(|place| before.is_none_or(|before| **place < before));
        let fits = |approval: &&Approval| {
            sees(scope, approval)
                && filter.state.is_none_or(|state| approval.state() == state)
                && filter.task.is_none_or(|task| approval.task == task)
                && filter.agent.is_none_or(|agent| approval.agent == agent)
        };
        newest.filter_map(|(_, id)| self.by_id.get(id)).filter(fits).take(filter.limit).cloned().collect()
    }

    fn standing(&self, task: TaskId, tool: &str) -> Option<Approval> {
        let always = |approval: &&Approval| approval.settled.as_ref().is_some_and(|settled| settled.answer.always);
        let of_tool = self.by_id.values().filter(|approval| approval.task == task && approval.request.tool == tool);
        of_tool.filter(always).max_by_key(|approval| approval.settled.as_ref().map(|settled| settled.at)).cloned()
    }
}

impl ApprovalStore for Memory {
    fn approval(&self, scope: Scope, id: ApprovalId) -> Later<Option<Approval>> {
        self.now(|tables| tables.approvals.by_id.get(&id).filter(|approval| sees(scope, approval)).cloned())
    }
    fn approvals(&self, scope: Scope, filter: ApprovalFilter) -> Later<Vec<Approval>> {
        self.now(|tables| tables.approvals.page(scope, &filter))
    }
    fn expiring(&self) -> Later<Vec<(Millis, TaskId, ApprovalId)>> {
        self.now(|tables| {
            let open = tables.approvals.by_id.values().filter(|approval| approval.settled.is_none());
            open.filter_map(|approval| Some((approval.expires_at?, approval.task, approval.id))).collect()
        })
    }
    fn standing_approval(&self, task: TaskId, tool: &str) -> Later<Option<Approval>> {
        self.now(|tables| tables.approvals.standing(task, tool))
    }
}
