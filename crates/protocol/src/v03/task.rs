//! Tasks, their status, and the events of a stream, told apart by `kind`.

use super::message::check_kind;
use super::state::LooseMoment;
use super::{Out, V03, Write, carried, plain};
use crate::a2a::model::{Artifact, ArtifactUpdate, Message, StatusUpdate, StreamResponse, Task, TaskState, TaskStatus};
use crate::wire;
use crate::wire::{Json, Named as _, Object, WireField as _};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde::ser::Serializer;
use std::sync::Arc;

wire! {
    pub struct StatusFields {
        state: V03<TaskState> = "state",
        message: Option<V03<Message>> = "message",
        timestamp: Option<LooseMoment> = "timestamp",
    }
}

impl<'de> Deserialize<'de> for V03<TaskStatus> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = StatusFields::deserialize(deserializer)?;
        Ok(Self(TaskStatus {
            state: fields.state.0,
            message: fields.message.map(|message| Arc::new(message.0)),
            timestamp: fields.timestamp.and_then(|moment| moment.0),
            unknown: fields.unknown,
        }))
    }
}

impl Write for TaskStatus {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.always("state", &V03(&self.state))?;
        if let Some(message) = &self.message {
            out.always("message", &V03(message))?;
        }
        out.put("timestamp", &self.timestamp)?;
        out.rest(&self.unknown, &[])
    }
}

wire! {
    pub struct TaskFields {
        kind: String = "kind",
        id: String = "id",
        context_id: String = "contextId" | "context_id",
        status: V03<TaskStatus> = "status",
        artifacts: Option<Vec<V03<Artifact>>> = "artifacts",
        history: Vec<V03<Message>> = "history",
        metadata: Option<Object> = "metadata",
    }
}

impl<'de> Deserialize<'de> for V03<Task> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = TaskFields::deserialize(deserializer)?;
        check_kind(&fields.kind, "task").map_err(D::Error::custom)?;
        let shared = |read| plain::<Artifact>(read).into_iter().map(Arc::new).collect();
        Ok(Self(Task {
            id: fields.id,
            context_id: fields.context_id,
            status: fields.status.0,
            artifacts: fields.artifacts.map(shared),
            history: plain(fields.history).into_iter().map(Arc::new).collect(),
            metadata: fields.metadata,
            unknown: carried(fields.unknown, Task::NAMES),
        }))
    }
}

impl Write for Task {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.always("kind", "task")?;
        out.always("id", &self.id)?;
        out.always("contextId", &self.context_id)?;
        out.always("status", &V03(&self.status))?;
        if let Some(artifacts) = &self.artifacts {
            out.always("artifacts", &V03(artifacts.as_slice()))?;
        }
        out.list("history", &self.history)?;
        out.put("metadata", &self.metadata)?;
        out.rest(&self.unknown, TaskFields::NAMES)
    }
}

wire! {
    pub struct StatusUpdateFields {
        kind: String = "kind",
        task_id: String = "taskId" | "task_id",
        context_id: String = "contextId" | "context_id",
        status: V03<TaskStatus> = "status",
        /// Says what the state and the end of the stream say.
        last: bool = "final",
        metadata: Option<Object> = "metadata",
    }
}

impl<'de> Deserialize<'de> for V03<StatusUpdate> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = StatusUpdateFields::deserialize(deserializer)?;
        check_kind(&fields.kind, "status-update").map_err(D::Error::custom)?;
        Ok(Self(StatusUpdate {
            task_id: fields.task_id,
            context_id: fields.context_id,
            status: fields.status.0,
            metadata: fields.metadata,
            unknown: carried(fields.unknown, StatusUpdate::NAMES),
        }))
    }
}

impl Write for StatusUpdate {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.always("kind", "status-update")?;
        out.always("taskId", &self.task_id)?;
        out.always("contextId", &self.context_id)?;
        out.always("status", &V03(&self.status))?;
        out.always("final", &self.status.state.is_settled())?;
        out.put("metadata", &self.metadata)?;
        out.rest(&self.unknown, StatusUpdateFields::NAMES)
    }
}

