//! Frames of the hub's own, between it and whoever is connected: each an object with a `type`.

pub mod refused;
pub mod worker;

use crate::a2a::error::{Reason, Refusal};
use crate::approval::Asking;
use crate::block::Block;
use crate::decode::message;
use crate::fleet::{self, Announce, Version};
use crate::gopherhole;
use crate::lineage::{ANCESTRY, TRACEPARENT, TRACESTATE, find_member};
use crate::wire::{Json, Object};
use crate::work::Assignment;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The sender no agent and no caller can be: the hub itself.
pub const SYSTEM: &str = "@system";

/// What a connected peer says in a frame of its own.
#[derive(Debug)]
pub enum Said {
    Ping,
    Pong,
    Ack(Ack),
    Message(Box<Sending>),
    UpdateCard(Json),
    TaskResponse(Box<TaskResponse>),
    ApprovalRequest(Box<Asking>),
    /// Of a worker: its agent's reports.
    Report(Box<worker::Told>),
    /// Of a worker: nothing of a run is left.
    Gone(worker::Gone),
    /// Of a worker: it takes no more runs.
    Drain,
    /// Of a worker: a small message to its own agent is wanted, which shows whether that works.
    Probe(worker::Probe),
    /// What a worker is and has now.
    Announce(Box<Announce>),
}

/// A run was taken.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ack {
    #[serde(alias = "task_id")]
    pub task_id: String,
    /// Without it, whichever run the task has.
    #[serde(default)]
    pub run: Option<u32>,
    /// Of a worker: its agent takes up what its caller says while it works.
    #[serde(default)]
    pub more: bool,
}

/// The id of a peer's frame. It is said back as it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FrameId {
    Text(String),
    Number(u64),
}

impl FrameId {
    /// None if it is empty.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            Self::Number(number) => Some(number.to_string()),
        }
    }
}

/// A message to another agent, as clients without JSON-RPC send it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sending {
    #[serde(default)]
    pub id: Option<FrameId>,
    pub to: String,
    pub payload: Json,
    #[serde(default)]
    pub context_id: Option<String>,
    #[serde(default)]
    pub task_id: Option<String>,
    #[serde(default, rename = "x-ttl")]
    pub ttl: Option<Json>,
    /// That of the call, beside the message's own: where the ancestry stands.
    #[serde(default)]
    pub metadata: Option<Object>,
    #[serde(default)]
    pub traceparent: Option<String>,
    #[serde(default)]
    pub tracestate: Option<String>,
}

/// What an agent made of a run: a status, an artifact or a chunk of one, or both.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskResponse {
    #[serde(alias = "task_id")]
    pub task_id: String,
    #[serde(default)]
    pub run: Option<u32>,
    #[serde(default)]
    pub status: Option<Standing>,
    #[serde(default)]
    pub artifact: Option<Json>,
    /// False: more of the artifact follows.
    #[serde(default)]
    pub last_chunk: Option<bool>,
    /// Whether the artifact extends one of its id; if it is not said, one that is known is extended.
    #[serde(default)]
    pub append: Option<bool>,
    /// What is for the agent's owner only: what it used, its tools, its thoughts.
    #[serde(default)]
    pub blocks: Vec<Block>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Standing {
    pub state: String,
    /// A text, or a whole message.
    #[serde(default)]
    pub message: Option<Json>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Card {
    #[serde(alias = "agent", alias = "card")]
    agent_card: Json,
}

/// Of itself or of its card.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Announcing {
    #[serde(default)]
    announce: Option<Json>,
    #[serde(default, alias = "agent", alias = "card")]
    agent_card: Option<Json>,
}

fn announce(json: &str) -> Result<Box<Announce>, Refusal> {
    fleet::announcement(json).map_err(|problem| Refusal::invalid("announce", problem))
}

