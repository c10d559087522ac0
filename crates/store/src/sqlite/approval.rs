//! Approvals as rows, written from the log in the transaction that puts it into the tables.

use super::journal::entry::Entry;
use super::{Sqlite, fault};
use flotilla_core::approval::{Approval, ApprovalFilter, Settled, Told, told};
use flotilla_core::caller::Scope;
use flotilla_core::error::Fault;
use flotilla_core::ids::{AgentId, ApprovalId, PrincipalId, TaskId};
use flotilla_core::ports::{ApprovalStore, Later};
use flotilla_core::task::approve::Answer;
use flotilla_protocol::approval::ApprovalState;
use flotilla_protocol::event::Event;
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::Json;
use rusqlite::types::{Type, Value};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::sync::Arc;

const COLUMNS: &str = "id, task, run, agent, owner, request, created_at, expires_at, state, settled_at, settled_by, note, \
                       input, always";

/// Whether an entry may tell of approvals; most do not, and are not read for it.
pub fn may_tell(events: &str) -> bool {
    events.contains("\"approval_")
}

/// Keeps what an entry tells.
pub fn add(connection: &Connection, entry: &Entry, events: &[Event]) -> Result<(), Fault> {
    for told in told(events) {
        match told {
            Told::Asked { id, run, request, expires, asker } => {
                let json = serde_json::to_string(&**request)
                    .map_err(|error| Fault::new(format!("encoding an approval: {error}")))?;
                let head = &entry.head;
                let (agent, owner) = asker.unwrap_or((head.agent, head.owner));
                let sql = "INSERT OR IGNORE INTO approvals (id, task, run, agent, owner, tool, request, created_at, \
                           expires_at, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'open')";
                let values = params![
                    id.bytes(),
                    head.id.bytes(),
                    run,
                    agent.0,
                    owner.0,
                    request.tool,
                    json,
                    entry.span.at.0,
                    expires.map(|at| at.0)
                ];
                connection.execute(sql, values).map_err(fault("keeping an approval"))?;
            }
            Told::Settled { id, answer } => {
                let Answer { state, by, note, input, always } = answer;
                let sql = "UPDATE approvals SET state = ?2, settled_at = ?3, settled_by = ?4, note = ?5, input = ?6, \
                           always = ?7 WHERE id = ?1 AND state = 'open'";
                let input = input.map(|input| input.text().to_owned());
                let values = params![id.bytes(), state.name(), entry.span.at.0, by, note, input, always];
                connection.execute(sql, values).map_err(fault("settling an approval"))?;
            }
        }
    }
    Ok(())
}

fn unread(column: usize, what: impl std::fmt::Display) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, what.to_string().into())
}

fn approval(row: &Row<'_>) -> rusqlite::Result<Approval> {
    let state: String = row.get(8)?;
    let state = ApprovalState::from_name(&state).ok_or_else(|| unread(8, "an unknown state"))?;
    let request: String = row.get(5)?;
    let request = serde_json::from_str(&request).map_err(|error| unread(5, error))?;
    let input: Option<String> = row.get(12)?;
    let settled = match row.get::<_, Option<i64>>(9)? {
        None => None,
        Some(at) => Some(Settled {
            at: Millis(at),
            answer: Answer {
                state,
                by: row.get(10)?,
                note: row.get(11)?,
                input: input.map(Json::new).transpose().map_err(|error| unread(12, error))?,
                always: row.get(13)?,
            },
        }),
    };
    Ok(Approval {
        id: ApprovalId::from_bytes(row.get(0)?),
        task: TaskId::from_bytes(row.get(1)?),
        run: row.get(2)?,
        agent: AgentId(row.get(3)?),
        owner: PrincipalId(row.get(4)?),
        request: Arc::new(request),
        created_at: Millis(row.get(6)?),
        expires_at: row.get::<_, Option<i64>>(7)?.map(Millis),
        settled,
    })
}

