//! Sweeping: folds long logs that have ended and removes what retention says, a little at a time.

use super::apply::add_counts;
use super::send::{self, Print};
use super::{approval, chain, fault, push, task};
use flotilla_core::caller::Scope;
use flotilla_core::error::Fault;
use flotilla_core::ids::TaskId;
use flotilla_core::map::IdMap;
use flotilla_core::ports::{Folded, Retention, Swept, View};
use flotilla_core::task::Head;
use flotilla_protocol::time::Millis;
use rusqlite::{Connection, TransactionBehavior, params};

/// How much one call does: short enough that commits hardly wait for it.
const STEP: i64 = 200;
const ENDED: &str = "state IN (3, 4, 5, 7, 9)";

/// What was removed, in numbers and by name.
pub struct Removed {
    pub swept: Swept,
    pub tasks: Vec<TaskId>,
    pub sends: Vec<Print>,
}

pub fn sweep(connection: &mut Connection, retention: &Retention) -> Result<Removed, Fault> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault("sweeping"))?;
    let tasks = remove_tasks(&transaction, retention)?;
    let logs = fold_long(&transaction)? + drop_events(&transaction, retention)?;
    let sends = send::sweep(&transaction, retention, STEP * 5)?;
    transaction.commit().map_err(fault("sweeping"))?;
    let swept = Swept { tasks: tasks.len() as u64, logs, sends: sends.len() as u64 };
    Ok(Removed { swept, tasks, sends })
}

fn ids(connection: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<Vec<TaskId>, Fault> {
    let mut statement = connection.prepare_cached(sql).map_err(fault("sweeping"))?;
    let rows = statement.query_map(values, |row| row.get(0).map(TaskId::from_bytes));
    rows.and_then(Iterator::collect).map_err(fault("sweeping"))
}

/// Ids grow with time, so the oldest tasks come first; the ended ones among them go.
fn remove_tasks(connection: &Connection, retention: &Retention) -> Result<Vec<TaskId>, Fault> {
    let mut doomed = Vec::new();
    if let Some(Millis(before)) = retention.tasks_before {
        let sql = format!(
            "SELECT id FROM tasks WHERE {ENDED} AND id < ?1 AND max(status_at, created_at) < ?2 \
             ORDER BY id LIMIT ?3"
        );
        doomed = ids(connection, &sql, params![TaskId::floor_of(before).bytes(), before, STEP])?;
    }
    if let Some(max) = retention.tasks_max {
        let count = "SELECT coalesce(sum(n), 0) FROM counters WHERE ";
        let ended: i64 =
            connection.query_row(&format!("{count}{ENDED}"), [], |row| row.get(0)).map_err(fault("sweeping"))?;
        let excess = ended - i64::try_from(max).unwrap_or(i64::MAX) - doomed.len() as i64;
        if excess > 0 {
            let sql = format!("SELECT id FROM tasks WHERE {ENDED} ORDER BY id LIMIT ?1");
            let excess = excess.min(STEP);
            let oldest = ids(connection, &sql, [excess + doomed.len() as i64])?;
            let more: Vec<TaskId> =
                oldest.into_iter().filter(|id| !doomed.contains(id)).take(excess as usize).collect();
            doomed.extend(more);
        }
    }
    for id in &doomed {
        remove_task(connection, *id)?;
    }
    Ok(doomed)
}

fn remove_task(connection: &Connection, id: TaskId) -> Result<(), Fault> {
    let Some(head) = task::head(connection, Scope::Admin, id)? else { return Ok(()) };
    chain::remove(connection, id)?;
    push::remove_task(connection, id)?;
    approval::remove_task(connection, id)?;
    for table in ["folds WHERE task", "doers WHERE task", "tasks WHERE id"] {
        connection.execute(&format!("DELETE FROM {table} = ?1"), [id.bytes()]).map_err(fault("removing a task"))?;
    }
    let counts = IdMap::from_iter([((head.principal.0, head.agent.0, head.state_code()), -1)]);
    add_counts(connection, &counts)
}

/// Logs of more than 32 changes are folded when their task has ended, so that reading one stays cheap.
fn fold_long(connection: &Connection) -> Result<u64, Fault> {
    let sql = "SELECT id FROM tasks INDEXED BY tasks_to_fold \
               WHERE version > 32 AND folded = 0 AND state IN (3, 4, 5, 7) LIMIT ?1";
    // A long log can be large: few at a time.
    let long = ids(connection, sql, [STEP / 20])?;
    for id in &long {
        fold(connection, *id)?;
    }
    Ok(long.len() as u64)
}

fn fold(connection: &Connection, id: TaskId) -> Result<Option<Head>, Fault> {
    let Some(stored) = task::stored(connection, Scope::Admin, id)? else { return Ok(None) };
    let (record, _) = task::fill_shown(connection, stored, true, View { until: u64::MAX, history: None })?;
    let mut folded = record.fold.map(|Folded { fold, .. }| fold).unwrap_or_default();
    for change in &record.changes {
        folded.change(change, u64::MAX);
    }
    task::write_fold(connection, &record.head, folded)?;
    Ok(Some(record.head))
}

/// Old ended tasks keep what they came to, not how.
fn drop_events(connection: &Connection, retention: &Retention) -> Result<u64, Fault> {
    let Some(Millis(before)) = retention.events_before else { return Ok(0) };
    let sql = format!(
        "SELECT id FROM (SELECT id, state, status_at, created_at, pruned_seq FROM tasks WHERE id < ?1) \
         WHERE {ENDED} AND max(status_at, created_at) < ?2 AND pruned_seq = 0 LIMIT ?3"
    );
    let old = ids(connection, &sql, params![TaskId::floor_of(before).bytes(), before, STEP])?;
    for id in &old {
        let Some(head) = fold(connection, *id)? else { continue };
        chain::remove(connection, *id)?;
        connection
            .execute(
                "UPDATE tasks SET pruned_seq = ?2, pruned_peer_seq = ?3 WHERE id = ?1",
                params![id.bytes(), head.seq as i64, head.peer_seq as i64],
            )
            .map_err(fault("dropping events"))?;
    }
    Ok(old.len() as u64)
}
