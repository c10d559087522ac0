//! What an agent asks its owner, in the task's log: asked once, answered once, and void when the run is over.

use super::{Decision, Head, Kind, RunState};
use crate::ids::ApprovalId;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::approval::{ApprovalRequest, ApprovalState};
use flotilla_protocol::event::{Asker, Event};
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::Json;
use std::sync::Arc;

/// The most a run may wait for at once.
pub const OPEN: usize = 32;

/// A question of a run, with the answer if it needs nobody to give it.
#[derive(Debug, Clone)]
pub struct Question {
    pub id: ApprovalId,
    pub run: u32,
    pub request: Arc<ApprovalRequest>,
    pub expires: Option<Millis>,
    pub answer: Option<Answer>,
    /// Who asks, where that is not the agent the task is with.
    pub asker: Option<Asker>,
}

/// What is said to a question, and by whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub state: ApprovalState,
    pub by: String,
    pub note: String,
    pub input: Option<Json>,
    pub always: bool,
}

impl Answer {
    pub fn new(state: ApprovalState, by: impl Into<String>) -> Self {
        Self { state, by: by.into(), note: String::new(), input: None, always: false }
    }

    #[must_use]
    pub fn noting(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    fn event(self, id: ApprovalId) -> Event {
        let Self { state, by, note, input, always } = self;
        Event::ApprovalSettled { id: id.to_string(), state, by, note, input, always }
    }
}

/// The answer to an open question.
#[derive(Debug, Clone)]
pub struct Settling {
    pub id: ApprovalId,
    pub answer: Answer,
}

/// The question goes into the log. While somebody has to answer it, the caller sees a task that is being worked on.
pub fn ask(head: &Head, question: Question) -> Result<Decision, Refusal> {
    let mut decision = Decision::default();
    let Question { id, run, request, expires, answer, asker } = question;
    if head.run != run || head.run_state == RunState::Idle || head.open_approvals.contains(&id) {
        return Ok(decision);
    }
    if answer.is_none() && head.open_approvals.len() >= OPEN {
        let text = format!("The run waits for as many approvals as it may ({OPEN}). Wait for an answer before asking.");
        return Err(Refusal::new(Reason::ResourceExhausted, text));
    }
    if head.run_state == RunState::Claimed {
        decision.events.push(Event::RunStarted { run });
    }
    if answer.is_none() && head.kind == Kind::Undecided {
        decision.events.push(Event::Opened {});
    }
    if answer.is_none() && head.state != TaskState::Working {
        decision.events.push(super::step::status(TaskState::Working));
    }
    decision.events.push(Event::ApprovalAsked { id: id.to_string(), run, request, expires, asker });
    decision.events.extend(answer.map(|answer| answer.event(id)));
    Ok(decision)
}

/// The first answer counts; any other is told so.
pub fn settle(head: &Head, settling: Settling) -> Result<Decision, Refusal> {
    let Settling { id, answer } = settling;
    if !head.open_approvals.contains(&id) {
        return Err(settled(id));
    }
    Ok(Decision { events: vec![answer.event(id)], effects: Vec::new() })
}

pub fn settled(id: ApprovalId) -> Refusal {
    let text =
        format!("The approval {id} is not open any more. See what came of it with 'flotilla approvals show {id}'.");
    Refusal::new(Reason::UnsupportedOperation, text).fact("approvalId", id.to_string())
}

/// Whatever ends the run takes its open questions back.
pub fn withdraw(head: &Head, events: &mut Vec<Event>) {
    let ends = |event: &Event| match event {
        Event::Routed { step, .. } => step.ends_run(),
        Event::Answered { .. } | Event::RunLost { .. } | Event::RunQueued { .. } => true,
        Event::Status { state, .. } => state.is_terminal() || state.is_interrupted(),
        _ => false,
    };
    if head.open_approvals.is_empty() || !events.iter().any(ends) {
        return;
    }
    let withdrawn = || Answer::new(ApprovalState::Withdrawn, "hub").noting("the run that asked is over");
    events.extend(head.open_approvals.iter().map(|id| withdrawn().event(*id)));
}