impl Said {
    /// Reads a frame whose `type` is known.
    pub fn parse(kind: &str, bytes: &[u8]) -> Result<Self, Refusal> {
        Ok(match kind {
            "ping" => Self::Ping,
            "pong" => Self::Pong,
            "ack" => Self::Ack(message(bytes)?),
            "message" => Self::Message(Box::new(message(bytes)?)),
            "SESSION_ANNOUNCE" => Self::Announce(announce(&String::from_utf8_lossy(bytes))?),
            "announce" => match message::<Announcing>(bytes)? {
                Announcing { announce: Some(told), .. } => Self::Announce(announce(told.text())?),
                Announcing { agent_card: Some(card), .. } => Self::UpdateCard(card),
                _ => return Err(Refusal::invalid("announce", "must hold a SESSION_ANNOUNCE, or agentCard a card")),
            },
            "update_card" => Self::UpdateCard(message::<Card>(bytes)?.agent_card),
            "task_response" => Self::TaskResponse(Box::new(message(bytes)?)),
            "approval_request" => Self::ApprovalRequest(Box::new(message(bytes)?)),
            "report" => Self::Report(Box::new(worker::Told::read(bytes)?)),
            "gone" => Self::Gone(message(bytes)?),
            "drain" => Self::Drain,
            "probe" => Self::Probe(message(bytes)?),
            other => {
                let shown: String = other.chars().take(80).collect();
                let text = format!(
                    "There is no frame of type '{shown}'. There are: ping, pong, ack, message, update_card, announce, \
                     task_response, approval_request; and of a worker report, gone, drain, probe."
                );
                return Err(Refusal::new(Reason::InvalidRequest, text));
            }
        })
    }
}

/// The first frame: who one is here, and what to show in order to go on after a cut.
pub fn welcome(agent: &str, resume: Option<(&str, bool)>, heartbeat: u64, most: usize) -> String {
    let mut frame = json!({
        "type": "welcome", "agentId": agent, "heartbeatSeconds": heartbeat, "frameBytes": most,
    });
    if let Some((token, resumed)) = resume {
        frame["resumeToken"] = token.into();
        frame["resumed"] = resumed.into();
    }
    frame.to_string()
}

/// A run for an agent. Sent more than once, it has the same task and run, and a higher attempt.
pub fn delivery(work: &Assignment, attempt: u32) -> String {
    let onward = work.lineage.onward();
    let mut frame = json!({
        "type": "message",
        "id": format!("{}.{}", work.task_id, work.run),
        "from": work.from,
        "taskId": work.task_id,
        "contextId": work.context_id,
        "run": work.run,
        "attempt": attempt,
        "turn": work.turn,
        "payload": gopherhole::payload(&work.message),
        "metadata": value(&onward.request_metadata(work.metadata.as_ref())),
        "timestamp": work.asked_at.0,
    });
    // An older ancestry does not go on; other metadata of the message stays as it is.
    let metadata = work.message.metadata.as_ref().filter(|metadata| find_member(metadata, ANCESTRY).is_some());
    if let Some(metadata) = onward.message_metadata(metadata) {
        frame["payload"]["metadata"] = value(&metadata);
    }
    let trace = onward.headers.into_iter().filter(|(name, _)| [TRACEPARENT, TRACESTATE].contains(name));
    for (name, value) in trace {
        frame[name] = value.into();
    }
    if let Some(deadline) = work.lineage.deadline {
        frame["deadline"] = deadline.to_string().into();
    }
    frame.to_string()
}

fn value(metadata: &Object) -> Value {
    serde_json::from_str(metadata.0.text()).unwrap_or_default()
}

/// The run is over for the hub: the agent need not go on.
pub fn cancel(task: &str, run: u32) -> String {
    json!({"type": "cancel", "taskId": task, "run": run}).to_string()
}

/// A frame was taken: durably, if it was a message. A mark says that it changed nothing, and why.
pub fn ack(id: Option<&FrameId>, task: &str, mark: Option<&str>) -> String {
    let mut frame = json!({"type": "ack", "taskId": task});
    if let Some(mark) = mark {
        frame[mark] = true.into();
    }
    if let Some(id) = id {
        frame["id"] = json!(id);
    }
    frame.to_string()
}

