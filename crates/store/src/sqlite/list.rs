//! Pages of tasks, newest status first. One index serves every filter: each state is a sorted run of its own.

use super::{fault, task};
use flotilla_core::error::Fault;
use flotilla_core::ids::{AgentId, PrincipalId};
use flotilla_core::ports::{ListFilter, ListPage};
use flotilla_core::task::Head;
use flotilla_protocol::a2a::model::TaskState;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use std::cmp::Reverse;
use std::ops::RangeInclusive;

pub fn page(
    connection: &mut Connection,
    principal: PrincipalId,
    agent: AgentId,
    filter: &ListFilter,
) -> Result<ListPage, Fault> {
    let transaction = connection.transaction().map_err(fault("listing tasks"))?;
    let query = Query { connection: &transaction, principal, agent, filter };
    let runs = query.runs();
    let total = query.total(&runs)?;
    let mut heads = query.heads(&runs)?;
    let mut more = heads.len() > filter.limit;
    heads.truncate(filter.limit);
    let mut records = Vec::with_capacity(heads.len());
    let (mut sizes, mut bytes) = (Vec::with_capacity(heads.len()), 0);
    for head in heads {
        let (record, size) = task::fill(&transaction, head, filter.with_artifacts)?;
        if !filter.has_room(bytes, size) {
            more = true;
            break;
        }
        bytes += size;
        records.push(record);
        sizes.push(size);
    }
    Ok(ListPage { records, sizes, total, more })
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
    fn runs(&self) -> Vec<Run> {
        let all = TaskState::ALL.iter().skip(1).map(|state| *state as u8);
        match self.filter.state {
            Some(state) => vec![state as u8..=state as u8],
            None if self.filter.context.is_some() => vec![1..=8],
            None => all.map(|state| state..=state).collect(),
        }
    }

    /// Kept counters answer at once; a context or a time must be counted.
    fn total(&self, runs: &[Run]) -> Result<u64, Fault> {
        let mut total = 0i64;
        for run in runs {
            total += if self.filter.context.is_none() && self.filter.status_since.is_none() {
                self.counter(*run.start())?
            } else {
                self.count(run)?
            };
        }
        Ok(total.max(0) as u64)
    }

    fn counter(&self, state: u8) -> Result<i64, Fault> {
        let sql = "SELECT coalesce(sum(n), 0) FROM counters WHERE principal = ?1 AND agent = ?2 AND state = ?3";
        let mut statement = self.connection.prepare_cached(sql).map_err(fault("counting tasks"))?;
        statement.query_row((self.principal.0, self.agent.0, state), |row| row.get(0)).map_err(fault("counting tasks"))
    }

    fn count(&self, run: &Run) -> Result<i64, Fault> {
        let (condition, values) = self.condition(run, false);
        let sql = format!("SELECT count(*) FROM tasks {condition}");
        let mut statement = self.connection.prepare_cached(&sql).map_err(fault("counting tasks"))?;
        statement.query_row(params_from_iter(values), |row| row.get(0)).map_err(fault("counting tasks"))
    }

    /// One more than the page holds, so that the caller knows whether there is more.
    fn heads(&self, runs: &[Run]) -> Result<Vec<Head>, Fault> {
        let mut heads: Vec<Head> = Vec::new();
        for run in runs {
            let (condition, values) = self.condition(run, true);
            let sql = format!(
                "SELECT {} FROM tasks {condition} ORDER BY status_at DESC, id DESC LIMIT {}",
                task::HEAD,
                self.filter.limit + 1
            );
            let mut statement = self.connection.prepare_cached(&sql).map_err(fault("listing tasks"))?;
            let rows = statement.query_map(params_from_iter(values), task::head_of).map_err(fault("listing tasks"))?;
            for head in rows {
                heads.push(head.map_err(fault("listing tasks"))?);
            }
        }
        heads.sort_by_key(|head| Reverse((head.status_at, head.id)));
        heads.truncate(self.filter.limit + 1);
        Ok(heads)
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
