//! The one fold: what each fact does to a task's head.

use super::{Head, Kind, RunState};
use crate::ids::ApprovalId;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::time::Millis;

/// Folds a change into the head. Nothing else changes a head.
pub fn apply(head: &mut Head, change: &Change) {
    if head.version == 0 {
        head.created_at = change.at;
    }
    head.version += 1;
    apply_events(head, &change.events, change.at);
}

pub(crate) fn apply_events(head: &mut Head, events: &[Event], at: Millis) {
    for event in events {
        head.seq += 1;
        head.peer_seq += u64::from(event.is_for_peers());
        apply_event(head, event, at);
    }
}

fn apply_event(head: &mut Head, event: &Event, at: Millis) {
    match event {
        Event::Descended { origin, deadline } => {
            head.origin = origin.clone().or(head.origin.take());
            head.deadline = *deadline;
        }
        Event::Asked { .. } => {
            head.turn += 1;
            head.waiting += 1;
        }
        Event::Opened {} => {
            head.kind = Kind::Task;
            head.state = TaskState::Submitted;
            head.status_at = at;
        }
        Event::Answered { .. } => {
            head.kind = Kind::Message;
            end_run(head);
        }
        Event::Status { state, .. } => {
            head.state = *state;
            head.status_at = at;
            if state.is_settled() {
                end_run(head);
            }
        }
        Event::RunQueued { run } => {
            head.run = *run;
            head.run_state = if head.waiting == 0 { RunState::Watching } else { RunState::Claimed };
            head.open_approvals.clear();
            head.waiting = head.waiting.saturating_sub(1);
        }
        Event::RunStarted { .. } => head.run_state = RunState::Started,
        Event::TakenUp { .. } => head.waiting = head.waiting.saturating_sub(1),
        Event::Routed { step, .. } if !step.ends_run() => {}
        Event::RunLost { .. } if head.run_state == RunState::Watching => end_run(head),
        Event::RunLost { .. } | Event::Routed { .. } => {
            // Its message waits again.
            end_run(head);
            head.waiting += 1;
        }
        Event::ApprovalAsked { id, .. } => head.open_approvals.extend(ApprovalId::parse(id)),
        Event::ApprovalSettled { id, .. } => {
            let settled = ApprovalId::parse(id);
            head.open_approvals.retain(|open| Some(*open) != settled);
        }
        Event::Produced { .. }
        | Event::Noted { .. }
        | Event::Linked { .. }
        | Event::Received { .. }
        | Event::StopAsked { .. }
        | Event::NearLimit { .. } => {}
    }
}

/// What a run that is over has asked, it does not want to know any more.
fn end_run(head: &mut Head) {
    head.run_state = RunState::Idle;
    head.open_approvals.clear();
}
