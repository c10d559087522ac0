//! One transaction that puts commits into the tables: each change once, each task's head only as it is in the end.

use super::journal::entry::{Entry, run_code};
use super::journal::{self, Batch};
use super::rows::{self, Values};
use super::{approval, chain, fault, send, usage};
use flotilla_core::error::Fault;
use flotilla_core::ids::TaskId;
use flotilla_core::log::Epoch;
use flotilla_core::map::IdMap;
use flotilla_core::task::Head;
use flotilla_protocol::lineage::Origin;
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use std::path::Path;

/// Batches of a journal that go into the tables in one transaction.
const BATCHES: usize = 256;

/// Puts entries into the tables that end with the batch `through`. All or nothing.
pub fn apply(connection: &Connection, entries: &[Entry], through: u64) -> Result<(), Fault> {
    let run = |sql| connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
    // One that could not be rolled back would be in the way of all others.
    if !connection.is_autocommit() {
        run("ROLLBACK").map_err(fault("rolling back"))?;
    }
    run("BEGIN IMMEDIATE").map_err(fault("beginning a transaction"))?;
    let written = write_all(connection, entries, through).and_then(|()| {
        run("COMMIT").map_err(fault("committing"))?;
        Ok(())
    });
    // A transaction that failed may have ended itself already.
    if written.is_err() && !connection.is_autocommit() {
        run("ROLLBACK").map_err(fault("rolling back"))?;
    }
    written
}

/// Puts what the journal beside `store` holds beyond the tables into them, and returns the last batch.
pub fn catch_up(connection: &Connection, store: &Path, epoch: &Epoch) -> Result<u64, Fault> {
    let batches = journal::behind(store, epoch, applied(connection)?)?;
    add(connection, &batches)
}

/// Puts those of the batches into the tables that they do not hold yet, and returns the last.
pub fn add(connection: &Connection, batches: &[Batch]) -> Result<u64, Fault> {
    let mut last = applied(connection)?;
    let missing = batches.partition_point(|batch| batch.number <= last);
    for batches in batches[missing..].chunks(BATCHES) {
        let mut entries = Vec::new();
        for batch in batches {
            entries.append(&mut batch.entries()?);
            last = batch.number;
        }
        apply(connection, &entries, last)?;
    }
    Ok(last)
}

/// The last batch that the tables hold.
pub fn applied(connection: &Connection) -> Result<u64, Fault> {
    let known: Option<String> = connection
        .query_row("SELECT value FROM meta WHERE name = 'applied'", [], |row| row.get(0))
        .optional()
        .map_err(fault("reading how far the tables are"))?;
    let number = known.map_or(Ok(0), |text| text.parse());
    number.map_err(|_| Fault::new("the store does not say how far its tables are"))
}

fn write_all(connection: &Connection, entries: &[Entry], through: u64) -> Result<(), Fault> {
    let mut changes = Vec::with_capacity(entries.len());
    let mut sends = Vec::new();
    let mut counts = Counts::default();
    let mut tasks: Vec<Latest<'_>> = Vec::new();
    let mut places: IdMap<TaskId, usize> = IdMap::default();
    for (row, entry) in (chain::next(connection)?..).zip(entries) {
        let id = entry.head.id;
        let place = *match places.entry(id) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(unknown) => {
                let is_new = entry.head.version == 1;
                let last_change = if is_new { None } else { chain::last(connection, id)? };
                tasks.push(Latest { is_new, last_change, origin: entry.head.origin.as_deref(), entry, bytes: 0 });
                unknown.insert(tasks.len() - 1)
            }
        };
        let latest = &mut tasks[place];
        changes.push(chain::Row { id: row, before: latest.last_change.replace(row), entry });
        latest.entry = entry;
        latest.bytes += entry.events.len() as i64;
        if let Some(send) = &entry.send {
            sends.push((send, id, entry.span.at));
        }
        count(&mut counts, entry);
        derive(connection, entry)?;
    }
    chain::append(connection, &changes)?;
    send::append(connection, &sends)?;
    write_heads(connection, &tasks)?;
    add_counts(connection, &counts)?;
    connection
        .prepare_cached("INSERT OR REPLACE INTO meta (name, value) VALUES ('applied', ?1)")
        .and_then(|mut statement| statement.execute([through.to_string()]))
        .map(|_| ())
        .map_err(fault("noting how far the tables are"))
}

