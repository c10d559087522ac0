//! Messages and artifacts.

use super::{Out, V03, Write, carried, plain};
use crate::a2a::model::{Artifact, Message, Part, Role};
use crate::wire;
use crate::wire::{Named as _, Object};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde::ser::Serializer;

wire! {
    pub struct MessageFields {
        kind: String = "kind",
        message_id: String = "messageId" | "message_id",
        context_id: String = "contextId" | "context_id",
        task_id: String = "taskId" | "task_id",
        role: V03<Role> = "role",
        parts: Vec<V03<Part>> = "parts",
        metadata: Option<Object> = "metadata",
        extensions: Vec<String> = "extensions",
        reference_task_ids: Vec<String> = "referenceTaskIds" | "reference_task_ids",
    }
}

/// The kind an object says it is of must be the one it is read as; many leave it out.
pub(super) fn check_kind(kind: &str, expected: &str) -> Result<(), String> {
    if kind.is_empty() || kind == expected {
        return Ok(());
    }
    let shown: String = kind.chars().take(40).collect();
    Err(format!("has the kind '{shown}', where '{expected}' is expected"))
}

impl<'de> Deserialize<'de> for V03<Message> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = MessageFields::deserialize(deserializer)?;
        check_kind(&fields.kind, "message").map_err(D::Error::custom)?;
        Ok(Self(Message {
            message_id: fields.message_id,
            context_id: fields.context_id,
            task_id: fields.task_id,
            role: fields.role.0,
            parts: plain(fields.parts),
            metadata: fields.metadata,
            extensions: fields.extensions,
            reference_task_ids: fields.reference_task_ids,
            unknown: carried(fields.unknown, Message::NAMES),
        }))
    }
}

impl Write for Message {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.always("kind", "message")?;
        out.always("messageId", &self.message_id)?;
        out.put("contextId", &self.context_id)?;
        out.put("taskId", &self.task_id)?;
        out.always("role", &V03(&self.role))?;
        out.always("parts", &V03(self.parts.as_slice()))?;
        out.put("metadata", &self.metadata)?;
        out.put("extensions", &self.extensions)?;
        out.put("referenceTaskIds", &self.reference_task_ids)?;
        out.rest(&self.unknown, MessageFields::NAMES)
    }
}

wire! {
    pub struct ArtifactFields {
        artifact_id: String = "artifactId" | "artifact_id",
        name: String = "name",
        description: String = "description",
        parts: Vec<V03<Part>> = "parts",
        metadata: Option<Object> = "metadata",
        extensions: Vec<String> = "extensions",
    }
}

impl<'de> Deserialize<'de> for V03<Artifact> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = ArtifactFields::deserialize(deserializer)?;
        Ok(Self(Artifact {
            artifact_id: fields.artifact_id,
            name: fields.name,
            description: fields.description,
            parts: plain(fields.parts),
            metadata: fields.metadata,
            extensions: fields.extensions,
            unknown: fields.unknown,
        }))
    }
}

impl Write for Artifact {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.always("artifactId", &self.artifact_id)?;
        out.put("name", &self.name)?;
        out.put("description", &self.description)?;
        out.always("parts", &V03(self.parts.as_slice()))?;
        out.put("metadata", &self.metadata)?;
        out.put("extensions", &self.extensions)?;
        out.rest(&self.unknown, &[])
    }
}
