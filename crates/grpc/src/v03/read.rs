//! From the wire of 0.3: its messages become the model, with the same refusals as in 1.0.

use super::PACKAGE;
use crate::a2a_v03::{self as pb, file_part::File, part::Part as Content};
use crate::read::{decode_of, moment, role, state};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::{
    Artifact, ArtifactUpdate, Message, Part, StatusUpdate, StreamResponse, Task, TaskStatus,
};
use flotilla_protocol::a2a::request::{
    AuthenticationInfo, CancelTaskRequest, ExtendedCardRequest, GetTaskRequest, ListPushConfigsRequest, PushConfig,
    PushConfigRequest, Request, SendMessageConfiguration, SendMessageRequest, SubscribeToTaskRequest,
};
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::proto03::{name, opaque};
use flotilla_protocol::v03;
use flotilla_protocol::wire::{AnyValue, Int32};
use std::sync::Arc;

/// Reads messages that are nested at most so deep in their JSON form, opaque JSON included.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    pub json_depth: usize,
    /// What whoever wrote them puts for files.
    pub files: Files,
}

fn decode<T: prost::Message + Default>(bytes: &[u8]) -> Result<T, Refusal> {
    decode_of(PACKAGE, bytes)
}

impl Reader {
    fn opaque(self) -> crate::Reader {
        crate::Reader { json_depth: self.json_depth }
    }

    /// A request's bytes as what is asked for.
    pub fn request(self, method: Method, bytes: &[u8]) -> Result<Request, Refusal> {
        Ok(match method {
            Method::SendMessage => Request::SendMessage(self.send_message(decode(bytes)?)?),
            Method::SendStreamingMessage => Request::SendStreamingMessage(self.send_message(decode(bytes)?)?),
            Method::GetTask => {
                let pb::GetTaskRequest { name, history_length } = decode(bytes)?;
                let id = name::task("name", &name)?.to_owned();
                Request::GetTask(GetTaskRequest { id, history_length: limit(history_length), ..Default::default() })
            }
            Method::CancelTask => {
                let pb::CancelTaskRequest { name } = decode(bytes)?;
                let id = name::task("name", &name)?.to_owned();
                Request::CancelTask(CancelTaskRequest { id, ..Default::default() })
            }
            Method::SubscribeToTask => {
                let pb::TaskSubscriptionRequest { name } = decode(bytes)?;
                let id = name::task("name", &name)?.to_owned();
                Request::SubscribeToTask(SubscribeToTaskRequest { id, ..Default::default() })
            }
            Method::CreatePushConfig => Request::CreatePushConfig(created(decode(bytes)?)?),
            Method::GetPushConfig => {
                let pb::GetTaskPushNotificationConfigRequest { name } = decode(bytes)?;
                Request::GetPushConfig(named(&name)?)
            }
            Method::DeletePushConfig => {
                let pb::DeleteTaskPushNotificationConfigRequest { name } = decode(bytes)?;
                Request::DeletePushConfig(named(&name)?)
            }
            Method::ListPushConfigs => {
                let pb::ListTaskPushNotificationConfigRequest { parent, page_size, page_token } = decode(bytes)?;
                let task_id = name::task("parent", &parent)?.to_owned();
                let page_size = (page_size != 0).then_some(Int32(page_size));
                let request = ListPushConfigsRequest { task_id, page_size, page_token, ..Default::default() };
                Request::ListPushConfigs(request)
            }
            Method::GetExtendedAgentCard => {
                let pb::GetAgentCardRequest {} = decode(bytes)?;
                Request::GetExtendedAgentCard(ExtendedCardRequest::default())
            }
            Method::ListTasks => {
                let text = "A2A 0.3 has no list of tasks over gRPC; ask over JSON-RPC or HTTP+JSON.";
                return Err(Refusal::new(Reason::MethodNotFound, text));
            }
        })
    }

