//! Tasks that wait: for an agent that is not there, or for their caller until the agent goes on by itself.

use super::step::{queue_run, status};
use super::{Decision, Head, Kind, RunState, report};
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::event::Event;
use flotilla_protocol::work::{Contents, Upstream};

/// A task that waits for its agent says why.
pub(super) fn waits(head: &Head, peer_seq: u64, reason: String) -> Event {
    let said = report::said(head, peer_seq, Contents::text(reason), None);
    Event::Status { state: TaskState::Submitted, said: Some(said), metadata: None }
}

pub(super) fn taken(head: &Head, run: u32, opens: bool) -> Decision {
    let mut decision = Decision::default();
    if head.run == run && head.run_state == RunState::Claimed {
        decision.events.push(Event::RunStarted { run });
    }
    if head.run == run && head.run_state != RunState::Idle && opens && head.kind == Kind::Undecided {
        decision.events.push(Event::Opened {});
    }
    decision
}

pub(super) fn hold(head: &Head, run: u32, reason: String) -> Decision {
    let mut decision = Decision::default();
    if head.run != run || head.run_state != RunState::Claimed {
        return decision;
    }
    let opens = head.kind == Kind::Undecided;
    if opens {
        decision.events.push(Event::Opened {});
    }
    decision.events.push(waits(head, head.peer_seq + u64::from(opens) + 1, reason));
    decision
}

/// What was waited for is there: the reason is taken away, and the rest is the agent's to say.
pub(super) fn delivered(head: &Head, run: u32) -> Decision {
    let mut decision = Decision::default();
    if head.run == run && head.run_state != RunState::Idle && head.state == TaskState::Submitted {
        decision.events.push(status(TaskState::Submitted));
    }
    decision
}

/// What the agent does by itself is told by another run, which finds its task and sends nothing. The task stays as it is
/// until that run says more.
pub(super) fn moved(head: &Head, run: u32, upstream: Upstream) -> Decision {
    let mut decision = Decision::default();
    if head.run == run && head.waits_for_caller() {
        queue_run(&mut decision, run + 1, true);
        decision.events.push(Event::Linked { run: run + 1, upstream, metadata: None, unknown: Vec::new() });
    }
    decision
}
