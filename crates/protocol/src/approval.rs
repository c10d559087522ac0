//! Approvals: what an agent asks its owner for leave to do, and what came of it.

use crate::wire::Json;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What an agent may ask leave for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// To use a tool.
    #[default]
    ToolPermission,
    Other,
}

impl ApprovalKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::ToolPermission => "tool_permission",
            Self::Other => "other",
        }
    }
}

/// A question to the owner of an agent. The agent's caller neither sees nor answers it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// The asker's own name for it, one of a kind in its run: asked again under it, it is the same question.
    pub id: String,
    #[serde(default)]
    pub kind: ApprovalKind,
    /// The tool that is to be used.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// What it is to be used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// What is asked, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// How long the asker waits, in seconds, if that is less than the hub would let it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u32>,
}

impl ApprovalRequest {
    /// Whether both ask the same, however long they wait for an answer and in whatever order their input is written.
    pub fn is_same(&self, other: &Self) -> bool {
        let value = |json: &Json| serde_json::from_str::<Value>(json.text()).ok();
        let (input, others) = (&self.input, &other.input);
        (&self.id, self.kind, &self.tool, &self.text) == (&other.id, other.kind, &other.tool, &other.text)
            && (input == others || input.as_ref().map(value) == others.as_ref().map(value))
    }
}

/// Where a question stands. Names are stored, so they only ever grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    Open,
    Allowed,
    Denied,
    /// Nobody answered in time, which counts as no.
    Expired,
    /// The run that asked is over.
    Withdrawn,
}

impl ApprovalState {
    pub const ALL: [Self; 5] = [Self::Open, Self::Allowed, Self::Denied, Self::Expired, Self::Withdrawn];

    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// What the asker is told.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalDecision {
    /// Never open.
    pub state: ApprovalState,
    /// What to use the tool with instead, if the owner changed it.
    pub input: Option<Json>,
    /// What the owner said about it.
    pub note: String,
}

impl ApprovalDecision {
    pub fn denied(note: impl Into<String>) -> Self {
        Self { state: ApprovalState::Denied, input: None, note: note.into() }
    }

    /// Only a plain yes is one.
    pub fn is_allowed(&self) -> bool {
        self.state == ApprovalState::Allowed
    }
}

/// `approval_request`: the frame an agent that dialed in asks with.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asking {
    #[serde(alias = "task_id")]
    pub task_id: String,
    /// Without it, whichever run the task has.
    #[serde(default)]
    pub run: Option<u32>,
    id: String,
    #[serde(default)]
    kind: ApprovalKind,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    input: Option<Json>,
    #[serde(default)]
    text: String,
    #[serde(default)]
    expires_in: Option<u32>,
}

impl Asking {
    pub fn request(self) -> ApprovalRequest {
        let Self { id, kind, tool, input, text, expires_in, .. } = self;
        ApprovalRequest { id, kind, tool, input, text, expires_in }
    }
}

/// `approval_request`, as a worker writes it.
pub fn request_frame(task: &str, run: u32, request: &ApprovalRequest) -> String {
    let mut frame = serde_json::to_value(request).unwrap_or_default();
    (frame["type"], frame["taskId"], frame["run"]) = ("approval_request".into(), task.into(), run.into());
    frame.to_string()
}

/// `approval_decision`: the answer to one.
pub fn decision_frame(id: &str, task: &str, decision: &ApprovalDecision) -> String {
    let mut frame = json!({
        "type": "approval_decision", "id": id, "taskId": task,
        "decision": if decision.is_allowed() { "allow" } else { "deny" }, "state": decision.state.name(),
    });
    if !decision.note.is_empty() {
        frame["note"] = decision.note.as_str().into();
    }
    if let Some(input) = &decision.input {
        frame["input"] = serde_json::from_str(input.text()).unwrap_or_default();
    }
    frame.to_string()
}

/// `approval_decision`, as a worker reads it: which question, and what came of it.
pub fn read_decision(frame: &str) -> Result<(String, String, ApprovalDecision), serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Decided {
        id: String,
        task_id: String,
        state: ApprovalState,
        #[serde(default)]
        input: Option<Json>,
        #[serde(default)]
        note: String,
    }
    let Decided { id, task_id, state, input, note } = serde_json::from_str(frame)?;
    Ok((task_id, id, ApprovalDecision { state, input, note }))
}

#[cfg(test)]
mod tests {
    use super::{
        ApprovalDecision, ApprovalKind, ApprovalRequest, ApprovalState, Asking, decision_frame, request_frame,
    };
    use crate::wire::Json;

    #[test]
    fn a_question_is_written_and_read_back() {
        let input = Some(Json::new(r#"{"command":"ls"}"#.into()).unwrap());
        let asked = ApprovalRequest { id: "q1".into(), tool: "Bash".into(), input, ..ApprovalRequest::default() };
        let frame = request_frame("t", 2, &asked);
        let read: Asking = serde_json::from_str(&frame).unwrap();
        assert_eq!((read.task_id.as_str(), read.run, read.kind), ("t", Some(2), ApprovalKind::ToolPermission));
        assert_eq!(read.request(), asked);
        assert!(serde_json::from_str::<Asking>(r#"{"taskId":"t"}"#).is_err(), "a question has a name");
    }

    #[test]
    fn only_a_plain_yes_is_one() {
        for state in ApprovalState::ALL {
            let decision = ApprovalDecision { state, input: None, note: String::new() };
            let word = if state == ApprovalState::Allowed { "allow" } else { "deny" };
            assert!(decision_frame("q1", "t", &decision).contains(word), "{}", state.name());
            assert_eq!(ApprovalState::from_name(state.name()), Some(state));
            let read = super::read_decision(&decision_frame("q1", "t", &decision)).unwrap();
            assert_eq!(read, ("t".to_owned(), "q1".to_owned(), decision));
        }
    }
}
