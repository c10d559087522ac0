//! The trail of an agent elsewhere: what the logs say of its own ids, of how far it was called, and of what it told.

use super::Hub;
use super::run::Start;
use crate::caller::Scope;
use crate::error::Fault;
use crate::ids::TaskId;
use crate::ports::{Record, View};
use crate::project::Fold;
use crate::task::{Head, RunState};
use flotilla_protocol::a2a::model::{Message, Role, TaskState};
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::work::{Trail, Upstream};
use std::sync::Arc;

/// How many tasks a message may refer to that are looked up.
const MOST_REFERENCES: usize = 16;

impl Hub {
    /// All that a run of an agent elsewhere must know of what was before it.
    pub(super) async fn trail(
        &self,
        head: &Head,
        changes: &[Arc<Change>],
        message: &Message,
        start: Start,
    ) -> Result<Trail, Fault> {
        let fold = folded(Fold::default(), changes);
        let started = head.run_state == RunState::Started;
        let mut trail = Trail { resumed: start.resumed, started, state: head.state, ..Trail::default() };
        let events = || changes.iter().flat_map(|change| &change.events);
        trail.stopping = is_to_stop(changes, start.run);
        trail.linked = events().any(|event| is_link(event, start.run));
        trail.waited = waited(events(), start.run);
        for event in events() {
            if let Event::Received { run, number, id } = event
                && *run == start.run
            {
                trail.received = trail.received.max(*number);
                trail.told.extend(Some(id.clone()).filter(|id| !id.is_empty()));
            }
        }
        let told = fold.history.iter().chain(&fold.status.message).filter(|message| message.role == Role::Agent);
        trail.said = told.map(|message| message.message_id.clone()).collect();
        trail.waits = head.state == TaskState::Submitted && fold.status.message.is_some();
        trail.upstream = fold.upstream;
        trail.artifacts = fold.artifacts;
        if trail.upstream == Upstream::default() && !is_new_context(head) {
            trail.upstream.context = self.upstream_context(head).await?;
        }
        trail.references = self.references(head, message).await?;
        Ok(trail)
    }

    /// What the agent calls the tasks a message refers to. Those it does not know, and those that are not the caller's,
    /// are left as they are.
    async fn references(&self, head: &Head, message: &Message) -> Result<Vec<(String, String)>, Fault> {
        let scope = Scope::Caller { principal: head.principal, agent: head.agent };
        let mut known = Vec::new();
        for id in message.reference_task_ids.iter().take(MOST_REFERENCES) {
            let Some(task) = TaskId::parse(id) else { continue };
            let record = self.store.shown(scope, task, View { until: u64::MAX, history: Some(0) }).await?;
            let theirs = record.map(|record| upstream_of(&record).task).unwrap_or_default();
            if !theirs.is_empty() {
                known.push((id.clone(), theirs));
            }
        }
        Ok(known)
    }

    /// What an agent elsewhere called the conversation when it was last asked in it.
    async fn upstream_context(&self, head: &Head) -> Result<String, Fault> {
        let records = self.store.earlier(head.principal, head.agent, &head.context, head.id).await?;
        let contexts = records.iter().map(|record| upstream_of(record).context);
        Ok(contexts.into_iter().find(|context| !context.is_empty()).unwrap_or_default())
    }
}

pub(super) fn upstream_of(record: &Record) -> Upstream {
    let start = record.fold.as_ref().map(|folded| folded.fold.clone()).unwrap_or_default();
    folded(start, &record.changes).upstream
}

pub(super) fn folded(mut fold: Fold, changes: &[Arc<Change>]) -> Fold {
    for change in changes {
        fold.change(change, u64::MAX);
    }
    fold
}

/// Whether the last run with a message before this one ended with a status that waits. What the agent did by itself since
/// then does not count, and SUBMITTED is the hub's own word.
fn waited<'a>(events: impl Iterator<Item = &'a Event>, this: u32) -> bool {
    let (mut is_queued, mut only_looks, mut waits) = (false, false, false);
    for event in events {
        match event {
            Event::RunQueued { run } if *run == this => break,
            Event::RunQueued { .. } => only_looks = false,
            // Others are known to the agent only once they have started.
            Event::Linked { .. } if is_queued => only_looks = true,
            Event::Status { state, .. } if *state != TaskState::Submitted && !only_looks => {
                waits = state.is_interrupted();
            }
            _ => {}
        }
        is_queued = matches!(event, Event::RunQueued { .. });
    }
    waits
}

/// Whether somebody wanted a run to end.
pub(super) fn is_to_stop(changes: &[Arc<Change>], this: u32) -> bool {
    let mut events = changes.iter().flat_map(|change| &change.events);
    events.any(|event| matches!(event, Event::StopAsked { run } if *run == this))
}

fn is_link(event: &Event, this: u32) -> bool {
    matches!(event, Event::Linked { run, .. } if *run == this)
}

/// A context the hub made for this very task has an id that came after the task's own: nothing can have been before.
fn is_new_context(head: &Head) -> bool {
    TaskId::parse(&head.context).is_some_and(|context| context > head.id)
}
