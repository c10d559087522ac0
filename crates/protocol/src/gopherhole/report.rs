//! What an agent of the dialect says of its run.

use super::part::{read_message, read_part};
use crate::a2a::error::Refusal;
use crate::a2a::model::{Artifact, Role, TaskState};
use crate::block::Block;
use crate::decode::message;
use crate::fleet::HANDSHAKE;
use crate::hub_frame::{Standing, TaskResponse};
use crate::lineage::{find_member, put_member};
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

/// Content blocks, which may stand in the response itself, with its artifact, or in its message.
#[derive(Deserialize)]
struct Noted {
    #[serde(default)]
    blocks: Vec<Block>,
}

/// The reports a response stands for: its blocks, its artifact, then its status. `knows` says whether the run has made an artifact
/// of that id before, and remembers it if it is told to.
pub fn reports(response: &TaskResponse, knows: impl Fn(&str, bool) -> bool) -> Result<Vec<Report>, Refusal> {
    let mut reports = Vec::new();
    let mut blocks = response.blocks.clone();
    let said = response.status.as_ref().and_then(|status| status.message.as_ref());
    for told in [response.artifact.as_ref(), said].into_iter().flatten().filter(|told| told.text().starts_with('{')) {
        blocks.extend(message::<Noted>(told.text().as_bytes())?.blocks);
    }
    if !blocks.is_empty() {
        reports.push(Report::Note { blocks });
    }
    if let Some(artifact) = &response.artifact {
        reports.extend(read_artifact(response, artifact, knows)?);
    }
    if let Some(status) = &response.status {
        reports.push(read_status(status)?);
    }
    if reports.is_empty() {
        return Err(Refusal::invalid("task_response", "must hold a status, an artifact or blocks"));
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

/// What a message's metadata say of how the work went: the rest is of no use to the hub.
fn handshake(metadata: &Object) -> Option<Object> {
    find_member(metadata, HANDSHAKE).map(|told| put_member(None, HANDSHAKE, told))
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
    let mut metadata = None;
    let contents = match status.message.as_ref().filter(|json| !matches!(json.text(), "null" | "\"\"")) {
        None => None,
        Some(json) if json.text().starts_with('"') => {
            Some(Contents::text(serde_json::from_str::<String>(json.text()).unwrap_or_default()))
        }
        Some(json) => {
            let said = read_message(json, Role::Agent)?;
            metadata = said.metadata.as_ref().and_then(handshake);
            Some(Contents::Parts(said.parts))
        }
    };
    Ok(Report::Status { state, contents, metadata })
}
