//! Agents that registered themselves, and those that were added, as rows.

use super::{fault, key};
use flotilla_core::error::Fault;
use flotilla_core::ids::{AgentId, PrincipalId, WorkspaceId};
use flotilla_core::registry::{Added, Registration, Visibility};
use flotilla_protocol::time::Millis;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

fn registration(row: &Row<'_>) -> rusqlite::Result<(AgentId, Registration)> {
    let (visibility, profile): (String, String) = (row.get(3)?, row.get(4)?);
    let visibility = Visibility::ALL.into_iter().find(|known| known.name() == visibility);
    let registration = Registration {
        name: row.get(0)?,
        owner: PrincipalId(row.get(1)?),
        workspace: WorkspaceId(row.get(2)?),
        // What this program does not know is for nobody else.
        visibility: visibility.unwrap_or(Visibility::Private),
        profile: serde_json::from_str(&profile).unwrap_or_default(),
        at: Millis(row.get(5)?),
    };
    Ok((AgentId(row.get(6)?), registration))
}

pub fn all(connection: &Connection) -> Result<Vec<(AgentId, Registration)>, Fault> {
    let sql = "SELECT a.name, a.owner, p.workspace, r.visibility, r.profile, r.at, a.id FROM registrations r \
               JOIN agents a ON a.id = r.agent JOIN principals p ON p.id = a.owner ORDER BY a.name";
    let mut statement = connection.prepare(sql).map_err(fault("listing registered agents"))?;
    let rows = statement.query_map([], registration).and_then(Iterator::collect);
    rows.map_err(fault("listing registered agents"))
}

/// The number of an agent of this name. None if it was another owner's before, and may not be taken over.
fn agent_of(
    connection: &Connection,
    name: &str,
    owner: PrincipalId,
    take_over: bool,
) -> Result<Option<AgentId>, Fault> {
    let before = "SELECT owner FROM agents WHERE name = ?1";
    let before = connection.query_row(before, [name], |row| row.get(0).map(PrincipalId)).optional();
    if before.map_err(fault("looking up an agent"))?.is_some_and(|before| before != owner) && !take_over {
        return Ok(None);
    }
    key::agent(connection, name, owner).map(Some)
}

pub fn keep(connection: &Connection, registration: &Registration, take_over: bool) -> Result<Option<AgentId>, Fault> {
    let Some(id) = agent_of(connection, &registration.name, registration.owner, take_over)? else { return Ok(None) };
    let profile = serde_json::to_string(&registration.profile)
        .map_err(|error| Fault::new(format!("encoding a profile: {error}")))?;
    let (visibility, at) = (registration.visibility.name(), registration.at.0);
    connection
        .execute(
            "INSERT OR REPLACE INTO registrations (agent, visibility, profile, at) VALUES (?1, ?2, ?3, ?4)",
            params![id.0, visibility, profile, at],
        )
        .map_err(fault("registering an agent"))?;
    for sql in ["DELETE FROM added_agents WHERE agent = ?1", "DELETE FROM leases WHERE agent = ?1"] {
        connection.execute(sql, [id.0]).map_err(fault("registering an agent"))?;
    }
    Ok(Some(id))
}

pub fn added(connection: &Connection) -> Result<Vec<(AgentId, Added)>, Fault> {
    let sql = "SELECT a.id, a.name, a.owner, p.workspace, d.settings, d.at, d.changed_at FROM added_agents d \
               JOIN agents a ON a.id = d.agent JOIN principals p ON p.id = a.owner ORDER BY a.name";
    let row = |row: &Row<'_>| {
        let added = Added {
            name: row.get(1)?,
            owner: PrincipalId(row.get(2)?),
            workspace: WorkspaceId(row.get(3)?),
            settings: row.get(4)?,
            at: Millis(row.get(5)?),
            changed_at: Millis(row.get(6)?),
        };
        Ok((AgentId(row.get(0)?), added))
    };
    let mut statement = connection.prepare(sql).map_err(fault("listing added agents"))?;
    let rows = statement.query_map([], row).and_then(Iterator::collect);
    rows.map_err(fault("listing added agents"))
}

pub fn keep_added(connection: &Connection, added: &Added, take_over: bool) -> Result<Option<AgentId>, Fault> {
    let Some(id) = agent_of(connection, &added.name, added.owner, take_over)? else { return Ok(None) };
    let Added { settings, at, changed_at, .. } = added;
    connection
        .execute(
            "INSERT OR REPLACE INTO added_agents (agent, settings, at, changed_at) VALUES (?1, ?2, ?3, ?4)",
            params![id.0, settings, at.0, changed_at.0],
        )
        .map_err(fault("adding an agent"))?;
    Ok(Some(id))
}

pub fn remove(connection: &Connection, agent: AgentId) -> Result<bool, Fault> {
    let mut removed = 0;
    connection.execute("DELETE FROM leases WHERE agent = ?1", [agent.0]).map_err(fault("removing an agent"))?;
    let proof = "DELETE FROM proven_cards WHERE agent = (SELECT name FROM agents WHERE id = ?1)";
    connection.execute(proof, [agent.0]).map_err(fault("removing an agent"))?;
    for sql in ["DELETE FROM registrations WHERE agent = ?1", "DELETE FROM added_agents WHERE agent = ?1"] {
        removed += connection.execute(sql, [agent.0]).map_err(fault("removing an agent"))?;
    }
    Ok(removed > 0)
}