    /// Without a configuration nothing was said about waiting, and a send waits. With one its `blocking` counts, and
    /// false is what an absent one looks like.
    fn send_message(self, request: pb::SendMessageRequest) -> Result<SendMessageRequest, Refusal> {
        let pb::SendMessageRequest { request, configuration, metadata } = request;
        Ok(SendMessageRequest {
            message: request.map(|message| self.message("message", message)).transpose()?,
            configuration: configuration.map(|asked| SendMessageConfiguration {
                accepted_output_modes: asked.accepted_output_modes,
                push_config: asked.push_notification.map(push_config),
                history_length: limit(asked.history_length),
                return_immediately: !asked.blocking,
                ..Default::default()
            }),
            metadata: self.opaque().object("metadata", metadata)?,
            ..Default::default()
        })
    }

    pub fn message(self, field: &str, message: pb::Message) -> Result<Message, Refusal> {
        Ok(Message {
            message_id: message.message_id,
            context_id: message.context_id,
            task_id: message.task_id,
            role: role(field, message.role)?,
            parts: self.parts(&format!("{field}.content"), message.content)?,
            metadata: self.opaque().object(format_args!("{field}.metadata"), message.metadata)?,
            extensions: message.extensions,
            ..Default::default()
        })
    }

    fn parts(self, field: &str, parts: Vec<pb::Part>) -> Result<Vec<Part>, Refusal> {
        let one = |(index, part)| self.part(&format!("{field}[{index}]"), part);
        parts.into_iter().enumerate().map(one).collect()
    }

    fn part(self, field: &str, part: pb::Part) -> Result<Part, Refusal> {
        let metadata = self.opaque().object(format_args!("{field}.metadata"), part.metadata)?;
        let mut read = Part { metadata, ..Part::default() };
        match part.part {
            None => {}
            Some(Content::Text(text)) => read.text = Some(text),
            Some(Content::File(content)) => {
                match content.file {
                    None => {}
                    Some(File::FileWithUri(uri)) => read.url = Some(uri),
                    Some(File::FileWithBytes(bytes)) => read.raw = Some(self.files.read(&bytes)),
                }
                (read.media_type, read.filename) = (content.mime_type, content.name);
            }
            Some(Content::Data(content)) => {
                let members = content.data.unwrap_or_default();
                if let Some(data) = self.opaque().object(format_args!("{field}.data.data"), Some(members))? {
                    let (data, metadata) = opaque::unwrap(data, read.metadata.take());
                    (read.data, read.metadata) = (AnyValue(Some(data)), metadata);
                }
            }
        }
        Ok(read)
    }

    pub fn artifact(self, artifact: pb::Artifact) -> Result<Artifact, Refusal> {
        Ok(Artifact {
            artifact_id: artifact.artifact_id,
            name: artifact.name,
            description: artifact.description,
            parts: self.parts("artifact.parts", artifact.parts)?,
            metadata: self.opaque().object("artifact.metadata", artifact.metadata)?,
            extensions: artifact.extensions,
            ..Default::default()
        })
    }

    /// The published SDKs write an empty message where there is none.
    fn status(self, status: pb::TaskStatus) -> Result<TaskStatus, Refusal> {
        let said = status.update.filter(|message| *message != pb::Message::default());
        let message = said.map(|message| self.message("status.message", message)).transpose()?;
        Ok(TaskStatus {
            state: state("status.state", status.state)?,
            message: message.map(Arc::new),
            timestamp: status.timestamp.map(|told| moment("status.timestamp", told)).transpose()?,
            ..Default::default()
        })
    }

    /// Protobuf does not tell an empty list from none: both are read as none.
    pub fn task(self, task: pb::Task) -> Result<Task, Refusal> {
        let artifacts = task.artifacts.into_iter().map(|artifact| self.artifact(artifact).map(Arc::new));
        let artifacts = artifacts.collect::<Result<Vec<_>, _>>()?;
        let history = task.history.into_iter().map(|message| self.message("history", message).map(Arc::new));
        Ok(Task {
            id: task.id,
            context_id: task.context_id,
            status: self.status(task.status.unwrap_or_default())?,
            artifacts: (!artifacts.is_empty()).then_some(artifacts),
            history: history.collect::<Result<_, _>>()?,
            metadata: self.opaque().object("metadata", task.metadata)?,
            ..Default::default()
        })
    }

