//! What an agent of the dialect says of its run.

use super::part::{read_message, read_part};
use crate::a2a::error::Refusal;
use crate::a2a::model::{Artifact, Role, TaskState};
use crate::decode::message;
use crate::hub_frame::{Standing, TaskResponse};
use crate::v03::state::from_name;
use crate::wire::{Json, Object};
use crate::work::{Contents, Report};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece {
    #[serde(default)]
    artifact_id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parts: Vec<Json>,
    #[serde(default)]
    metadata: Option<Object>,
}

/// The reports a response stands for: its artifact, then its status. `knows` says whether the run has made an artifact
/// of that id before, and remembers it if it is told to.
pub fn reports(response: &TaskResponse, knows: impl Fn(&str, bool) -> bool) -> Result<Vec<Report>, Refusal> {
    let mut reports = Vec::new();
    if let Some(artifact) = &response.artifact {
        reports.extend(read_artifact(response, artifact, knows)?);
    }
    if let Some(status) = &response.status {
        reports.push(read_status(status)?);
    }
    if reports.is_empty() {
        return Err(Refusal::invalid("task_response", "must hold a status, an artifact or both"));
    }
    Ok(reports)
}

/// None of an artifact that holds nothing, beside a status that says what there is to say.
fn read_artifact(
    response: &TaskResponse,
    artifact: &Json,
    knows: impl Fn(&str, bool) -> bool,
) -> Result<Option<Report>, Refusal> {
    let Piece { mut artifact_id, name, description, parts, metadata } = message(artifact.text().as_bytes())?;
    if artifact_id.is_empty() {
        artifact_id = "response".into();
    }
    let parts = parts.iter().map(read_part).collect::<Result<Vec<_>, _>>()?;
    // One that was made may end without another part.
    if parts.is_empty() && (response.append == Some(false) || !knows(&artifact_id, false)) {
        return match response.status {
            Some(_) => Ok(None),
            None => Err(Refusal::invalid("artifact.parts", "must hold at least one part")),
        };
    }
    let known = knows(&artifact_id, true);
    Ok(Some(Report::Artifact {
        artifact: Box::new(Artifact { artifact_id, name, description, metadata, ..Artifact::default() }),
        contents: Contents::Parts(parts),
        append: response.append.unwrap_or(known) && known,
        last_chunk: response.last_chunk.unwrap_or(true),
        metadata: None,
    }))
}

fn read_status(status: &Standing) -> Result<Report, Refusal> {
    let state = from_name(&status.state).filter(|state| *state != TaskState::Unspecified).ok_or_else(|| {
        let shown: String = status.state.chars().take(40).collect();
        let text = format!(
            "'{shown}' is none of working, input-required, auth-required, completed, failed, canceled, rejected"
        );
        Refusal::invalid("status.state", text)
    })?;
    // An agent that says it has not begun has at least got it.
    let state = if state == TaskState::Submitted { TaskState::Working } else { state };
    let contents = match status.message.as_ref().filter(|json| !matches!(json.text(), "null" | "\"\"")) {
        None => None,
        Some(json) if json.text().starts_with('"') => {
            Some(Contents::text(serde_json::from_str::<String>(json.text()).unwrap_or_default()))
        }
        Some(json) => Some(Contents::Parts(read_message(json, Role::Agent)?.parts)),
    };
    Ok(Report::Status { state, contents, metadata: None })
}
