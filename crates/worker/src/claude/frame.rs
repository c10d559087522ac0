//! The frames Claude Code prints, one JSON object a line: those that mean something to a hub, and the rest as they are.

use flotilla_protocol::wire::Json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// One line. What has another shape than expected is kept as unknown: versions differ.
#[derive(Debug)]
pub enum Frame {
    /// The session has begun.
    Init(Box<Init>),
    /// What the model said.
    Assistant(Spoken),
    /// What a tool said, or what the user said and is told again.
    User(Spoken),
    /// A piece of a message that is still being said.
    Piece(Piece),
    /// The program wants to be answered before it goes on.
    Request(Request),
    /// The turn is over.
    Result(Box<Outcome>),
    RateLimit(RateLimit),
    /// The model could not be asked, and is asked again after a while.
    Retry(Retry),
    /// Says only that something goes on.
    Heartbeat,
    Unknown(Json),
    /// No JSON object at all.
    Garbage(String),
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub struct Init {
    pub session_id: String,
    #[serde(default)]
    pub model: String,
    #[serde(default)]
    pub tools: Vec<String>,
    #[serde(default)]
    pub mcp_servers: Vec<McpServer>,
    #[serde(default)]
    pub claude_code_version: String,
    #[serde(default, rename = "permissionMode")]
    pub permission_mode: String,
    #[serde(default)]
    pub cwd: String,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub struct McpServer {
    pub name: String,
    #[serde(default)]
    pub status: String,
}

#[derive(Debug, Deserialize)]
pub struct Spoken {
    pub message: Message,
    /// The tool use that a subordinate agent works for.
    #[serde(default)]
    pub parent_tool_use_id: Option<String>,
    #[serde(default)]
    pub uuid: String,
    /// It repeats what it was told, once it takes it up.
    #[serde(default, rename = "isReplay")]
    pub is_replay: bool,
    /// The message is made up by the program, to tell of an error.
    #[serde(default)]
    pub error: Option<Json>,
}

#[derive(Debug, Deserialize)]
pub struct Message {
    pub content: Json,
    /// Of the model's call that made it; its frames have it in common.
    #[serde(default, deserialize_with = "if_readable")]
    pub id: Option<String>,
    #[serde(default, deserialize_with = "if_readable")]
    pub usage: Option<Tokens>,
}

#[derive(Debug, Deserialize)]
pub struct Piece {
    pub event: PieceEvent,
    #[serde(default)]
    pub parent_tool_use_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct PieceEvent {
    #[serde(default, rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub delta: Option<Delta>,
    /// With which a call begins.
    #[serde(default, deserialize_with = "if_readable")]
    pub message: Option<Begun>,
    /// With which it ends.
    #[serde(default, deserialize_with = "if_readable")]
    pub usage: Option<Tokens>,
}

#[derive(Debug, Deserialize)]
pub struct Begun {
    pub id: String,
    #[serde(default, deserialize_with = "if_readable")]
    pub usage: Option<Tokens>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Delta {
    #[serde(rename = "type")]
    pub kind: String,
    pub text: String,
}

#[derive(Debug, Deserialize)]
pub struct Request {
    pub request_id: String,
    pub request: Asked,
}

#[derive(Debug, Deserialize)]
pub struct Asked {
    pub subtype: String,
    #[serde(default)]
    pub tool_name: String,
    #[serde(default)]
    pub input: Option<Json>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub tool_use_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Outcome {
    pub subtype: String,
    pub is_error: bool,
    pub api_error_status: Option<u16>,
    pub result: Option<String>,
    pub errors: Vec<String>,
    pub structured_output: Option<Json>,
    pub total_cost_usd: Option<f64>,
    pub usage: Tokens,
    #[serde(rename = "modelUsage")]
    pub model_usage: BTreeMap<String, Json>,
    pub num_turns: Option<u64>,
    pub duration_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Tokens {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_read_input_tokens: Option<u64>,
    pub cache_creation_input_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub struct RateLimit {
    pub rate_limit_info: RateLimitInfo,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct RateLimitInfo {
    pub status: String,
    /// In seconds since 1970.
    #[serde(rename = "resetsAt")]
    pub resets_at: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Retry {
    pub attempt: Option<u64>,
    pub retry_delay_ms: Option<f64>,
    pub error_status: Option<u16>,
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    subtype: String,
}

impl Frame {
    pub fn read(line: &str) -> Self {
        let Ok(envelope) = serde_json::from_str::<Envelope>(line) else { return Self::Garbage(line.to_owned()) };
        let read = match (envelope.kind.as_str(), envelope.subtype.as_str()) {
            ("system", "init") => as_is(line, |init| Self::Init(Box::new(init))),
            ("system", "api_retry") => as_is(line, Self::Retry),
            ("system", "status" | "thinking_tokens") | ("keep_alive", _) => Some(Self::Heartbeat),
            ("assistant", _) => as_is(line, Self::Assistant),
            ("user", _) => as_is(line, Self::User),
            ("stream_event", _) => Some(as_is(line, Self::Piece).unwrap_or(Self::Heartbeat)),
            ("control_request", _) => as_is(line, Self::Request),
            ("result", _) => as_is(line, |outcome| Self::Result(Box::new(outcome))),
            ("rate_limit_event", _) => as_is(line, Self::RateLimit),
            _ => None,
        };
        read.unwrap_or_else(|| match Json::new(line.to_owned()) {
            Ok(json) => Self::Unknown(json),
            Err(_) => Self::Garbage(line.to_owned()),
        })
    }
}

/// What has another shape than expected does not make its frame another one.
fn if_readable<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let json = Json::deserialize(deserializer)?;
    Ok(serde_json::from_str(json.text()).ok())
}

fn as_is<T: DeserializeOwned>(line: &str, make: impl Fn(T) -> Frame) -> Option<Frame> {
    serde_json::from_str(line).ok().map(make)
}

#[cfg(test)]
mod tests {
    use super::Frame;

    #[test]
    fn what_is_not_understood_is_kept() {
        for (line, expected) in [
            (r#"{"type":"system","subtype":"init","session_id":"s","tools":["Bash"],"new":{}}"#, "Init"),
            (r#"{"type":"system","subtype":"api_retry","retry_delay_ms":3000.5,"error_status":429}"#, "Retry"),
            (r#"{"type":"system","subtype":"compact_boundary"}"#, "Unknown"),
            (r#"{"type":"system","subtype":"status","status":"requesting"}"#, "Heartbeat"),
            (r#"{"type":"assistant","message":{"content":[]},"error":{"odd":1}}"#, "Assistant"),
            (r#"{"type":"assistant","message":"odd"}"#, "Unknown"),
            (r#"{"type":"stream_event","event":7}"#, "Heartbeat"),
            (
                r#"{"type":"result","subtype":"success","result":"x","usage":{"input_tokens":1,"speed":"fast"}}"#,
                "Result",
            ),
            (r#"{"type":"hologram"}"#, "Unknown"),
            (r#"{"type":"assist"#, "Garbage"),
            ("warning: something", "Garbage"),
            ("[1]", "Garbage"),
        ] {
            let read = format!("{:?}", Frame::read(line));
            assert!(read.starts_with(expected), "{line} is {read}");
        }
    }
}
