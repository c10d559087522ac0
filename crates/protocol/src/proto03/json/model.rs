//! The messages of 0.3's proto file as ProtoJSON has them.

use crate::a2a::model::{Role, TaskState};
use crate::time::Moment;
use crate::wire;
use crate::wire::{Base64, Int32, Object, WireField};
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// A state, which 0.3 spells with two l where 1.0 has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State(pub TaskState);

const CANCELLED: &str = "TASK_STATE_CANCELLED";

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if self.0 == TaskState::Canceled { CANCELLED } else { self.0.name() })
    }
}

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StateVisitor;
        impl Visitor<'_> for StateVisitor {
            type Value = State;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "one of {}", TaskState::choices())
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<State, E> {
                let known = if text == CANCELLED { Some(TaskState::Canceled) } else { TaskState::from_name(text) };
                known.map(State).ok_or_else(|| E::custom(format!("'{text}' is not one of {}", TaskState::choices())))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<State, E> {
                let known = i64::try_from(number).ok().and_then(TaskState::from_number);
                known.map(State).ok_or_else(|| E::custom(format!("{number} is not the number of any value")))
            }
        }
        deserializer.deserialize_any(StateVisitor)
    }
}

impl WireField for State {
    fn read<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        Ok(map.next_value::<Option<Self>>()?.unwrap_or_default())
    }
    fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}

wire! {
    pub struct FilePart {
        file_with_uri: Option<String> = "fileWithUri" | "file_with_uri",
        file_with_bytes: Option<Base64> = "fileWithBytes" | "file_with_bytes",
        mime_type: String = "mimeType" | "mime_type",
        name: String = "name",
    }
}

wire! {
    pub struct DataPart {
        data: Option<Object> = "data",
    }
}

wire! {
    pub struct Part {
        text: Option<String> = "text",
        file: Option<FilePart> = "file",
        data: Option<DataPart> = "data",
        metadata: Option<Object> = "metadata",
        /// No field of 0.3 either of them, and never written.
        filename: String = "filename",
        media_type: String = "mediaType" | "media_type",
    }
}

wire! {
    /// `parts` is what JSON elsewhere calls its content, and some senders do here.
    pub struct Message {
        message_id: String = "messageId" | "message_id",
        context_id: String = "contextId" | "context_id",
        task_id: String = "taskId" | "task_id",
        role: Role = "role",
        content: Vec<Part> = "content" | "parts",
        metadata: Option<Object> = "metadata",
        extensions: Vec<String> = "extensions",
        /// Not in the proto file, so only read.
        reference_task_ids: Vec<String> = "referenceTaskIds" | "reference_task_ids",
    }
}

wire! {
    pub struct Artifact {
        artifact_id: String = "artifactId" | "artifact_id",
        name: String = "name",
        description: String = "description",
        parts: Vec<Part> = "parts",
        metadata: Option<Object> = "metadata",
        extensions: Vec<String> = "extensions",
    }
}

wire! {
    pub struct TaskStatus {
        state: State = "state",
        update: Option<Message> = "message" | "update",
        timestamp: Option<Moment> = "timestamp",
    }
}

wire! {
    pub struct Task {
        id: String = "id",
        context_id: String = "contextId" | "context_id",
        status: Option<TaskStatus> = "status",
        artifacts: Vec<Artifact> = "artifacts",
        history: Vec<Message> = "history",
        metadata: Option<Object> = "metadata",
    }
}

wire! {
    pub struct StatusUpdate {
        task_id: String = "taskId" | "task_id",
        context_id: String = "contextId" | "context_id",
        status: Option<TaskStatus> = "status",
        last: bool = "final",
        metadata: Option<Object> = "metadata",
    }
}

wire! {
    pub struct ArtifactUpdate {
        task_id: String = "taskId" | "task_id",
        context_id: String = "contextId" | "context_id",
        artifact: Option<Artifact> = "artifact",
        append: bool = "append",
        last_chunk: bool = "lastChunk" | "last_chunk",
        metadata: Option<Object> = "metadata",
    }
}

wire! {
    /// One of them is there. An answer to a send has one of the first two.
    pub struct StreamResponse {
        task: Option<Task> = "task",
        message: Option<Message> = "message" | "msg",
        status_update: Option<StatusUpdate> = "statusUpdate" | "status_update",
        artifact_update: Option<ArtifactUpdate> = "artifactUpdate" | "artifact_update",
    }
}

wire! {
    pub struct Authentication {
        schemes: Vec<String> = "schemes",
        credentials: String = "credentials",
    }
}

wire! {
    pub struct PushConfig {
        id: String = "id",
        url: String = "url",
        token: String = "token",
        authentication: Option<Authentication> = "authentication",
    }
}

wire! {
    pub struct TaskPushConfig {
        name: String = "name",
        config: Option<PushConfig> = "pushNotificationConfig" | "push_notification_config",
    }
}

wire! {
    pub struct PushConfigPage {
        configs: Vec<TaskPushConfig> = "configs",
        next_page_token: String = "nextPageToken" | "next_page_token",
    }
}

wire! {
    pub struct CreatePushRequest {
        parent: String = "parent",
        config_id: String = "configId" | "config_id",
        config: Option<TaskPushConfig> = "config",
        /// Where the body is what `config` would hold.
        bare: Option<PushConfig> = "pushNotificationConfig" | "push_notification_config",
    }
}

wire! {
    pub struct Configuration {
        accepted_output_modes: Vec<String> = "acceptedOutputModes" | "accepted_output_modes",
        push_config: Option<PushConfig> =
            "pushNotification" | "push_notification" | "pushNotificationConfig" | "push_notification_config",
        history_length: Option<Int32> = "historyLength" | "history_length",
        blocking: bool = "blocking",
    }
}

wire! {
    pub struct SendMessageRequest {
        message: Option<Message> = "message" | "request",
        configuration: Option<Configuration> = "configuration",
        metadata: Option<Object> = "metadata",
    }
}
