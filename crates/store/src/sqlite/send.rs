//! Sends that were made before: rows appended in order, found through a small index in the writer's memory.
//!
//! Message ids are random, so an index on disk would touch a page of its own for every send. In memory an entry takes
//! about twenty bytes, and rows are read once, when the first send of a process arrives.

use super::fault;
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

#[derive(Default)]
pub struct Sends {
    loaded: bool,
    rows: HashMap<u64, i64, BuildHasherDefault<Itself>>,
    /// What the transaction under way has added: taken back if it fails.
    fresh: Vec<u64>,
}

fn print(key: &[u8]) -> u64 {
    key.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

impl Sends {
    fn load(&mut self, connection: &Connection) -> Result<(), Fault> {
        if self.loaded {
            return Ok(());
        }
        let mut statement = connection.prepare("SELECT id, key FROM sends").map_err(fault("reading sends"))?;
        let rows = statement
            .query_map([], |row| Ok((row.get::<_, i64>(0)?, print(row.get_ref(1)?.as_blob()?))))
            .map_err(fault("reading sends"))?;
        for row in rows {
            let (id, print) = row.map_err(fault("reading sends"))?;
            self.rows.insert(print, id);
        }
        self.loaded = true;
        Ok(())
    }

    pub fn find(&mut self, connection: &Connection, key: &Digest) -> Result<Option<Sent>, Fault> {
        self.load(connection)?;
        let Some(id) = self.rows.get(&print(key)) else { return Ok(None) };
        let mut statement = connection
            .prepare_cached("SELECT task, hash FROM sends WHERE id = ?1 AND key = ?2")
            .map_err(fault("looking for a send"))?;
        statement
            .query_row(params![id, key], |row| Ok(Sent { task: TaskId::from_bytes(row.get(0)?), hash: row.get(1)? }))
            .optional()
            .map_err(fault("looking for a send"))
    }

    /// Remembers a send, or says that it was made before.
    pub fn add(
        &mut self,
        connection: &Connection,
        dedupe: &Dedupe,
        task: TaskId,
        at: Millis,
    ) -> Result<Option<Sent>, Fault> {
        if let Some(sent) = self.find(connection, &dedupe.key)? {
            return Ok(Some(sent));
        }
        let mut statement = connection
            .prepare_cached("INSERT INTO sends (key, hash, task, at) VALUES (?1, ?2, ?3, ?4)")
            .map_err(fault("remembering a send"))?;
        statement.execute(params![dedupe.key, dedupe.hash, task.bytes(), at.0]).map_err(fault("remembering a send"))?;
        self.rows.insert(print(&dedupe.key), connection.last_insert_rowid());
        self.fresh.push(print(&dedupe.key));
        Ok(None)
    }

    /// The message did not get in, so it was not sent.
    pub fn take_back(&mut self, connection: &Connection, key: &Digest) -> Result<(), Fault> {
        if let Some(id) = self.rows.remove(&print(key)) {
            connection.execute("DELETE FROM sends WHERE id = ?1", [id]).map_err(fault("taking back a send"))?;
        }
        Ok(())
    }

    /// What memory holds may not be what the table holds: read it again when it is needed.
    pub fn read_again(&mut self) {
        *self = Self::default();
    }

    pub fn committed(&mut self) {
        self.fresh.clear();
    }

    pub fn rolled_back(&mut self) {
        for print in self.fresh.drain(..) {
            self.rows.remove(&print);
        }
    }

    /// Forgets the oldest, at most `step` at a time. Sends are numbered in the order they came.
    pub fn sweep(&mut self, connection: &Connection, retention: &Retention, step: i64) -> Result<u64, Fault> {
        let mut removed = 0;
        if let Some(Millis(before)) = retention.dedupe_before {
            let sql = "DELETE FROM sends WHERE id IN (SELECT id FROM sends ORDER BY id LIMIT ?1) AND at < ?2 \
                       RETURNING key";
            removed += self.remove(connection, sql, params![step, before])?;
        }
        if let Some(max) = retention.dedupe_max {
            let span = "SELECT coalesce(max(id) - min(id) + 1, 0) FROM sends";
            let kept: i64 = connection.query_row(span, [], |row| row.get(0)).map_err(fault("forgetting sends"))?;
            let excess = kept - i64::try_from(max).unwrap_or(i64::MAX);
            if excess > 0 {
                let sql = "DELETE FROM sends WHERE id IN (SELECT id FROM sends ORDER BY id LIMIT ?1) RETURNING key";
                removed += self.remove(connection, sql, [excess.min(step)])?;
            }
        }
        Ok(removed)
    }

    fn remove(&mut self, connection: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<u64, Fault> {
        let mut statement = connection.prepare_cached(sql).map_err(fault("forgetting sends"))?;
        let keys = statement
            .query_map(values, |row| Ok(print(row.get_ref(0)?.as_blob()?)))
            .map_err(fault("forgetting sends"))?;
        let mut removed = 0;
        for key in keys {
            self.rows.remove(&key.map_err(fault("forgetting sends"))?);
            removed += 1;
        }
        Ok(removed)
    }
}
