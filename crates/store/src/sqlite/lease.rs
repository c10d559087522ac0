//! Leases of agents that are announced, as rows.

use super::fault;
use flotilla_core::error::Fault;
use flotilla_core::ids::AgentId;
use flotilla_core::ports::Lease;
use rusqlite::{Connection, params};

pub fn all(connection: &Connection) -> Result<Vec<(AgentId, Lease)>, Fault> {
    let sql = "SELECT agent, seconds, over FROM leases";
    let mut statement = connection.prepare(sql).map_err(fault("listing leases"))?;
    let rows =
        statement.query_map([], |row| Ok((AgentId(row.get(0)?), Lease { seconds: row.get(1)?, over: row.get(2)? })));
    rows.and_then(Iterator::collect).map_err(fault("listing leases"))
}

pub fn keep(connection: &Connection, agent: AgentId, lease: Option<Lease>) -> Result<(), Fault> {
    let kept = match lease {
        Some(Lease { seconds, over }) => {
            let sql = "INSERT OR REPLACE INTO leases (agent, seconds, over) VALUES (?1, ?2, ?3)";
            connection.execute(sql, params![agent.0, seconds, over])
        }
        None => connection.execute("DELETE FROM leases WHERE agent = ?1", [agent.0]),
    };
    kept.map_err(fault("keeping a lease")).map(drop)
}
