//! Hooks and their attempts as rows. Changes that wait together share one transaction, and so one flush.

mod row;

use super::{Sqlite, fault};
use flotilla_core::caller::Scope;
use flotilla_core::error::Fault;
use flotilla_core::ids::{HookId, TaskId};
use flotilla_core::ports::{HookStore, Later, Standing};
use flotilla_core::push::{Attempt, Hook, HookChange, HookFilter, Settled};
use row::{add, by_id, change, hooks_where, remove, settle};
use rusqlite::{Connection, params};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::oneshot;

/// Attempts kept of one hook; the oldest go.
const KEPT_ATTEMPTS: u64 = 1_000;

/// A change of a hook.
enum Op {
    Add(Box<Hook>, usize),
    Remove(Scope, TaskId, String),
    Settle(Box<Settled>),
    Change(Scope, HookId, HookChange),
}

/// What came of it; of no interest to those who settle.
#[derive(Default)]
struct Answer {
    hook: Option<Hook>,
    removed: Option<HookId>,
}

type Waiting = (Op, oneshot::Sender<Result<Answer, Fault>>);

/// Changes that wait for the writer. The first to wait asks for it, and it takes all that wait by then.
#[derive(Clone, Default)]
pub struct Together(Arc<Mutex<Vec<Waiting>>>);

impl Together {
    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.0.lock().expect("no panic while holding the waiting")
    }

    fn write(&self, connection: &mut Connection) {
        let waiting = std::mem::take(&mut *self.waiting());
        let answers = all(connection, waiting.iter().map(|(op, _)| op));
        let answers = answers.or_else(|failed| match waiting.len() {
            1 => Err(failed),
            // One cannot sink the others.
            _ => Ok(waiting.iter().map(|(op, _)| all(connection, std::iter::once(op)).map(only)).collect()),
        });
        match answers {
            Ok(answers) => {
                for ((_, tell), answer) in waiting.into_iter().zip(answers) {
                    let _ = tell.send(answer);
                }
            }
            Err(failed) => {
                for (_, tell) in waiting {
                    let _ = tell.send(Err(failed.clone()));
                }
            }
        }
    }
}

fn only(answers: Vec<Result<Answer, Fault>>) -> Answer {
    answers.into_iter().next().and_then(Result::ok).unwrap_or_default()
}

/// One transaction for all of them.
fn all<'a>(
    connection: &mut Connection,
    ops: impl Iterator<Item = &'a Op>,
) -> Result<Vec<Result<Answer, Fault>>, Fault> {
    let run = |sql: &str| {
        let done = connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map_err(fault("writing webhooks"))
    };
    run("BEGIN IMMEDIATE")?;
    let written = ops.map(|op| one(connection, op).map(Ok)).collect::<Result<Vec<_>, Fault>>();
    let written = written.and_then(|answers| run("COMMIT").map(|_| answers));
    if written.is_err() && !connection.is_autocommit() {
        run("ROLLBACK")?;
    }
    written
}

fn one(connection: &Connection, op: &Op) -> Result<Answer, Fault> {
    Ok(match op {
        Op::Add(hook, most) => Answer { hook: add(connection, hook, *most)?, ..Answer::default() },
        Op::Remove(scope, task, id) => Answer { removed: remove(connection, *scope, *task, id)?, ..Answer::default() },
        Op::Settle(settled) => {
            settle(connection, settled)?;
            Answer::default()
        }
        Op::Change(scope, id, by) => Answer { hook: change(connection, *scope, *id, by)?, ..Answer::default() },
    })
}

impl Sqlite {
    fn together(&self, op: Op) -> Later<Answer> {
        let (tell, told) = oneshot::channel();
        let is_first = {
            let mut waiting = self.hooks.waiting();
            waiting.push((op, tell));
            waiting.len() == 1
        };
        let hooks = self.hooks.clone();
        let job = is_first.then(|| {
            let hooks = self.hooks.clone();
            self.write(move |connection| {
                hooks.write(connection);
                Ok(())
            })
        });
        Box::pin(async move {
            if let Some(job) = job
                && job.await.is_err()
            {
                // The store has stopped: nobody will come for those who wait.
                hooks.waiting().clear();
            }
            told.await.map_err(|_| Fault::new("the store has stopped"))?
        })
    }
}