    /// One frame of a stream; one without a payload is no answer.
    pub fn frame(self, frame: pb::StreamResponse) -> Result<StreamResponse, Refusal> {
        use pb::stream_response::Payload;
        Ok(match frame.payload.ok_or_else(|| Refusal::invalid("", "a frame without a payload"))? {
            Payload::Task(task) => StreamResponse::Task(self.task(task)?),
            Payload::Msg(message) => StreamResponse::Message(Arc::new(self.message("message", message)?)),
            Payload::StatusUpdate(update) => StreamResponse::StatusUpdate(StatusUpdate {
                task_id: update.task_id,
                context_id: update.context_id,
                status: self.status(update.status.unwrap_or_default())?,
                metadata: self.opaque().object("metadata", update.metadata)?,
                ..Default::default()
            }),
            Payload::ArtifactUpdate(update) => StreamResponse::ArtifactUpdate(ArtifactUpdate {
                task_id: update.task_id,
                context_id: update.context_id,
                artifact: Arc::new(self.artifact(update.artifact.unwrap_or_default())?),
                append: update.append,
                last_chunk: update.last_chunk,
                metadata: self.opaque().object("metadata", update.metadata)?,
                ..Default::default()
            }),
        })
    }

    /// The answer to SendMessage: a task or a message.
    pub fn sent(self, sent: pb::SendMessageResponse) -> Result<StreamResponse, Refusal> {
        use pb::send_message_response::Payload;
        use pb::stream_response::Payload as Frame;
        let payload = sent.payload.map(|payload| match payload {
            Payload::Task(task) => Frame::Task(task),
            Payload::Msg(message) => Frame::Msg(message),
        });
        self.frame(pb::StreamResponse { payload })
    }

    /// A config under its name.
    pub fn push_config(self, config: pb::TaskPushNotificationConfig) -> Result<PushConfig, Refusal> {
        let (task_id, id) = name::config("name", &config.name)?;
        let (task_id, id) = (task_id.to_owned(), id.to_owned());
        Ok(PushConfig { task_id, id, ..push_config(config.push_notification_config.unwrap_or_default()) })
    }
}

/// 0 asks for all of it, as does no number.
fn limit(history_length: i32) -> Option<Int32> {
    (history_length != 0).then_some(Int32(history_length))
}

fn named(name: &str) -> Result<PushConfigRequest, Refusal> {
    let (task_id, id) = name::config("name", name)?;
    Ok(PushConfigRequest { task_id: task_id.to_owned(), id: id.to_owned(), ..Default::default() })
}

/// The config's own name is not looked at: the published SDKs put anything there while it has no id.
fn created(request: pb::CreateTaskPushNotificationConfigRequest) -> Result<PushConfig, Refusal> {
    let task_id = name::task("parent", &request.parent)?.to_owned();
    let config = request.config.and_then(|config| config.push_notification_config).unwrap_or_default();
    let config = push_config(config);
    let id = if config.id.is_empty() { request.config_id } else { config.id.clone() };
    Ok(v03::request::named(PushConfig { task_id, id, ..config }))
}

/// Of several schemes the first is used; 1.0 has room for one.
fn push_config(config: pb::PushNotificationConfig) -> PushConfig {
    PushConfig {
        id: config.id,
        url: config.url,
        token: config.token,
        // An empty one is what some senders write where there is none.
        authentication: config.authentication.filter(|shown| *shown != pb::AuthenticationInfo::default()).map(
            |shown| AuthenticationInfo {
                scheme: shown.schemes.into_iter().next().unwrap_or_default(),
                credentials: shown.credentials,
                ..Default::default()
            },
        ),
        ..Default::default()
    }
}
