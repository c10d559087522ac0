//! To the wire of 0.3: the model becomes its messages. Fields that version does not know stay behind.

use crate::a2a_v03::{self as pb, file_part::File, part::Part as Content};
use crate::json;
use crate::write::{object, timestamp};
use flotilla_protocol::a2a::model::{
    Artifact, ArtifactUpdate, Message, Part, StatusUpdate, StreamResponse, Task, TaskStatus,
};
use flotilla_protocol::a2a::push::ListPushConfigsResponse;
use flotilla_protocol::a2a::request::PushConfig;
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::proto03::{name, opaque};

fn part(part: &Part, files: Files) -> pb::Part {
    let file = |file: File| {
        let (mime_type, name) = (part.media_type.clone(), part.filename.clone());
        Some(Content::File(pb::FilePart { file: Some(file), mime_type, name }))
    };
    let mut metadata = object(part.metadata.as_ref());
    let content = if let Some(text) = &part.text {
        Some(Content::Text(text.clone()))
    } else if let Some(raw) = &part.raw {
        file(File::FileWithBytes(files.write(raw)))
    } else if let Some(url) = &part.url {
        file(File::FileWithUri(url.clone()))
    } else {
        part.data.0.as_ref().map(|data| {
            let (data, marked) = opaque::wrap(data, part.metadata.as_ref());
            metadata = object(marked.as_ref());
            Content::Data(pb::DataPart { data: Some(json::to_struct(&data)) })
        })
    };
    pb::Part { part: content, metadata }
}

pub(super) fn message(message: &Message, files: Files) -> pb::Message {
    pb::Message {
        message_id: message.message_id.clone(),
        context_id: message.context_id.clone(),
        task_id: message.task_id.clone(),
        role: message.role as i32,
        content: message.parts.iter().map(|one| part(one, files)).collect(),
        metadata: object(message.metadata.as_ref()),
        extensions: message.extensions.clone(),
    }
}

fn artifact(artifact: &Artifact, files: Files) -> pb::Artifact {
    pb::Artifact {
        artifact_id: artifact.artifact_id.clone(),
        name: artifact.name.clone(),
        description: artifact.description.clone(),
        parts: artifact.parts.iter().map(|one| part(one, files)).collect(),
        metadata: object(artifact.metadata.as_ref()),
        extensions: artifact.extensions.clone(),
    }
}

fn status(status: &TaskStatus, files: Files) -> pb::TaskStatus {
    pb::TaskStatus {
        state: status.state as i32,
        update: status.message.as_deref().map(|one| message(one, files)),
        timestamp: status.timestamp.map(timestamp),
    }
}

pub fn task(task: &Task, files: Files) -> pb::Task {
    pb::Task {
        id: task.id.clone(),
        context_id: task.context_id.clone(),
        status: Some(status(&task.status, files)),
        artifacts: task.artifacts.iter().flatten().map(|one| artifact(one, files)).collect(),
        history: task.history.iter().map(|one| message(one, files)).collect(),
        metadata: object(task.metadata.as_ref()),
    }
}

fn status_update(update: &StatusUpdate, files: Files) -> pb::TaskStatusUpdateEvent {
    pb::TaskStatusUpdateEvent {
        task_id: update.task_id.clone(),
        context_id: update.context_id.clone(),
        status: Some(status(&update.status, files)),
        r#final: update.status.state.is_settled(),
        metadata: object(update.metadata.as_ref()),
    }
}

fn artifact_update(update: &ArtifactUpdate, files: Files) -> pb::TaskArtifactUpdateEvent {
    pb::TaskArtifactUpdateEvent {
        task_id: update.task_id.clone(),
        context_id: update.context_id.clone(),
        artifact: Some(artifact(&update.artifact, files)),
        append: update.append,
        last_chunk: update.last_chunk,
        metadata: object(update.metadata.as_ref()),
    }
}

pub fn frame(frame: &StreamResponse, files: Files) -> pb::StreamResponse {
    use pb::stream_response::Payload;
    let payload = match frame {
        StreamResponse::Task(one) => Payload::Task(task(one, files)),
        StreamResponse::Message(one) => Payload::Msg(message(one, files)),
        StreamResponse::StatusUpdate(update) => Payload::StatusUpdate(status_update(update, files)),
        StreamResponse::ArtifactUpdate(update) => Payload::ArtifactUpdate(artifact_update(update, files)),
    };
    pb::StreamResponse { payload: Some(payload) }
}

/// The answer to SendMessage, which is never an update.
pub fn sent(sent: &StreamResponse, files: Files) -> pb::SendMessageResponse {
    use pb::send_message_response::Payload;
    let payload = match sent {
        StreamResponse::Task(one) => Some(Payload::Task(task(one, files))),
        StreamResponse::Message(one) => Some(Payload::Msg(message(one, files))),
        StreamResponse::StatusUpdate(_) | StreamResponse::ArtifactUpdate(_) => None,
    };
    pb::SendMessageResponse { payload }
}

pub(super) fn bare_config(config: &PushConfig) -> pb::PushNotificationConfig {
    pb::PushNotificationConfig {
        id: config.id.clone(),
        url: config.url.clone(),
        token: config.token.clone(),
        authentication: config.authentication.as_ref().map(|shown| pb::AuthenticationInfo {
            schemes: if shown.scheme.is_empty() { Vec::new() } else { vec![shown.scheme.clone()] },
            credentials: shown.credentials.clone(),
        }),
    }
}

pub fn push_config(config: &PushConfig) -> pb::TaskPushNotificationConfig {
    pb::TaskPushNotificationConfig {
        name: name::of_config(&config.task_id, &config.id),
        push_notification_config: Some(bare_config(config)),
    }
}

pub fn push_list(list: &ListPushConfigsResponse) -> pb::ListTaskPushNotificationConfigResponse {
    pb::ListTaskPushNotificationConfigResponse {
        configs: list.configs.iter().map(push_config).collect(),
        next_page_token: list.next_page_token.clone(),
    }
}
