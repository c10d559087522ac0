//! What an agent's reports make of a task: only legal transitions, and nothing from a run that is over.

use super::step::{agent_message, queue_run, wrap};
use super::{Decision, Head, Kind, RunState};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::{Artifact, Message, TaskState};
use flotilla_protocol::event::{Chunk, Event, Said};
use flotilla_protocol::fleet::HANDSHAKE;
use flotilla_protocol::lineage::find_member;
use flotilla_protocol::wire::Object;
use flotilla_protocol::work::{Contents, Report};
use std::sync::Arc;

/// Folds the reports one by one over a scratch head, so that each is judged by what went before it.
pub(super) fn decide(head: &Head, run: u32, reports: Vec<Report>) -> Result<Decision, Refusal> {
    let mut decision = Decision::default();
    let mut scratch = head.clone();
    let mut done_for_now = false;
    for report in reports {
        if scratch.run != run || scratch.run_state == RunState::Idle {
            break;
        }
        let ends = matches!(report, Report::Status { state: TaskState::Completed, .. } | Report::Answer { .. });
        let events = one(&scratch, run, report)?;
        super::apply::apply_events(&mut scratch, &events, head.status_at);
        decision.events.extend(events);
        if ends && !scratch.is_over() {
            done_for_now = true;
            break;
        }
    }
    if !decision.events.is_empty() && scratch.waiting > 0 {
        // Something was said during the run: take it up now instead of ending, or asking for what was already given.
        if scratch.waits_for_caller() {
            decision.events.push(super::step::status(TaskState::Submitted));
            queue_run(&mut decision, run + 1, true);
        } else if done_for_now {
            queue_run(&mut decision, run + 1, true);
        }
    }
    Ok(decision)
}

fn one(head: &Head, run: u32, report: Report) -> Result<Vec<Event>, Refusal> {
    let mut events = Vec::with_capacity(3);
    if head.run_state == RunState::Claimed {
        events.push(Event::RunStarted { run });
    }
    let shows_a_task = match &report {
        Report::Note { .. } | Report::Answer { .. } | Report::TookUp | Report::Received { .. } => false,
        Report::Linked { upstream, .. } => !upstream.task.is_empty(),
        Report::Status { .. } | Report::Artifact { .. } => true,
    };
    let opens = shows_a_task && head.kind == Kind::Undecided;
    if opens {
        events.push(Event::Opened {});
    }
    let peer_seq = head.peer_seq + events.iter().filter(|event| event.is_for_peers()).count() as u64 + 1;
    match report {
        Report::Status { state, contents, metadata } => {
            legal(state)?;
            // More was said meanwhile, so this turn is done but the task is not.
            let state = if state == TaskState::Completed && head.waiting > 0 { TaskState::Submitted } else { state };
            let said = contents.map(|contents| {
                let why = metadata.clone().filter(|told| state.is_terminal() && is_own_word(&contents, told));
                said(head, peer_seq, contents, why)
            });
            events.push(Event::Status { state, said, metadata });
        }
        Report::Artifact { artifact, contents, append, last_chunk, metadata } => {
            let chunk = chunk(*artifact, contents, append, last_chunk, metadata)?;
            events.push(Event::Produced { chunk });
        }
        Report::Answer { contents, metadata } => {
            let in_task = head.kind == Kind::Task;
            let mut said = said(head, peer_seq, contents, metadata);
            if said.projected().is_none() {
                return Err(Refusal::new(
                    Reason::InvalidAgentResponse,
                    "An answer must hold something its caller can see.",
                ));
            }
            if in_task {
                // The caller was already given a task: the answer completes it, unless more was said meanwhile.
                let state = if head.waiting > 0 { TaskState::Submitted } else { TaskState::Completed };
                events.push(Event::Status { state, said: Some(said), metadata: None });
            } else {
                Arc::make_mut(&mut said.message).task_id.clear();
                events.push(Event::Answered { said });
            }
        }
        Report::Note { blocks } => events.push(Event::Noted { blocks, of: None }),
        Report::TookUp => events.push(Event::TakenUp { run }),
        Report::Received { number, id } => events.push(Event::Received { run, number, id }),
        Report::Linked { upstream, metadata, unknown } => {
            // Before the task is opened, so that it is shown with what is said of it.
            let place = events.len() - usize::from(opens);
            events.insert(place, Event::Linked { run, upstream, metadata, unknown });
        }
    }
    Ok(events)
}

