//! What the hub and the doers of work say to each other: an assignment out, reports back.

use crate::a2a::model::{Artifact, Message, Part, TaskState};
use crate::block::Block;
use crate::lineage::Lineage;
use crate::wire::Object;
use std::sync::Arc;

/// One run of one agent at one task.
#[derive(Debug, Clone)]
pub struct Assignment {
    pub task_id: String,
    pub context_id: String,
    pub run: u32,
    /// How many messages of the caller the task holds, this one included.
    pub turn: u32,
    pub message: Arc<Message>,
    /// Media types the caller can take; empty means any.
    pub accepted_output_modes: Vec<String>,
    /// Metadata of the request, beside that of the message.
    pub metadata: Option<Object>,
    /// Where the task comes from, and what calls made for it are to tell.
    pub lineage: Lineage,
}

/// Content of a report: A2A parts unchanged, or blocks from which peers see a projection.
#[derive(Debug, Clone, PartialEq)]
pub enum Contents {
    Parts(Vec<Part>),
    Blocks(Vec<Block>),
}

impl Contents {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Parts(vec![Part::text(text)])
    }

    fn size(&self) -> usize {
        match self {
            Self::Parts(parts) => parts.iter().map(Part::size).sum(),
            Self::Blocks(blocks) => sizes(blocks),
        }
    }
}

fn sizes(blocks: &[Block]) -> usize {
    blocks.iter().map(|block| block.json().text().len()).sum()
}

/// What an agent says while it works.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    Status {
        state: TaskState,
        contents: Option<Contents>,
        metadata: Option<Object>,
    },
    /// `artifact.parts` is ignored: the contents say what the artifact holds.
    Artifact {
        artifact: Box<Artifact>,
        contents: Contents,
        append: bool,
        last_chunk: bool,
        metadata: Option<Object>,
    },
    /// A direct Message instead of a task.
    Answer {
        contents: Contents,
        metadata: Option<Object>,
    },
    /// For the owner's eyes.
    Note {
        blocks: Vec<Block>,
    },
}

impl Report {
    pub fn status(state: TaskState) -> Self {
        Self::Status { state, contents: None, metadata: None }
    }

    /// What it holds, in bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Status { contents, .. } => contents.as_ref().map_or(0, Contents::size),
            Self::Artifact { contents, .. } | Self::Answer { contents, .. } => contents.size(),
            Self::Note { blocks } => sizes(blocks),
        }
    }
}