/// The scope as a condition: approvals are their owner's.
fn within(scope: Scope) -> String {
    match scope {
        Scope::Agent { owner } => format!("owner = {}", owner.0),
        Scope::Admin => "1".to_owned(),
        Scope::Caller { .. } | Scope::Own { .. } => "0".to_owned(),
    }
}

fn by_id(connection: &Connection, scope: Scope, id: ApprovalId) -> Result<Option<Approval>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM approvals WHERE id = ?1 AND {}", within(scope));
    let mut statement = connection.prepare_cached(&sql).map_err(fault("reading an approval"))?;
    statement.query_row([id.bytes()], approval).optional().map_err(fault("reading an approval"))
}

fn page(connection: &Connection, scope: Scope, filter: &ApprovalFilter) -> Result<Vec<Approval>, Fault> {
    let (mut conditions, mut values) = (vec![within(scope)], Vec::new());
    let mut also = |condition: &str, value: Option<Value>| {
        if let Some(value) = value {
            conditions.push(condition.to_owned());
            values.push(value);
        }
    };
    also("state = ?", filter.state.map(|state| state.name().to_owned().into()));
    also("task = ?", filter.task.map(|task| Value::Blob(task.bytes().to_vec())));
    also("agent = ?", filter.agent.map(|agent| agent.0.into()));
    also(
        "(created_at, id) < (SELECT created_at, id FROM approvals WHERE id = ?)",
        filter.before.map(|id| Value::Blob(id.bytes().to_vec())),
    );
    let sql = format!(
        "SELECT {COLUMNS} FROM approvals WHERE {} ORDER BY created_at DESC, id DESC LIMIT {}",
        conditions.join(" AND "),
        filter.limit
    );
    let mut statement = connection.prepare_cached(&sql).map_err(fault("listing approvals"))?;
    let rows = statement.query_map(rusqlite::params_from_iter(values), approval).and_then(Iterator::collect);
    rows.map_err(fault("listing approvals"))
}

fn expiring(connection: &Connection) -> Result<Vec<(Millis, TaskId, ApprovalId)>, Fault> {
    let sql = "SELECT expires_at, task, id FROM approvals WHERE state = 'open' AND expires_at IS NOT NULL";
    let mut statement = connection.prepare_cached(sql).map_err(fault("listing approvals"))?;
    let rows = statement.query_map([], |row| {
        Ok((Millis(row.get(0)?), TaskId::from_bytes(row.get(1)?), ApprovalId::from_bytes(row.get(2)?)))
    });
    rows.and_then(Iterator::collect).map_err(fault("listing approvals"))
}

fn standing(connection: &Connection, task: TaskId, tool: &str) -> Result<Option<Approval>, Fault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM approvals WHERE task = ?1 AND tool = ?2 AND always = 1 ORDER BY settled_at DESC LIMIT 1"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(fault("reading an approval"))?;
    statement.query_row(params![task.bytes(), tool], approval).optional().map_err(fault("reading an approval"))
}

/// They go with their task.
pub fn remove_task(connection: &Connection, task: TaskId) -> Result<(), Fault> {
    let removed = connection.execute("DELETE FROM approvals WHERE task = ?1", [task.bytes()]);
    removed.map(|_| ()).map_err(fault("removing approvals"))
}

impl ApprovalStore for Sqlite {
    fn approval(&self, scope: Scope, id: ApprovalId) -> Later<Option<Approval>> {
        self.read(move |connection| by_id(connection, scope, id))
    }
    fn approvals(&self, scope: Scope, filter: ApprovalFilter) -> Later<Vec<Approval>> {
        self.read(move |connection| page(connection, scope, &filter))
    }
    fn expiring(&self) -> Later<Vec<(Millis, TaskId, ApprovalId)>> {
        self.read(|connection| expiring(connection))
    }
    fn standing_approval(&self, task: TaskId, tool: &str) -> Later<Option<Approval>> {
        let tool = tool.to_owned();
        self.read(move |connection| standing(connection, task, &tool))
    }
}
