//! The ledger as rows: one for each task, day and agent that did it. Retention leaves them alone.

use super::journal::entry::Entry;
use super::{Sqlite, fault};
use flotilla_core::caller::Scope;
use flotilla_core::error::Fault;
use flotilla_core::ids::{TaskId, WorkspaceId};
use flotilla_core::ports::{Later, UsageStore};
use flotilla_core::task::Head;
use flotilla_core::usage::{By, Day, Sum, UsageFilter, assigned};
use flotilla_protocol::event::Event;
use flotilla_protocol::usage::Usage;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};

/// Whether an entry may tell of usage; most do not, and are not read for it.
pub fn may_tell(events: &str) -> bool {
    events.contains("\"usage\"")
}

/// Adds what an entry tells, in the transaction that puts it into the tables.
pub fn add(connection: &Connection, entry: &Entry, events: &[Event]) -> Result<(), Fault> {
    let Some(usage) = Usage::of(events) else { return Ok(()) };
    let head = &entry.head;
    let (agent, owner) = doer(connection, head)?;
    let [input, output, read, written, cost] = usage.figures.map(|figure| figure.map(|figure| figure as i64));
    let sql = "INSERT INTO usage (task, day, agent, owner, context, reports, input, output, cache_read, cache_write, \
               cost, gaps) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) \
               ON CONFLICT DO UPDATE SET reports = reports + excluded.reports, gaps = gaps | excluded.gaps, \
               input = coalesce(input + excluded.input, input, excluded.input), \
               output = coalesce(output + excluded.output, output, excluded.output), \
               cache_read = coalesce(cache_read + excluded.cache_read, cache_read, excluded.cache_read), \
               cache_write = coalesce(cache_write + excluded.cache_write, cache_write, excluded.cache_write), \
               cost = coalesce(cost + excluded.cost, cost, excluded.cost)";
    let mut statement = connection.prepare_cached(sql).map_err(fault("adding usage"))?;
    let added = statement.execute(params![
        head.id.bytes(),
        Day::of(entry.span.at).0,
        agent,
        owner,
        &*head.context,
        usage.reports as i64,
        input,
        output,
        read,
        written,
        cost,
        usage.gaps
    ]);
    added.map(|_| ()).map_err(fault("adding usage"))
}

/// Whether an entry may tell who got a task's work.
pub fn may_give(events: &str) -> bool {
    events.contains("\"assigned\"")
}

/// Remembers who has a task's work, where that is not the agent it was sent to.
pub fn give(connection: &Connection, entry: &Entry, events: &[Event]) -> Result<(), Fault> {
    let Some(worker) = assigned(events) else { return Ok(()) };
    let sql = "INSERT OR REPLACE INTO doers (task, agent) SELECT ?1, id FROM agents WHERE name = ?2 AND id != ?3";
    let mut statement = connection.prepare_cached(sql).map_err(fault("noting who has the work"))?;
    let noted = statement.execute(params![entry.head.id.bytes(), worker, entry.head.agent.0]);
    noted.map(|_| ()).map_err(fault("noting who has the work"))
}

/// Who is to be booked, and whose agent that is.
fn doer(connection: &Connection, head: &Head) -> Result<(i64, i64), Fault> {
    let sql = "SELECT a.id, a.owner FROM doers d JOIN agents a ON a.id = d.agent WHERE d.task = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(fault("reading who has the work"))?;
    let found = statement.query_row([head.id.bytes()], |row| Ok((row.get(0)?, row.get(1)?))).optional();
    Ok(found.map_err(fault("reading who has the work"))?.unwrap_or((head.agent.0, head.owner.0)))
}

/// What a sum is made by, as an expression.
fn key(by: By) -> &'static str {
    match by {
        By::Task => "u.task",
        By::Agent => "coalesce((SELECT name FROM agents WHERE id = u.agent), '')",
        By::Context => "u.context",
        By::Workspace => {
            "coalesce((SELECT w.name FROM principals p JOIN workspaces w ON w.id = p.workspace WHERE p.id = u.owner), '')"
        }
        By::Day => "u.day",
    }
}

