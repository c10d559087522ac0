//! What workers last announced, and what was seen of them, as rows.

use super::fault;
use flotilla_core::error::Fault;
use flotilla_core::fleet::Kept;
use flotilla_core::ids::AgentId;
use flotilla_protocol::time::Millis;
use rusqlite::{Connection, Row, params};

fn kept(row: &Row<'_>) -> rusqlite::Result<Kept> {
    let (agent, at) = (AgentId(row.get(0)?), Millis(row.get(2)?));
    Ok(Kept { agent, announce: row.get(1)?, at, draining: row.get(3)?, standing: row.get(4)? })
}

pub fn all(connection: &Connection) -> Result<Vec<Kept>, Fault> {
    let sql = "SELECT agent, announce, at, draining, standing FROM workers ORDER BY agent";
    let mut statement = connection.prepare(sql).map_err(fault("listing workers"))?;
    let rows = statement.query_map([], kept).and_then(Iterator::collect);
    rows.map_err(fault("listing workers"))
}

pub fn keep(connection: &Connection, kept: &Kept) -> Result<(), Fault> {
    let sql = "INSERT OR REPLACE INTO workers (agent, announce, at, draining, standing) VALUES (?1, ?2, ?3, ?4, ?5)";
    let Kept { agent, announce, at, draining, standing } = kept;
    let written = connection.execute(sql, params![agent.0, announce, at.0, draining, standing]);
    written.map(|_| ()).map_err(fault("keeping a worker"))
}
