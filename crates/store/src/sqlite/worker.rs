//! What workers last announced, as rows.

use super::fault;
use flotilla_core::error::Fault;
use flotilla_core::fleet::Kept;
use flotilla_core::ids::AgentId;
use flotilla_protocol::time::Millis;
use rusqlite::{Connection, Row, params};

fn kept(row: &Row<'_>) -> rusqlite::Result<Kept> {
    Ok(Kept { agent: AgentId(row.get(0)?), announce: row.get(1)?, at: Millis(row.get(2)?), draining: row.get(3)? })
}

pub fn all(connection: &Connection) -> Result<Vec<Kept>, Fault> {
    let sql = "SELECT agent, announce, at, draining FROM workers ORDER BY agent";
    let mut statement = connection.prepare(sql).map_err(fault("listing workers"))?;
    let rows = statement.query_map([], kept).and_then(Iterator::collect);
    rows.map_err(fault("listing workers"))
}

pub fn keep(connection: &Connection, kept: &Kept) -> Result<(), Fault> {
    let sql = "INSERT OR REPLACE INTO workers (agent, announce, at, draining) VALUES (?1, ?2, ?3, ?4)";
    let written = connection.execute(sql, params![kept.agent.0, kept.announce, kept.at.0, kept.draining]);
    written.map(|_| ()).map_err(fault("keeping a worker"))
}