fn sum(row: &Row<'_>) -> rusqlite::Result<Sum> {
    let key = match row.get::<_, Value>(0)? {
        Value::Blob(bytes) => {
            <[u8; 16]>::try_from(bytes).map(|id| TaskId::from_bytes(id).to_string()).unwrap_or_default()
        }
        Value::Integer(day) => Day(day).name(),
        Value::Text(text) => text,
        _ => String::new(),
    };
    let number = |index| row.get::<_, Option<i64>>(index).map(|number| number.map(i64::unsigned_abs));
    let figures = [number(3)?, number(4)?, number(5)?, number(6)?, number(7)?];
    let mut gaps = 0u8;
    for bit in 0..5 {
        gaps |= u8::from(row.get::<_, i64>(8 + bit)? != 0) << bit;
    }
    let usage = Usage { reports: number(2)?.unwrap_or(0), figures, gaps };
    Ok(Sum { key, tasks: number(1)?.unwrap_or(0), usage })
}

fn sums(connection: &Connection, scope: Scope, by: By, filter: &UsageFilter) -> Result<Vec<Sum>, Fault> {
    let mut conditions = vec![match scope {
        Scope::Agent { owner } => format!("u.owner = {}", owner.0),
        Scope::Admin => "1".to_owned(),
        Scope::Caller { .. } | Scope::Own { .. } => "0".to_owned(),
    }];
    let mut values: Vec<Value> = Vec::new();
    let mut also = |condition: &str, value: Option<Value>| {
        if let Some(value) = value {
            conditions.push(condition.to_owned());
            values.push(value);
        }
    };
    also("u.day >= ?", filter.since.map(|day| day.0.into()));
    also("u.day <= ?", filter.until.map(|day| day.0.into()));
    also("u.task = ?", filter.task.map(|task| Value::Blob(task.bytes().to_vec())));
    also("u.context = ?", filter.context.clone().map(Into::into));
    if let Some(agents) = &filter.agents {
        let ids: Vec<String> = agents.iter().map(|id| id.0.to_string()).collect();
        conditions.push(format!("u.agent IN ({})", ids.join(",")));
    }
    let sql = format!(
        "SELECT {} AS k, count(DISTINCT u.task), sum(u.reports), sum(u.input), sum(u.output), sum(u.cache_read), \
         sum(u.cache_write), sum(u.cost), max(u.gaps & 1), max(u.gaps & 2), max(u.gaps & 4), max(u.gaps & 8), \
         max(u.gaps & 16) FROM usage u WHERE {} GROUP BY k ORDER BY max(u.day) DESC, k DESC LIMIT {}",
        key(by),
        conditions.join(" AND "),
        filter.limit
    );
    let mut statement = connection.prepare_cached(&sql).map_err(fault("reading usage"))?;
    let rows = statement.query_map(rusqlite::params_from_iter(values), sum).and_then(Iterator::collect);
    rows.map_err(fault("reading usage"))
}

/// Of a task and all below it.
fn below(connection: &Connection, task: TaskId) -> Result<Usage, Fault> {
    let sql = "WITH RECURSIVE below (id) AS (
                   SELECT ?1 UNION SELECT t.id FROM tasks t JOIN below b ON t.parent_task_id = b.id)
               SELECT x'', 0, sum(u.reports), sum(u.input), sum(u.output), sum(u.cache_read), sum(u.cache_write), \
               sum(u.cost), coalesce(max(u.gaps & 1), 0), coalesce(max(u.gaps & 2), 0), coalesce(max(u.gaps & 4), 0), \
               coalesce(max(u.gaps & 8), 0), coalesce(max(u.gaps & 16), 0) FROM usage u WHERE u.task IN below";
    let mut statement = connection.prepare_cached(sql).map_err(fault("reading usage"))?;
    statement.query_row([task.bytes()], sum).map(|sum| sum.usage).map_err(fault("reading usage"))
}

fn workspace_name(connection: &Connection, id: WorkspaceId) -> Result<String, Fault> {
    let name = connection.query_row("SELECT name FROM workspaces WHERE id = ?1", [id.0], |row| row.get(0)).optional();
    name.map(Option::unwrap_or_default).map_err(fault("reading a workspace"))
}

impl UsageStore for Sqlite {
    fn usage_below(&self, task: TaskId) -> Later<Usage> {
        self.read(move |connection| below(connection, task))
    }
    fn workspace_name(&self, id: WorkspaceId) -> Later<String> {
        self.read(move |connection| workspace_name(connection, id))
    }
    fn usage(&self, scope: Scope, by: By, filter: UsageFilter) -> Later<Vec<Sum>> {
        self.read(move |connection| sums(connection, scope, by, &filter))
    }
}
