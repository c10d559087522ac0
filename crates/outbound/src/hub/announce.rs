//! Announcing agents to another hub, or to a registry that takes cards.

use super::Hub;
use crate::client::error::ClientError;
use crate::client::segment;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// What another hub made of an announcement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Announced {
    pub agents: Vec<Taken>,
    pub refused: Vec<Refused>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Taken {
    pub name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Refused {
    pub name: String,
    pub message: String,
}

impl Hub {
    /// Agents under their names there, each with what is to be said of it.
    pub async fn announce(&self, agents: &[(String, Value)], lease: Duration) -> Result<Announced, ClientError> {
        let named = agents.iter().map(|(name, said)| {
            let mut agent = said.clone();
            agent["name"] = name.as_str().into();
            agent
        });
        let body = json!({"agents": named.collect::<Vec<Value>>(), "leaseSeconds": lease.as_secs()});
        let response =
            self.call_with(Method::POST, "/api/announce", "application/json", Some(body.to_string())).await?;
        serde_json::from_str(&self.net.text(response).await?).map_err(ClientError::malformed)
    }

    pub async fn withdraw(&self, name: &str) -> Result<(), ClientError> {
        let path = format!("/api/announce/{}", segment(name)?);
        self.call_with(Method::DELETE, &path, "*/*", None).await.map(drop)
    }

    /// Posts a card to the address itself, as registries take it that are no hubs.
    pub async fn post_card(&self, card: String) -> Result<(), ClientError> {
        self.call_with(Method::POST, "", "application/json", Some(card)).await.map(drop)
    }

    /// What is at a path, for all to read.
    pub async fn document(&self, path: &str) -> Result<String, ClientError> {
        self.net.text(self.call_with(Method::GET, path, "*/*", None).await?).await
    }
}
