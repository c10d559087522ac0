//! Principals, keys and agents as rows.

use super::fault;
use flotilla_core::access::KeyRecord;
use flotilla_core::error::Fault;
use flotilla_core::ids::{AgentId, PrincipalId};
use flotilla_core::ports::Digest;
use flotilla_protocol::time::Millis;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

const COLUMNS: &str = "SELECT k.name, k.hash, k.principal, p.admin, k.agents, k.created_at, k.revoked_at \
                       FROM keys k JOIN principals p ON p.id = k.principal";

fn record(row: &Row<'_>) -> rusqlite::Result<KeyRecord> {
    let agents: Option<String> = row.get(4)?;
    Ok(KeyRecord {
        name: row.get(0)?,
        hash: row.get(1)?,
        principal: PrincipalId(row.get(2)?),
        admin: row.get(3)?,
        agents: agents.and_then(|list| serde_json::from_str(&list).ok()),
        created_at: Millis(row.get(5)?),
        revoked_at: row.get::<_, Option<i64>>(6)?.map(Millis),
    })
}

pub fn find(connection: &Connection, hash: &Digest) -> Result<Option<KeyRecord>, Fault> {
    connection
        .query_row(&format!("{COLUMNS} WHERE k.hash = ?1"), [hash], record)
        .optional()
        .map_err(fault("looking for a key"))
}

pub fn all(connection: &Connection) -> Result<Vec<KeyRecord>, Fault> {
    let mut statement =
        connection.prepare(&format!("{COLUMNS} ORDER BY k.created_at, k.name")).map_err(fault("listing keys"))?;
    let rows = statement.query_map([], record).and_then(Iterator::collect);
    rows.map_err(fault("listing keys"))
}

/// A key of the owner keeps the owner's principal; any other name is a principal of its own.
pub fn add(connection: &mut Connection, key: &KeyRecord) -> Result<bool, Fault> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault("adding a key"))?;
    let principal = if key.admin {
        PrincipalId::OWNER.0
    } else {
        let added = transaction
            .execute("INSERT INTO principals (name, admin) VALUES (?1, 0) ON CONFLICT DO NOTHING", [&key.name])
            .map_err(fault("adding a principal"))?;
        if added == 0 {
            return Ok(false);
        }
        transaction.last_insert_rowid()
    };
    let agents = key.agents.as_ref().map(|list| serde_json::json!(list).to_string());
    let added = transaction
        .execute(
            "INSERT INTO keys (name, hash, principal, agents, created_at) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO NOTHING",
            params![key.name, key.hash, principal, agents, key.created_at.0],
        )
        .map_err(fault("adding a key"))?;
    if added == 0 {
        return Ok(false);
    }
    transaction.commit().map_err(fault("adding a key"))?;
    Ok(true)
}

pub fn revoke(connection: &Connection, name: &str, at: Millis) -> Result<bool, Fault> {
    let revoked = connection
        .execute("UPDATE keys SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL", params![name, at.0])
        .map_err(fault("revoking a key"))?;
    Ok(revoked == 1)
}

pub fn agent(connection: &Connection, name: &str, owner: PrincipalId) -> Result<AgentId, Fault> {
    connection
        .execute(
            "INSERT INTO agents (name, owner) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET owner = excluded.owner",
            params![name, owner.0],
        )
        .map_err(fault("registering an agent"))?;
    connection
        .query_row("SELECT id FROM agents WHERE name = ?1", [name], |row| row.get(0).map(AgentId))
        .map_err(fault("registering an agent"))
}
