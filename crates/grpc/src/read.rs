//! From the wire: generated messages become the model, with the same refusals as in JSON.

use crate::a2a::{self as pb, part::Content};
use crate::json::{self, Problem};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::{
    Artifact, ArtifactUpdate, Message, Part, Role, StatusUpdate, StreamResponse, Task, TaskState, TaskStatus,
};
use flotilla_protocol::a2a::request::{
    AuthenticationInfo, CancelTaskRequest, ExtendedCardRequest, GetTaskRequest, ListPushConfigsRequest,
    ListTasksRequest, ListTasksResponse, PushConfig, PushConfigRequest, Request, SendMessageConfiguration,
    SendMessageRequest, SubscribeToTaskRequest,
};
use flotilla_protocol::decode::too_deep;
use flotilla_protocol::time::Moment;
use flotilla_protocol::wire::{AnyValue, Base64, Int32, Object};
use prost_types::{Struct, Timestamp};
use std::fmt::Display;
use std::sync::Arc;

/// Reads messages that are nested at most so deep in their JSON form, opaque JSON included.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    pub json_depth: usize,
}

fn decode<T: prost::Message + Default>(bytes: &[u8]) -> Result<T, Refusal> {
    decode_of("lf.a2a.v1", bytes)
}

/// A message of this package.
pub(crate) fn decode_of<T: prost::Message + Default>(package: &str, bytes: &[u8]) -> Result<T, Refusal> {
    T::decode(bytes).map_err(|error| {
        let error = error.to_string();
        // Said with the whole way there, which is as long as it is deep.
        if error.ends_with("recursion limit reached") {
            return Refusal::invalid("", "is nested too deep: protobuf takes 100 levels, some 32 objects or 48 lists");
        }
        Refusal::invalid("", format!("is not what {package} describes: {error}"))
    })
}

impl Reader {
    /// A request's bytes as what is asked for.
    pub fn request(self, method: Method, bytes: &[u8]) -> Result<Request, Refusal> {
        Ok(match method {
            Method::SendMessage => Request::SendMessage(self.send_message(decode(bytes)?)?),
            Method::SendStreamingMessage => Request::SendStreamingMessage(self.send_message(decode(bytes)?)?),
            Method::GetTask => {
                let pb::GetTaskRequest { tenant, id, history_length } = decode(bytes)?;
                let history_length = history_length.map(Int32);
                Request::GetTask(GetTaskRequest { tenant, id, history_length, ..Default::default() })
            }
            Method::ListTasks => Request::ListTasks(list_tasks(decode(bytes)?)?),
            Method::CancelTask => {
                let pb::CancelTaskRequest { tenant, id, metadata } = decode(bytes)?;
                let metadata = self.object("metadata", metadata)?;
                Request::CancelTask(CancelTaskRequest { tenant, id, metadata, ..Default::default() })
            }
            Method::SubscribeToTask => {
                let pb::SubscribeToTaskRequest { tenant, id } = decode(bytes)?;
                Request::SubscribeToTask(SubscribeToTaskRequest { tenant, id, ..Default::default() })
            }
            Method::CreatePushConfig => Request::CreatePushConfig(push_config(decode(bytes)?)),
            Method::GetPushConfig => {
                let pb::GetTaskPushNotificationConfigRequest { tenant, task_id, id } = decode(bytes)?;
                Request::GetPushConfig(PushConfigRequest { tenant, task_id, id, ..Default::default() })
            }
            Method::DeletePushConfig => {
                let pb::DeleteTaskPushNotificationConfigRequest { tenant, task_id, id } = decode(bytes)?;
                Request::DeletePushConfig(PushConfigRequest { tenant, task_id, id, ..Default::default() })
            }
            Method::ListPushConfigs => {
                let pb::ListTaskPushNotificationConfigsRequest { task_id, page_size, page_token, tenant } =
                    decode(bytes)?;
                let page_size = (page_size != 0).then_some(Int32(page_size));
                let request = ListPushConfigsRequest { tenant, task_id, page_size, page_token, ..Default::default() };
                Request::ListPushConfigs(request)
            }
            Method::GetExtendedAgentCard => {
                let pb::GetExtendedAgentCardRequest { tenant } = decode(bytes)?;
                Request::GetExtendedAgentCard(ExtendedCardRequest { tenant, ..Default::default() })
            }
        })
    }

