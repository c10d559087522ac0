//! Frames between the hub and a worker: runs with all their facts out, whole reports back, numbered and acknowledged.

use crate::a2a::error::Refusal;
use crate::a2a::model::{Message, Part, TaskState};
use crate::a2a::validate::check_part;
use crate::approval::{ApprovalDecision, read_decision};
use crate::decode;
use crate::lineage::Lineage;
use crate::time::Millis;
use crate::wire::Object;
use crate::work::{Assignment, Contents, Report, Trail};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

/// The subprotocol by which a worker says what it is.
pub const SUBPROTOCOL: &str = "flotilla.worker.v1";

/// What a worker's agent said of a run. Numbers rise by one within a run; one that was kept changes nothing again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    pub task_id: String,
    pub run: u32,
    pub number: u64,
    pub reports: Vec<Report>,
}

/// Nothing of a run is left at its worker, and nothing more will be said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gone {
    pub task_id: String,
    pub run: u32,
    pub number: u64,
    /// In words, for a run nobody asked to stop.
    pub reason: String,
}

/// A worker wants to see whether its agent works: the hub sends this to it, as its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// The id the message is to have, by which the worker knows it.
    pub message_id: String,
    pub text: String,
}

pub fn probe_frame(message_id: &str, text: &str) -> String {
    typed("probe", &Probe { message_id: message_id.to_owned(), text: text.to_owned() })
}

/// A frame of a worker's, with its type.
#[derive(Debug, Serialize)]
struct Typed<'a, T> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    frame: &'a T,
}

fn typed<T: Serialize>(kind: &str, frame: &T) -> String {
    serde_json::to_string(&Typed { kind, frame }).expect("texts, numbers and kept JSON are JSON")
}

impl Told {
    pub fn frame(&self) -> String {
        typed("report", self)
    }

    pub fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let told: Self = decode::message(bytes)?;
        for (index, report) in told.reports.iter().enumerate() {
            check(report).map_err(|problem| Refusal::invalid(&format!("reports[{index}]"), problem))?;
        }
        Ok(told)
    }
}

impl Gone {
    pub fn frame(&self) -> String {
        typed("gone", self)
    }
}

/// Which report a frame is, where the rest of it cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Untaken {
    pub task_id: String,
    pub run: u32,
    pub number: u64,
}

impl Untaken {
    /// None of a frame that is no report, or does not say which.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Kind<'a> {
            #[serde(rename = "type")]
            kind: &'a str,
        }
        let Kind { kind } = serde_json::from_slice(bytes).ok()?;
        if kind == "report" { serde_json::from_slice(bytes).ok() } else { None }
    }

    /// The error frame that says so.
    pub fn frame(&self, refusal: &Refusal) -> String {
        let row = refusal.reason.row();
        json!({
            "type": "error", "error": row.reason, "code": row.rpc, "message": refusal.message,
            "taskId": self.task_id, "run": self.run, "number": self.number,
        })
        .to_string()
    }

    /// What its run comes to: nothing of it is left out in silence.
    pub fn failure(&self, refusal: &Refusal) -> Report {
        let words = format!("What the agent said could not be taken, and the run was ended: {}", refusal.message);
        Report::Status { state: TaskState::Failed, contents: Some(Contents::text(words)), metadata: None }
    }
}

/// What a binding checks of a caller's message holds for what an agent shows, too.
pub fn check(report: &Report) -> Result<(), String> {
    let contents = match report {
        Report::Status { contents, .. } => contents.as_ref(),
        Report::Artifact { contents, .. } | Report::Answer { contents, .. } => Some(contents),
        Report::Note { .. } | Report::TookUp | Report::Linked { .. } | Report::Received { .. } => None,
    };
    let parts: &[Part] = match contents {
        Some(Contents::Parts(parts)) => parts,
        Some(Contents::Message(message)) => &message.parts,
        Some(Contents::Blocks(_)) | None => &[],
    };
    parts.iter().try_for_each(check_part)
}

/// A run for a worker, with all its agent may want to know.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunFrame {
    pub task_id: String,
    pub context_id: String,
    pub run: u32,
    /// The same number for the same caller always, and for no other.
    #[serde(default)]
    pub caller: i64,
    /// More than one: it may have come before.
    pub attempt: u32,
    pub turn: u32,
    pub message: Arc<Message>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_output_modes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    pub asked_at: Millis,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    #[serde(default)]
    pub watched: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    pub lineage: Lineage,
}

