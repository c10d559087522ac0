//! The ledger as rows: one for each task, day and agent that did it. Retention leaves them alone.

use super::journal::entry::Entry;
use super::{Sqlite, fault};
use flotilla_core::caller::Scope;
use flotilla_core::error::Fault;
use flotilla_core::ids::{TaskId, WorkspaceId};
use flotilla_core::ports::{Later, UsageStore};
use flotilla_core::task::Head;
use flotilla_core::usage::{By, Day, Sum, UsageFilter, assigned, told_by};
use flotilla_protocol::event::Event;
use flotilla_protocol::usage::{FIGURES, MOST_SUM, Usage};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};

/// Whether an entry may tell of usage; most do not, and are not read for it.
pub fn may_tell(events: &str) -> bool {
    events.contains("\"usage\"")
}

/// The columns of the figures, in their order.
const COLUMNS: [&str; FIGURES] = ["input", "output", "cache_read", "cache_write", "cost"];

/// A row that is added to another one's. Sums that are full stay full: beyond a number SQLite would make a fraction.
fn adding() -> String {
    let more = COLUMNS
        .map(|name| format!("{name} = coalesce(min({name} + excluded.{name}, {MOST_SUM}), {name}, excluded.{name})"));
    format!(
        "INSERT INTO usage (task, day, agent, owner, context, reports, {}, gaps) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) \
         ON CONFLICT DO UPDATE SET reports = reports + excluded.reports, gaps = gaps | excluded.gaps, {}",
        COLUMNS.join(", "),
        more.join(", ")
    )
}

/// The sums of the figures and what is missing from them, as `sum` reads them. Each figure is summed in two halves,
/// since `sum()` fails for all of a ledger where the whole is too large, whoever told it. Early stores hold figures that
/// were too large for their column and came out below 0.
fn summed() -> String {
    let halves = COLUMNS.map(|name| {
        let figure = format!("CASE WHEN u.{name} < 0 THEN {MOST_SUM} ELSE u.{name} END");
        format!("sum(({figure}) >> 32), sum(({figure}) & 4294967295)")
    });
    let gaps = (0..FIGURES).map(|bit| format!("coalesce(max(u.gaps & {}), 0)", 1 << bit));
    format!("sum(u.reports), {}, {}", halves.join(", "), gaps.collect::<Vec<_>>().join(", "))
}

/// Adds what an entry tells, in the transaction that puts it into the tables.
pub fn add(connection: &Connection, entry: &Entry, events: &[Event]) -> Result<(), Fault> {
    let Some(usage) = Usage::of(events) else { return Ok(()) };
    let head = &entry.head;
    let earlier = told_by(events).map(|worker| named(connection, worker)).transpose()?.flatten();
    let (agent, owner) = match earlier {
        Some(worker) => worker,
        None => doer(connection, head)?,
    };
    let [input, output, read, written, cost] = usage.figures.map(|figure| figure.map(|figure| figure as i64));
    let mut statement = connection.prepare_cached(&adding()).map_err(fault("adding usage"))?;
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

/// An agent, and whose it is.
fn named(connection: &Connection, name: &str) -> Result<Option<(i64, i64)>, Fault> {
    let sql = "SELECT id, owner FROM agents WHERE name = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(fault("reading who tells of usage"))?;
    let found = statement.query_row([name], |row| Ok((row.get(0)?, row.get(1)?))).optional();
    found.map_err(fault("reading who tells of usage"))
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
    let (mut figures, mut gaps) = ([None; FIGURES], 0u8);
    for (index, figure) in figures.iter_mut().enumerate() {
        let halves = (row.get::<_, Option<i64>>(3 + 2 * index)?, row.get::<_, Option<i64>>(4 + 2 * index)?);
        if let (Some(high), Some(low)) = halves {
            let whole = (i128::from(high) << 32) + i128::from(low);
            *figure = u64::try_from(whole.clamp(0, i128::from(MOST_SUM))).ok();
        }
        gaps |= u8::from(row.get::<_, i64>(3 + 2 * FIGURES + index)? != 0) << index;
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
        "SELECT {} AS k, count(DISTINCT u.task), {} FROM usage u WHERE {} \
         GROUP BY k ORDER BY max(u.day) DESC, k DESC LIMIT {}",
        key(by),
        summed(),
        conditions.join(" AND "),
        filter.limit
    );
    let mut statement = connection.prepare_cached(&sql).map_err(fault("reading usage"))?;
    let rows = statement.query_map(rusqlite::params_from_iter(values), sum).and_then(Iterator::collect);
    rows.map_err(fault("reading usage"))
}

/// Of a task and all below it.
fn below(connection: &Connection, task: TaskId) -> Result<Usage, Fault> {
    let sql = format!(
        "WITH RECURSIVE below (id) AS (SELECT ?1 UNION SELECT t.id FROM tasks t JOIN below b ON t.parent_task_id = b.id) \
         SELECT x'', 0, {} FROM usage u WHERE u.task IN below",
        summed()
    );
    let mut statement = connection.prepare_cached(&sql).map_err(fault("reading usage"))?;
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
