//! What the cards of agents were verified for, as rows by the agents' names.

use super::fault;
use flotilla_core::error::Fault;
use rusqlite::{Connection, params};

pub fn all(connection: &Connection) -> Result<Vec<(String, String)>, Fault> {
    let listing = fault("listing verified cards");
    let mut statement = connection.prepare("SELECT agent, place FROM proven_cards").map_err(&listing)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.and_then(Iterator::collect).map_err(&listing)
}

pub fn keep(connection: &Connection, agent: &str, place: Option<&str>) -> Result<(), Fault> {
    let kept = match place {
        Some(place) => {
            let sql = "INSERT OR REPLACE INTO proven_cards (agent, place) VALUES (?1, ?2)";
            connection.execute(sql, params![agent, place])
        }
        None => connection.execute("DELETE FROM proven_cards WHERE agent = ?1", [agent]),
    };
    kept.map(drop).map_err(fault("keeping that a card was verified"))
}
