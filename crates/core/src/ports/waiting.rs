//! What is asked of an agent elsewhere beside its runs: to stop, and whether it has gone on by itself.

use crate::ids::TaskId;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::{Message, TaskState};
use flotilla_protocol::held::Held;
use flotilla_protocol::lineage::Lineage;
use flotilla_protocol::work::{Contents, Upstream};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A task that is to be canceled.
#[derive(Debug, Clone)]
pub struct Stopping {
    pub task: TaskId,
    /// What an agent elsewhere calls it.
    pub upstream: Upstream,
    /// What its agent is told of where the call comes from, as its last run told it.
    pub lineage: Lineage,
    /// Whether a run is under way.
    pub running: bool,
}

/// What came of telling an agent to stop.
#[derive(Debug, Clone, PartialEq)]
pub enum Stopped {
    /// Nothing of the work goes on; what the agent said about it.
    Now(Option<Contents>),
    /// The agent was told, and what it makes of that is in the log: the task is as it is.
    Told,
    /// It had ended the task by itself, which is not in the log yet; what whoever wanted to cancel it is told.
    Ended(Refusal),
}

/// A task that waits for its caller at an agent elsewhere.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// What the agent calls it.
    pub upstream: Upstream,
    /// What the agent is told of where the call comes from, as the task's last run told it.
    pub lineage: Lineage,
    /// How it waits, and what it asked.
    pub state: TaskState,
    pub said: Option<Arc<Message>>,
    /// The artifacts it has told, by id.
    pub artifacts: Arc<HashMap<String, Held>>,
    /// How long ago its caller said something.
    pub waited: Duration,
}

/// What came of a look at a task that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The agent has gone on by itself, or asks for something else.
    Moved,
    /// It waits as before, or cannot be asked now.
    Still,
    /// Nobody has to look any more.
    Over,
}
