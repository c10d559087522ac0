//! Agents that registered themselves, as rows.

use super::{fault, key};
use flotilla_core::error::Fault;
use flotilla_core::ids::{AgentId, PrincipalId, WorkspaceId};
use flotilla_core::registry::{Registration, Visibility};
use flotilla_protocol::time::Millis;
use rusqlite::{Connection, Row, params};

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

pub fn keep(connection: &Connection, registration: &Registration) -> Result<AgentId, Fault> {
    let id = key::agent(connection, &registration.name, registration.owner)?;
    let profile = serde_json::to_string(&registration.profile)
        .map_err(|error| Fault::new(format!("encoding a profile: {error}")))?;
    let (visibility, at) = (registration.visibility.name(), registration.at.0);
    connection
        .execute(
            "INSERT OR REPLACE INTO registrations (agent, visibility, profile, at) VALUES (?1, ?2, ?3, ?4)",
            params![id.0, visibility, profile, at],
        )
        .map_err(fault("registering an agent"))?;
    Ok(id)
}