impl RunFrame {
    pub fn of(work: &Assignment, attempt: u32) -> Self {
        Self {
            task_id: work.task_id.clone(),
            context_id: work.context_id.clone(),
            run: work.run,
            caller: work.caller,
            attempt,
            turn: work.turn,
            message: Arc::clone(&work.message),
            accepted_output_modes: work.accepted_output_modes.clone(),
            metadata: Some(work.lineage.onward().request_metadata(work.metadata.as_ref())),
            asked_at: work.asked_at,
            from: work.from.clone(),
            watched: work.watched,
            max_cost_usd: work.max_cost_usd,
            lineage: work.lineage.clone(),
        }
    }

    pub fn frame(&self) -> String {
        typed("message", self)
    }

    pub fn into_assignment(self) -> Assignment {
        Assignment {
            task_id: self.task_id,
            context_id: self.context_id,
            run: self.run,
            caller: self.caller,
            turn: self.turn,
            message: self.message,
            accepted_output_modes: self.accepted_output_modes,
            metadata: self.metadata,
            asked_at: self.asked_at,
            from: self.from,
            ttl: None,
            watched: self.watched,
            max_cost_usd: self.max_cost_usd,
            trail: Trail::default(),
            lineage: self.lineage,
        }
    }
}

/// A report or the end of a run is kept; `over` if the run was over and nothing changed.
pub fn kept(task: &str, run: u32, number: u64, over: bool) -> String {
    let mut frame = json!({"type": "ack", "taskId": task, "run": run, "number": number});
    if over {
        frame["over"] = true.into();
    }
    frame.to_string()
}

/// The worker has a run; `more` if its agent takes up what its caller says meanwhile.
pub fn taken(task: &str, run: u32, more: bool) -> String {
    let mut frame = json!({"type": "ack", "taskId": task, "run": run});
    if more {
        frame["more"] = true.into();
    }
    frame.to_string()
}

/// What the caller says while a run is under way, for an agent that takes it up.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MoreFrame {
    pub task_id: String,
    pub run: u32,
    pub message: Arc<Message>,
}

impl MoreFrame {
    pub fn frame(&self) -> String {
        typed("more", self)
    }
}

/// What the hub says to a worker.
#[derive(Debug)]
pub enum Heard {
    Welcome(Welcome),
    Run(Box<RunFrame>),
    /// The run is to end, or is over already.
    Cancel {
        task: String,
        run: u32,
    },
    Kept(Kept),
    More(Box<MoreFrame>),
    /// What the agent's owner said to a question of a task.
    Decided {
        task: String,
        id: String,
        decision: ApprovalDecision,
    },
    /// An announcement was heard; it counts for so long.
    Announced(Announced),
    /// Something was not taken, or is worth knowing.
    Problem(Problem),
    /// A frame this version has no use for.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    pub agent_id: String,
    #[serde(default)]
    pub resume_token: Option<String>,
    #[serde(default)]
    pub heartbeat_seconds: u64,
    /// The largest frame the hub takes.
    #[serde(default)]
    pub frame_bytes: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    pub task_id: String,
    #[serde(default)]
    pub run: u32,
    #[serde(default)]
    pub number: u64,
    #[serde(default)]
    pub over: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Announced {
    #[serde(default)]
    pub lease_seconds: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// What it is about, if the worker gave that a name.
    #[serde(default)]
    pub id: Option<String>,
    /// The task whose report was not taken, if it was one.
    #[serde(default)]
    pub task_id: Option<String>,
    #[serde(default)]
    pub message: String,
}

impl Heard {
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Kind {
            #[serde(rename = "type", default)]
            kind: String,
        }
        let Kind { kind } = serde_json::from_str(text)?;
        Ok(match kind.as_str() {
            "welcome" => Self::Welcome(serde_json::from_str(text)?),
            "message" => Self::Run(serde_json::from_str(text)?),
            "cancel" => {
                let Kept { task_id: task, run, .. } = serde_json::from_str(text)?;
                Self::Cancel { task, run }
            }
            "ack" => Self::Kept(serde_json::from_str(text)?),
            "more" => Self::More(serde_json::from_str(text)?),
            "approval_decision" => {
                let (task, id, decision) = read_decision(text)?;
                Self::Decided { task, id, decision }
            }
            "announced" => Self::Announced(serde_json::from_str(text)?),
            "error" | "warning" => Self::Problem(serde_json::from_str(text)?),
            _ => Self::Other,
        })
    }
}

#[cfg(test)]
mod tests;
