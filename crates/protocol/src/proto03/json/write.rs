//! From the model to this form. Nothing is written that its readers would refuse.

use super::model as old;
use crate::a2a::model::{Artifact, ArtifactUpdate, Message, Part, StatusUpdate, StreamResponse, Task, TaskStatus};
use crate::a2a::push::ListPushConfigsResponse;
use crate::a2a::request::{PushConfig, SendMessageRequest};
use crate::proto03::file::Files;
use crate::proto03::{name, opaque};
use crate::wire::{Base64, Object};
use serde::{Serialize, Serializer};

/// Something of the model that is written in this form, files as its reader wants them.
#[derive(Debug, Clone, Copy)]
pub struct Proto<'a, T>(pub &'a T, pub Files);

macro_rules! written {
    ($($ty:ty => $convert:expr),* $(,)?) => {
        $(impl Serialize for Proto<'_, $ty> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $convert(self.0, self.1).serialize(serializer)
            }
        })*
    };
}

written! {
    Task => task,
    StreamResponse => frame,
    PushConfig => |config, _| push_config(config),
    ListPushConfigsResponse => |list, _| push_list(list),
}

/// The body of a send. It always has a configuration: without `blocking` servers answer before the work is done. Files
/// go as their reader wants them.
pub fn write_send(request: &SendMessageRequest, files: Files) -> Result<String, serde_json::Error> {
    let asked = request.configuration.clone().unwrap_or_default();
    serde_json::to_string(&old::SendMessageRequest {
        message: request.message.as_ref().map(|one| message(one, files)),
        configuration: Some(old::Configuration {
            accepted_output_modes: asked.accepted_output_modes,
            push_config: asked.push_config.as_ref().map(bare_config),
            history_length: asked.history_length,
            blocking: !asked.return_immediately,
            ..Default::default()
        }),
        metadata: request.metadata.clone(),
        ..Default::default()
    })
}

/// The body that makes a config, as the published SDKs send it.
pub fn write_create_push(config: &PushConfig) -> Result<String, serde_json::Error> {
    serde_json::to_string(&old::CreatePushRequest {
        parent: name::of_task(&config.task_id),
        config_id: config.id.clone(),
        config: Some(push_config(config)),
        ..Default::default()
    })
}

fn part(part: &Part, files: Files) -> old::Part {
    let mut written = old::Part { text: part.text.clone(), metadata: part.metadata.clone(), ..Default::default() };
    if part.raw.is_some() || part.url.is_some() {
        written.file = Some(old::FilePart {
            file_with_uri: part.url.clone(),
            file_with_bytes: part.raw.as_ref().map(|raw| Base64::encode(&files.write(raw))),
            mime_type: part.media_type.clone(),
            name: part.filename.clone(),
            ..Default::default()
        });
    }
    if let Some(data) = &part.data.0 {
        let (data, metadata): (Object, Option<Object>) = opaque::wrap(data, part.metadata.as_ref());
        written.data = Some(old::DataPart { data: Some(data), ..Default::default() });
        written.metadata = metadata;
    }
    written
}

fn message(message: &Message, files: Files) -> old::Message {
    old::Message {
        message_id: message.message_id.clone(),
        context_id: message.context_id.clone(),
        task_id: message.task_id.clone(),
        role: message.role,
        content: message.parts.iter().map(|one| part(one, files)).collect(),
        metadata: message.metadata.clone(),
        extensions: message.extensions.clone(),
        ..Default::default()
    }
}

fn artifact(artifact: &Artifact, files: Files) -> old::Artifact {
    old::Artifact {
        artifact_id: artifact.artifact_id.clone(),
        name: artifact.name.clone(),
        description: artifact.description.clone(),
        parts: artifact.parts.iter().map(|one| part(one, files)).collect(),
        metadata: artifact.metadata.clone(),
        extensions: artifact.extensions.clone(),
        ..Default::default()
    }
}

fn status(status: &TaskStatus, files: Files) -> old::TaskStatus {
    old::TaskStatus {
        state: old::State(status.state),
        update: status.message.as_deref().map(|one| message(one, files)),
        timestamp: status.timestamp,
        ..Default::default()
    }
}

fn task(task: &Task, files: Files) -> old::Task {
    old::Task {
        id: task.id.clone(),
        context_id: task.context_id.clone(),
        status: Some(status(&task.status, files)),
        artifacts: task.artifacts.iter().flatten().map(|one| artifact(one, files)).collect(),
        history: task.history.iter().map(|one| message(one, files)).collect(),
        metadata: task.metadata.clone(),
        ..Default::default()
    }
}

fn status_update(update: &StatusUpdate, files: Files) -> old::StatusUpdate {
    old::StatusUpdate {
        task_id: update.task_id.clone(),
        context_id: update.context_id.clone(),
        status: Some(status(&update.status, files)),
        last: update.status.state.is_settled(),
        metadata: update.metadata.clone(),
        ..Default::default()
    }
}

fn artifact_update(update: &ArtifactUpdate, files: Files) -> old::ArtifactUpdate {
    old::ArtifactUpdate {
        task_id: update.task_id.clone(),
        context_id: update.context_id.clone(),
        artifact: Some(artifact(&update.artifact, files)),
        append: update.append,
        last_chunk: update.last_chunk,
        metadata: update.metadata.clone(),
        ..Default::default()
    }
}

fn frame(frame: &StreamResponse, files: Files) -> old::StreamResponse {
    let mut written = old::StreamResponse::default();
    match frame {
        StreamResponse::Task(one) => written.task = Some(task(one, files)),
        StreamResponse::Message(one) => written.message = Some(message(one, files)),
        StreamResponse::StatusUpdate(update) => written.status_update = Some(status_update(update, files)),
        StreamResponse::ArtifactUpdate(update) => written.artifact_update = Some(artifact_update(update, files)),
    }
    written
}

fn bare_config(config: &PushConfig) -> old::PushConfig {
    old::PushConfig {
        id: config.id.clone(),
        url: config.url.clone(),
        token: config.token.clone(),
        authentication: config.authentication.as_ref().map(|shown| old::Authentication {
            schemes: if shown.scheme.is_empty() { Vec::new() } else { vec![shown.scheme.clone()] },
            credentials: shown.credentials.clone(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn push_config(config: &PushConfig) -> old::TaskPushConfig {
    old::TaskPushConfig {
        name: name::of_config(&config.task_id, &config.id),
        config: Some(bare_config(config)),
        ..Default::default()
    }
}

fn push_list(list: &ListPushConfigsResponse) -> old::PushConfigPage {
    old::PushConfigPage {
        configs: list.configs.iter().map(push_config).collect(),
        next_page_token: list.next_page_token.clone(),
        ..Default::default()
    }
}
