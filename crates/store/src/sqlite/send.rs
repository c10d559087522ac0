//! Sends that were made before: rows appended in order, found through a small index in the writer's memory.
//!
//! Message ids are random, so an index on disk would touch a page of its own for every send. In memory an entry takes
//! about twenty bytes, and rows are read once, when the store is opened.

use super::{fault, rows};
use flotilla_core::error::Fault;
use flotilla_core::ids::TaskId;
use flotilla_core::ports::{Dedupe, Digest, Retention, Sent};
use flotilla_protocol::time::Millis;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Keys are digests already: their first bytes are as good as any hash of them.
#[derive(Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// A send, and the row it is remembered in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Send {
    pub dedupe: Dedupe,
    pub row: i64,
}

/// Which rows hold which sends.
#[derive(Default)]
pub struct Sends {
    rows: HashMap<Print, i64, BuildHasherDefault<Itself>>,
    next: i64,
}

/// The first bytes of a key.
pub type Print = u64;

fn print(key: &[u8]) -> Print {
    key.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

impl Sends {
    pub fn load(connection: &Connection) -> Result<Self, Fault> {
        let mut sends = Self { next: 1, ..Self::default() };
        let mut statement = connection.prepare("SELECT id, key FROM sends").map_err(fault("reading sends"))?;
        let rows = statement
            .query_map([], |row| Ok((row.get::<_, i64>(0)?, print(row.get_ref(1)?.as_blob()?))))
            .map_err(fault("reading sends"))?;
        for row in rows {
            let (id, print) = row.map_err(fault("reading sends"))?;
            sends.rows.insert(print, id);
            sends.next = sends.next.max(id + 1);
        }
        Ok(sends)
    }

    /// The row that may hold this key: whether it does, the table says.
    pub fn row(&self, key: &Digest) -> Option<i64> {
        self.rows.get(&print(key)).copied()
    }

    /// Gives a key its row.
    pub fn add(&mut self, key: &Digest) -> i64 {
        let row = self.next;
        self.next += 1;
        self.rows.insert(print(key), row);
        row
    }

    /// The message did not get in, so it was not sent.
    pub fn take_back(&mut self, key: &Digest) {
        self.rows.remove(&print(key));
    }

    pub fn forget(&mut self, prints: &[Print]) {
        for print in prints {
            self.rows.remove(print);
        }
    }
}

pub fn find(connection: &Connection, row: i64, key: &Digest) -> Result<Option<Sent>, Fault> {
    let mut statement = connection
        .prepare_cached("SELECT task, hash FROM sends WHERE id = ?1 AND key = ?2")
        .map_err(fault("looking for a send"))?;
    statement
        .query_row(params![row, key], |row| Ok(Sent { task: TaskId::from_bytes(row.get(0)?), hash: row.get(1)? }))
        .optional()
        .map_err(fault("looking for a send"))
}

/// A send on its way into the table: with the task it is about, and when it was made.
pub type Row<'a> = (&'a Send, TaskId, Millis);

/// Writes sends into the table.
pub fn append(connection: &Connection, rows: &[Row<'_>]) -> Result<(), Fault> {
    let appended = rows::insert(connection, "sends", "id, key, hash, task, at", rows, |(send, task, at), values| {
        let Send { dedupe, row } = send;
        values.put(row)?;
        values.put(dedupe.key)?;
        values.put(dedupe.hash)?;
        values.put(task.bytes())?;
        values.put(at.0)
    });
    appended.map_err(fault("remembering a send"))
}

/// Forgets the oldest, at most `step` at a time, and says which. Sends are numbered in the order they came.
pub fn sweep(connection: &Connection, retention: &Retention, step: i64) -> Result<Vec<Print>, Fault> {
    let mut removed = Vec::new();
    if let Some(Millis(before)) = retention.dedupe_before {
        let sql = "DELETE FROM sends WHERE id IN (SELECT id FROM sends ORDER BY id LIMIT ?1) AND at < ?2 \
                   RETURNING key";
        removed.extend(remove(connection, sql, params![step, before])?);
    }
    if let Some(max) = retention.dedupe_max {
        let span = "SELECT coalesce(max(id) - min(id) + 1, 0) FROM sends";
        let kept: i64 = connection.query_row(span, [], |row| row.get(0)).map_err(fault("forgetting sends"))?;
        let excess = kept - i64::try_from(max).unwrap_or(i64::MAX);
        if excess > 0 {
            let sql = "DELETE FROM sends WHERE id IN (SELECT id FROM sends ORDER BY id LIMIT ?1) RETURNING key";
            removed.extend(remove(connection, sql, [excess.min(step)])?);
        }
    }
    Ok(removed)
}

fn remove(connection: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<Vec<Print>, Fault> {
    let mut statement = connection.prepare_cached(sql).map_err(fault("forgetting sends"))?;
    let keys = statement.query_map(values, |row| Ok(print(row.get_ref(0)?.as_blob()?)));
    keys.and_then(Iterator::collect).map_err(fault("forgetting sends"))
}
