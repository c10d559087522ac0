//! What a script looks like in the configuration.

use super::step::Step;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// A mock agent: rules that say what to do with which message.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptConfig {
    /// Of the rules that match, the one with the longest `message_id` prefix is taken, then the one with the longest
    /// `text` prefix, then the first.
    #[serde(default)]
    pub rules: Vec<RuleConfig>,
    /// What to do when no rule matches. Without it the message's text comes back as an artifact.
    pub otherwise: Option<Vec<Step>>,
}

/// Steps, and the messages they are for.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// Without it the rule matches every message.
    #[serde(default)]
    pub when: Whens,
    #[serde(rename = "do")]
    pub steps: Vec<Step>,
}

/// One set of conditions, or a list of which any may hold.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum Whens {
    One(When),
    Any(Vec<When>),
}

impl Default for Whens {
    fn default() -> Self {
        Self::One(When::default())
    }
}

/// Conditions that must all hold.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// The message's id starts with this.
    pub message_id: Option<String>,
    /// The message's first text starts with this.
    pub text: Option<String>,
    /// Some text of the message holds this.
    pub contains: Option<String>,
    /// The message has a part of this kind.
    pub part: Option<PartKind>,
    /// This is the caller's nth message of the task; 1 is the first.
    pub turn: Option<u32>,
    /// This is the caller's nth message of the task, or a later one.
    pub min_turn: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    Text,
    File,
    Data,
}

/// An artifact, whole or in chunks.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArtifactConfig {
    /// Without it each artifact gets a fresh id.
    pub id: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub text: Option<String>,
    pub file: Option<FileConfig>,
    #[serde(default, deserialize_with = "given")]
    pub data: Option<Value>,
    /// Parts as A2A writes them: `text`, `raw`, `url` or `data`, with `filename`, `mediaType`, `metadata`.
    pub parts: Option<Vec<Value>>,
    /// Content blocks, of which callers see text, files and data.
    pub blocks: Option<Vec<Value>>,
    /// The text in pieces, each an update of its own.
    pub chunks: Option<ChunksConfig>,
    pub metadata: Option<Map<String, Value>>,
    #[serde(default)]
    pub extensions: Vec<String>,
    /// Adds to the artifact of the same `id`.
    #[serde(default)]
    pub append: bool,
    /// Whether the artifact is now complete; true unless said otherwise.
    pub last: Option<bool>,
}

/// A question to the agent's owner.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalConfig {
    /// The tool that is to be used.
    pub tool: Option<String>,
    /// What it is to be used with.
    #[serde(default, deserialize_with = "given")]
    pub input: Option<Value>,
    /// What is asked, in words.
    pub text: Option<String>,
}

/// A file: its text, its bytes or its address.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileConfig {
    pub text: Option<String>,
    pub base64: Option<String>,
    pub url: Option<String>,
    pub name: Option<String>,
    pub media_type: Option<String>,
}

/// The chunks themselves, or one text to be sent a number of times.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum ChunksConfig {
    Texts(Vec<String>),
    Counted(Counted),
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    pub count: Count,
    /// `{n}` is the number of the chunk, from 1.
    pub text: String,
    /// How long to wait between two chunks.
    pub every: Option<String>,
}

/// A whole number, or a text with placeholders that becomes one.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a whole number or a placeholder such as \"{2}\"")]
pub enum Count {
    Number(u64),
    Text(String),
}

/// A number, or a text with placeholders that becomes one.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number or a placeholder such as \"{n}\"")]
pub enum Amount {
    Number(Number),
    Text(String),
}

/// How far the work has come, for the owner's log.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgressConfig {
    pub progress: Amount,
    pub total: Option<Amount>,
    pub message: Option<String>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepeatConfig {
    pub times: Count,
    /// `{n}` is the number of the round, from 1.
    #[serde(rename = "do")]
    pub steps: Vec<Step>,
}

/// Keeps `data: null` apart from no data at all.
pub(super) fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Written out because serde's own "one of these" would hide which field is wrong.
impl<'de> Deserialize<'de> for Whens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WhensVisitor;
        impl<'de> Visitor<'de> for WhensVisitor {
            type Value = Whens;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of conditions or a list of such maps")
            }
            fn visit_unit<E: Error>(self) -> Result<Whens, E> {
                Ok(Whens::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Whens, A::Error> {
                When::deserialize(MapAccessDeserializer::new(map)).map(Whens::One)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Whens, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Whens::Any)
            }
        }
        deserializer.deserialize_any(WhensVisitor)
    }
}

impl<'de> Deserialize<'de> for ChunksConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ChunksVisitor;
        impl<'de> Visitor<'de> for ChunksVisitor {
            type Value = ChunksConfig;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of texts or a map of count, text and every")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ChunksConfig, A::Error> {
                Counted::deserialize(MapAccessDeserializer::new(map)).map(ChunksConfig::Counted)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<ChunksConfig, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(ChunksConfig::Texts)
            }
        }
        deserializer.deserialize_any(ChunksVisitor)
    }
}
