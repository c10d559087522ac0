//! Workspaces, principals, keys and agents as rows.

use super::fault;
use flotilla_core::error::Fault;
use flotilla_core::ids::{AgentId, PrincipalId, WorkspaceId};
use flotilla_core::key::{FullName, KeyRecord, Principal};
use flotilla_core::ports::Digest;
use flotilla_core::rights::Rights;
use flotilla_protocol::time::Millis;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

const COLUMNS: &str = "SELECT w.name, k.name, k.hash, p.id, p.workspace, p.name, k.scopes, k.agents, k.created_at, \
                       k.expires_at, k.revoked_at, k.replaces \
                       FROM keys k JOIN principals p ON p.id = k.principal JOIN workspaces w ON w.id = k.workspace";

fn record(row: &Row<'_>) -> rusqlite::Result<KeyRecord> {
    let (scopes, agents): (String, Option<String>) = (row.get(6)?, row.get(7)?);
    Ok(KeyRecord {
        name: FullName { workspace: row.get(0)?, name: row.get(1)? },
        hash: row.get(2)?,
        principal: Principal { id: PrincipalId(row.get(3)?), workspace: WorkspaceId(row.get(4)?), name: row.get(5)? },
        // What this program does not know, it does not grant.
        rights: Rights::of(scopes.split_whitespace().filter_map(|name| name.parse().ok())),
        // A list that cannot be read allows nothing.
        agents: agents.map(|list| serde_json::from_str(&list).unwrap_or_default()),
        created_at: Millis(row.get(8)?),
        expires_at: row.get::<_, Option<i64>>(9)?.map(Millis),
        revoked_at: row.get::<_, Option<i64>>(10)?.map(Millis),
        replaces: row.get(11)?,
    })
}

pub fn find(connection: &Connection, hash: &Digest) -> Result<Option<KeyRecord>, Fault> {
    connection
        .query_row(&format!("{COLUMNS} WHERE k.hash = ?1"), [hash], record)
        .optional()
        .map_err(fault("looking for a key"))
}

pub fn all(connection: &Connection) -> Result<Vec<KeyRecord>, Fault> {
    let sql = format!("{COLUMNS} ORDER BY k.created_at, w.name, k.name");
    let mut statement = connection.prepare(&sql).map_err(fault("listing keys"))?;
    let rows = statement.query_map([], record).and_then(Iterator::collect);
    rows.map_err(fault("listing keys"))
}

/// Triggers count every change, whoever makes it.
pub fn revision(connection: &Connection) -> Result<u64, Fault> {
    let sql = "SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'keys_revision'";
    let mut statement = connection.prepare_cached(sql).map_err(fault("asking about keys"))?;
    let revision: i64 = statement.query_row([], |row| row.get(0)).map_err(fault("asking about keys"))?;
    Ok(revision.unsigned_abs())
}

pub fn add(connection: &mut Connection, key: &KeyRecord) -> Result<bool, Fault> {
    let transaction = begin(connection)?;
    if !insert(&transaction, key)? {
        return Ok(false);
    }
    transaction.commit().map_err(fault("adding a key"))?;
    Ok(true)
}

pub fn replace(connection: &mut Connection, old: &FullName, until: Millis, key: &KeyRecord) -> Result<bool, Fault> {
    let transaction = begin(connection)?;
    let sql = "UPDATE keys SET expires_at = ?3 \
               WHERE workspace = (SELECT id FROM workspaces WHERE name = ?1) AND name = ?2 AND revoked_at IS NULL";
    let ended = transaction.execute(sql, params![old.workspace, old.name, until.0]);
    if ended.map_err(fault("replacing a key"))? == 0 || !insert(&transaction, key)? {
        return Ok(false);
    }
    transaction.commit().map_err(fault("replacing a key"))?;
    Ok(true)
}

fn begin(connection: &mut Connection) -> Result<Transaction<'_>, Fault> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault("changing keys"))
}

fn insert(transaction: &Transaction<'_>, key: &KeyRecord) -> Result<bool, Fault> {
    let whose = FullName::new(&key.name.workspace, &key.principal.name);
    if whose.is_anonymous() {
        return Ok(false);
    }
    let principal = find_principal(transaction, &whose)?;
    let agents = key.agents.as_ref().map(|list| serde_json::json!(list).to_string());
    let added = transaction.execute(
        "INSERT INTO keys (workspace, name, principal, hash, scopes, agents, created_at, expires_at, replaces)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING",
        params![
            principal.workspace.0,
            key.name.name,
            principal.id.0,
            key.hash,
            key.rights.to_string(),
            agents,
            key.created_at.0,
            key.expires_at.map(|end| end.0),
            key.replaces,
        ],
    );
    added.map(|rows| rows == 1).map_err(fault("adding a key"))
}

pub fn principal(connection: &mut Connection, name: &FullName) -> Result<Principal, Fault> {
    let transaction = begin(connection)?;
    let principal = find_principal(&transaction, name)?;
    transaction.commit().map_err(fault("adding a principal"))?;
    Ok(principal)
}

fn find_principal(transaction: &Transaction<'_>, name: &FullName) -> Result<Principal, Fault> {
    let failed = fault("adding a principal");
    transaction
        .execute("INSERT INTO workspaces (name) VALUES (?1) ON CONFLICT DO NOTHING", [&name.workspace])
        .map_err(&failed)?;
    let workspace: i64 = transaction
        .query_row("SELECT id FROM workspaces WHERE name = ?1", [&name.workspace], |row| row.get(0))
        .map_err(&failed)?;
    let whose = params![workspace, name.name];
    transaction
        .execute("INSERT INTO principals (workspace, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING", whose)
        .map_err(&failed)?;
    let id = transaction
        .query_row("SELECT id FROM principals WHERE workspace = ?1 AND name = ?2", whose, |row| row.get(0))
        .map_err(&failed)?;
    Ok(Principal { id: PrincipalId(id), workspace: WorkspaceId(workspace), name: name.name.clone() })
}

pub fn revoke(connection: &Connection, name: &FullName, at: Millis) -> Result<bool, Fault> {
    let sql = "UPDATE keys SET revoked_at = ?3 \
               WHERE workspace = (SELECT id FROM workspaces WHERE name = ?1) AND name = ?2 AND revoked_at IS NULL";
    let revoked = connection.execute(sql, params![name.workspace, name.name, at.0]);
    revoked.map(|rows| rows == 1).map_err(fault("revoking a key"))
}

pub fn restore(connection: &Connection, name: &FullName) -> Result<bool, Fault> {
    let sql = "UPDATE keys SET revoked_at = NULL, expires_at = NULL \
               WHERE workspace = (SELECT id FROM workspaces WHERE name = ?1) AND name = ?2";
    let restored = connection.execute(sql, params![name.workspace, name.name]);
    restored.map(|rows| rows == 1).map_err(fault("restoring a key"))
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
