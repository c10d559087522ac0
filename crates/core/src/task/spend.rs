//! What budgets do to a task: it is not begun, its owner is told, or it is stopped.

use super::step::fail_with;
use super::{Decision, Head, RunState, report};
use crate::budget::Broke;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::block::Block;
use flotilla_protocol::event::{Earlier, Event};
use flotilla_protocol::work::{Contents, Report};

/// A task that could not be paid for is rejected; a message to one that is there is refused, and the task stays as it is.
pub(super) fn no_budget(head: &Head, broke: &Broke, mut decision: Decision) -> Result<Decision, Refusal> {
    if head.version > 0 {
        let refusal = Refusal::new(Reason::ResourceExhausted, broke.text.clone());
        return Err(refusal.fact("taskId", head.id.to_string()).fact("reason", broke.reason));
    }
    decision.events.push(Event::Opened {});
    let said = report::said(head, head.peer_seq + 2, Contents::text(broke.text.clone()), broke.metadata());
    decision.events.push(Event::Status { state: TaskState::Rejected, said: Some(said), metadata: None });
    Ok(decision)
}

pub(super) fn near_budget(head: &Head, limit: String, used: u64, most: u64) -> Decision {
    let near = (!head.is_over()).then_some(Event::NearLimit { limit, used, most });
    Decision { events: near.into_iter().collect(), effects: Vec::new() }
}

/// What has used up its budget fails, unless it is over anyway.
pub(super) fn overspent(head: &Head, broke: &Broke) -> Decision {
    let mut decision = Decision::default();
    if !head.is_over() {
        fail_with(head, broke.text.clone(), broke.metadata(), &mut decision);
    }
    decision
}

/// What a run used, and the number under which it said so.
#[derive(Debug, Clone)]
pub struct Late {
    pub run: u32,
    pub worker: String,
    pub blocks: Vec<Block>,
    pub received: Option<Report>,
}

/// What a run used is noted after its end too; who sees the task sees nothing of it.
pub(super) fn late(head: &Head, Late { run, worker, blocks, received }: Late) -> Decision {
    let mut decision = Decision::default();
    let is_last = head.run == run && head.run_state == RunState::Idle;
    if is_last || run < head.run {
        let of = (!is_last).then_some(Earlier { run, worker });
        decision.events.push(Event::Noted { blocks, of });
        if let Some(Report::Received { number, id }) = received {
            decision.events.push(Event::Received { run, number, id });
        }
    }
    decision
}
