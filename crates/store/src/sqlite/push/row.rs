//! The statements behind hooks: rows read, written and settled.

use super::KEPT_ATTEMPTS;
use crate::sqlite::fault;
use flotilla_core::caller::Scope;
use flotilla_core::error::Fault;
use flotilla_core::ids::{AgentId, HookId, PrincipalId, TaskId};
use flotilla_core::push::{Attempt, Hook, HookChange, HookState, MOST_DELETED, Settled, Target};
use flotilla_protocol::a2a::version::Version;
use flotilla_protocol::time::Millis;
use rusqlite::{Connection, Params, Row, params};

const COLUMNS: &str = "uid, task, id, principal, agent, owner, url, origin, scheme, sealed, options, created_at, cursor, \
                       state, failures, next_at, attempts, reason, generation, version, held";

fn hook(row: &Row<'_>) -> rusqlite::Result<Hook> {
    let options: String = row.get(10)?;
    let number = |index| row.get::<_, i64>(index).map(|number| number as u64);
    Ok(Hook {
        uid: HookId::from_bytes(row.get(0)?),
        task: TaskId::from_bytes(row.get(1)?),
        id: row.get(2)?,
        principal: PrincipalId(row.get(3)?),
        agent: AgentId(row.get(4)?),
        owner: PrincipalId(row.get(5)?),
        target: Target { url: row.get(6)?, origin: row.get(7)?, scheme: row.get(8)?, sealed: row.get(9)? },
        options: serde_json::from_str(&options).unwrap_or_default(),
        created_at: Millis(row.get(11)?),
        cursor: number(12)?,
        state: HookState::from_code(row.get(13)?).unwrap_or(HookState::Disabled),
        failures: row.get(14)?,
        next_at: row.get::<_, Option<i64>>(15)?.map(Millis),
        attempts: number(16)?,
        reason: row.get(17)?,
        generation: number(18)?,
        version: Version::from_name(&row.get::<_, String>(19)?).unwrap_or_default(),
        held: row.get(20)?,
    })
}

/// The scope as a condition; its numbers are our own, so they may stand in the text.
fn within(scope: Scope) -> String {
    match scope {
        Scope::Caller { principal, agent } => format!("principal = {} AND agent = {}", principal.0, agent.0),
        Scope::Own { principal } => format!("principal = {}", principal.0),
        Scope::Agent { owner } => format!("owner = {}", owner.0),
        Scope::Admin => "1".into(),
    }
}

pub fn hooks_where(
    connection: &Connection,
    scope: Scope,
    condition: &str,
    values: impl Params,
) -> Result<Vec<Hook>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM push_configs WHERE {} AND {condition}", within(scope));
    let mut statement = connection.prepare_cached(&sql).map_err(fault("reading webhooks"))?;
    let rows = statement.query_map(values, hook).and_then(Iterator::collect);
    rows.map_err(fault("reading webhooks"))
}

pub fn by_id(connection: &Connection, scope: Scope, id: HookId) -> Result<Option<Hook>, Fault> {
    Ok(hooks_where(connection, scope, "uid = ?1", params![id.bytes()])?.pop())
}

fn by_name(connection: &Connection, scope: Scope, task: TaskId, id: &str) -> Result<Option<Hook>, Fault> {
    Ok(hooks_where(connection, scope, "task = ?1 AND id = ?2", params![task.bytes(), id])?.pop())
}

pub fn add(connection: &Connection, hook: &Hook, most: usize) -> Result<Option<Hook>, Fault> {
    if let Some(known) = by_name(connection, Scope::Admin, hook.task, &hook.id)? {
        let renewed = known.renewed(hook);
        write(connection, &renewed)?;
        return Ok(Some(renewed));
    }
    let count = "SELECT count(*), count(*) FILTER (WHERE state = 4) FROM push_configs WHERE task = ?1";
    let (all, deleted): (i64, i64) = connection
        .prepare_cached(count)
        .and_then(|mut statement| statement.query_row([hook.task.bytes()], |row| Ok((row.get(0)?, row.get(1)?))))
        .map_err(fault("counting webhooks"))?;
    let reaches = |number: i64, most: usize| usize::try_from(number).unwrap_or(usize::MAX) >= most;
    if reaches(all - deleted, most) || reaches(deleted, MOST_DELETED) {
        return Ok(None);
    }
    write(connection, hook)?;
    Ok(Some(hook.clone()))
}

