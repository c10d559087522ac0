//! Pages of tasks, newest status first. One index serves every filter: each state is a sorted run of its own.

use super::fault;
use super::task::{self, COLUMNS, Stored, stored_of};
use flotilla_core::error::Fault;
use flotilla_core::ids::{AgentId, PrincipalId};
use flotilla_core::ports::{ListFilter, ListPage, View};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use std::cmp::Reverse;
use std::ops::RangeInclusive;

pub fn page(
    connection: &mut Connection,
    principal: PrincipalId,
    agent: AgentId,
    filter: &ListFilter,
    most: u64,
) -> task::Unless<ListPage> {
    let query = Query { connection, principal, agent, filter };
    let (runs, total) = query.runs()?;
    let mut found = query.found(&runs)?;
    let mut more = found.len() > filter.limit;
    found.truncate(filter.limit);
    let mut records = Vec::with_capacity(found.len());
    let (mut sizes, mut bytes) = (Vec::with_capacity(found.len()), 0);
    for stored in found {
        if bytes as u64 + stored.size() > most {
            return Ok(None);
        }
        let view = View { until: u64::MAX, history: filter.history };
        let (record, size) = task::fill_shown(connection, stored, filter.with_artifacts, view)?;
        if !filter.has_room(bytes, size) {
            more = true;
            break;
        }
        bytes += size;
        records.push(record);
        sizes.push(size);
    }
    Ok(Some(ListPage { records, sizes, total, more }))
}

/// From the counters, so that the cost does not grow with the tasks. All but the ended states and Messages are open.
pub fn open(connection: &mut Connection) -> Result<Vec<(PrincipalId, usize)>, Fault> {
    let sql = "SELECT principal, sum(n) FROM counters WHERE state NOT IN (3, 4, 5, 7, 9) \
               GROUP BY principal HAVING sum(n) > 0";
    let mut statement = connection.prepare_cached(sql).map_err(fault("counting open tasks"))?;
    let rows = statement.query_map([], |row| Ok((PrincipalId(row.get(0)?), row.get::<_, u32>(1)? as usize)));
    rows.and_then(Iterator::collect).map_err(fault("counting open tasks"))
}

pub fn open_with(connection: &mut Connection, agent: AgentId) -> Result<usize, Fault> {
    let sql = "SELECT coalesce(sum(n), 0) FROM counters WHERE agent = ?1 AND state NOT IN (3, 4, 5, 7, 9)";
    let mut statement = connection.prepare_cached(sql).map_err(fault("counting open tasks"))?;
    let count = statement.query_row([agent.0], |row| row.get::<_, u32>(0));
    count.map(|count| count as usize).map_err(fault("counting open tasks"))
}

/// Counters stay when what they counted is removed.
pub fn had_tasks(connection: &mut Connection, agent: AgentId) -> Result<bool, Fault> {
    let sql = "SELECT EXISTS (SELECT 1 FROM counters WHERE agent = ?1)";
    let mut statement = connection.prepare_cached(sql).map_err(fault("looking for tasks"))?;
    statement.query_row([agent.0], |row| row.get(0)).map_err(fault("looking for tasks"))
}

pub fn agents(connection: &mut Connection, principal: PrincipalId) -> Result<Vec<AgentId>, Fault> {
    let sql =
        "SELECT DISTINCT agent FROM counters WHERE principal = ?1 AND n > 0 AND state BETWEEN 1 AND 8 ORDER BY agent";
    let mut statement = connection.prepare_cached(sql).map_err(fault("listing agents"))?;
    let rows = statement.query_map([principal.0], |row| row.get(0).map(AgentId));
    rows.and_then(Iterator::collect).map_err(fault("listing agents"))
}

pub fn callers(connection: &mut Connection, agent: AgentId) -> Result<Vec<PrincipalId>, Fault> {
    let sql = "SELECT DISTINCT principal FROM counters WHERE agent = ?1 AND n > 0 AND state BETWEEN 1 AND 8 \
               ORDER BY principal";
    let mut statement = connection.prepare_cached(sql).map_err(fault("listing callers"))?;
    let rows = statement.query_map([agent.0], |row| row.get(0).map(PrincipalId));
    rows.and_then(Iterator::collect).map_err(fault("listing callers"))
}

struct Query<'a> {
    connection: &'a Connection,
    principal: PrincipalId,
    agent: AgentId,
    filter: &'a ListFilter,
}

