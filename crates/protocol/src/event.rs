//! The facts a task's log is made of, as the owner sees them; A2A is a projection of these.

use crate::a2a::model::{Artifact, Message, Part, TaskState};
use crate::approval::{ApprovalRequest, ApprovalState};
use crate::block::Block;
use crate::fleet::route::Step;
use crate::lineage::Origin;
use crate::time::Millis;
use crate::wire::{Json, Object, Unknown};
use crate::work::Upstream;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Something the agent said: A2A parts as they are, or content blocks from which parts are projected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Said {
    pub message: Arc<Message>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
}

impl Said {
    /// The message as a peer sees it; none if there is nothing to see.
    pub fn projected(&self) -> Option<Arc<Message>> {
        if self.blocks.is_empty() {
            let shows = !self.message.parts.is_empty() || self.message.metadata.is_some();
            return shows.then(|| Arc::clone(&self.message));
        }
        let parts = project(&self.blocks);
        (!parts.is_empty()).then(|| Arc::new(Message { parts, ..(*self.message).clone() }))
    }
}

/// A whole artifact, or a chunk that extends one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chunk {
    pub artifact: Arc<Artifact>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub append: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last_chunk: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

impl Chunk {
    /// The artifact as a peer sees it.
    pub fn projected(&self) -> Arc<Artifact> {
        if self.blocks.is_empty() {
            return Arc::clone(&self.artifact);
        }
        Arc::new(Artifact { parts: project(&self.blocks), ..(*self.artifact).clone() })
    }

    /// A chunk of nothing but hidden blocks is no event for a peer. One without any content may be the word that it
    /// is the last.
    fn shows_something(&self) -> bool {
        self.blocks.is_empty() || self.blocks.iter().any(|block| block.to_part().is_some())
    }
}

fn project(blocks: &[Block]) -> Vec<Part> {
    blocks.iter().filter_map(Block::to_part).collect()
}

/// A worker that does a task of the fleet's: its number, and that of its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asker {
    pub agent: i64,
    pub owner: i64,
}

/// A run that was taken from the agent that had it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier {
    pub run: u32,
    pub worker: String,
}

/// One fact. Names are stored, so they only ever grow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Where the task comes from, and when it ends; without an origin, when a later message tells another deadline.
    Descended {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Arc<Origin>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Millis>,
    },
    /// The caller said something. In the history, but not in a stream.
    Asked {
        message: Arc<Message>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        accepted_output_modes: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Object>,
        /// Who asked, where the agent is to be told.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        from: String,
        /// How long it may wait for its agent, in seconds, where the caller said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttl: Option<u32>,
        /// The extensions asked for, where the agent is elsewhere.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        extensions: Vec<String>,
        /// Where a later message comes from, where its caller told that: the task stays what it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Arc<Origin>>,
        /// The only agents that may do it, where the hub chooses and the caller's key is limited to some.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agents: Option<Arc<[String]>>,
    },
    /// The exchange became a task that its caller can see.
    Opened {},
    /// The agent answered with a Message: this exchange is no task.
    Answered {
        said: Said,
    },
    Status {
        state: TaskState,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<Said>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Object>,
    },
    Produced {
        chunk: Chunk,
    },
    /// Tool calls, thoughts, usage, progress: for the owner only.
    Noted {
        blocks: Vec<Block>,
        /// The run that says so, where others have followed it by then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<Earlier>,
    },
    RunQueued {
        run: u32,
    },
    RunStarted {
        run: u32,
    },
    /// The run took up the next message of the caller's that came while it was under way.
    TakenUp {
        run: u32,
    },
    /// An agent elsewhere knows the work by its own ids, which are nobody's but the owner's. What it said of its task
    /// as a whole is shown with the task.
    Linked {
        run: u32,
        upstream: Upstream,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Object>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unknown: Unknown,
    },
    /// What goes before it in this change came from a worker under this number, or from another agent under this id.
    Received {
        run: u32,
        number: u64,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        id: String,
    },
    /// The caller wants the run to end, and whoever has it is told so until nothing of it is left.
    StopAsked {
        run: u32,
    },
    /// A run ended without a result; what follows says what was done about it.
    RunLost {
        run: u32,
        reason: String,
    },
    /// What became of dispatched work on its way to a worker and back.
    Routed {
        run: u32,
        step: Box<Step>,
    },
    /// The task has used most of what it may; said by the hub, once for each limit.
    NearLimit {
        limit: String,
        used: u64,
        most: u64,
    },
    /// The agent asked its owner for leave to do something.
    ApprovalAsked {
        id: String,
        run: u32,
        request: Arc<ApprovalRequest>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Millis>,
        /// Who asks, where that is not the agent the task is with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asker: Option<Asker>,
    },
    /// What came of that, and by whom.
    ApprovalSettled {
        id: String,
        state: ApprovalState,
        by: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Json>,
        /// The same goes for every further question of the task about the same tool.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        always: bool,
    },
}

impl Event {
    /// Whether the caller of the agent may see that this happened.
    pub fn is_for_peers(&self) -> bool {
        match self {
            Self::Opened {} | Self::Answered { .. } | Self::Status { .. } => true,
            Self::Produced { chunk } => chunk.shows_something(),
            Self::Descended { .. }
            | Self::Asked { .. }
            | Self::Noted { .. }
            | Self::RunQueued { .. }
            | Self::RunStarted { .. }
            | Self::TakenUp { .. }
            | Self::Linked { .. }
            | Self::Received { .. }
            | Self::StopAsked { .. }
            | Self::RunLost { .. }
            | Self::Routed { .. }
            | Self::NearLimit { .. }
            | Self::ApprovalAsked { .. }
            | Self::ApprovalSettled { .. } => false,
        }
    }
}

/// The events of one decision, which are committed, shown and replayed together.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Number of the first event, dense over all events of the task.
    pub first_seq: u64,
    /// Number of the first peer-visible event here, dense over those.
    pub first_peer_seq: u64,
    pub at: Millis,
    pub events: Vec<Event>,
}

impl Change {
    pub fn last_seq(&self) -> u64 {
        self.first_seq + self.events.len() as u64 - 1
    }

    /// Number of the last peer-visible event up to and including this change.
    pub fn last_peer_seq(&self) -> u64 {
        self.first_peer_seq + self.peer_count() - 1
    }

    pub fn peer_count(&self) -> u64 {
        self.events.iter().filter(|event| event.is_for_peers()).count() as u64
    }

    /// The peer-visible events with their numbers.
    pub fn for_peers(&self) -> impl Iterator<Item = (u64, &Event)> {
        self.events.iter().filter(|event| event.is_for_peers()).zip(self.first_peer_seq..).map(|(e, n)| (n, e))
    }
}
