//! What is behind the hub's doors: agents elsewhere and those that dial in, as the hub itself knows them.

use super::Findings;
use crate::cli::session::{Session, hub_key};
use flotilla_outbound::hub::Hub;
use serde_json::Value;

/// What is behind a door of the hub's that answers.
pub enum Beyond {
    Reached,
    Lost(String),
    Absent,
    Unseen,
    /// The hub does not tell us.
    Untold(String),
}

impl Beyond {
    /// The card and the doors of an agent that is not in the hub are the hub's own, and prove nothing of it.
    pub async fn of(session: &Session, name: &str) -> Self {
        let hub = Hub::new(session.net.clone(), &session.hub_url(), hub_key());
        let shown: Value = match hub.agent(name).await {
            Ok(shown) => serde_json::from_str(&shown).unwrap_or_default(),
            Err(error) => return Self::Untold(error.to_string()),
        };
        match shown["state"].as_str() {
            Some(state @ ("unreachable" | "stale" | "gone")) => {
                let why = shown["checks"]["lastError"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
                Self::Lost(format!("{state}{why}"))
            }
            Some("live") => Self::Reached,
            Some("absent") => Self::Absent,
            _ => Self::Unseen,
        }
    }

    /// One finding of the agent and of the bindings that the hub answers in for it.
    pub fn tell(&self, findings: &mut Findings, name: &str, answered: &[&str]) {
        let (what, check) = (format!("agent {name}"), format!("flotilla agents check {name}"));
        let over = answered.join(", ");
        match self {
            Self::Lost(why) => {
                let advice = format!("start it, or correct agents.{name}.url; then: {check}");
                findings.problem("agents", format!("the hub finds the {what} {why}"), advice);
            }
            // That the hub does not answer for it has been told.
            _ if answered.is_empty() => {}
            Self::Reached => findings.ok("agents", format!("{what} answers over {over}, and the hub reaches it")),
            Self::Absent => findings.note(
                "agents",
                format!("{what} dials in, and is not connected; the hub answers for it over {over}"),
                "nothing: messages wait for it; or start it",
            ),
            Self::Unseen => findings.note(
                "agents",
                format!("the hub answers for the {what} over {over}, and has not looked at it yet"),
                format!("look at once with: {check}"),
            ),
            Self::Untold(why) => findings.note(
                "agents",
                format!("the hub answers for the {what} over {over}; whether it reaches it is not told: {why}"),
                "set FLOTILLA_KEY to a key of somebody the agent is there for",
            ),
        }
    }
}