    fn send_message(self, request: pb::SendMessageRequest) -> Result<SendMessageRequest, Refusal> {
        let pb::SendMessageRequest { tenant, message, configuration, metadata } = request;
        Ok(SendMessageRequest {
            tenant,
            message: message.map(|message| self.message("message", message)).transpose()?,
            configuration: configuration.map(|asked| SendMessageConfiguration {
                accepted_output_modes: asked.accepted_output_modes,
                push_config: asked.task_push_notification_config.map(push_config),
                history_length: asked.history_length.map(Int32),
                return_immediately: asked.return_immediately,
                ..Default::default()
            }),
            metadata: self.object("metadata", metadata)?,
            ..Default::default()
        })
    }

    /// The field's name is put together only where there is something in it.
    pub(crate) fn object(self, field: impl Display, members: Option<Struct>) -> Result<Option<Object>, Refusal> {
        let Some(members) = members else { return Ok(None) };
        let field = field.to_string();
        let object = json::from_struct(members, self.depth_within(&field));
        object.map(Some).map_err(|problem| self.refuse(&field, problem))
    }

    /// The levels left for what a field holds: each name and each index of its path is a level above it.
    fn depth_within(self, field: &str) -> usize {
        let above = 1 + field.matches(['.', '[']).count();
        self.json_depth.saturating_sub(above)
    }

    fn refuse(self, field: &str, problem: Problem) -> Refusal {
        match problem {
            Problem::TooDeep => too_deep(self.json_depth),
            Problem::NotJson(text) => Refusal::invalid(field, text),
        }
    }

    pub fn message(self, field: &str, message: pb::Message) -> Result<Message, Refusal> {
        let role = role(field, message.role)?;
        Ok(Message {
            message_id: message.message_id,
            context_id: message.context_id,
            task_id: message.task_id,
            role,
            parts: self.parts(field, message.parts)?,
            metadata: self.object(format_args!("{field}.metadata"), message.metadata)?,
            extensions: message.extensions,
            reference_task_ids: message.reference_task_ids,
            ..Default::default()
        })
    }

    fn parts(self, field: &str, parts: Vec<pb::Part>) -> Result<Vec<Part>, Refusal> {
        let one = |(index, part)| self.part(format_args!("{field}.parts[{index}]"), part);
        parts.into_iter().enumerate().map(one).collect()
    }

    fn part(self, field: impl Display, part: pb::Part) -> Result<Part, Refusal> {
        let mut read = Part { filename: part.filename, media_type: part.media_type, ..Part::default() };
        match part.content {
            None => {}
            Some(Content::Text(text)) => read.text = Some(text),
            Some(Content::Raw(bytes)) => read.raw = Some(Base64::encode(&bytes)),
            Some(Content::Url(url)) => read.url = Some(url),
            Some(Content::Data(data)) => {
                let field = format!("{field}.data");
                let data = json::from_value(data, self.depth_within(&field));
                let data = data.map_err(|problem| self.refuse(&field, problem))?;
                read.data = AnyValue(Some(data));
            }
        }
        read.metadata = self.object(format_args!("{field}.metadata"), part.metadata)?;
        Ok(read)
    }

    pub fn artifact(self, artifact: pb::Artifact) -> Result<Artifact, Refusal> {
        Ok(Artifact {
            artifact_id: artifact.artifact_id,
            name: artifact.name,
            description: artifact.description,
            parts: self.parts("artifact", artifact.parts)?,
            metadata: self.object("artifact.metadata", artifact.metadata)?,
            extensions: artifact.extensions,
            ..Default::default()
        })
    }

