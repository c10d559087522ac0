//! The form without kinds: what holds what as in 1.0, in the methods and words of 0.3. FastA2A speaks it.

use super::{Out, V03};
use crate::a2a::model::{Message, StatusUpdate, StreamResponse, Task, TaskStatus};
use serde::ser::{SerializeMap as _, Serializer};
use serde::{Deserialize, Serialize};

/// A value of the 1.0 model in this form.
pub struct Bare<'a, T>(pub &'a T);

impl Serialize for Bare<'_, Message> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.always("messageId", &self.0.message_id)?;
        out.put("contextId", &self.0.context_id)?;
        out.put("taskId", &self.0.task_id)?;
        out.always("role", &V03(&self.0.role))?;
        out.always("parts", &self.0.parts)?;
        out.put("metadata", &self.0.metadata)?;
        out.put("extensions", &self.0.extensions)?;
        out.put("referenceTaskIds", &self.0.reference_task_ids)?;
        out.rest(&self.0.unknown, &[])
    }
}

impl Serialize for Bare<'_, TaskStatus> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.always("state", &V03(&self.0.state))?;
        if let Some(message) = &self.0.message {
            out.always("message", &Bare(&**message))?;
        }
        out.put("timestamp", &self.0.timestamp)?;
        out.rest(&self.0.unknown, &[])
    }
}

impl Serialize for Bare<'_, Task> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.always("id", &self.0.id)?;
        out.always("contextId", &self.0.context_id)?;
        out.always("status", &Bare(&self.0.status))?;
        out.put("artifacts", &self.0.artifacts)?;
        let history: Vec<_> = self.0.history.iter().map(|message| Bare(&**message)).collect();
        if !history.is_empty() {
            out.always("history", &history)?;
        }
        out.put("metadata", &self.0.metadata)?;
        out.rest(&self.0.unknown, &[])
    }
}

impl Serialize for Bare<'_, StatusUpdate> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.always("taskId", &self.0.task_id)?;
        out.always("contextId", &self.0.context_id)?;
        out.always("status", &Bare(&self.0.status))?;
        out.put("metadata", &self.0.metadata)?;
        out.rest(&self.0.unknown, &[])
    }
}

impl Serialize for Bare<'_, StreamResponse> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(Some(1))?;
        match self.0 {
            StreamResponse::Task(task) => out.serialize_entry("task", &Bare(task))?,
            StreamResponse::Message(message) => out.serialize_entry("message", &Bare(&**message))?,
            StreamResponse::StatusUpdate(update) => out.serialize_entry("statusUpdate", &Bare(update))?,
            StreamResponse::ArtifactUpdate(update) => out.serialize_entry("artifactUpdate", update)?,
        }
        out.end()
    }
}

/// What tells a message of this form: a role as in 0.3, and nothing that says of what kind it is.
#[derive(Deserialize)]
struct Signs {
    message: MessageSigns,
}

#[derive(Deserialize)]
struct MessageSigns {
    #[serde(default)]
    kind: Option<serde::de::IgnoredAny>,
    role: String,
    parts: Vec<PartSigns>,
}

#[derive(Deserialize)]
struct PartSigns {
    kind: Option<serde::de::IgnoredAny>,
    #[serde(rename = "type")]
    older_kind: Option<serde::de::IgnoredAny>,
    file: Option<serde::de::IgnoredAny>,
}

/// Whether the parameters of a send are in this form.
pub fn shows(params: &str) -> bool {
    let Ok(Signs { message }) = serde_json::from_str(params) else { return false };
    let is_bare = |part: &PartSigns| part.kind.is_none() && part.older_kind.is_none() && part.file.is_none();
    message.role == "user" && message.kind.is_none() && !message.parts.is_empty() && message.parts.iter().all(is_bare)
}

#[cfg(test)]
mod tests {
    use super::{Bare, shows};
    use crate::a2a::model::{StreamResponse, Task};
    use serde_json::{Value, json};

    #[test]
    fn a_send_shows_it_by_what_it_leaves_out() {
        let send = |role: &str, part: &Value| shows(&json!({"message": {"role": role, "parts": [part]}}).to_string());
        assert!(send("user", &json!({"text": "hi"})));
        assert!(send("user", &json!({"data": {"kind": "x"}})));
        assert!(!send("user", &json!({"kind": "text", "text": "hi"})));
        assert!(!send("user", &json!({"type": "text", "text": "hi"})));
        assert!(!send("user", &json!({"file": {"uri": "u"}})));
        assert!(!send("ROLE_USER", &json!({"text": "hi"})));
        assert!(!shows(r#"{"message":{"kind":"message","role":"user","parts":[{"text":"hi"}]}}"#));
        assert!(!shows("{}"));
    }

    #[test]
    fn it_holds_things_as_1_0_and_names_them_as_0_3() {
        let parts =
            json!([{"text": "a"}, {"raw": "aGk=", "filename": "f", "mediaType": "text/plain"}, {"data": [1, 2.50]}]);
        let message = |role: &str| json!({"messageId": "m", "role": role, "parts": parts, "x": 1});
        let task = |state: &str, role: &str| {
            json!({"id": "t", "contextId": "c", "status": {"state": state, "message": message(role)},
                "artifacts": [{"artifactId": "a", "parts": parts}], "history": [message(role)], "metadata": {"k": 1}})
        };
        let held: Task = serde_json::from_value(task("TASK_STATE_INPUT_REQUIRED", "ROLE_AGENT")).unwrap();
        assert_eq!(serde_json::to_value(Bare(&held)).unwrap(), task("input-required", "agent"));
        let wrapped = serde_json::to_value(Bare(&StreamResponse::Task(held))).unwrap();
        assert_eq!(wrapped, json!({"task": task("input-required", "agent")}));
    }
}