/// What the log tells beside the task itself, and is kept in the same transaction: so each entry is counted once.
fn derive(connection: &Connection, entry: &Entry) -> Result<(), Fault> {
    let (used, asked) = (usage::may_tell(&entry.events), approval::may_tell(&entry.events));
    let given = usage::may_give(&entry.events);
    if !used && !asked && !given {
        return Ok(());
    }
    let events = flotilla_core::log::decode(entry.events.as_bytes())?;
    if given {
        usage::give(connection, entry, &events)?;
    }
    if used {
        usage::add(connection, entry, &events)?;
    }
    if asked {
        approval::add(connection, entry, &events)?;
    }
    Ok(())
}

/// Open approvals as a task's row holds them; nothing where there are none, which is nearly always.
fn open_approvals(head: &Head) -> Option<Vec<u8>> {
    let ids = || head.open_approvals.iter().flat_map(|id| *id.bytes()).collect();
    (!head.open_approvals.is_empty()).then(ids)
}

/// A task as it is after all the entries.
struct Latest<'a> {
    is_new: bool,
    last_change: Option<i64>,
    /// Only a task's first entry tells where it comes from.
    origin: Option<&'a Origin>,
    entry: &'a Entry,
    /// What all the entries hold.
    bytes: i64,
}

fn write_heads(connection: &Connection, tasks: &[Latest<'_>]) -> Result<(), Fault> {
    let (new, known): (Vec<_>, Vec<_>) = tasks.iter().partition(|task| task.is_new);
    add_heads(connection, &new)?;
    let update = "UPDATE tasks SET state = ?2, status_at = ?3, version = ?4, seq = ?5, peer_seq = ?6, run = ?7, \
                  run_state = ?8, turn = ?9, waiting = ?10, last_change = ?11, deadline = ?12, open_approvals = ?13, \
                  bytes = bytes + ?14 \
                  WHERE id = ?1";
    let mut update = connection.prepare_cached(update).map_err(fault("changing a task"))?;
    known.into_iter().try_for_each(|task| change_head(&mut update, task))
}

fn add_heads(connection: &Connection, tasks: &[&Latest<'_>]) -> Result<(), Fault> {
    let columns = "id, principal, agent, owner, context, state, status_at, created_at, version, seq, peer_seq, run, \
                   run_state, turn, waiting, last_change, deadline, ancestry, parent_task_id, provenance, \
                   open_approvals, bytes";
    rows::insert(connection, "tasks", columns, tasks, |task, values| put_head(task, values))
        .map_err(fault("adding a task"))
}

fn put_head(
    Latest { last_change, entry, origin, bytes, .. }: &Latest<'_>,
    values: &mut Values<'_, '_>,
) -> rusqlite::Result<()> {
    let head = &entry.head;
    let parent = origin.and_then(Origin::parent).and_then(|parent| TaskId::parse(&parent.task));
    let ancestry = origin.map(serde_json::to_string).transpose();
    let ancestry = ancestry.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    values.put(head.id.bytes())?;
    values.put(head.principal.0)?;
    values.put(head.agent.0)?;
    values.put(head.owner.0)?;
    values.put(&*head.context)?;
    values.put(head.state_code())?;
    values.put(head.status_at.0)?;
    values.put(head.created_at.0)?;
    values.put(head.version as i64)?;
    values.put(head.seq as i64)?;
    values.put(head.peer_seq as i64)?;
    values.put(head.run)?;
    values.put(run_code(head.run_state))?;
    values.put(head.turn)?;
    values.put(head.waiting)?;
    values.put(last_change)?;
    values.put(head.deadline.map(|deadline| deadline.0))?;
    values.put(ancestry)?;
    values.put(parent.as_ref().map(TaskId::bytes))?;
    values.put(origin.map(|origin| origin.provenance.name()))?;
    values.put(open_approvals(head))?;
    values.put(bytes)
}

fn change_head(
    statement: &mut CachedStatement<'_>,
    Latest { last_change, entry, bytes, .. }: &Latest<'_>,
) -> Result<(), Fault> {
    let head = &entry.head;
    let changed = statement.execute(params![
        head.id.bytes(),
        head.state_code(),
        head.status_at.0,
        head.version as i64,
        head.seq as i64,
        head.peer_seq as i64,
        head.run,
        run_code(head.run_state),
        head.turn,
        head.waiting,
        last_change,
        head.deadline.map(|deadline| deadline.0),
        open_approvals(head),
        bytes,
    ]);
    match changed.map_err(fault("changing a task"))? {
        1 => Ok(()),
        _ => Err(Fault::new(format!("the task {} is not in the tables", head.id))),
    }
}

/// Tasks by principal, agent and state.
pub type Counts = IdMap<(i64, i64, u8), i64>;

fn count(counts: &mut Counts, entry: &Entry) {
    let head = &entry.head;
    let mut add = |state, by| *counts.entry((head.principal.0, head.agent.0, state)).or_default() += by;
    if let Some(before) = entry.state_before {
        add(before, -1);
    }
    add(head.state_code(), 1);
}

/// The counters move in the same transaction as the tasks they count.
pub fn add_counts(connection: &Connection, counts: &Counts) -> Result<(), Fault> {
    let mut statement = connection
        .prepare_cached(
            "INSERT INTO counters (principal, agent, state, n) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET n = n + excluded.n",
        )
        .map_err(fault("counting tasks"))?;
    for (&(principal, agent, state), &by) in counts.iter().filter(|(_, by)| **by != 0) {
        statement.execute(params![principal, agent, state, by]).map_err(fault("counting tasks"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Entry, apply};
    use crate::sqlite::journal::entry::Span;
    use crate::sqlite::schema;
    use crate::sqlite::send::Send;
    use flotilla_core::ids::{AgentId, PrincipalId, TaskId};
    use flotilla_core::ports::Dedupe;
    use flotilla_core::task::Head;
    use flotilla_protocol::time::Millis;
    use rusqlite::Connection;

    fn first(row: i64) -> Entry {
        let mut head = Head::new(TaskId::fresh(), PrincipalId(1), AgentId(1), PrincipalId(1), "a context".into());
        head.version = 1;
        let span = Span { seq: 1, last_seq: 1, peer_seq: 1, last_peer_seq: 1, at: Millis(1), artifacts_only: false };
        let dedupe = Dedupe { key: [row as u8; 32], hash: [0; 32] };
        Entry { head, state_before: None, span, events: "[]".into(), send: Some(Send { dedupe, row }) }
    }

    #[test]
    fn of_entries_with_a_refused_one_among_them_none_goes_in() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let entries: Vec<Entry> = (1..=50).map(first).collect();
        let in_the_way = "INSERT INTO sends (id, key, hash, task, at) VALUES (25, x'00', x'00', x'00', 0)";
        connection.execute_batch(in_the_way).unwrap();
        let count = |table| {
            let sql = format!("SELECT count(*) FROM {table}");
            connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
        };
        assert!(apply(&connection, &entries, 7).is_err());
        assert!(connection.is_autocommit());
        assert_eq!(["changes", "sends", "tasks"].map(count), [0, 1, 0]);
        connection.execute_batch("DELETE FROM sends").unwrap();
        apply(&connection, &entries, 7).unwrap();
        assert_eq!(["changes", "sends", "tasks"].map(count), [50, 50, 50]);
    }
}
