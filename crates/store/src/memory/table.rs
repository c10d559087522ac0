//! Tasks and sends in memory, with the orders that lists and sweeps need.

use super::key::Keyring;
use crate::herald::Outcome;
use flotilla_core::caller::Scope;
use flotilla_core::fleet::Kept;
use flotilla_core::ids::{AgentId, PrincipalId, TaskId};
use flotilla_core::ports::{Commit, Dedupe, Digest, Folded, Lease, NotCommitted, Owed, Record, Sent};
use flotilla_core::registry::{Added, Registration};
use flotilla_core::task::{Head, Kind, RunState};
use flotilla_protocol::event::Change;
use flotilla_protocol::time::Millis;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

pub struct Task {
    pub head: Head,
    pub log: Vec<Arc<Change>>,
    /// The size of all its events.
    pub bytes: usize,
    /// What the log came to, once its events were dropped.
    pub fold: Option<Folded>,
}

impl Task {
    /// The numbers up to which events are gone.
    pub fn pruned(&self) -> (u64, u64) {
        self.fold.as_ref().map_or((0, 0), |fold| (fold.seq, fold.peer_seq))
    }

    pub fn record(&self) -> Record {
        Record { head: self.head.clone(), fold: self.fold.clone(), changes: self.log.clone() }
    }
}

type Place = (i64, i64, u8);

#[derive(Default)]
pub struct Tables {
    pub tasks: BTreeMap<TaskId, Task>,
    /// What lists show, newest status last; the size of a set is the exact count of its state.
    pub by_status: HashMap<Place, BTreeSet<(Millis, TaskId)>>,
    pub by_context: HashMap<Arc<str>, Vec<TaskId>>,
    pub keyring: Keyring,
    pub order: VecDeque<(Digest, Millis)>,
    pub hooks: super::push::Hooks,
    pub approvals: super::approval::Approvals,
    pub ledger: super::usage::Ledger,
    sends: HashMap<Digest, Sent>,
    agents: Vec<(String, PrincipalId)>,
    pub workers: BTreeMap<i64, Kept>,
    pub owed: BTreeMap<TaskId, Owed>,
    pub registrations: BTreeMap<String, (AgentId, Registration)>,
    /// Of agents that are announced.
    pub leases: HashMap<AgentId, Lease>,
    /// What the cards of agents were verified for.
    pub proven: HashMap<String, String>,
    pub added: BTreeMap<String, (AgentId, Added)>,
}

fn place(head: &Head) -> Place {
    (head.principal.0, head.agent.0, head.state_code())
}

impl Tables {
    /// Only against the version the decision saw, and only once per key.
    pub fn write(&mut self, commit: &Commit) -> Outcome {
        let head = &commit.head;
        if let Some(dedupe) = &commit.dedupe
            && let Some(sent) = self.sends.get(&dedupe.key)
        {
            return Err(NotCommitted::Duplicate(*sent));
        }
        let known = self.tasks.get(&head.id).map(|task| task.head.version);
        if known.unwrap_or(0) + 1 != head.version {
            return Err(NotCommitted::Stale);
        }
        self.approvals.write(commit);
        let agents = &self.agents;
        self.ledger.write(commit, |name| {
            let index = agents.iter().position(|(agent, _)| agent == name)?;
            Some((AgentId(index as i64 + 1), agents[index].1))
        });
        self.unplace(head.id);
        let task = self.tasks.entry(head.id).or_insert_with(|| Task {
            head: head.clone(),
            log: Vec::new(),
            bytes: 0,
            fold: None,
        });
        task.head = head.clone();
        task.log.push(Arc::clone(&commit.change));
        task.bytes += commit.body.len();
        if head.kind == Kind::Task {
            self.by_status.entry(place(head)).or_default().insert((head.status_at, head.id));
        }
        if head.version == 1 {
            self.by_context.entry(Arc::clone(&head.context)).or_default().push(head.id);
        }
        if let Some(dedupe) = &commit.dedupe {
            self.remember(dedupe, head.id, commit.change.at);
        }
        Ok(())
    }

    fn remember(&mut self, dedupe: &Dedupe, task: TaskId, at: Millis) {
        self.sends.insert(dedupe.key, Sent { task, hash: dedupe.hash });
        self.order.push_back((dedupe.key, at));
    }

    pub fn forget_oldest_send(&mut self) {
        if let Some((key, _)) = self.order.pop_front() {
            self.sends.remove(&key);
        }
    }

    fn unplace(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get(&id).filter(|task| task.head.kind == Kind::Task) else { return };
        if let Some(set) = self.by_status.get_mut(&place(&task.head)) {
            set.remove(&(task.head.status_at, id));
        }
    }

    pub fn remove(&mut self, id: TaskId) {
        self.unplace(id);
        let Some(task) = self.tasks.remove(&id) else { return };
        self.hooks.remove_task(id);
        self.approvals.remove_task(id);
        self.ledger.forget(id);
        if let Some(set) = self.by_context.get_mut(&task.head.context) {
            set.retain(|known| *known != id);
            if set.is_empty() {
                self.by_context.remove(&task.head.context);
            }
        }
    }

    pub fn seen(&self, scope: Scope, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id).filter(|task| scope.sees(&task.head))
    }

    pub fn open_runs(&self) -> Vec<TaskId> {
        self.tasks.values().filter(|task| task.head.run_state != RunState::Idle).map(|task| task.head.id).collect()
    }

    pub fn waiting(&self) -> Vec<(TaskId, AgentId)> {
        let waiting = self.tasks.values().filter(|task| task.head.waits_for_caller());
        waiting.map(|task| (task.head.id, task.head.agent)).collect()
    }

    pub fn deadlines(&self) -> Vec<(TaskId, Millis)> {
        let open = self.tasks.values().filter(|task| !task.head.is_over());
        open.filter_map(|task| Some((task.head.id, task.head.deadline?))).collect()
    }

    pub fn children(&self, scope: Scope, parent: TaskId, limit: usize) -> Vec<Head> {
        let is_child = |head: &&Head| {
            let told = head.origin.as_ref().and_then(|origin| origin.parent());
            told.and_then(|told| TaskId::parse(&told.task)) == Some(parent) && scope.sees(head)
        };
        self.tasks.values().map(|task| &task.head).filter(is_child).take(limit).cloned().collect()
    }

    pub fn sent(&self, key: &Digest) -> Option<Sent> {
        self.sends.get(key).copied()
    }

    pub fn agent_name(&self, id: AgentId) -> String {
        let index = usize::try_from(id.0 - 1).ok();
        index.and_then(|index| self.agents.get(index)).map(|(name, _)| name.clone()).unwrap_or_default()
    }

    pub fn agent(&mut self, name: &str, owner: PrincipalId) -> AgentId {
        let known = self.agents.iter().position(|(agent, _)| agent == name);
        let index = known.unwrap_or_else(|| {
            self.agents.push((name.to_owned(), owner));
            self.agents.len() - 1
        });
        self.agents[index].1 = owner;
        AgentId(index as i64 + 1)
    }

    /// None if the name was another owner's before, and may not be taken over.
    pub fn agent_of(&mut self, name: &str, owner: PrincipalId, take_over: bool) -> Option<AgentId> {
        let before = self.agents.iter().find(|(agent, _)| agent == name);
        let is_free = take_over || before.is_none_or(|(_, before)| *before == owner);
        is_free.then(|| self.agent(name, owner))
    }
}
