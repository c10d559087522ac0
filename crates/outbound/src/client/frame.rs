//! What a send or a stream brings: a task, a message or an update, read and as it was written.

use super::dialect::Writer;
use super::error::ClientError;
use super::grpc::GrpcStream;
use super::stated::Stated;
use super::{Dialect, dialect, jsonrpc, rest};
use crate::net::sse::Events;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::{ArtifactUpdate, Message, StatusUpdate, Task, TaskState};
use flotilla_protocol::proto03::file::Files;
use serde::{Deserialize, Deserializer, de::Error as _};

/// One of the four things a stream may bring (spec 3.2.3); a send is answered with one of the first two.
#[derive(Debug, Clone)]
pub enum Sent {
    Task(Box<Task>),
    Message(Box<Message>),
    Status(Box<StatusUpdate>),
    Artifact(Box<ArtifactUpdate>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object with 'task', 'message', 'statusUpdate' or 'artifactUpdate'")]
struct OneOf {
    task: Option<Box<Task>>,
    message: Option<Box<Message>>,
    #[serde(alias = "status_update")]
    status_update: Option<Box<StatusUpdate>>,
    #[serde(alias = "artifact_update")]
    artifact_update: Option<Box<ArtifactUpdate>>,
}

impl<'de> Deserialize<'de> for Sent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = OneOf::deserialize(deserializer)?;
        let held = [
            ("task", read.task.is_some()),
            ("message", read.message.is_some()),
            ("statusUpdate", read.status_update.is_some()),
            ("artifactUpdate", read.artifact_update.is_some()),
        ];
        let held: Vec<&str> = held.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)).collect();
        if held.len() > 1 {
            return Err(D::Error::custom(format!("it holds {}, and may hold one of them", held.join(" and "))));
        }
        match read {
            OneOf { task: Some(task), .. } => Ok(Self::Task(task)),
            OneOf { message: Some(message), .. } => Ok(Self::Message(message)),
            OneOf { status_update: Some(update), .. } => Ok(Self::Status(update)),
            OneOf { artifact_update: Some(update), .. } => Ok(Self::Artifact(update)),
            _ => Err(D::Error::custom("neither task, message, statusUpdate nor artifactUpdate")),
        }
    }
}

impl Stated for Sent {
    fn state(&self) -> Option<TaskState> {
        Self::state(self)
    }
}

impl Sent {
    /// The task's state, where this says one.
    pub fn state(&self) -> Option<TaskState> {
        match self {
            Self::Task(task) => Some(task.status.state),
            Self::Status(update) => Some(update.status.state),
            Self::Message(_) | Self::Artifact(_) => None,
        }
    }

    /// The ids of the task and the context this is about.
    pub fn ids(&self) -> (&str, &str) {
        match self {
            Self::Task(task) => (&task.id, &task.context_id),
            Self::Message(message) => (&message.task_id, &message.context_id),
            Self::Status(update) => (&update.task_id, &update.context_id),
            Self::Artifact(update) => (&update.task_id, &update.context_id),
        }
    }

    /// Whether nothing has to come after it: the task ended, waits for its caller, or there is none.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Message(_)) || self.state().is_some_and(TaskState::is_settled)
    }
}

/// One frame of a stream.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The event id, where the agent gives any.
    pub id: Option<String>,
    pub sent: Sent,
    /// On one line.
    pub json: String,
}

impl Frame {
    /// A frame in the words of its agent.
    pub fn read(id: Option<String>, json: &str) -> Result<Self, ClientError> {
        Self::written(id, json, Writer::Agent)
    }

    /// A frame as this side wrote it.
    pub fn made(id: Option<String>, json: &str) -> Result<Self, ClientError> {
        Self::written(id, json, Writer::Here)
    }

    fn written(id: Option<String>, json: &str, writer: Writer) -> Result<Self, ClientError> {
        let (sent, json) = dialect::read(Method::SendStreamingMessage, json.to_owned(), writer)?;
        // An event may hold line breaks between its tokens; those within texts are escaped.
        let json = if json.contains(['\n', '\r']) { json.replace(['\n', '\r'], " ") } else { json };
        Ok(Self { id, sent, json })
    }

    /// A frame in the language it was asked for in.
    pub fn read_in(dialect: Dialect, files: Files, id: Option<String>, json: &str) -> Result<Self, ClientError> {
        match dialect {
            Dialect::Current => Self::read(id, json),
            Dialect::Old => Self::made(id, &dialect::upgraded(Method::SendStreamingMessage, json, files)?),
        }
    }
}

/// An open stream of any binding.
pub enum Frames {
    JsonRpc(Events, Dialect),
    HttpJson(Events, Dialect, Files),
    Grpc(Box<GrpcStream>),
    /// The agent answered a request for a stream with a single result.
    Single(Option<Box<Frame>>),
}

impl Frames {
    /// The id and the JSON of the next event that holds anything.
    async fn event(events: &mut Events, is_enveloped: bool) -> Result<Option<(Option<String>, String)>, ClientError> {
        while let Some(event) = events.next().await? {
            // Some keep the connection alive with such.
            if event.data.trim().is_empty() {
                continue;
            }
            let json = if is_enveloped { jsonrpc::event(&event.data)? } else { Some(rest::unrefused(event.data)?) };
            if let Some(json) = json {
                return Ok(Some((event.id, json)));
            }
        }
        Ok(None)
    }

    /// The next frame; none when the agent closed the stream.
    pub async fn next(&mut self) -> Result<Option<Frame>, ClientError> {
        let (events, dialect, files, is_enveloped) = match self {
            Self::JsonRpc(events, dialect) => (events, *dialect, Files::Text, true),
            Self::HttpJson(events, dialect, files) => (events, *dialect, *files, false),
            Self::Grpc(stream) => {
                let read = stream.next().await;
                return read.map_err(|error| error.masked(|text| stream.net().clean(text)));
            }
            Self::Single(frame) => return Ok(frame.take().map(|frame| *frame)),
        };
        let net = events.net().clone();
        let read = Self::event(events, is_enveloped).await;
        let frame = read.and_then(|read| read.map(|(id, json)| Frame::read_in(dialect, files, id, &json)).transpose());
        frame.map_err(|error| error.masked(|text| net.clean(text)))
    }
}
