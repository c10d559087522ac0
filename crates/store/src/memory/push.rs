//! Hooks and their attempts in memory.

use super::Memory;
use flotilla_core::caller::Scope;
use flotilla_core::ids::{HookId, TaskId};
use flotilla_core::ports::{HookStore, Later, Standing};
use flotilla_core::push::{Attempt, Hook, HookChange, HookFilter, HookState, MOST_DELETED, Settled};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Attempts kept of one hook; the oldest go.
const KEPT_ATTEMPTS: usize = 1_000;

#[derive(Default)]
pub struct Hooks {
    by_id: BTreeMap<HookId, (Hook, VecDeque<Attempt>)>,
    by_task: HashMap<TaskId, Vec<HookId>>,
}

fn sees(scope: Scope, hook: &Hook) -> bool {
    match scope {
        Scope::Caller { principal, agent } => hook.principal == principal && hook.agent == agent,
        Scope::Own { principal } => hook.principal == principal,
        Scope::Agent { owner } => hook.owner == owner,
        Scope::Admin => true,
    }
}

impl Hooks {
    fn of_task(&self, scope: Scope, task: TaskId) -> impl Iterator<Item = &Hook> {
        let ids = self.by_task.get(&task).into_iter().flatten();
        ids.filter_map(|id| self.by_id.get(id)).map(|(hook, _)| hook).filter(move |hook| sees(scope, hook))
    }

    fn add(&mut self, hook: Hook, most: usize) -> Option<Hook> {
        let known = self.of_task(Scope::Admin, hook.task).find(|known| known.id == hook.id).cloned();
        if let Some(known) = known {
            let renewed = known.renewed(&hook);
            if let Some((kept, _)) = self.by_id.get_mut(&known.uid) {
                kept.clone_from(&renewed);
            }
            return Some(renewed);
        }
        let of_task = self.of_task(Scope::Admin, hook.task);
        let (deleted, there): (Vec<_>, Vec<_>) = of_task.partition(|hook| hook.state == HookState::Deleted);
        if there.len() >= most || deleted.len() >= MOST_DELETED {
            return None;
        }
        self.by_task.entry(hook.task).or_default().push(hook.uid);
        self.by_id.insert(hook.uid, (hook.clone(), VecDeque::new()));
        Some(hook)
    }

    fn remove(&mut self, scope: Scope, task: TaskId, id: &str) -> Option<HookId> {
        let uid = self.of_task(scope, task).find(|hook| hook.id == id)?.uid;
        self.by_id.remove(&uid);
        if let Some(ids) = self.by_task.get_mut(&task) {
            ids.retain(|known| *known != uid);
            if ids.is_empty() {
                self.by_task.remove(&task);
            }
        }
        Some(uid)
    }

    pub fn remove_task(&mut self, task: TaskId) {
        for uid in self.by_task.remove(&task).unwrap_or_default() {
            self.by_id.remove(&uid);
        }
    }

    fn settle(&mut self, settled: Settled) {
        let Some((hook, attempts)) = self.by_id.get_mut(&settled.hook) else { return };
        if hook.generation == settled.generation {
            (hook.cursor, hook.state, hook.failures) = (settled.cursor, settled.state, settled.failures);
            (hook.next_at, hook.reason) = (settled.next_at, settled.reason);
        }
        let Some(attempt) = settled.attempt else { return };
        hook.attempts += 1;
        attempts.push_back(Attempt { number: hook.attempts, ..attempt });
        if attempts.len() > KEPT_ATTEMPTS {
            attempts.pop_front();
        }
    }

    fn seen(&self, scope: Scope, id: HookId) -> Option<&(Hook, VecDeque<Attempt>)> {
        self.by_id.get(&id).filter(|(hook, _)| sees(scope, hook))
    }

    fn page(&self, scope: Scope, filter: &HookFilter) -> Vec<Hook> {
        let HookFilter { state, task, agent, before, limit } = *filter;
        let hooks = self.by_id.values().rev().map(|(hook, _)| hook).filter(|hook| sees(scope, hook));
        let wanted = hooks.filter(|hook| {
            state.is_none_or(|state| hook.state == state)
                && task.is_none_or(|task| hook.task == task)
                && agent.is_none_or(|agent| hook.agent == agent)
                && before.is_none_or(|before| hook.uid < before)
        });
        wanted.take(limit).cloned().collect()
    }
}

impl HookStore for Memory {
    fn add_hook(&self, hook: Hook, most: usize) -> Later<Option<Hook>> {
        self.now(|tables| tables.hooks.add(hook, most))
    }
    fn hooks(&self, scope: Scope, task: TaskId) -> Later<Vec<Hook>> {
        self.now(|tables| {
            let there = tables.hooks.of_task(scope, task).filter(|hook| hook.state != HookState::Deleted);
            there.cloned().collect()
        })
    }
    fn remove_hook(&self, scope: Scope, task: TaskId, id: &str) -> Later<Option<HookId>> {
        self.now(|tables| tables.hooks.remove(scope, task, id))
    }
    fn settle_hook(&self, settled: Settled) -> Later<()> {
        self.now(|tables| tables.hooks.settle(settled))
    }
    fn active_hooks(&self, after: Option<HookId>, limit: usize) -> Later<Vec<(Hook, Standing)>> {
        self.now(|tables| {
            let standing = |hook: &Hook| match tables.tasks.get(&hook.task) {
                Some(task) => Standing::At(task.head.peer_seq),
                None => Standing::Gone,
            };
            let hooks = tables.hooks.by_id.values().map(|(hook, _)| hook);
            let active = hooks.filter(|hook| hook.state == HookState::Active && after.is_none_or(|id| hook.uid > id));
            active.take(limit).map(|hook| (hook.clone(), standing(hook))).collect()
        })
    }
    fn hook(&self, scope: Scope, id: HookId) -> Later<Option<Hook>> {
        self.now(|tables| tables.hooks.seen(scope, id).map(|(hook, _)| hook.clone()))
    }
    fn hook_page(&self, scope: Scope, filter: HookFilter) -> Later<Vec<Hook>> {
        self.now(|tables| tables.hooks.page(scope, &filter))
    }
    fn attempts(&self, scope: Scope, id: HookId, limit: usize) -> Later<Vec<Attempt>> {
        self.now(|tables| {
            let attempts = tables.hooks.seen(scope, id).into_iter().flat_map(|(_, attempts)| attempts.iter().rev());
            attempts.take(limit).cloned().collect()
        })
    }
    fn change_hook(&self, scope: Scope, id: HookId, change: HookChange) -> Later<Option<Hook>> {
        self.now(|tables| {
            let (hook, _) = tables.hooks.by_id.get_mut(&id).filter(|(hook, _)| sees(scope, hook))?;
            change.apply(hook);
            Some(hook.clone())
        })
    }
}