wire! {
    pub struct ArtifactUpdateFields {
        kind: String = "kind",
        task_id: String = "taskId" | "task_id",
        context_id: String = "contextId" | "context_id",
        artifact: V03<Artifact> = "artifact",
        append: bool = "append",
        last_chunk: bool = "lastChunk" | "last_chunk",
        metadata: Option<Object> = "metadata",
    }
}

impl<'de> Deserialize<'de> for V03<ArtifactUpdate> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = ArtifactUpdateFields::deserialize(deserializer)?;
        check_kind(&fields.kind, "artifact-update").map_err(D::Error::custom)?;
        Ok(Self(ArtifactUpdate {
            task_id: fields.task_id,
            context_id: fields.context_id,
            artifact: Arc::new(fields.artifact.0),
            append: fields.append,
            last_chunk: fields.last_chunk,
            metadata: fields.metadata,
            unknown: carried(fields.unknown, ArtifactUpdate::NAMES),
        }))
    }
}

impl Write for ArtifactUpdate {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.always("kind", "artifact-update")?;
        out.always("taskId", &self.task_id)?;
        out.always("contextId", &self.context_id)?;
        out.always("artifact", &V03(&self.artifact))?;
        out.always("append", &self.append)?;
        out.always("lastChunk", &self.last_chunk)?;
        out.put("metadata", &self.metadata)?;
        out.rest(&self.unknown, ArtifactUpdateFields::NAMES)
    }
}

impl Write for StreamResponse {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Task(task) => task.write(serializer),
            Self::Message(message) => message.write(serializer),
            Self::StatusUpdate(update) => update.write(serializer),
            Self::ArtifactUpdate(update) => update.write(serializer),
        }
    }
}

wire! {
    /// What tells the four apart, also where `kind` is missing.
    pub struct Signs {
        kind: String = "kind",
        task_id: String = "taskId" | "task_id",
        status: Option<Json> = "status",
        artifact: Option<Json> = "artifact",
        parts: Option<Json> = "parts",
    }
}

impl<'de> Deserialize<'de> for V03<StreamResponse> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        let signs: Signs = serde_json::from_str(json.text()).map_err(D::Error::custom)?;
        let kind = match signs.kind.as_str() {
            "" if !signs.artifact.is_absent() => "artifact-update",
            "" if !signs.parts.is_absent() => "message",
            "" if !signs.status.is_absent() && !signs.task_id.is_empty() => "status-update",
            "" if !signs.status.is_absent() => "task",
            named => named,
        };
        let text = json.text();
        let read = match kind {
            "task" => located("task", text).map(StreamResponse::Task),
            "message" => located("message", text).map(|message| StreamResponse::Message(Arc::new(message))),
            "status-update" => located("statusUpdate", text).map(StreamResponse::StatusUpdate),
            "artifact-update" => located("artifactUpdate", text).map(StreamResponse::ArtifactUpdate),
            "" => Err("has no kind: task, message, status-update or artifact-update".into()),
            other => {
                let shown: String = other.chars().take(40).collect();
                let choices = "task, message, status-update, artifact-update";
                Err(format!("has the kind '{shown}', which is not one of {choices}"))
            }
        };
        read.map(V03).map_err(D::Error::custom)
    }
}

/// Reads an object that was kept as text; what is wrong in it is told with its place, by the names of 1.0.
pub(super) fn located<T>(name: &str, text: &str) -> Result<T, String>
where
    V03<T>: DeserializeOwned,
{
    let deserializer = &mut serde_json::Deserializer::from_str(text);
    let read: Result<V03<T>, _> = serde_path_to_error::deserialize(deserializer);
    read.map(|read| read.0).map_err(|error| match error.path().to_string().as_str() {
        "." => format!("{name}: {}", error.inner()),
        path => format!("{name}.{path}: {}", error.inner()),
    })
}