/// Whether what is told with an end says why it is one. Who asks for the task later sees the message, and no update.
fn is_own_word(contents: &Contents, metadata: &Object) -> bool {
    !matches!(contents, Contents::Message(_)) && find_member(metadata, HANDSHAKE).is_some()
}

fn legal(state: TaskState) -> Result<(), Refusal> {
    match state {
        TaskState::Unspecified | TaskState::Submitted => {
            let text = format!("An agent cannot report {}.", state.name());
            Err(Refusal::new(Reason::InvalidAgentResponse, text))
        }
        _ => Ok(()),
    }
}

pub(super) fn said(head: &Head, peer_seq: u64, contents: Contents, metadata: Option<Object>) -> Said {
    let message = agent_message(head, peer_seq, true);
    match contents {
        Contents::Parts(parts) => wrap(Message { parts, metadata, ..message }, Vec::new()),
        Contents::Blocks(blocks) => wrap(Message { metadata, ..message }, blocks),
        Contents::Message(mut told) => {
            let Message { message_id, context_id, task_id, role, .. } = message;
            if told.message_id.is_empty() {
                told.message_id = message_id;
            }
            let metadata = told.metadata.take().or(metadata);
            wrap(Message { context_id, task_id, role, metadata, ..*told }, Vec::new())
        }
    }
}

fn chunk(
    mut artifact: Artifact,
    contents: Contents,
    append: bool,
    last_chunk: bool,
    metadata: Option<Object>,
) -> Result<Chunk, Refusal> {
    if artifact.artifact_id.is_empty() {
        return Err(Refusal::new(Reason::InvalidAgentResponse, "An artifact needs an artifactId."));
    }
    let blocks = match contents {
        Contents::Parts(parts) => {
            artifact.parts = parts;
            Vec::new()
        }
        Contents::Blocks(blocks) => blocks,
        Contents::Message(message) => {
            artifact.parts = message.parts;
            Vec::new()
        }
    };
    Ok(Chunk { artifact: Arc::new(artifact), blocks, append, last_chunk, metadata })
}

#[cfg(test)]
mod tests {
    use super::one;
    use crate::ids::{AgentId, PrincipalId, TaskId};
    use crate::task::Head;
    use flotilla_protocol::a2a::model::{Message, TaskState};
    use flotilla_protocol::event::Event;
    use flotilla_protocol::fleet::HANDSHAKE;
    use flotilla_protocol::wire::Object;
    use flotilla_protocol::work::{Contents, Report};
    use serde_json::{Value, json};

    #[test]
    fn why_work_ended_is_seen_by_who_asks_for_it_later() {
        let head = Head::new(TaskId::fresh(), PrincipalId(7), AgentId(3), PrincipalId(1), "ctx".into());
        let kept = |state, contents, told: &Value| {
            let report = Report::Status { state, contents: Some(contents), metadata: Object::of(told).ok() };
            let events = one(&head, 1, report).unwrap();
            let Some(Event::Status { said: Some(said), metadata: Some(_), .. }) = events.last() else {
                panic!("{events:?}")
            };
            said.message.metadata.is_some()
        };
        let why = json!({HANDSHAKE: {"blocked_reason": "usage_limit"}});
        assert!(kept(TaskState::Failed, Contents::text("no"), &why));
        assert!(!kept(TaskState::Working, Contents::text("so far"), &why), "only an end is explained");
        assert!(!kept(TaskState::Failed, Contents::text("no"), &json!({"other": 1})));
        let elsewhere = Contents::Message(Box::<Message>::default());
        assert!(!kept(TaskState::Failed, elsewhere, &why), "what another said stays as it is");
    }
}
