//! SESSION_ANNOUNCE: what a worker is, has and can do now.

use super::lenient::{or_default, whole};
use super::version::Version;
use super::{More, name};
use crate::time::Millis;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum AnnounceType {
    #[default]
    #[serde(rename = "SESSION_ANNOUNCE")]
    SessionAnnounce,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Announce {
    #[serde(rename = "type")]
    pub kind: AnnounceType,
    pub protocol_version: Version,
    pub worker: Worker,
    #[serde(default, deserialize_with = "or_default")]
    pub capabilities: Capabilities,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(extend("maxProperties" = MOST_ENTRIES))]
    pub mcp_health: BTreeMap<String, McpHealth>,
    #[serde(default, deserialize_with = "or_default")]
    pub session: Session,
    /// Rises with every announcement of a worker; an older one changes nothing.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MOST_ENTRIES))]
    pub supported_versions: Vec<Version>,
    #[serde(flatten)]
    pub more: More,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Worker {
    #[schemars(regex(pattern = r"\S"), length(max = LONGEST_TEXT))]
    pub agent_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LONGEST_TEXT))]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LONGEST_TEXT))]
    pub model_tier: Option<String>,
    /// Tokens the model takes at once.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LONGEST_TEXT))]
    pub vendor: Option<String>,
    /// Which program it is, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LONGEST_TEXT))]
    pub version: Option<String>,
    /// Words to address it by among others, beside those its hub's operator gave it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MOST_ENTRIES))]
    pub labels: Vec<String>,
    /// Whose usage limit it works under: all workers of one account stop when the limit is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LONGEST_TEXT))]
    pub account: Option<String>,
    /// What a million tokens cost with its model, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub usd_per_million_tokens: Option<f64>,
    #[serde(flatten)]
    pub more: More,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Capabilities {
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(length(max = MOST_ENTRIES))]
    pub tools: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(length(max = MOST_ENTRIES))]
    pub mcp_servers: Vec<String>,
    /// Runs it takes at once; one if it does not say.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_concurrent: Option<u32>,
    #[serde(flatten)]
    pub more: More,
}

/// How an MCP server answers: one word, or the word with what was seen.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum McpHealth {
    Plain(McpStatus),
    Observed(Observation),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    pub status: McpStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub observed_at: Option<Millis>,
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(flatten)]
    pub more: More,
}

/// A word that is not listed is read as unknown, and unknown is not healthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpStatus {
    Ok,
    Timeout,
    Failed,
    NeedsAuth,
    Disabled,
    #[serde(other)]
    Unknown,
}

impl McpStatus {
    const ALL: [Self; 6] = [Self::Ok, Self::Timeout, Self::Failed, Self::NeedsAuth, Self::Disabled, Self::Unknown];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Timeout => "timeout",
            Self::Failed => "failed",
            Self::NeedsAuth => "needs_auth",
            Self::Disabled => "disabled",
            Self::Unknown => "unknown",
        }
    }
}

impl JsonSchema for McpStatus {
    fn schema_name() -> Cow<'static, str> {
        "McpStatus".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let listed = Self::ALL.map(Self::name);
        json_schema!({ "type": "string", "anyOf": [{ "enum": listed }, {}] })
    }
}

/// A word that is not listed is kept beside what it is taken for, so that its owner can see what was said.
impl<'de> Deserialize<'de> for McpHealth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let told = Value::deserialize(deserializer)?;
        let word = told.as_str().or_else(|| told["status"].as_str()).unwrap_or_default().to_owned();
        let wrong = |error: serde_json::Error| D::Error::custom(error.to_string());
        let (status, mut seen) = match told {
            Value::Object(_) => {
                let seen: Observation = serde_json::from_value(told).map_err(wrong)?;
                (seen.status, Some(seen))
            }
            plain => (serde_json::from_value::<McpStatus>(plain).map_err(wrong)?, None),
        };
        if status == McpStatus::Unknown && word != status.name() {
            let seen = seen.get_or_insert_with(|| Observation::of(status));
            let said = format!("it says '{word}'");
            seen.detail = Some(seen.detail.take().map_or(said.clone(), |detail| format!("{said}: {detail}")));
        }
        Ok(seen.map_or(Self::Plain(status), Self::Observed))
    }
}

impl Observation {
    fn of(status: McpStatus) -> Self {
        Self { status, observed_at: None, latency_ms: None, detail: None, more: More::default() }
    }
}

impl McpHealth {
    pub fn status(&self) -> McpStatus {
        match self {
            Self::Plain(status) => *status,
            Self::Observed(observation) => observation.status,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LONGEST_TEXT))]
    pub context_id: Option<String>,
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub active_tasks: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_state: Option<RepoState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_fresh: Option<bool>,
    /// Why it cannot work now, such as a program that is not there; absent if nothing is known to be wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LONGEST_TEXT))]
    pub broken: Option<String>,
    /// When a turn that the worker itself asked for last ended well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub last_successful_turn: Option<Millis>,
    #[serde(flatten)]
    pub more: More,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RepoState {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LONGEST_TEXT))]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub dirty_files: Option<u32>,
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u32>,
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub behind: Option<u32>,
    /// What tells this repository from others, such as the address of its origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LONGEST_TEXT))]
    pub repository: Option<String>,
    #[serde(flatten)]
    pub more: More,
}

