//! Tasks, messages and events as text: labels that stay the same, every part shown.

use super::output::Text;
use super::pretty::pretty;
use flotilla_outbound::client::frame::Sent;
use flotilla_protocol::a2a::model::{Artifact, ArtifactUpdate, Message, Part, StatusUpdate, Task, TaskStatus};
use flotilla_protocol::wire::Object;

/// How much of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Detail {
    /// Metadata, ids and media types too.
    pub verbose: bool,
    /// The messages of the task too.
    pub history: bool,
}

impl Text {
    pub fn sent(&mut self, sent: &Sent, detail: Detail) -> &mut Self {
        match sent {
            Sent::Task(task) => self.task(task, detail),
            Sent::Message(message) => {
                self.field("Context", &message.context_id);
                self.message("Message", message, detail)
            }
            Sent::Status(update) => self.status_update(update, detail),
            Sent::Artifact(update) => self.artifact_update(update, detail),
        }
    }

    pub fn task(&mut self, task: &Task, detail: Detail) -> &mut Self {
        self.field("Task", &task.id).field("Context", &task.context_id);
        self.status(&task.status, detail);
        for artifact in task.artifacts.iter().flatten() {
            self.artifact(artifact, detail);
        }
        if detail.history {
            for message in &task.history {
                self.field("History", &format!("{} {}", message.role.name(), message.message_id));
                self.message("Text", message, detail);
            }
        }
        self.metadata(task.metadata.as_ref(), detail)
    }

    fn status(&mut self, status: &TaskStatus, detail: Detail) -> &mut Self {
        self.field("State", status.state.name());
        self.field("Updated", &status.timestamp.map(|at| at.to_string()).unwrap_or_default());
        if let Some(message) = &status.message {
            self.message("Message", message, detail);
        }
        self
    }

    fn status_update(&mut self, update: &StatusUpdate, detail: Detail) -> &mut Self {
        self.field("Task", &update.task_id).field("Context", &update.context_id);
        self.status(&update.status, detail).metadata(update.metadata.as_ref(), detail)
    }

    fn artifact_update(&mut self, update: &ArtifactUpdate, detail: Detail) -> &mut Self {
        self.field("Task", &update.task_id).field("Context", &update.context_id);
        self.field("Append", if update.append { "true" } else { "" });
        self.artifact(&update.artifact, detail).metadata(update.metadata.as_ref(), detail)
    }

    fn artifact(&mut self, artifact: &Artifact, detail: Detail) -> &mut Self {
        let name = if artifact.name.is_empty() { &artifact.artifact_id } else { &artifact.name };
        self.field("Artifact", name);
        if detail.verbose {
            self.field("Artifact id", &artifact.artifact_id).field("Description", &artifact.description);
        }
        self.parts("Text", &artifact.parts, detail).metadata(artifact.metadata.as_ref(), detail)
    }

    /// A message, its texts under the label given.
    fn message(&mut self, label: &str, message: &Message, detail: Detail) -> &mut Self {
        if detail.verbose {
            self.field("Message id", &message.message_id).field("Role", message.role.name());
        }
        self.parts(label, &message.parts, detail).metadata(message.metadata.as_ref(), detail)
    }

    fn parts(&mut self, label: &str, parts: &[Part], detail: Detail) -> &mut Self {
        for part in parts {
            if detail.verbose {
                self.field("Media type", part.effective_media_type());
            }
            match (&part.text, &part.data.0, &part.raw, &part.url) {
                (Some(text), ..) => self.block(label, text),
                (_, Some(data), ..) => self.block("Data", &pretty(data.text())),
                (_, _, Some(raw), _) => self.file(part, &format!("{} bytes", raw.decode().len())),
                (_, _, _, Some(url)) => self.file(part, url),
                // A part of a kind that is not known yet is still shown.
                _ => self.block("Part", &pretty(&serde_json::to_string(part).unwrap_or_default())),
            };
            self.metadata(part.metadata.as_ref(), detail);
        }
        self
    }

    /// Parts and nothing about them.
    pub fn plain(&mut self, parts: &[Part]) -> &mut Self {
        self.parts("Text", parts, Detail::default())
    }

    fn file(&mut self, part: &Part, what: &str) -> &mut Self {
        let name = if part.filename.is_empty() { "(no name)" } else { &part.filename };
        self.field("File", &format!("{name} ({}, {what})", part.effective_media_type()))
    }

    fn metadata(&mut self, metadata: Option<&Object>, detail: Detail) -> &mut Self {
        if let Some(metadata) = metadata.filter(|_| detail.verbose) {
            self.block("Metadata", &pretty(metadata.0.text()));
        }
        self
    }
}