/// What became of an announcement.
pub fn announced(taken: bool, epoch: Option<u64>, version: Option<Version>, lease_seconds: u64) -> String {
    json!({"type": "announced", "taken": taken, "epoch": epoch, "version": version, "leaseSeconds": lease_seconds})
        .to_string()
}

pub fn task_update(task: &Value) -> String {
    json!({"type": "task_update", "task": task}).to_string()
}

pub fn simple(kind: &str) -> String {
    json!({"type": kind}).to_string()
}

pub fn warning(text: &str) -> String {
    json!({"type": "warning", "message": text}).to_string()
}

/// A frame of the peer's could not be taken. The code is one its clients know, the rest says what and why.
pub fn error(refusal: &Refusal, about: Option<&FrameId>) -> String {
    let code = match refusal.reason {
        Reason::Unauthenticated => "AUTH_FAILED",
        Reason::PermissionDenied => "ACCESS_DENIED",
        Reason::AgentNotFound => "AGENT_NOT_FOUND",
        Reason::ResourceExhausted => "RATE_LIMITED",
        other => other.row().reason,
    };
    let mut frame = json!({
        "type": "error", "error": code, "code": refusal.reason.row().rpc, "message": refusal.message,
    });
    if let Some(about) = about {
        frame["id"] = json!(about);
    }
    frame.to_string()
}

#[cfg(test)]
mod tests {
    use super::{FrameId, Said, error, welcome};
    use crate::a2a::error::{Reason, Refusal};

    fn said(text: &str) -> Result<Said, String> {
        let kind: serde_json::Value = serde_json::from_str(text).unwrap();
        Said::parse(kind["type"].as_str().unwrap(), text.as_bytes()).map_err(|refusal| refusal.message)
    }

    #[test]
    fn frames_are_read_and_slips_are_told() {
        assert!(matches!(said(r#"{"type":"ack","taskId":"t","run":2}"#), Ok(Said::Ack(ack)) if ack.run == Some(2)));
        let response = r#"{"type":"task_response","taskId":"t","status":{"state":"completed","message":"ok"}}"#;
        assert!(matches!(said(response), Ok(Said::TaskResponse(response)) if response.last_chunk.is_none()));
        assert!(said(r#"{"type":"task_response"}"#).unwrap_err().contains("taskId"));
        assert!(said(r#"{"type":"hello"}"#).unwrap_err().contains("update_card"));
        for kind in ["update_card", "announce"] {
            assert!(matches!(said(&format!(r#"{{"type":"{kind}","agentCard":{{}}}}"#)), Ok(Said::UpdateCard(_))));
        }
        let announce = r#"{"type":"SESSION_ANNOUNCE","protocol_version":"2.0","worker":{"agent_id":"w"}}"#;
        for frame in [announce.to_owned(), format!(r#"{{"type":"announce","announce":{announce}}}"#)] {
            assert!(matches!(said(&frame), Ok(Said::Announce(announce)) if announce.worker.agent_id == "w"));
        }
        assert!(said(r#"{"type":"announce"}"#).unwrap_err().contains("SESSION_ANNOUNCE"));
        let newer = announce.replace("2.0", "3.0");
        assert!(matches!(said(&newer), Ok(Said::Announce(announce)) if announce.spoken().is_none()));
    }

    #[test]
    fn clients_find_what_they_look_for() {
        assert!(welcome("a", None, 30, 9).starts_with(r#"{"agentId":"a""#));
        let refusal = Refusal::new(Reason::AgentNotFound, "There is no agent 'x' here.");
        let frame = error(&refusal, Some(&FrameId::Text("m-1".into())));
        assert!(frame.contains("AGENT_NOT_FOUND") && frame.contains("m-1") && frame.contains("-32602"), "{frame}");
    }
}