impl HookStore for Sqlite {
    fn add_hook(&self, hook: Hook, most: usize) -> Later<Option<Hook>> {
        let added = self.together(Op::Add(Box::new(hook), most));
        Box::pin(async move { Ok(added.await?.hook) })
    }
    fn hooks(&self, scope: Scope, task: TaskId) -> Later<Vec<Hook>> {
        let there = "task = ?1 AND state <> 4 ORDER BY uid";
        self.read(move |connection| hooks_where(connection, scope, there, params![task.bytes()]))
    }
    fn remove_hook(&self, scope: Scope, task: TaskId, id: &str) -> Later<Option<HookId>> {
        let removed = self.together(Op::Remove(scope, task, id.to_owned()));
        Box::pin(async move { Ok(removed.await?.removed) })
    }
    fn settle_hook(&self, settled: Settled) -> Later<()> {
        let settled = self.together(Op::Settle(Box::new(settled)));
        Box::pin(async move { settled.await.map(drop) })
    }
    fn active_hooks(&self, after: Option<HookId>, limit: usize) -> Later<Vec<(Hook, Standing)>> {
        self.read(move |connection| active(connection, after, limit))
    }
    fn hook(&self, scope: Scope, id: HookId) -> Later<Option<Hook>> {
        self.read(move |connection| by_id(connection, scope, id))
    }
    fn hook_page(&self, scope: Scope, filter: HookFilter) -> Later<Vec<Hook>> {
        self.read(move |connection| page(connection, scope, &filter))
    }
    fn attempts(&self, scope: Scope, id: HookId, limit: usize) -> Later<Vec<Attempt>> {
        self.read(move |connection| match by_id(connection, scope, id)? {
            Some(_) => row::attempts(connection, id, limit),
            None => Ok(Vec::new()),
        })
    }
    fn change_hook(&self, scope: Scope, id: HookId, change: HookChange) -> Later<Option<Hook>> {
        let changed = self.together(Op::Change(scope, id, change));
        Box::pin(async move { Ok(changed.await?.hook) })
    }
}

/// Conditions that are not asked for are left out, so that the others find their index.
fn page(connection: &Connection, scope: Scope, filter: &HookFilter) -> Result<Vec<Hook>, Fault> {
    let mut condition = String::from("?1 >= 0");
    if let Some(state) = filter.state {
        condition.push_str(&format!(" AND state = {}", state.code()));
    }
    if let Some(agent) = filter.agent {
        condition.push_str(&format!(" AND agent = {}", agent.0));
    }
    condition.push_str(if filter.task.is_some() { " AND task = ?2" } else { " AND ?2 IS NULL" });
    condition.push_str(if filter.before.is_some() { " AND uid < ?3" } else { " AND ?3 IS NULL" });
    condition.push_str(" ORDER BY uid DESC LIMIT ?1");
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let task = filter.task.as_ref().map(|task| task.bytes().as_slice());
    let before = filter.before.as_ref().map(|id| id.bytes().as_slice());
    hooks_where(connection, scope, &condition, params![limit, task, before])
}

/// Asked only at the start, so it may look at the tasks.
fn active(connection: &Connection, after: Option<HookId>, limit: usize) -> Result<Vec<(Hook, Standing)>, Fault> {
    // Every id is longer than none, and so comes after it.
    let after = after.as_ref().map_or(&[][..], |id| id.bytes().as_slice());
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let hooks =
        hooks_where(connection, Scope::Admin, "state = 0 AND uid > ?1 ORDER BY uid LIMIT ?2", params![after, limit])?;
    let mut statement =
        connection.prepare_cached("SELECT peer_seq FROM tasks WHERE id = ?1").map_err(fault("reading webhooks"))?;
    let mut standing = |hook: &Hook| {
        let mut rows = statement.query([hook.task.bytes()])?;
        Ok(match rows.next()? {
            Some(row) => Standing::At(row.get::<_, i64>(0)? as u64),
            None => Standing::Gone,
        })
    };
    let hooks = hooks.into_iter().map(|hook| standing(&hook).map(|standing| (hook, standing)));
    hooks.collect::<rusqlite::Result<_>>().map_err(fault("reading webhooks"))
}

/// A task that goes takes its hooks along.
pub fn remove_task(connection: &Connection, task: TaskId) -> Result<(), Fault> {
    for hook in hooks_where(connection, Scope::Admin, "task = ?1", params![task.bytes()])? {
        row::forget(connection, hook.uid)?;
    }
    Ok(())
}
