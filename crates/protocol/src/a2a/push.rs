//! What a webhook is told, and how: the options a caller may put beside a push config.

use super::PUSH_OPTIONS;
use super::error::Refusal;
use super::request::{ListPushConfigsRequest, PushConfig};
use crate::wire::{Json, Object};
use serde::{Deserialize, Serialize};

/// Which events a webhook is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PushEvents {
    #[default]
    All,
    /// The task itself, its states and messages; no artifacts.
    Status,
}

/// How the chunks of an artifact are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PushChunks {
    #[default]
    Each,
    /// Chunks in a row become one: when the artifact is complete, something else happens, or it grows large.
    Whole,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PushOptions {
    pub events: PushEvents,
    pub chunks: PushChunks,
    /// Adds `X-Hub-Signature-256`, for receivers that know only that.
    pub hub_signature: bool,
}

impl PushOptions {
    /// The options in a request's metadata, if there are any. `field` is where the metadata stands.
    pub fn of(metadata: Option<&Object>, field: &str) -> Result<Option<Self>, Refusal> {
        let Some(metadata) = metadata else { return Ok(None) };
        let members: std::collections::HashMap<String, Json> =
            serde_json::from_str(metadata.0.text()).map_err(|_| Refusal::invalid(field, "must be a JSON object"))?;
        let Some(options) = members.get(PUSH_OPTIONS) else { return Ok(None) };
        let read = serde_json::from_str(options.text());
        read.map(Some).map_err(|error: serde_json::Error| {
            let problem = crate::decode::plain(&error.to_string());
            let text =
                format!("'{PUSH_OPTIONS}' takes events (all, status), chunks (each, whole), hubSignature: {problem}");
            Refusal::invalid(field, text)
        })
    }
}

impl PushConfig {
    /// The `metadata` member, which the protocol does not name but leaves room for.
    pub fn metadata(&self) -> Result<Option<Object>, Refusal> {
        let found = self.unknown.iter().find(|(name, json)| name == "metadata" && json.text() != "null");
        let read = found.map(|(_, json)| serde_json::from_str(json.text())).transpose();
        read.map_err(|_| Refusal::invalid("metadata", "must be a JSON object"))
    }
}

/// A page of push configs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListPushConfigsResponse {
    pub configs: Vec<PushConfig>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub next_page_token: String,
}

impl ListPushConfigsRequest {
    /// How long the page may be.
    pub fn size(&self, most: usize) -> Result<usize, Refusal> {
        match self.page_size.map(|size| size.0) {
            None | Some(0) => Ok(most),
            Some(size) => match usize::try_from(size) {
                Ok(size) => Ok(size.min(most)),
                Err(_) => Err(Refusal::invalid("pageSize", format!("must not be negative, got {size}"))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PushChunks, PushEvents, PushOptions};
    use crate::wire::Object;
    use serde_json::json;

    fn of(metadata: serde_json::Value) -> Result<Option<PushOptions>, String> {
        let metadata = Object::of(&metadata).expect("an object");
        PushOptions::of(Some(&metadata), "metadata").map_err(|refusal| refusal.violations[0].description.clone())
    }

    #[test]
    fn options_stand_under_their_name_and_slips_are_told() {
        assert_eq!(of(json!({"other": 1})), Ok(None));
        let given = json!({"urn:flotilla:ext:push-options:1.0": {"events": "status", "chunks": "whole"}});
        let read = of(given).unwrap().unwrap();
        assert_eq!((read.events, read.chunks, read.hub_signature), (PushEvents::Status, PushChunks::Whole, false));
        for wrong in [json!({"event": "status"}), json!({"events": "some"}), json!({"hubSignature": "yes"}), json!(1)] {
            let told = of(json!({"urn:flotilla:ext:push-options:1.0": wrong})).unwrap_err();
            assert!(told.contains("takes events"), "{told}");
        }
    }
}
