//! From this form to the model, and the requests that come in it. Fields neither of them names are kept.

use super::model as old;
use crate::a2a::error::Refusal;
use crate::a2a::model::{Artifact, ArtifactUpdate, Message, Part, StatusUpdate, StreamResponse, Task, TaskStatus};
use crate::a2a::push::ListPushConfigsResponse;
use crate::a2a::request::{AuthenticationInfo, PushConfig, SendMessageConfiguration, SendMessageRequest};
use crate::decode;
use crate::proto03::file::Files;
use crate::proto03::{name, opaque};
use crate::wire::{AnyValue, Named as _, Unknown};
use std::sync::Arc;

pub fn task(json: &[u8], files: Files) -> Result<Task, Refusal> {
    decode::message(json).map(|task| to_task(task, files))
}

/// One frame of a stream, or the answer to a send.
pub fn frame(json: &[u8], files: Files) -> Result<StreamResponse, Refusal> {
    let frame: old::StreamResponse = decode::message(json)?;
    if let Some(task) = frame.task {
        Ok(StreamResponse::Task(to_task(task, files)))
    } else if let Some(message) = frame.message {
        Ok(StreamResponse::Message(Arc::new(to_message(message, files))))
    } else if let Some(update) = frame.status_update {
        Ok(StreamResponse::StatusUpdate(StatusUpdate {
            task_id: update.task_id,
            context_id: update.context_id,
            status: to_status(update.status.unwrap_or_default(), files),
            metadata: update.metadata,
            unknown: kept(update.unknown, StatusUpdate::NAMES),
        }))
    } else if let Some(update) = frame.artifact_update {
        Ok(StreamResponse::ArtifactUpdate(ArtifactUpdate {
            task_id: update.task_id,
            context_id: update.context_id,
            artifact: Arc::new(to_artifact(update.artifact.unwrap_or_default(), files)),
            append: update.append,
            last_chunk: update.last_chunk,
            metadata: update.metadata,
            unknown: kept(update.unknown, ArtifactUpdate::NAMES),
        }))
    } else {
        Err(Refusal::invalid("", "neither task, message, statusUpdate nor artifactUpdate"))
    }
}

pub fn push_config(json: &[u8]) -> Result<PushConfig, Refusal> {
    decode::message(json).and_then(to_push_config)
}

pub fn push_list(json: &[u8]) -> Result<ListPushConfigsResponse, Refusal> {
    let page: old::PushConfigPage = decode::message(json)?;
    let configs = page.configs.into_iter().map(to_push_config).collect::<Result<_, _>>()?;
    Ok(ListPushConfigsResponse { configs, next_page_token: page.next_page_token })
}

fn to_push_config(config: old::TaskPushConfig) -> Result<PushConfig, Refusal> {
    let (task_id, id) = name::config("name", &config.name)?;
    Ok(PushConfig { task_id: task_id.to_owned(), id: id.to_owned(), ..bare_config(config.config.unwrap_or_default()) })
}

/// Of several schemes the first is used; 1.0 has room for one.
pub fn bare_config(config: old::PushConfig) -> PushConfig {
    PushConfig {
        id: config.id,
        url: config.url,
        token: config.token,
        // An empty one is what some senders write where there is none.
        authentication: config.authentication.filter(|shown| *shown != old::Authentication::default()).map(|shown| {
            AuthenticationInfo {
                scheme: shown.schemes.into_iter().next().unwrap_or_default(),
                credentials: shown.credentials,
                unknown: kept(shown.unknown, AuthenticationInfo::NAMES),
            }
        }),
        unknown: kept(config.unknown, PushConfig::NAMES),
        ..PushConfig::default()
    }
}

/// Without a configuration nothing was said about waiting, and a send waits. With one its `blocking` counts, which is
/// left out of this form where it is false.
pub fn send_message(request: old::SendMessageRequest, files: Files) -> SendMessageRequest {
    SendMessageRequest {
        message: request.message.map(|message| to_message(message, files)),
        configuration: request.configuration.map(|asked| SendMessageConfiguration {
            accepted_output_modes: asked.accepted_output_modes,
            push_config: asked.push_config.map(bare_config),
            history_length: asked.history_length.filter(|length| length.0 != 0),
            return_immediately: !asked.blocking,
            unknown: kept(asked.unknown, SendMessageConfiguration::NAMES),
        }),
        metadata: request.metadata,
        unknown: kept(request.unknown, SendMessageRequest::NAMES),
        ..SendMessageRequest::default()
    }
}

/// Fields neither version names are kept. One whose name means something in 1.0 cannot be, nor can `kind`, by which the
/// other form of 0.3 tells what something is.
fn kept(mut unknown: Unknown, taken: &[&str]) -> Unknown {
    unknown.retain(|(name, _)| name != "kind" && !taken.contains(&name.as_str()));
    unknown
}

fn to_part(part: old::Part, files: Files) -> Part {
    let old::Part { text, metadata, filename, media_type, .. } = part;
    let unknown = kept(part.unknown, Part::NAMES);
    let mut read = Part { text, metadata, filename, media_type, unknown, ..Part::default() };
    if let Some(content) = part.file {
        read.url = content.file_with_uri;
        read.raw = content.file_with_bytes.map(|bytes| files.read(&bytes.decode()));
        (read.media_type, read.filename) = (content.mime_type, content.name);
    }
    if let Some(content) = part.data
        && let Some(data) = content.data
    {
        let (data, metadata) = opaque::unwrap(data, read.metadata.take());
        (read.data, read.metadata) = (AnyValue(Some(data)), metadata);
    }
    read
}

fn to_message(message: old::Message, files: Files) -> Message {
    Message {
        message_id: message.message_id,
        context_id: message.context_id,
        task_id: message.task_id,
        role: message.role,
        parts: message.content.into_iter().map(|part| to_part(part, files)).collect(),
        metadata: message.metadata,
        extensions: message.extensions,
        reference_task_ids: message.reference_task_ids,
        unknown: kept(message.unknown, Message::NAMES),
    }
}

fn to_artifact(artifact: old::Artifact, files: Files) -> Artifact {
    Artifact {
        artifact_id: artifact.artifact_id,
        name: artifact.name,
        description: artifact.description,
        parts: artifact.parts.into_iter().map(|part| to_part(part, files)).collect(),
        metadata: artifact.metadata,
        extensions: artifact.extensions,
        unknown: kept(artifact.unknown, Artifact::NAMES),
    }
}

/// The published SDKs write an empty message where there is none.
fn to_status(status: old::TaskStatus, files: Files) -> TaskStatus {
    let said = status.update.filter(|message| *message != old::Message::default());
    TaskStatus {
        state: status.state.0,
        message: said.map(|message| Arc::new(to_message(message, files))),
        timestamp: status.timestamp,
        unknown: kept(status.unknown, TaskStatus::NAMES),
    }
}

fn to_task(task: old::Task, files: Files) -> Task {
    let artifacts: Vec<_> = task.artifacts.into_iter().map(|artifact| Arc::new(to_artifact(artifact, files))).collect();
    Task {
        id: task.id,
        context_id: task.context_id,
        status: to_status(task.status.unwrap_or_default(), files),
        artifacts: (!artifacts.is_empty()).then_some(artifacts),
        history: task.history.into_iter().map(|message| Arc::new(to_message(message, files))).collect(),
        metadata: task.metadata,
        unknown: kept(task.unknown, Task::NAMES),
    }
}
