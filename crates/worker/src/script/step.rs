//! One step of a script as it is written: a map with one key, or the bare name of a state.

use super::config::{ApprovalConfig, ArtifactConfig, FileConfig, ProgressConfig, RepeatConfig, given};
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// One thing to do.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(rename_all = "snake_case", transform = allow_bare_states)]
pub enum Step {
    Working(Said),
    Completed(Said),
    Failed(Said),
    Rejected(Said),
    InputRequired(Said),
    AuthRequired(Said),
    Canceled(Said),
    /// An output of the task.
    Artifact(Box<ArtifactConfig>),
    /// A direct message instead of a task.
    Message(Said),
    /// Content blocks for the owner's log.
    Blocks(Vec<Value>),
    /// How far the work has come, for the owner's log.
    Progress(ProgressConfig),
    /// A time to wait: `150ms`, `4s`, `2m`.
    Delay(String),
    Repeat(Box<RepeatConfig>),
    /// Asks the agent's owner for leave; without it, the task fails here.
    Approval(Box<ApprovalConfig>),
}

const NAMES: [&str; 14] = [
    "working",
    "completed",
    "failed",
    "rejected",
    "input_required",
    "auth_required",
    "canceled",
    "artifact",
    "message",
    "blocks",
    "progress",
    "delay",
    "repeat",
    "approval",
];

/// The names above that may stand alone.
const STATES: usize = 7;

fn allow_bare_states(schema: &mut Schema) {
    if let Some(Value::Array(forms)) = schema.get_mut("oneOf") {
        forms.push(serde_json::json!({"type": "string", "enum": NAMES[..STATES]}));
    }
}

/// What goes with a status or a message: nothing, a text, or more.
#[derive(Debug, Clone, Default, JsonSchema)]
#[schemars(untagged)]
pub enum Said {
    #[default]
    Nothing,
    Text(String),
    Map(Box<SaidMap>),
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SaidMap {
    pub text: Option<String>,
    pub file: Option<FileConfig>,
    #[serde(default, deserialize_with = "given")]
    pub data: Option<Value>,
    /// Parts as A2A writes them: `text`, `raw`, `url` or `data`, with `filename`, `mediaType`, `metadata`.
    pub parts: Option<Vec<Value>>,
    /// Content blocks, of which callers see text, files and data.
    pub blocks: Option<Vec<Value>>,
    pub metadata: Option<Map<String, Value>>,
}

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SaidVisitor;
        impl<'de> Visitor<'de> for SaidVisitor {
            type Value = Said;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("nothing, a text, or a map of text, file, data, parts, blocks and metadata")
            }
            fn visit_unit<E: Error>(self) -> Result<Said, E> {
                Ok(Said::Nothing)
            }
            fn visit_none<E: Error>(self) -> Result<Said, E> {
                Ok(Said::Nothing)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Said, E> {
                Ok(Said::Text(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Said, A::Error> {
                SaidMap::deserialize(MapAccessDeserializer::new(map)).map(|map| Said::Map(Box::new(map)))
            }
        }
        deserializer.deserialize_any(SaidVisitor)
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StepVisitor)
    }
}

struct StepVisitor;

impl<'de> Visitor<'de> for StepVisitor {
    type Value = Step;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a step: a map with one of {}", NAMES.join(", "))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Step, E> {
        match state(name) {
            Some(step) => Ok(step(Said::Nothing)),
            None if NAMES.contains(&name) => Err(E::custom(format!("`{name}` needs a value"))),
            None => Err(E::unknown_variant(name, &NAMES)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Step, A::Error> {
        let name: String = map.next_key()?.ok_or_else(|| A::Error::custom("a step must not be empty"))?;
        let step = match name.as_str() {
            "artifact" => Step::Artifact(map.next_value()?),
            "message" => Step::Message(map.next_value()?),
            "blocks" => Step::Blocks(map.next_value()?),
            "progress" => Step::Progress(map.next_value()?),
            "delay" => Step::Delay(map.next_value()?),
            "repeat" => Step::Repeat(map.next_value()?),
            "approval" => Step::Approval(map.next_value()?),
            _ => match state(&name) {
                Some(step) => step(map.next_value()?),
                None => return Err(A::Error::unknown_variant(&name, &NAMES)),
            },
        };
        match map.next_key::<String>()? {
            None => Ok(step),
            Some(next) => {
                Err(A::Error::custom(format!("`{name}` and `{next}` are two steps: write a dash before each")))
            }
        }
    }
}

fn state(name: &str) -> Option<fn(Said) -> Step> {
    Some(match name {
        "working" => Step::Working,
        "completed" => Step::Completed,
        "failed" => Step::Failed,
        "rejected" => Step::Rejected,
        "input_required" => Step::InputRequired,
        "auth_required" => Step::AuthRequired,
        "canceled" => Step::Canceled,
        _ => return None,
    })
}
