//! The projection: what a peer sees of a log, as a whole task or as the frames of a stream.

use crate::task::Head;
use flotilla_protocol::a2a::model::{
    Artifact, ArtifactUpdate, Message, Role, StatusUpdate, StreamResponse, Task, TaskState, TaskStatus,
};
use flotilla_protocol::event::{Change, Event, Said};
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::{Object, Unknown};
use flotilla_protocol::work::Upstream;
use std::sync::Arc;

/// Messages that are kept beyond those that are wanted.
const SPARE: usize = 8;

/// How much of a task is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// At most so many of the latest messages; none means all.
    pub history: Option<usize>,
    pub artifacts: Artifacts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Artifacts {
    Omit,
    /// Left out when there are none.
    Include,
    /// An empty list when there are none (spec 3.1.4).
    Always,
}

impl Want {
    pub const ALL: Self = Self { history: None, artifacts: Artifacts::Include };
}

/// A task being folded from its log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fold {
    pub status: TaskStatus,
    pub artifacts: Vec<Arc<Artifact>>,
    pub history: Vec<Arc<Message>>,
    /// The direct answer, where the exchange was no task.
    pub answer: Option<Arc<Message>>,
    /// The ids of an agent elsewhere, which are not shown, and what it says of its task as a whole, which is.
    pub upstream: Upstream,
    pub metadata: Option<Object>,
    pub unknown: Unknown,
}

impl Fold {
    /// Folds a change, up to and including the peer-visible event `until`. Says whether to go on.
    pub fn change(&mut self, change: &Change, until: u64) -> bool {
        let mut peer_seq = change.first_peer_seq;
        for event in &change.events {
            let visible = event.is_for_peers();
            if visible && peer_seq > until {
                return false;
            }
            self.event(event, change.at);
            peer_seq += u64::from(visible);
        }
        true
    }

    fn event(&mut self, event: &Event, at: Millis) {
        match event {
            Event::Asked { message, .. } => {
                self.shelve_status_message();
                self.history.push(Arc::clone(message));
            }
            Event::Opened {} => self.set_status(TaskState::Submitted, None, at),
            Event::Answered { said } => self.answer = said.projected(),
            Event::Status { state, said, .. } => {
                self.shelve_status_message();
                let said = said.as_ref().and_then(Said::projected);
                if let Some(said) = said.as_ref().filter(|_| state.is_settled()) {
                    self.unshelve(said);
                }
                self.set_status(*state, said, at);
            }
            Event::Produced { chunk } if event.is_for_peers() => self.produce(chunk.projected(), chunk.append),
            Event::Linked { upstream, metadata, unknown, .. } => {
                self.upstream.clone_from(upstream);
                if metadata.is_some() {
                    self.metadata.clone_from(metadata);
                }
                if !unknown.is_empty() {
                    self.unknown.clone_from(unknown);
                }
            }
            Event::Produced { .. }
            | Event::Noted { .. }
            | Event::RunQueued { .. }
            | Event::RunStarted { .. }
            | Event::Received { .. }
            | Event::TakenUp { .. }
            | Event::StopAsked { .. }
            | Event::RunLost { .. }
            | Event::Routed { .. }
            | Event::NearLimit { .. }
            | Event::ApprovalAsked { .. }
            | Event::ApprovalSettled { .. }
            | Event::Descended { .. } => {}
        }
    }

    /// What was said with an earlier status belongs to the conversation so far.
    fn shelve_status_message(&mut self) {
        if let Some(message) = self.status.message.take() {
            self.history.push(message);
        }
    }

    /// Drops all but the latest messages. One more is kept for each that a status may still take out again.
    pub fn keep_latest(&mut self, messages: usize) {
        let most = messages.saturating_add(SPARE);
        if self.history.len() > most.saturating_mul(2) {
            self.history.drain(..self.history.len() - most);
        }
    }

    /// What a task ends or waits with may have been said on the way already. It is there once.
    fn unshelve(&mut self, said: &Message) {
        let since_asked =
            self.history.iter().rposition(|message| message.role == Role::User).map_or(0, |last| last + 1);
        let is_same = |kept: &Arc<Message>| kept.message_id == said.message_id && kept.parts == said.parts;
        if let Some(place) = self.history[since_asked..].iter().rposition(is_same) {
            self.history.remove(since_asked + place);
        }
    }

    fn set_status(&mut self, state: TaskState, message: Option<Arc<Message>>, at: Millis) {
        self.status = TaskStatus { state, message, timestamp: Some(at.into()), ..TaskStatus::default() };
    }

    fn produce(&mut self, artifact: Arc<Artifact>, append: bool) {
        // The artifact being extended is nearly always the last one.
        let known = self.artifacts.iter_mut().rev().find(|known| known.artifact_id == artifact.artifact_id);
        match known {
            Some(known) if append => extend(Arc::make_mut(known), &artifact),
            Some(known) => *known = artifact,
            None => self.artifacts.push(artifact),
        }
    }

    /// The task as its caller sees it.
    pub fn into_task(mut self, head: &Head, want: Want) -> Task {
        let skip = want.history.map_or(0, |keep| self.history.len().saturating_sub(keep));
        self.history.drain(..skip);
        let artifacts = match want.artifacts {
            Artifacts::Omit => None,
            Artifacts::Include => (!self.artifacts.is_empty()).then_some(self.artifacts),
            Artifacts::Always => Some(self.artifacts),
        };
        Task {
            id: head.id.to_string(),
            context_id: head.context.to_string(),
            status: self.status,
            artifacts,
            history: self.history,
            metadata: self.metadata,
            unknown: self.unknown,
        }
    }
}

pub(crate) fn extend(known: &mut Artifact, chunk: &Artifact) {
    known.parts.extend(chunk.parts.iter().cloned());
    if chunk.metadata.is_some() {
        known.metadata.clone_from(&chunk.metadata);
    }
    if !chunk.name.is_empty() {
        known.name.clone_from(&chunk.name);
    }
    if !chunk.description.is_empty() {
        known.description.clone_from(&chunk.description);
    }
}

/// A peer-visible event as a frame of a stream. `Opened` is the task itself and is framed by the follower.
pub fn frame(head: &Head, event: &Event, at: Millis) -> Option<StreamResponse> {
    match event {
        Event::Answered { said } => said.projected().map(StreamResponse::Message),
        Event::Status { state, said, metadata } => Some(StreamResponse::StatusUpdate(StatusUpdate {
            task_id: head.id.to_string(),
            context_id: head.context.to_string(),
            status: TaskStatus {
                state: *state,
                message: said.as_ref().and_then(Said::projected),
                timestamp: Some(at.into()),
                ..TaskStatus::default()
            },
            metadata: metadata.clone(),
            ..StatusUpdate::default()
        })),
        Event::Produced { chunk } => Some(StreamResponse::ArtifactUpdate(ArtifactUpdate {
            task_id: head.id.to_string(),
            context_id: head.context.to_string(),
            artifact: chunk.projected(),
            append: chunk.append,
            last_chunk: chunk.last_chunk,
            metadata: chunk.metadata.clone(),
            ..ArtifactUpdate::default()
        })),
        _ => None,
    }
}
