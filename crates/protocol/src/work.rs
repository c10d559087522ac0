//! What the hub and the doers of work say to each other: an assignment out, reports back.

use crate::a2a::model::{Artifact, Message, Part, Task, TaskState, TaskStatus};
use crate::block::Block;
use crate::lineage::Lineage;
use crate::time::{Millis, Moment};
use crate::wire::{Object, Unknown};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One run of one agent at one task.
#[derive(Debug, Clone)]
pub struct Assignment {
    pub task_id: String,
    pub context_id: String,
    pub run: u32,
    /// Who asks, as the hub counts callers: the same number for the same caller always. For keeping them apart, not for
    /// telling the agent.
    pub caller: i64,
    /// How many messages of the caller the task holds, this one included.
    pub turn: u32,
    pub message: Arc<Message>,
    /// Media types the caller can take; empty means any.
    pub accepted_output_modes: Vec<String>,
    /// Metadata of the request, beside that of the message.
    pub metadata: Option<Object>,
    /// When it was asked, and by whom; empty where the agent is not to be told.
    pub asked_at: Millis,
    pub from: String,
    /// How long it may wait for its agent, in seconds, where the caller said so.
    pub ttl: Option<u32>,
    /// Somebody may see how the work goes, and not only what comes of it.
    pub watched: bool,
    /// What the run may cost, by what is left under the hard ceilings it counts against.
    pub max_cost_usd: Option<f64>,
    /// For an agent elsewhere: what was said before.
    pub trail: Trail,
    /// Where the task comes from, and what calls made for it are to tell.
    pub lineage: Lineage,
}

/// The ids an agent elsewhere knows its side of a task by, each empty if it gave none; and which of the extensions it was
/// asked for it activated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Upstream {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub activated: Vec<String>,
    /// How its task waited for its caller the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
}

/// How a task elsewhere waits for its caller, so that it is known later whether it has moved since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    pub state: TaskState,
    /// The agent's own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Millis>,
    /// The id of what it asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
}

impl Waits {
    /// Of a status that waits; none of any other.
    pub fn of(status: &TaskStatus) -> Option<Self> {
        let said = status.message.as_ref().map(|message| message.message_id.clone()).unwrap_or_default();
        status.state.is_interrupted().then_some(Self { state: status.state, at: moment(status), said })
    }

    /// Whether the task is shown as it was: nothing has been answered since. Some put the question into the history as
    /// soon as it is answered, and leave the rest of the status as it is.
    pub fn is_still(&self, status: &TaskStatus) -> bool {
        let asks_the_same = status.message.as_ref().is_none_or(|message| message.message_id == self.said);
        status.state == self.state && moment(status) == self.at && asks_the_same
    }

    /// Whether nothing of the whole task shows that it got a message, or went on without it. A later time alone does not
    /// where the same question is known by its id, or the history has no such message: some state a wait again.
    pub fn is_unmoved(&self, task: &Task, message: &str) -> bool {
        let Task { status, history, .. } = task;
        if status.state != self.state || history.iter().any(|one| one.message_id == message) {
            return false;
        }
        match status.message.as_ref().map(|asks| asks.message_id.as_str()) {
            Some(asks) if asks != self.said => false,
            Some(asks) if !asks.is_empty() => true,
            _ => !history.is_empty() || moment(status) == self.at,
        }
    }

    /// Whether a task is shown as it was before it waited: what an agent shows when it is asked may lag behind what it
    /// answered. An end is none of that. Work under way counts as later only if its time says so, or if there are no
    /// times at all and the wait was for a login, which is not told to the agent by its caller.
    pub fn is_after(&self, shown: &TaskStatus) -> bool {
        let under_way = matches!(shown.state, TaskState::Submitted | TaskState::Working);
        match (self.at, moment(shown)) {
            _ if shown.state.is_terminal() => false,
            (Some(at), Some(shown)) => shown < at || under_way && shown == at,
            (Some(_), None) => under_way,
            (None, _) => shown.state == TaskState::Submitted || under_way && self.state == TaskState::InputRequired,
        }
    }

    /// The same of an update, which is news as such: only its time can say that it is an old one.
    pub fn is_later_than(&self, update: &TaskStatus) -> bool {
        let is_older = self.at.zip(moment(update)).is_some_and(|(at, told)| told < at);
        is_older && !update.state.is_terminal()
    }
}

