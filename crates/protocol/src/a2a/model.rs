//! The A2A data model (spec 4): tasks, messages, parts, artifacts and the events of a stream.

use crate::time::Moment;
use crate::wire;
use crate::wire::{AnyValue, Base64, Object};
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// Declares a proto enum: read by name or number, written by name.
macro_rules! wire_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vm:meta])* $variant:ident = $number:literal $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub enum $name { $($(#[$vm])* $variant = $number),* }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
            pub fn from_name(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
            pub fn from_number(number: i64) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }
            /// The names a caller may use, for error texts.
            pub fn choices() -> String {
                Self::ALL.iter().skip(1).map(|v| v.name()).collect::<Vec<_>>().join(", ")
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct EnumVisitor;
                impl Visitor<'_> for EnumVisitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "one of {}", $name::choices())
                    }
                    fn visit_str<E: Error>(self, text: &str) -> Result<$name, E> {
                        $name::from_name(text)
                            .ok_or_else(|| E::custom(format!("'{text}' is not one of {}", $name::choices())))
                    }
                    fn visit_i64<E: Error>(self, number: i64) -> Result<$name, E> {
                        $name::from_number(number)
                            .ok_or_else(|| E::custom(format!("{number} is not the number of any value")))
                    }
                    fn visit_u64<E: Error>(self, number: u64) -> Result<$name, E> {
                        self.visit_i64(i64::try_from(number).unwrap_or(-1))
                    }
                }
                deserializer.deserialize_any(EnumVisitor)
            }
        }

        impl wire::WireField for $name {
            fn read<'de, A: serde::de::MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
                Ok(map.next_value::<Option<Self>>()?.unwrap_or_default())
            }
            fn is_absent(&self) -> bool {
                *self == Self::default()
            }
        }
    };
}

wire_enum! {
    /// Where a task stands (spec 4.1.3).
    TaskState {
        #[default]
        Unspecified = 0 "TASK_STATE_UNSPECIFIED",
        Submitted = 1 "TASK_STATE_SUBMITTED",
        Working = 2 "TASK_STATE_WORKING",
        Completed = 3 "TASK_STATE_COMPLETED",
        Failed = 4 "TASK_STATE_FAILED",
        Canceled = 5 "TASK_STATE_CANCELED",
        InputRequired = 6 "TASK_STATE_INPUT_REQUIRED",
        Rejected = 7 "TASK_STATE_REJECTED",
        AuthRequired = 8 "TASK_STATE_AUTH_REQUIRED",
    }
}

impl TaskState {
    /// Ended for good: nothing may change it any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }
    /// Waiting for the caller.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// Nothing more comes by itself: ended, or waiting for the caller. In 0.3 a stream ends here (`final`).
    pub fn is_settled(self) -> bool {
        self.is_terminal() || self.is_interrupted()
    }
}

wire_enum! {
    /// Who speaks (spec 4.1.5).
    Role {
        #[default]
        Unspecified = 0 "ROLE_UNSPECIFIED",
        User = 1 "ROLE_USER",
        Agent = 2 "ROLE_AGENT",
    }
}

wire! {
    /// One piece of content: exactly one of text, raw, url and data.
    pub struct Part {
        text: Option<String> = "text",
        raw: Option<Base64> = "raw",
        url: Option<String> = "url",
        data: AnyValue = "data",
        metadata: Option<Object> = "metadata",
        filename: String = "filename",
        media_type: String = "mediaType" | "media_type",
    }
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// What the part holds, in bytes; raw content counts as what it decodes to.
    pub fn size(&self) -> usize {
        let json = |json: Option<&wire::Json>| json.map_or(0, |json| json.text().len());
        self.text.as_ref().map_or(0, String::len)
            + self.raw.as_ref().map_or(0, Base64::decoded_len)
            + self.url.as_ref().map_or(0, String::len)
            + json(self.data.0.as_ref())
            + json(self.metadata.as_ref().map(|object| &object.0))
            + self.filename.len()
            + self.media_type.len()
    }

    /// The media type the part declares, or the one its kind implies.
    pub fn effective_media_type(&self) -> &str {
        if !self.media_type.is_empty() {
            &self.media_type
        } else if self.text.is_some() {
            "text/plain"
        } else if self.data.0.is_some() {
            "application/json"
        } else {
            "application/octet-stream"
        }
    }
}

wire! {
    /// One unit of communication between a caller and an agent.
    pub struct Message {
        message_id: String = "messageId" | "message_id",
        context_id: String = "contextId" | "context_id",
        task_id: String = "taskId" | "task_id",
        role: Role = "role",
        parts: Vec<Part> = "parts",
        metadata: Option<Object> = "metadata",
        extensions: Vec<String> = "extensions",
        reference_task_ids: Vec<String> = "referenceTaskIds" | "reference_task_ids",
    }
}

wire! {
    /// An output of a task.
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
    /// The state of a task, with what the agent said about it.
    pub struct TaskStatus {
        state: TaskState = "state",
        message: Option<Arc<Message>> = "message",
        timestamp: Option<Moment> = "timestamp",
    }
}

wire! {
    /// A task as its caller sees it. `artifacts` absent and empty differ (spec 3.1.4).
    pub struct Task {
        id: String = "id",
        context_id: String = "contextId" | "context_id",
        status: TaskStatus = "status",
        artifacts: Option<Vec<Arc<Artifact>>> = "artifacts",
        history: Vec<Arc<Message>> = "history",
        metadata: Option<Object> = "metadata",
    }
}

impl wire::WireField for TaskStatus {
    fn read<'de, A: serde::de::MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        Ok(map.next_value::<Option<Self>>()?.unwrap_or_default())
    }
    fn is_absent(&self) -> bool {
        false
    }
}

wire! {
    /// A stream's word that the status changed.
    pub struct StatusUpdate {
        task_id: String = "taskId" | "task_id",
        context_id: String = "contextId" | "context_id",
        status: TaskStatus = "status",
        metadata: Option<Object> = "metadata",
    }
}

wire! {
    /// A stream's word that an artifact came or grew.
    pub struct ArtifactUpdate {
        task_id: String = "taskId" | "task_id",
        context_id: String = "contextId" | "context_id",
        artifact: Arc<Artifact> = "artifact",
        append: bool = "append",
        last_chunk: bool = "lastChunk" | "last_chunk",
        metadata: Option<Object> = "metadata",
    }
}

/// One frame of a stream (spec 3.2.3), and, restricted to the first two, the answer to SendMessage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamResponse {
    Task(Task),
    Message(Arc<Message>),
    StatusUpdate(StatusUpdate),
    ArtifactUpdate(ArtifactUpdate),
}
