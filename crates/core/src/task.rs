//! The task: its bounded head, and the pure functions that decide and fold what happens to it.

mod apply;
pub mod approve;
pub mod conclude;
mod report;
pub mod room;
mod spend;
mod step;
mod stop;
mod wait;

pub use apply::apply;
pub(crate) use apply::apply_events;
pub use spend::Late;
pub use step::{Command, Decision, Effect, Retry, Say, step};

use crate::ids::{AgentId, ApprovalId, PrincipalId, TaskId};
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::lineage::{Origin, Provenance, Trace, TraceId};
use flotilla_protocol::time::Millis;
use std::sync::Arc;

/// Whether the exchange is a task or a single Message (decided by the agent's first report).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Undecided,
    Task,
    Message,
}

/// Where the current run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// No run: the task has ended or waits for its caller.
    Idle,
    /// Handed to the agent, which has not been heard of yet.
    Claimed,
    /// The agent has reported at least once.
    Started,
    /// It was given no message: it only tells what an agent elsewhere does by itself.
    Watching,
}

/// All that a decision needs to know of a task. Small and bounded: content lives in the log only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub id: TaskId,
    /// The caller who opened the task.
    pub principal: PrincipalId,
    pub agent: AgentId,
    /// The principal that owns the agent.
    pub owner: PrincipalId,
    pub context: Arc<str>,
    pub kind: Kind,
    pub state: TaskState,
    pub status_at: Millis,
    pub created_at: Millis,
    /// How many changes the log holds; a commit names the version it was decided on.
    pub version: u64,
    pub seq: u64,
    pub peer_seq: u64,
    pub run: u32,
    pub run_state: RunState,
    /// How many messages the caller has sent.
    pub turn: u32,
    /// Messages that no run has taken up yet: they came while one was under way.
    pub waiting: u32,
    /// When the task ends, done or not.
    pub deadline: Option<Millis>,
    /// Where it comes from, if its caller told.
    pub origin: Option<Arc<Origin>>,
    /// What the run has asked its agent's owner and was not told yet.
    pub open_approvals: Vec<ApprovalId>,
    /// The size of the log's events, as they are stored.
    pub bytes: u64,
}

impl Head {
    pub fn new(id: TaskId, principal: PrincipalId, agent: AgentId, owner: PrincipalId, context: Arc<str>) -> Self {
        Self {
            id,
            principal,
            agent,
            owner,
            context,
            kind: Kind::Undecided,
            state: TaskState::Unspecified,
            status_at: Millis(0),
            created_at: Millis(0),
            version: 0,
            seq: 0,
            peer_seq: 0,
            run: 0,
            run_state: RunState::Idle,
            turn: 0,
            waiting: 0,
            deadline: None,
            origin: None,
            open_approvals: Vec::new(),
            bytes: 0,
        }
    }

    /// Nothing will be added to this log any more.
    pub fn is_over(&self) -> bool {
        self.kind == Kind::Message || self.state.is_terminal()
    }

    /// Nothing more comes until the caller says something, if ever.
    pub fn is_settled(&self) -> bool {
        self.is_over() || self.state.is_interrupted()
    }

    /// Nobody works at it: its caller is to say something, or to do something elsewhere.
    pub fn waits_for_caller(&self) -> bool {
        self.kind == Kind::Task && self.state.is_interrupted() && self.run_state == RunState::Idle
    }

    /// Who called for it. Whoever tells nothing is a caller of this hub.
    pub fn provenance(&self) -> Provenance {
        self.origin.as_ref().map(|origin| origin.provenance).unwrap_or_default()
    }

    /// The task it is part of, as its hub calls it.
    pub fn parent_task(&self) -> Option<&str> {
        let parent = self.origin.as_ref().and_then(|origin| origin.parent());
        parent.map(|parent| parent.task.as_str()).filter(|task| !task.is_empty())
    }

    pub fn trace_id(&self) -> TraceId {
        let told = self.origin.as_ref().and_then(|origin| origin.trace.as_ref());
        told.map_or_else(|| self.id.trace(), |trace| trace.id)
    }

    /// The trace the task belongs to, with a span of one of its runs.
    pub fn trace(&self, run: u32) -> Trace {
        let span = self.id.span(run);
        let told = self.origin.as_ref().and_then(|origin| origin.trace.as_ref());
        told.map_or_else(|| Trace::begun(self.id.trace(), span), |trace| trace.at(span))
    }

    /// The number of the state in stores: 0 undecided, 1 to 8 the protocol's, 9 a Message exchange.
    pub fn state_code(&self) -> u8 {
        match self.kind {
            Kind::Undecided => 0,
            Kind::Task => self.state as u8,
            Kind::Message => 9,
        }
    }
}

#[cfg(test)]
mod tests;
