//! Decisions that end a task over its agent's head: its caller wants no more of it, or its time is over.

use super::step::{Decision, fail};
use super::{Head, Kind, RunState, report};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::event::Event;
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::Contents;

pub(super) fn cancel(head: &Head, said: Option<Contents>) -> Result<Decision, Refusal> {
    if head.kind != Kind::Task {
        return Err(Refusal::no_task(&head.id.to_string()));
    }
    if head.state.is_terminal() {
        let text = format!("The task has already ended ({}) and cannot be canceled.", head.state.name());
        return Err(Refusal::new(Reason::TaskNotCancelable, text).fact("taskId", head.id.to_string()));
    }
    let said = said.map(|contents| report::said(head, head.peer_seq + 1, contents, None));
    let canceled = Event::Status { state: TaskState::Canceled, said, metadata: None };
    Ok(Decision { events: vec![canceled], effects: Vec::new() })
}

/// Only a run that is under way can be asked.
pub(super) fn ask_to_stop(head: &Head, run: u32) -> Decision {
    let mut decision = Decision::default();
    if head.run == run && head.run_state != RunState::Idle {
        decision.events.push(Event::StopAsked { run });
    }
    decision
}

/// A task that has not ended by its deadline fails, whether somebody works at it or its caller is waited for.
pub(super) fn overdue(head: &Head, now: Millis) -> Decision {
    match head.deadline {
        Some(deadline) if deadline <= now && !head.is_over() => {
            let mut decision = Decision::default();
            fail(head, format!("The deadline passed ({deadline})."), &mut decision);
            decision
        }
        _ => Decision::default(),
    }
}
