//! A task's changes as rows: appended in the order of all commits, each linked to the one before it.
//!
//! Rows in one growing order cost one page at the end of one tree, whichever task they belong to. An index by task
//! would cost more than the rows themselves; following the links back does instead.

use super::fault;
use flotilla_core::error::Fault;
use flotilla_core::ids::TaskId;
use flotilla_core::log;
use flotilla_core::task::Head;
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::time::Millis;
use rusqlite::{Connection, OptionalExtension, params};
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

/// A first change has none before it. A later one is appended only to a task at the version its decision saw.
const FIRST: &str = "INSERT INTO changes (before, seq, last_seq, peer_seq, last_peer_seq, at, artifacts_only, events) \
                     VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const LATER: &str = "INSERT INTO changes (before, seq, last_seq, peer_seq, last_peer_seq, at, artifacts_only, events) \
                     SELECT last_change, ?1, ?2, ?3, ?4, ?5, ?6, ?7 FROM tasks WHERE id = ?8 AND version = ?9";

/// Appends a change and returns the number of its row; none if the task is at another version.
pub fn append(connection: &Connection, head: &Head, change: &Change, body: &[u8]) -> Result<Option<i64>, Fault> {
    let sql = if head.version == 1 { FIRST } else { LATER };
    let mut statement = connection.prepare_cached(sql).map_err(fault("appending to a log"))?;
    let text = std::str::from_utf8(body).map_err(|_| Fault::new("events that are not text"))?;
    let artifacts_only = change.events.iter().all(|e| matches!(e, Event::Produced { .. } | Event::Noted { .. }));
    let (seq, last_seq) = (change.first_seq as i64, change.last_seq() as i64);
    let (peer_seq, last_peer_seq) = (change.first_peer_seq as i64, change.last_peer_seq() as i64);
    let at = change.at.0;
    let appended = if head.version == 1 {
        statement.execute(params![seq, last_seq, peer_seq, last_peer_seq, at, artifacts_only, text])
    } else {
        let seen = head.version as i64 - 1;
        let id = head.id.bytes();
        statement.execute(params![seq, last_seq, peer_seq, last_peer_seq, at, artifacts_only, text, id, seen])
    };
    let rows = appended.map_err(fault("appending to a log"))?;
    Ok((rows == 1).then(|| connection.last_insert_rowid()))
}

/// Removes a change that turned out not to belong anywhere.
pub fn take_back(connection: &Connection, change: i64) -> Result<(), Fault> {
    let removed = connection.execute("DELETE FROM changes WHERE id = ?1", [change]);
    removed.map(|_| ()).map_err(fault("taking back a change"))
}

/// The links of a task's log from the newest back, as long as `wanted`; returned oldest first.
pub fn links(connection: &Connection, task: TaskId, wanted: impl Fn(&Link) -> bool) -> Result<Vec<Link>, Fault> {
    let mut next: Option<i64> = connection
        .prepare_cached("SELECT last_change FROM tasks WHERE id = ?1")
        .and_then(|mut statement| statement.query_row([task.bytes()], |row| row.get(0)).optional())
        .map_err(fault("reading a log"))?
        .flatten();
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
        let (seq, peer_seq, at, events): (i64, i64, i64, String) = statement
            .query_row([link.id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .map_err(fault("reading a log"))?;
        size += events.len();
        changes.push(Arc::new(Change {
            first_seq: seq as u64,
            first_peer_seq: peer_seq as u64,
            at: Millis(at),
            events: log::decode(events.as_bytes())?,
        }));
        if size >= most {
            break;
        }
    }
    Ok((changes, size))
}

/// Removes a task's changes.
pub fn remove(connection: &Connection, task: TaskId) -> Result<(), Fault> {
    for link in links(connection, task, |_| true)? {
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
