//! The `announce` section: where the hub says that its agents are there, by itself.

use super::Span;
use super::auth::{AuthConfig, SecretPlace};
use super::remote::check_url;
use anyhow::{Context as _, Result, bail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The usual time between two announcements; the lease is three times as long.
pub const EVERY: Duration = Duration::from_secs(30);

/// Tells another hub or a registry of this one's agents, now and again; see docs/announce.md.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AnnounceConfig {
    /// The other hub's address, or that of a registry which takes cards; `A2A_REGISTRY_URL` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// A key of the other hub with the scope `agents:write`, as `env:NAME` or `file:PATH`;
    /// `env:A2A_REGISTRY_AUTH_TOKEN` if absent and set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<SecretPlace>,
    /// The agents to announce; all public ones if absent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Put before their names there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// How often (30s). After three times that without a word they are stale there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// What the other hub is to show to this one, by a reference that is good there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthConfig>,
}

impl AnnounceConfig {
    pub fn every(&self) -> Duration {
        self.every.map_or(EVERY, |every| every.0)
    }

    pub fn check(&self, agents: &[&str]) -> Result<()> {
        let Some(to) = &self.to else {
            bail!("announce.to: say where the agents are to be announced, or set A2A_REGISTRY_URL");
        };
        check_url("announce.to", to)?;
        if let Some(key) = &self.key {
            key.check("announce.key")?;
        }
        if let Some(auth) = &self.auth {
            auth.check().context("announce")?;
        }
        if let Some(unknown) = self.agents.iter().find(|name| !agents.contains(&name.as_str())) {
            bail!("announce.agents: there is no agent '{unknown}'; there are: {}", agents.join(", "));
        }
        let every = self.every();
        if every < Duration::from_secs(1) || every > Duration::from_secs(8 * 3600) {
            bail!("announce.every must be from 1s to 8h");
        }
        Ok(())
    }

    /// The key itself.
    pub fn key(&self) -> Result<Option<String>> {
        self.key.as_ref().map(|key| key.read("announce.key")).transpose()
    }
}