impl RepoState {
    /// Whether nothing in it was changed; none if that is not known. A count of changed files speaks against any word.
    pub fn is_clean(&self) -> Option<bool> {
        match self.dirty_files {
            Some(0) => Some(self.clean.unwrap_or(true)),
            Some(_) => Some(false),
            None => self.clean,
        }
    }
}

/// The versions a worker says it speaks, whatever else its announcement is.
fn supported(announce: &Value) -> Vec<Version> {
    serde_json::from_value(announce["supported_versions"].clone()).unwrap_or_default()
}

/// Whether an announcement of another version is of a worker that speaks ours too.
pub(super) fn speaks_ours(json: &str) -> bool {
    let announce: Value = serde_json::from_str(json).unwrap_or_default();
    Version::common(&supported(&announce)).is_some()
}

/// The most entries of a list, the longest text, and the most bytes of JSON in an announcement: it is shown whole to its
/// owner, and to all who follow the roster.
const MOST_ENTRIES: usize = 1_000;
const LONGEST_TEXT: usize = 4_096;
const MOST_BYTES: usize = 128 * 1024;

impl Announce {
    /// Whether it is small enough to be kept.
    fn measure(&self) -> Result<(), String> {
        let lists = [
            ("worker.labels", self.worker.labels.len()),
            ("capabilities.tools", self.capabilities.tools.len()),
            ("capabilities.mcp_servers", self.capabilities.mcp_servers.len()),
            ("mcp_health", self.mcp_health.len()),
            ("supported_versions", self.supported_versions.len()),
        ];
        if let Some((name, count)) = lists.into_iter().find(|(_, count)| *count > MOST_ENTRIES) {
            return Err(format!("{name}: has {count} entries, and may have {MOST_ENTRIES}; announce fewer"));
        }
        let (worker, repo) = (&self.worker, self.session.repo_state.as_ref());
        let texts = [
            ("worker.agent_id", Some(&worker.agent_id)),
            ("worker.model", worker.model.as_ref()),
            ("worker.model_tier", worker.model_tier.as_ref()),
            ("worker.vendor", worker.vendor.as_ref()),
            ("worker.version", worker.version.as_ref()),
            ("worker.account", worker.account.as_ref()),
            ("session.context_id", self.session.context_id.as_ref()),
            ("session.broken", self.session.broken.as_ref()),
            ("session.repo_state.branch", repo.and_then(|repo| repo.branch.as_ref())),
            ("session.repo_state.repository", repo.and_then(|repo| repo.repository.as_ref())),
        ];
        let too_long = |(_, text): &(&str, Option<&String>)| text.is_some_and(|text| text.len() > LONGEST_TEXT);
        if let Some((name, _)) = texts.into_iter().find(too_long) {
            return Err(format!("{name}: must be at most {LONGEST_TEXT} bytes long; shorten it"));
        }
        match serde_json::to_vec(self).map(|json| json.len()) {
            Ok(bytes) if bytes > MOST_BYTES => {
                Err(format!("it has {bytes} bytes, and may have {MOST_BYTES}; announce less"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.worker.agent_id.trim().is_empty() {
            return Err("worker.agent_id: must name the worker".into());
        }
        if self.capabilities.max_concurrent == Some(0) {
            return Err(
                "capabilities.max_concurrent: must be at least 1; a worker that takes nothing is drained".into()
            );
        }
        if self.worker.usd_per_million_tokens.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
            return Err("worker.usd_per_million_tokens: must be 0 or more; leave it out if it is not known".into());
        }
        self.measure()
    }

    /// What is understood of an announcement in a version that is not spoken here: that its worker speaks it.
    pub(super) fn of_another_version(protocol_version: Version, json: &str) -> Self {
        let announce: Value = serde_json::from_str(json).unwrap_or_default();
        let agent_id = announce["worker"]["agent_id"].as_str().unwrap_or_default().to_owned();
        Self {
            protocol_version,
            worker: Worker { agent_id, ..Worker::default() },
            epoch: announce["epoch"].as_u64(),
            supported_versions: supported(&announce),
            ..Self::default()
        }
    }

    /// Every version its worker says it speaks.
    pub fn versions(&self) -> &[Version] {
        match self.supported_versions.as_slice() {
            [] => std::slice::from_ref(&self.protocol_version),
            several => several,
        }
    }

    /// The highest version of the handshake both sides speak; none means plain text.
    pub fn spoken(&self) -> Option<Version> {
        Version::common(self.versions())
    }

    /// What tells its repository from others, however it writes the address.
    pub fn repository(&self) -> Option<String> {
        self.session.repo_state.as_ref()?.repository.as_deref().map(name::repository)
    }

    /// The health of a server by any spelling of its name; none if the worker has no such server.
    pub fn mcp(&self, server: &str) -> Option<McpStatus> {
        let health = self.mcp_health.iter().find(|(known, _)| name::same(known, server));
        let listed = || self.capabilities.mcp_servers.iter().any(|known| name::same(known, server));
        match health {
            Some((_, health)) => Some(health.status()),
            None if listed() => Some(McpStatus::Unknown),
            None => None,
        }
    }

    pub fn has_tool(&self, wanted: &str) -> bool {
        name::has_tool(&self.capabilities.tools, wanted)
    }
}