/// A stretch of an index to read: one state, or all of them where a context is small enough to sort.
type Run = RangeInclusive<u8>;

impl Query<'_> {
    /// What to read, and how many tasks that is. Kept counters tell at once, and which states are worth a look; a
    /// context or a time must be counted.
    fn runs(&self) -> Result<(Vec<Run>, u64), Fault> {
        let (runs, total) = if self.filter.context.is_some() {
            let run = self.filter.state.map_or(1..=8, |state| state as u8..=state as u8);
            let total = self.count(&run)?;
            (vec![run], total)
        } else {
            let counters = self.counters()?;
            let runs: Vec<Run> = counters.iter().map(|(state, _)| *state..=*state).collect();
            let total = match self.filter.status_since {
                Some(_) => runs.iter().map(|run| self.count(run)).sum::<Result<i64, Fault>>()?,
                None => counters.iter().map(|(_, tasks)| tasks).sum(),
            };
            (runs, total)
        };
        Ok((runs, total.max(0) as u64))
    }

    /// The states there are tasks in, of those that are asked for.
    fn counters(&self) -> Result<Vec<(u8, i64)>, Fault> {
        let sql = "SELECT state, n FROM counters \
                   WHERE principal = ?1 AND agent = ?2 AND state BETWEEN ?3 AND ?4 AND n > 0";
        let (first, last) = self.filter.state.map_or((1, 8), |state| (state as u8, state as u8));
        let mut statement = self.connection.prepare_cached(sql).map_err(fault("counting tasks"))?;
        let values = (self.principal.0, self.agent.0, first, last);
        let rows = statement.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)));
        rows.and_then(Iterator::collect).map_err(fault("counting tasks"))
    }

    fn count(&self, run: &Run) -> Result<i64, Fault> {
        let (condition, values) = self.condition(run, false);
        let sql = format!("SELECT count(*) FROM tasks {condition}");
        let mut statement = self.connection.prepare_cached(&sql).map_err(fault("counting tasks"))?;
        statement.query_row(params_from_iter(values), |row| row.get(0)).map_err(fault("counting tasks"))
    }

    /// One more than the page holds, so that the caller knows whether there is more.
    fn found(&self, runs: &[Run]) -> Result<Vec<Stored>, Fault> {
        let mut found: Vec<Stored> = Vec::new();
        for run in runs {
            let (condition, values) = self.condition(run, true);
            let sql = format!(
                "SELECT {COLUMNS} FROM tasks {condition} ORDER BY status_at DESC, id DESC LIMIT {}",
                self.filter.limit + 1
            );
            let mut statement = self.connection.prepare_cached(&sql).map_err(fault("listing tasks"))?;
            let rows = statement.query_map(params_from_iter(values), stored_of).map_err(fault("listing tasks"))?;
            for stored in rows {
                found.push(stored.map_err(fault("listing tasks"))?);
            }
        }
        found.sort_by_key(|stored| Reverse((stored.head.status_at, stored.head.id)));
        found.truncate(self.filter.limit + 1);
        Ok(found)
    }

    fn condition(&self, run: &Run, paged: bool) -> (String, Vec<Value>) {
        let mut values: Vec<Value> = vec![self.principal.0.into(), self.agent.0.into(), i64::from(*run.start()).into()];
        let mut sql = String::from("WHERE principal = ? AND agent = ? AND state ");
        if run.start() == run.end() {
            sql.push_str("= ? AND state BETWEEN 1 AND 8");
        } else {
            sql.push_str("BETWEEN ? AND ?");
            values.push(i64::from(*run.end()).into());
        }
        if let Some(context) = &self.filter.context {
            sql.push_str(" AND context = ?");
            values.push(context.clone().into());
        }
        if let Some(since) = self.filter.status_since {
            sql.push_str(" AND status_at >= ?");
            values.push(since.0.into());
        }
        if let Some((status_at, id)) = self.filter.after.filter(|_| paged) {
            sql.push_str(" AND (status_at, id) < (?, ?)");
            values.push(status_at.0.into());
            values.push(Value::Blob(id.bytes().to_vec()));
        }
        let index = if self.filter.context.is_some() { "tasks_by_context" } else { "tasks_by_status" };
        (format!("INDEXED BY {index} {sql}"), values)
    }
}
