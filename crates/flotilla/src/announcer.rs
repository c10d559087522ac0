//! Announcing: another hub, or a registry, is told that agents of this one are there, and when they are no more.

use anyhow::{Context as _, Result};
use flotilla_outbound::hub::Hub;
use flotilla_outbound::hub::announce::Announced;
use flotilla_outbound::net::redact::Redactor;
use flotilla_outbound::net::{Limits, Net};
use hyper::Uri;
use serde_json::{Value, json};
use std::time::Duration;

/// How long the other side may take.
const ANSWER: Duration = Duration::from_secs(15);

/// An agent to be announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub name: String,
    /// Where its card is, for those elsewhere.
    pub card: String,
}

/// Where agents are announced, and how.
pub struct Announcer {
    hub: Hub,
    prefix: String,
    auth: Option<Value>,
    /// It is no hub, and takes cards at the address itself.
    takes_cards: bool,
}

impl Announcer {
    pub fn new(to: &str, key: Option<String>, prefix: String, auth: Option<Value>) -> Result<Self> {
        let redactor = Redactor::new(key.iter().cloned());
        let limits = Limits { answer: ANSWER, ..Limits::default() };
        let net = Net::between(limits, redactor, None).map_err(|error| anyhow::anyhow!("{error}"))?;
        let takes_cards = to.parse::<Uri>().is_ok_and(|url| !matches!(url.path(), "" | "/"));
        Ok(Self { hub: Hub::new(net, to, key), prefix, auth, takes_cards })
    }

    fn named(&self, agent: &Known) -> String {
        format!("{}{}", self.prefix, agent.name)
    }

    /// Says once that the agents are there, for so long.
    pub async fn announce(&self, agents: &[Known], lease: Duration) -> Result<Announced> {
        if self.takes_cards {
            return self.post_cards(agents).await;
        }
        let said = |agent: &Known| {
            let mut said = json!({"card": agent.card});
            if let Some(auth) = &self.auth {
                said["auth"] = auth.clone();
            }
            (self.named(agent), said)
        };
        let all: Vec<(String, Value)> = agents.iter().map(said).collect();
        let mut answer = Announced::default();
        for some in all.chunks(100) {
            let told = self.hub.announce(some, lease).await.map_err(|error| anyhow::anyhow!("{error}"))?;
            answer.agents.extend(told.agents);
            answer.refused.extend(told.refused);
        }
        Ok(answer)
    }

    async fn post_cards(&self, agents: &[Known]) -> Result<Announced> {
        let mut answer = Announced::default();
        for agent in agents {
            let card = own_document(&agent.card).await?;
            self.hub.post_card(card).await.map_err(|error| anyhow::anyhow!("{error}"))?;
            answer.agents.push(flotilla_outbound::hub::announce::Taken { name: agent.name.clone() });
        }
        Ok(answer)
    }

    /// Says that the agents are there no more. A registry that takes cards cannot be told.
    pub async fn withdraw(&self, agents: &[Known]) -> Result<()> {
        if !self.takes_cards {
            for agent in agents {
                self.hub.withdraw(&self.named(agent)).await.map_err(|error| anyhow::anyhow!("{error}"))?;
            }
        }
        Ok(())
    }
}

async fn own_document(url: &str) -> Result<String> {
    let net = Net::between(Limits { answer: ANSWER, ..Limits::default() }, Redactor::default(), None);
    let net = net.map_err(|error| anyhow::anyhow!("{error}"))?;
    let read = Hub::new(net, url, None).document("").await;
    read.map_err(|error| anyhow::anyhow!("{error}")).with_context(|| format!("reading {url}"))
}

/// The public agents of a hub, as its catalog lists them.
pub async fn public_agents(hub: &str) -> Result<Vec<Known>> {
    let catalog = own_document(&format!("{}/.well-known/ai-catalog.json", hub.trim_end_matches('/'))).await?;
    let catalog: Value = serde_json::from_str(&catalog).context("the hub's catalog")?;
    let entries = catalog["entries"].as_array().into_iter().flatten();
    let cards = entries.filter(|entry| entry["type"] == "application/a2a-agent-card+json");
    let known = |entry: &Value| {
        let text = |key: &str| entry[key].as_str().map(str::to_owned);
        Some(Known { name: text("displayName")?, card: text("url")? })
    };
    Ok(cards.filter_map(known).collect())
}
