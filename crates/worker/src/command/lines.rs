//! The lines a hub and a program exchange: a task in, what becomes of it out.

use flotilla_protocol::a2a::model::{Artifact, Message, Part, TaskState};
use flotilla_protocol::block::Block;
use flotilla_protocol::wire::{Json, Object};
use flotilla_protocol::work::{Assignment, Contents, Report};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What came from a program.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    Text(String),
    Line(String),
    /// On standard error: for the owner.
    Aside(String),
}

/// The line that tells a program of a task.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskLine<'a> {
    r#type: &'static str,
    task_id: &'a str,
    context_id: &'a str,
    /// How many messages the caller has sent in this task, this one included.
    turn: u32,
    message: &'a Message,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    accepted_output_modes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Object>,
}

pub fn task_line(assignment: &Assignment) -> Result<String, String> {
    let line = TaskLine {
        r#type: "task",
        task_id: &assignment.task_id,
        context_id: &assignment.context_id,
        turn: assignment.turn,
        message: &assignment.message,
        accepted_output_modes: &assignment.accepted_output_modes,
        metadata: assignment.metadata.as_ref(),
    };
    let json = serde_json::to_string(&line).map_err(|error| format!("the task cannot be written as JSON: {error}"))?;
    Ok(format!("{json}\n"))
}

/// The texts of a message, one below the other.
pub fn text_of(message: &Message) -> String {
    let texts: Vec<&str> = message.parts.iter().filter_map(|part| part.text.as_deref()).collect();
    texts.join("\n")
}

/// What a program may say.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Line {
    /// Where the task stands.
    Status {
        state: State,
        #[serde(flatten)]
        content: Content,
        #[serde(default)]
        metadata: Option<Object>,
    },
    /// Something made, whole or in pieces.
    Artifact {
        #[serde(default)]
        artifact_id: Option<String>,
        #[serde(default)]
        name: String,
        #[serde(default)]
        description: String,
        #[serde(flatten)]
        content: Content,
        #[serde(default)]
        append: bool,
        #[serde(default)]
        last_chunk: Option<bool>,
        #[serde(default)]
        metadata: Option<Object>,
    },
    /// A direct answer instead of a task.
    Answer {
        #[serde(flatten)]
        content: Content,
        #[serde(default)]
        metadata: Option<Object>,
    },
    /// For the owner's eyes: a tool's use, a thought, what was used.
    Block { block: Json },
}

/// Text, parts or blocks.
#[derive(Debug, Default, Deserialize)]
pub struct Content {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    parts: Option<Vec<Part>>,
    #[serde(default)]
    blocks: Option<Vec<Json>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Working,
    Completed,
    Failed,
    Rejected,
    InputRequired,
    AuthRequired,
}

impl State {
    fn of_task(self) -> TaskState {
        match self {
            Self::Working => TaskState::Working,
            Self::Completed => TaskState::Completed,
            Self::Failed => TaskState::Failed,
            Self::Rejected => TaskState::Rejected,
            Self::InputRequired => TaskState::InputRequired,
            Self::AuthRequired => TaskState::AuthRequired,
        }
    }
}

impl Content {
    fn contents(self) -> Result<Option<Contents>, String> {
        match (self.text, self.parts, self.blocks) {
            (None, None, None) => Ok(None),
            (Some(text), None, None) => Ok(Some(Contents::text(text))),
            (None, Some(parts), None) => Ok(Some(Contents::Parts(parts))),
            (None, None, Some(blocks)) => {
                let blocks = blocks.into_iter().map(Block::new).collect::<Result<_, _>>()?;
                Ok(Some(Contents::Blocks(blocks)))
            }
            _ => Err("a line has one of text, parts and blocks".into()),
        }
    }
}

impl Line {
    pub fn read(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| flotilla_protocol::decode::plain(&error.to_string()))
    }

    pub fn ends_turn(&self) -> bool {
        match self {
            Self::Status { state, .. } => *state != State::Working,
            Self::Answer { .. } => true,
            Self::Artifact { .. } | Self::Block { .. } => false,
        }
    }

    pub fn into_report(self) -> Result<Report, String> {
        Ok(match self {
            Self::Status { state, content, metadata } => {
                Report::Status { state: state.of_task(), contents: content.contents()?, metadata }
            }
            Self::Artifact { artifact_id, name, description, content, append, last_chunk, metadata } => {
                let id = artifact_id.unwrap_or_else(|| Uuid::now_v7().to_string());
                let artifact = Artifact { artifact_id: id, name, description, ..Artifact::default() };
                let contents = content.contents()?.unwrap_or(Contents::Parts(Vec::new()));
                // One that is not continued is whole.
                let last_chunk = last_chunk.unwrap_or(!append);
                Report::Artifact { artifact: Box::new(artifact), contents, append, last_chunk, metadata }
            }
            Self::Answer { content, metadata } => {
                let contents = content.contents()?.ok_or("an answer needs text, parts or blocks")?;
                Report::Answer { contents, metadata }
            }
            Self::Block { block } => Report::Note { blocks: vec![Block::new(block)?] },
        })
    }
}
