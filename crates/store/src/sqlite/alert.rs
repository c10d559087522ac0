//! Alerts that people have yet to be told, as rows.

use super::{Sqlite, fault};
use flotilla_core::error::Fault;
use flotilla_core::ids::TaskId;
use flotilla_core::ports::{AlertStore, Later, MOST_OWED, Owed};
use flotilla_protocol::time::Millis;
use rusqlite::{Connection, params};

fn owe(connection: &Connection, owed: &Owed) -> Result<(), Fault> {
    let sql = "INSERT OR REPLACE INTO alerts (id, at, task, body) VALUES (?1, ?2, ?3, ?4)";
    let Owed { id, at, task, body } = owed;
    let written = connection.execute(sql, params![id.to_string(), at.0, task.to_string(), body]);
    written.map_err(fault("keeping an alert"))?;
    let sql = "DELETE FROM alerts WHERE id IN (SELECT id FROM alerts ORDER BY id DESC LIMIT -1 OFFSET ?1)";
    let bounded = connection.execute(sql, [i64::try_from(MOST_OWED).unwrap_or(i64::MAX)]);
    bounded.map(|_| ()).map_err(fault("bounding alerts"))
}

fn all(connection: &Connection) -> Result<Vec<Owed>, Fault> {
    let sql = "SELECT id, at, task, body FROM alerts ORDER BY id";
    let mut statement = connection.prepare(sql).map_err(fault("listing alerts"))?;
    let rows = statement.query_map([], |row| {
        let (id, task): (String, String) = (row.get(0)?, row.get(2)?);
        let (at, body) = (Millis(row.get(1)?), row.get(3)?);
        Ok(TaskId::parse(&id).zip(TaskId::parse(&task)).map(|(id, task)| Owed { id, at, task, body }))
    });
    let rows: rusqlite::Result<Vec<Option<Owed>>> = rows.and_then(Iterator::collect);
    rows.map(|rows| rows.into_iter().flatten().collect()).map_err(fault("listing alerts"))
}

fn forget(connection: &Connection, id: TaskId) -> Result<(), Fault> {
    let forgotten = connection.execute("DELETE FROM alerts WHERE id = ?1", [id.to_string()]);
    forgotten.map(|_| ()).map_err(fault("forgetting an alert"))
}

impl AlertStore for Sqlite {
    fn owe(&self, owed: Owed) -> Later<()> {
        self.write(move |connection| owe(connection, &owed))
    }
    fn owed(&self) -> Later<Vec<Owed>> {
        self.read(|connection| all(connection))
    }
    fn forget_owed(&self, id: TaskId) -> Later<()> {
        self.write(move |connection| forget(connection, id))
    }
}
