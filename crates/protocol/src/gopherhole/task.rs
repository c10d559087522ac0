//! Tasks as clients of the dialect read them.

use super::part::{opaque, payload, text_of, write_part};
use crate::a2a::model::{Artifact, Task, TaskState};
use crate::a2a::request::ListTasksResponse;
use crate::v03::state::name as state_name;
use serde_json::{Map, Value, json};

/// Who has a task with whom, each empty where that is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parties {
    pub client: String,
    pub server: String,
}

/// The state a task is shown in. `submitted` means there that the agent is not connected: a task that waits says why, so
/// one that says nothing is being worked on.
pub fn shown_state(task: &Task) -> TaskState {
    match task.status.state {
        TaskState::Submitted if said(task).is_none() => TaskState::Working,
        state => state,
    }
}

fn said(task: &Task) -> Option<String> {
    task.status.message.as_deref().map(text_of).filter(|text| !text.is_empty())
}

/// The states of tasks that may be shown in one of these.
pub fn states_of(wanted: &[TaskState]) -> &[TaskState] {
    match wanted {
        [TaskState::Working] => &[TaskState::Working, TaskState::Submitted],
        other => other,
    }
}

/// A task without a wrapper.
pub fn task(task: &Task, parties: &Parties) -> Value {
    let mut status = json!({
        "state": state_name(shown_state(task)),
        "timestamp": task.status.timestamp.map(|at| at.to_string()).unwrap_or_default(),
    });
    if let Some(said) = said(task) {
        status["message"] = said.into();
    }
    let mut out = json!({
        "id": task.id,
        "contextId": task.context_id,
        "status": status,
        "history": task.history.iter().map(|message| payload(message)).collect::<Vec<_>>(),
        "artifacts": artifacts(task),
    });
    for (name, party) in [("clientAgentId", &parties.client), ("serverAgentId", &parties.server)] {
        if !party.is_empty() {
            out[name] = party.as_str().into();
        }
    }
    if let Some(metadata) = &task.metadata {
        out["metadata"] = opaque(&metadata.0);
    }
    out
}

/// The task as the answer to a message. If it is done by then, some clients look for the reply at the end of the history
/// alone, so it is there too, within the bound that was asked for.
pub fn sent(task: &Task, parties: &Parties, most: Option<i32>) -> Value {
    let mut out = self::task(task, parties);
    let most = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(0));
    if task.status.state == TaskState::Completed && most > 0 {
        let parts =
            out["artifacts"].as_array().into_iter().flatten().filter_map(|artifact| artifact["parts"].as_array());
        let reply = json!({"role": "agent", "parts": parts.flatten().cloned().collect::<Vec<_>>()});
        if let Some(history) = out["history"].as_array_mut() {
            history.push(reply);
            history.drain(..history.len().saturating_sub(most));
        }
    }
    out
}

/// Answers are looked for among the artifacts: one that came as a message alone is put there.
fn artifacts(task: &Task) -> Vec<Value> {
    let known: Vec<Value> = task.artifacts.iter().flatten().map(|artifact| write_artifact(artifact)).collect();
    match &task.status.message {
        Some(message) if known.is_empty() && task.status.state == TaskState::Completed => {
            let parts: Vec<Value> = message.parts.iter().map(write_part).collect();
            vec![json!({"artifactId": message.message_id, "name": "response", "parts": parts})]
        }
        _ => known,
    }
}

fn write_artifact(artifact: &Artifact) -> Value {
    let mut out = Map::new();
    out.insert("artifactId".into(), artifact.artifact_id.as_str().into());
    for (name, value) in [("name", &artifact.name), ("description", &artifact.description)] {
        if !value.is_empty() {
            out.insert(name.into(), value.as_str().into());
        }
    }
    out.insert("parts".into(), artifact.parts.iter().map(write_part).collect());
    if let Some(metadata) = &artifact.metadata {
        out.insert("metadata".into(), opaque(&metadata.0));
    }
    Value::Object(out)
}

/// A page of what a client has, in all states or one, with each one's agent.
pub fn page(list: &ListTasksResponse, wanted: Option<TaskState>, parties: &[Parties]) -> Value {
    let unknown = Parties::default();
    let parties = parties.iter().chain(std::iter::repeat(&unknown));
    let fits = |(one, _): &(&Task, &Parties)| wanted.is_none_or(|wanted| shown_state(one) == wanted);
    let tasks: Vec<Value> =
        list.tasks.iter().zip(parties).filter(fits).map(|(one, parties)| task(one, parties)).collect();
    let mut out = json!({"tasks": tasks, "totalSize": list.total_size});
    if !list.next_page_token.is_empty() {
        out["nextPageToken"] = list.next_page_token.as_str().into();
    }
    out
}