fn write(connection: &Connection, hook: &Hook) -> Result<(), Fault> {
    let sql = "INSERT OR REPLACE INTO push_configs (uid, task, id, principal, agent, owner, url, origin, scheme, sealed, \
               options, created_at, cursor, state, failures, next_at, attempts, reason, generation, version, held) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)";
    let options = serde_json::to_string(&hook.options).unwrap_or_default();
    let mut statement = connection.prepare_cached(sql).map_err(fault("writing a webhook"))?;
    let target = &hook.target;
    statement
        .execute(params![
            hook.uid.bytes(),
            hook.task.bytes(),
            hook.id,
            hook.principal.0,
            hook.agent.0,
            hook.owner.0,
            target.url,
            target.origin,
            target.scheme,
            target.sealed,
            options,
            hook.created_at.0,
            hook.cursor as i64,
            hook.state.code(),
            hook.failures,
            hook.next_at.map(|at| at.0),
            hook.attempts as i64,
            hook.reason,
            hook.generation as i64,
            hook.version.name(),
            hook.held,
        ])
        .map(drop)
        .map_err(fault("writing a webhook"))
}

pub fn remove(connection: &Connection, scope: Scope, task: TaskId, id: &str) -> Result<Option<HookId>, Fault> {
    let Some(hook) = by_name(connection, scope, task, id)? else { return Ok(None) };
    forget(connection, hook.uid)?;
    Ok(Some(hook.uid))
}

/// Removes a hook and its attempts.
pub fn forget(connection: &Connection, uid: HookId) -> Result<(), Fault> {
    for sql in ["DELETE FROM push_attempts WHERE config = ?1", "DELETE FROM push_configs WHERE uid = ?1"] {
        let removed = connection.prepare_cached(sql).and_then(|mut statement| statement.execute([uid.bytes()]));
        removed.map_err(fault("removing a webhook"))?;
    }
    Ok(())
}

/// The attempt is kept in any case; the hook moves only if nobody changed it meanwhile.
pub fn settle(connection: &Connection, settled: &Settled) -> Result<(), Fault> {
    let failed = fault("settling a webhook");
    let sql = "UPDATE push_configs SET cursor = ?3, state = ?4, failures = ?5, next_at = ?6, reason = ?7 \
               WHERE uid = ?1 AND generation = ?2";
    let uid = settled.hook.bytes();
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| {
            statement.execute(params![
                uid,
                settled.generation as i64,
                settled.cursor as i64,
                settled.state.code(),
                settled.failures,
                settled.next_at.map(|at| at.0),
                settled.reason,
            ])
        })
        .map_err(&failed)?;
    let Some(attempt) = &settled.attempt else { return Ok(()) };
    let sql = "UPDATE push_configs SET attempts = attempts + 1 WHERE uid = ?1 RETURNING attempts";
    let number = connection.prepare_cached(sql).and_then(|mut statement| {
        let mut rows = statement.query([uid])?;
        rows.next()?.map(|row| row.get::<_, i64>(0)).transpose()
    });
    // A hook that was deleted meanwhile leaves nothing behind.
    let Some(number) = number.map_err(&failed)? else { return Ok(()) };
    let sql = "INSERT INTO push_attempts (config, number, peer_seq, at, millis, status, delivered, next_at, reason) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let mut statement = connection.prepare_cached(sql).map_err(&failed)?;
    let (peer_seq, millis) = (attempt.peer_seq as i64, attempt.millis as i64);
    let next_at = attempt.next_at.map(|at| at.0);
    let values = params![
        uid,
        number,
        peer_seq,
        attempt.at.0,
        millis,
        attempt.status,
        attempt.delivered,
        next_at,
        attempt.reason
    ];
    statement.execute(values).map_err(&failed)?;
    let oldest = number - KEPT_ATTEMPTS as i64;
    if oldest > 0 {
        let sql = "DELETE FROM push_attempts WHERE config = ?1 AND number <= ?2";
        let dropped = connection.prepare_cached(sql).and_then(|mut statement| statement.execute(params![uid, oldest]));
        dropped.map_err(&failed)?;
    }
    Ok(())
}

pub fn change(connection: &Connection, scope: Scope, id: HookId, by: &HookChange) -> Result<Option<Hook>, Fault> {
    let Some(mut hook) = by_id(connection, scope, id)? else { return Ok(None) };
    by.apply(&mut hook);
    write(connection, &hook)?;
    Ok(Some(hook))
}

pub fn attempts(connection: &Connection, id: HookId, limit: usize) -> Result<Vec<Attempt>, Fault> {
    let sql = "SELECT number, peer_seq, at, millis, status, delivered, next_at, reason FROM push_attempts \
               WHERE config = ?1 ORDER BY number DESC LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(fault("reading attempts"))?;
    let rows = statement.query_map(params![id.bytes(), i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
        let number = |index| row.get::<_, i64>(index).map(|number| number as u64);
        Ok(Attempt {
            number: number(0)?,
            peer_seq: number(1)?,
            at: Millis(row.get(2)?),
            millis: number(3)?,
            status: row.get(4)?,
            delivered: row.get(5)?,
            next_at: row.get::<_, Option<i64>>(6)?.map(Millis),
            reason: row.get(7)?,
        })
    });
    rows.and_then(Iterator::collect).map_err(fault("reading attempts"))
}
