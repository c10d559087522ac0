//! Tasks of GopherHole's own agents: all that was said is in `messages`, and nothing else is made of it.

use flotilla_protocol::a2a::model::{Artifact, Role, Task};
use flotilla_protocol::gopherhole::read_message;
use flotilla_protocol::wire::Json;
use serde::Deserialize;

#[derive(Deserialize)]
struct Spoken {
    #[serde(default)]
    role: String,
}

/// The same task, with what the agent said last as its artifact, where it would hold nothing otherwise.
pub fn lifted(mut task: Task) -> Task {
    let is_empty = task.artifacts.as_ref().is_none_or(Vec::is_empty)
        && task.status.message.is_none()
        && !task.history.iter().any(|message| message.role == Role::Agent);
    if !is_empty || !task.status.state.is_terminal() {
        return task;
    }
    let messages = task.unknown.iter().find(|(name, _)| name == "messages").map(|(_, json)| json.text());
    let messages: Vec<Json> = messages.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    let is_agents = |json: &&Json| {
        serde_json::from_str::<Spoken>(json.text()).is_ok_and(|spoken| matches!(&*spoken.role, "agent" | "ROLE_AGENT"))
    };
    let last = messages.iter().rev().find(is_agents).and_then(|json| read_message(json, Role::Agent).ok());
    if let Some(parts) = last.map(|message| message.parts).filter(|parts| !parts.is_empty()) {
        let artifact = Artifact { artifact_id: "reply".into(), name: "reply".into(), parts, ..Artifact::default() };
        task.artifacts = Some(vec![artifact.into()]);
    }
    task
}