    fn status(self, status: pb::TaskStatus) -> Result<TaskStatus, Refusal> {
        let message = status.message.map(|message| self.message("status.message", message)).transpose()?;
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
            metadata: self.object("metadata", task.metadata)?,
            ..Default::default()
        })
    }

    /// One frame of a stream; one without a payload is no answer.
    pub fn frame(self, frame: pb::StreamResponse) -> Result<StreamResponse, Refusal> {
        use pb::stream_response::Payload;
        Ok(match frame.payload.ok_or_else(|| Refusal::invalid("", "a frame without a payload"))? {
            Payload::Task(task) => StreamResponse::Task(self.task(task)?),
            Payload::Message(message) => StreamResponse::Message(Arc::new(self.message("message", message)?)),
            Payload::StatusUpdate(update) => StreamResponse::StatusUpdate(StatusUpdate {
                task_id: update.task_id,
                context_id: update.context_id,
                status: self.status(update.status.unwrap_or_default())?,
                metadata: self.object("metadata", update.metadata)?,
                ..Default::default()
            }),
            Payload::ArtifactUpdate(update) => StreamResponse::ArtifactUpdate(ArtifactUpdate {
                task_id: update.task_id,
                context_id: update.context_id,
                artifact: Arc::new(self.artifact(update.artifact.unwrap_or_default())?),
                append: update.append,
                last_chunk: update.last_chunk,
                metadata: self.object("metadata", update.metadata)?,
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
            Payload::Message(message) => Frame::Message(message),
        });
        self.frame(pb::StreamResponse { payload })
    }

    pub fn list(self, list: pb::ListTasksResponse) -> Result<ListTasksResponse, Refusal> {
        Ok(ListTasksResponse {
            tasks: list.tasks.into_iter().map(|task| self.task(task)).collect::<Result<_, _>>()?,
            next_page_token: list.next_page_token,
            page_size: list.page_size,
            total_size: list.total_size.into(),
        })
    }
}

pub(crate) fn role(message: &str, number: i32) -> Result<Role, Refusal> {
    Role::from_number(number.into())
        .ok_or_else(|| Refusal::invalid(&format!("{message}.role"), format!("{number} is not the number of any value")))
}

pub(crate) fn state(field: &str, number: i32) -> Result<TaskState, Refusal> {
    TaskState::from_number(number.into())
        .ok_or_else(|| Refusal::invalid(field, format!("{number} is not the number of any value")))
}

fn list_tasks(request: pb::ListTasksRequest) -> Result<ListTasksRequest, Refusal> {
    let after = request.status_timestamp_after.map(|told| moment("statusTimestampAfter", told));
    Ok(ListTasksRequest {
        tenant: request.tenant,
        context_id: request.context_id,
        status: state("status", request.status)?,
        page_size: request.page_size.map(Int32),
        page_token: request.page_token,
        history_length: request.history_length.map(Int32),
        status_timestamp_after: after.transpose()?.map(Moment::millis),
        include_artifacts: request.include_artifacts.unwrap_or_default(),
        ..Default::default()
    })
}

pub(crate) fn push_config(config: pb::TaskPushNotificationConfig) -> PushConfig {
    PushConfig {
        tenant: config.tenant,
        id: config.id,
        task_id: config.task_id,
        url: config.url,
        token: config.token,
        authentication: config.authentication.map(|shown| AuthenticationInfo {
            scheme: shown.scheme,
            credentials: shown.credentials,
            ..Default::default()
        }),
        ..Default::default()
    }
}

impl Reader {
    pub fn push_config(self, config: pb::TaskPushNotificationConfig) -> PushConfig {
        push_config(config)
    }
}

pub(crate) fn moment(field: &str, told: Timestamp) -> Result<Moment, Refusal> {
    Moment::checked(told.seconds, told.nanos).ok_or_else(|| Refusal::invalid(field, "is not a moment"))
}