/// The time of a status, as it is kept.
fn moment(status: &TaskStatus) -> Option<Millis> {
    status.timestamp.map(Moment::millis)
}

/// What the logs say of an agent elsewhere: how far it was called, and what it has told already.
#[derive(Debug, Clone, Default)]
pub struct Trail {
    /// Its own ids for this task, or, for a new one, for the conversation it belongs to.
    pub upstream: Upstream,
    /// The extensions the caller asked for, but those that are the hub's own.
    pub extensions: Vec<String>,
    /// The run was under way when the hub stopped, so the message may have been sent.
    pub resumed: bool,
    /// The agent is known to have taken the run.
    pub started: bool,
    /// The caller wants it to end, and whoever has it was asked for that.
    pub stopping: bool,
    /// It is known to have been: the ids were told during this run.
    pub linked: bool,
    /// Its task waited for its caller when it was last heard of before this run.
    pub waited: bool,
    /// The tasks the message refers to, and what the agent calls them.
    pub references: Vec<(String, String)>,
    /// The ids of what the agent said in this task.
    pub said: Vec<String>,
    pub artifacts: Vec<Arc<Artifact>>,
    pub state: TaskState,
    /// Its caller was told why it waits.
    pub waits: bool,
    /// The highest number of a worker's reports in this run that is kept.
    pub received: u64,
    /// The ids under which another agent's were.
    pub told: Vec<String>,
    /// How often the agent refused the message before: to be asked again is not to be told the same twice.
    pub refused: u32,
}

impl Trail {
    /// Whether its agent had the run when the hub stopped: it is not to be begun.
    pub fn is_held(&self) -> bool {
        self.resumed && (self.started || self.stopping)
    }
}

/// Content of a report: A2A parts unchanged, or blocks from which peers see a projection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contents {
    Parts(Vec<Part>),
    Blocks(Vec<Block>),
    /// A message of an agent elsewhere, unchanged but for the ids of task and context, which are the hub's.
    Message(Box<Message>),
}

impl Contents {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Parts(vec![Part::text(text)])
    }

    /// What of it a peer may see.
    pub fn parts(&self) -> Vec<Part> {
        match self {
            Self::Parts(parts) => parts.clone(),
            Self::Blocks(blocks) => blocks.iter().filter_map(Block::to_part).collect(),
            Self::Message(message) => message.parts.clone(),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Parts(parts) => parts.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
            Self::Message(message) => message.parts.is_empty(),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Parts(parts) => parts.iter().map(Part::size).sum(),
            Self::Blocks(blocks) => sizes(blocks),
            Self::Message(message) => message.parts.iter().map(Part::size).sum(),
        }
    }
}

fn sizes(blocks: &[Block]) -> usize {
    blocks.iter().map(|block| block.json().text().len()).sum()
}

/// What an agent says while it works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    Status {
        state: TaskState,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contents: Option<Contents>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Object>,
    },
    /// `artifact.parts` is ignored: the contents say what the artifact holds.
    Artifact {
        artifact: Box<Artifact>,
        contents: Contents,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        append: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        last_chunk: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Object>,
    },
    /// A direct Message instead of a task.
    Answer {
        contents: Contents,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Object>,
    },
    /// For the owner's eyes.
    Note { blocks: Vec<Block> },
    /// The next message of the caller's that came during the run was taken up in it.
    TookUp,
    /// An agent elsewhere took the work up under these ids; one of a task makes the exchange a task. The rest is what
    /// it says of its task as a whole.
    Linked {
        upstream: Upstream,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Object>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unknown: Unknown,
    },
    /// Said by the hub alone: what goes before it came from a worker under this number, or from another agent under this
    /// id, and is known by it when it comes again.
    #[serde(skip)]
    Received { number: u64, id: String },
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
            Self::TookUp => 0,
            Self::Linked { metadata, unknown, .. } => {
                let known = metadata.as_ref().map_or(0, |metadata| metadata.0.text().len());
                known + unknown.iter().map(|(name, json)| name.len() + json.text().len()).sum::<usize>()
            }
            Self::Received { id, .. } => id.len(),
        }
    }
}
