//! A task's changes as rows: appended in the order of all commits, each linked to the one before it.
//!
//! Rows in one growing order cost one page at the end of one tree, whichever task they belong to. An index by task
//! would cost more than the rows themselves; following the links back does instead.

use super::journal::entry::Entry;
use super::{fault, rows};
use flotilla_core::error::Fault;
use flotilla_core::ids::TaskId;
use flotilla_core::log;
use flotilla_protocol::event::Change;
use flotilla_protocol::time::Millis;
use rusqlite::{Connection, OptionalExtension};
use std::sync::Arc;

/// What is known of a change without reading its events.
pub struct Link {
    id: i64,
    before: Option<i64>,
    pub last_seq: u64,
    pub last_peer_seq: u64,
    /// Whether it holds an event a peer may see.
    pub visible: bool,
    pub artifacts_only: bool,
}

/// A change on its way into the table.
pub struct Row<'a> {
    pub id: i64,
    /// The change of the same task before it.
    pub before: Option<i64>,
    pub entry: &'a Entry,
}

/// The number of the next row.
pub fn next(connection: &Connection) -> Result<i64, Fault> {
    connection
        .prepare_cached("SELECT coalesce(max(id), 0) + 1 FROM changes")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(fault("appending to a log"))
}

/// Appends changes.
pub fn append(connection: &Connection, rows: &[Row<'_>]) -> Result<(), Fault> {
    let columns = "id, before, seq, last_seq, peer_seq, last_peer_seq, at, artifacts_only, events";
    let appended = rows::insert(connection, "changes", columns, rows, |Row { id, before, entry }, values| {
        let span = &entry.span;
        values.put(id)?;
        values.put(before)?;
        values.put(span.seq as i64)?;
        values.put(span.last_seq as i64)?;
        values.put(span.peer_seq as i64)?;
        values.put(span.last_peer_seq as i64)?;
        values.put(span.at.0)?;
        values.put(span.artifacts_only)?;
        values.put(&entry.events)
    });
    appended.map_err(fault("appending to a log"))
}

/// The row of a task's newest change.
pub fn last(connection: &Connection, task: TaskId) -> Result<Option<i64>, Fault> {
    connection
        .prepare_cached("SELECT last_change FROM tasks WHERE id = ?1")
        .and_then(|mut statement| statement.query_row([task.bytes()], |row| row.get(0)).optional())
        .map(Option::flatten)
        .map_err(fault("reading a log"))
}

/// The links of a log from its newest change back, as long as `wanted`; returned oldest first.
pub fn links(
    connection: &Connection,
    mut next: Option<i64>,
    wanted: impl Fn(&Link) -> bool,
) -> Result<Vec<Link>, Fault> {
    let sql = "SELECT before, last_seq, peer_seq, last_peer_seq, artifacts_only FROM changes WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(fault("reading a log"))?;
    let mut links = Vec::new();
    while let Some(id) = next {
        let link = statement
            .query_row([id], |row| {
                let (first, last): (i64, i64) = (row.get(2)?, row.get(3)?);
                Ok(Link {
                    id,
                    before: row.get(0)?,
                    last_seq: row.get::<_, i64>(1)? as u64,
                    last_peer_seq: last as u64,
                    visible: last >= first,
                    artifacts_only: row.get(4)?,
                })
            })
            .map_err(fault("following a log"))?;
        if !wanted(&link) {
            break;
        }
        next = link.before;
        links.push(link);
    }
    links.reverse();
    Ok(links)
}

/// The changes behind links, and the size of their events; none beyond one that reaches `most`.
pub fn read<'a>(
    connection: &Connection,
    links: impl Iterator<Item = &'a Link>,
    most: usize,
) -> Result<(Vec<Arc<Change>>, usize), Fault> {
    let mut statement = connection
        .prepare_cached("SELECT seq, peer_seq, at, events FROM changes WHERE id = ?1")
        .map_err(fault("reading a log"))?;
    let (mut changes, mut size) = (Vec::new(), 0);
    for link in links {
        let found = statement.query_row([link.id], |row| Ok(change_of(row, 0)));
        let (change, length) = found.map_err(fault("reading a log"))??;
        changes.push(change);
        size += length;
        if size >= most {
            break;
        }
    }
    Ok((changes, size))
}

/// Hands over the changes behind links, one after the other, for as long as more are wanted; the size of their events.
pub fn each<'a>(
    connection: &Connection,
    links: impl Iterator<Item = &'a Link>,
    mut take: impl FnMut(Arc<Change>) -> bool,
) -> Result<usize, Fault> {
    let mut statement = connection
        .prepare_cached("SELECT seq, peer_seq, at, events FROM changes WHERE id = ?1")
        .map_err(fault("reading a log"))?;
    let mut size = 0;
    for link in links {
        let found = statement.query_row([link.id], |row| Ok(change_of(row, 0)));
        let (change, length) = found.map_err(fault("reading a log"))??;
        size += length;
        if !take(change) {
            break;
        }
    }
    Ok(size)
}

/// All changes after `from`, found from the newest back and returned oldest first, and the size of their events.
pub fn read_back(
    connection: &Connection,
    mut next: Option<i64>,
    from: u64,
) -> Result<(Vec<Arc<Change>>, usize), Fault> {
    let sql = "SELECT before, last_seq, seq, peer_seq, at, events FROM changes WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(fault("reading a log"))?;
    let (mut changes, mut size) = (Vec::new(), 0);
    while let Some(id) = next {
        let found = statement.query_row([id], |row| {
            let is_after = row.get::<_, i64>(1)? as u64 > from;
            Ok((is_after.then(|| change_of(row, 2)), row.get(0)?))
        });
        let (Some(found), before) = found.map_err(fault("following a log"))? else { break };
        let (change, length) = found?;
        changes.push(change);
        size += length;
        next = before;
    }
    changes.reverse();
    Ok((changes, size))
}

/// The change in the columns `seq, peer_seq, at, events` that begin at `first`, and the size of its events.
fn change_of(row: &rusqlite::Row<'_>, first: usize) -> Result<(Arc<Change>, usize), Fault> {
    let number = |column| row.get::<_, i64>(first + column).map_err(fault("reading a log"));
    let events = row.get_ref(first + 3).map_err(fault("reading a log"))?;
    let events = events.as_bytes().map_err(|error| Fault::new(format!("reading a log: {error}")))?;
    let change = Change {
        first_seq: number(0)? as u64,
        first_peer_seq: number(1)? as u64,
        at: Millis(number(2)?),
        events: log::decode(events)?,
    };
    Ok((Arc::new(change), events.len()))
}

/// Removes a task's changes.
pub fn remove(connection: &Connection, task: TaskId) -> Result<(), Fault> {
    for link in links(connection, last(connection, task)?, |_| true)? {
        connection
            .prepare_cached("DELETE FROM changes WHERE id = ?1")
            .and_then(|mut statement| statement.execute([link.id]))
            .map_err(fault("removing a log"))?;
    }
    connection
        .execute("UPDATE tasks SET last_change = NULL WHERE id = ?1", [task.bytes()])
        .map(|_| ())
        .map_err(fault("removing a log"))
}
