//! Followers: a cursor over a task's log, fed from memory while it keeps up and from the store when it does not.

use super::live::Recent;
use super::{Hub, LiveRef, Place};
use crate::caller::{Caller, Scope};
use crate::error::Error;
use crate::held_bytes::{Account, Held};
use crate::ids::{AgentId, PrincipalId};
use crate::limits::Limit;
use crate::log::Cursor;
use crate::ports::Tail;
use crate::project::{Want, frame};
use crate::task::room;
use flotilla_protocol::a2a::STREAM_RESUME;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::{ArtifactUpdate, StreamResponse, Task};
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::wire::Object;
use serde_json::json;
use std::collections::HashSet;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// How many changes a follower takes from the store at once.
const BATCH: usize = 256;

/// How many frames it makes of them at once: a change may hold thousands of small events, and a reader that does not read
/// keeps what was made for it.
const AT_ONCE: usize = 512;

/// What is expected of changes that are read at once.
pub(super) const BATCH_BYTES: u64 = 4 * 1024 * 1024;

/// A whole task below this size is handed out without a look at what its reader holds.
const SMALL: u64 = 64 * 1024;

/// A frame with its number.
#[derive(Debug, Clone)]
pub struct Framed {
    pub peer_seq: u64,
    pub frame: StreamResponse,
}

/// What a follower gets next.
pub enum Next {
    Frames(Vec<Framed>),
    /// The task has ended, or waits for its caller and the stream was for one send.
    End,
    /// The hub is stopping: come back with the last cursor.
    Stopping,
    /// Nothing happened for as long as the reader was willing to wait.
    Quiet,
}

/// When a stream ends without the task having ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// A send's stream, and every one of 0.3, ends when the agent waits for the caller (spec 11.7).
    Settled,
    /// A subscription of 1.0 goes on until the task ends (spec 3.1.6).
    Over,
}

/// What is answered to whoever subscribes to a task that has ended, or that waits for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// A refusal if it has ended; else the stream goes on until it has (1.0).
    Refused,
    /// The whole task, and the stream ends (0.3).
    Shown,
}

/// Made when its reader has room for it: before that nobody counts it.
enum First {
    /// As it was after the event the follower stands at.
    Task,
    /// As it is then, and why events before it are not replayed.
    Gap(&'static str),
}

pub struct Follow {
    hub: Arc<Hub>,
    live: LiveRef,
    /// The last peer-visible event that was handed out.
    cursor: u64,
    until: Until,
    /// What of a whole task its reader asked for.
    want: Want,
    /// A whole task to hand out before anything else.
    first: Option<First>,
    /// Who reads; none is the hub itself.
    reader: Option<PrincipalId>,
    /// Held for the reader while a whole task is made, and until it is taken.
    held: Option<Held>,
    /// Changes that were taken and not handed out yet, the first of them perhaps in part.
    rest: Vec<Arc<Change>>,
    /// Artifacts this reader knows of.
    introduced: HashSet<String>,
    /// Given back with the stream; a cursor that is kept in the store takes none.
    _place: Option<Place<PrincipalId>>,
}

impl Follow {
    /// From the beginning of a new task or exchange.
    pub(super) fn from_start(hub: Arc<Hub>, live: LiveRef, place: Place<PrincipalId>) -> Self {
        let reader = Some(*place.key());
        Self { until: Until::Settled, reader, _place: Some(place), ..Self::kept(hub, live, 0, HashSet::new()) }
    }

    /// From a cursor that is kept elsewhere, for a reader that knows some artifacts already.
    pub(super) fn kept(hub: Arc<Hub>, live: LiveRef, cursor: u64, introduced: HashSet<String>) -> Self {
        let (until, want, rest) = (Until::Over, Want::ALL, Vec::new());
        let (first, reader, held) = (None, None, None);
        Self { hub, live, cursor, until, want, first, reader, held, rest, introduced, _place: None }
    }

    /// The same for a reader that wants no more than this of a whole task.
    pub(super) fn wanting(self, want: Want) -> Self {
        Self { want, ..self }
    }

    /// The artifacts the reader knows of by now.
    pub(super) fn into_introduced(self) -> HashSet<String> {
        self.introduced
    }

    /// The frames that are there, without waiting for more.
    pub(super) async fn at_hand(&mut self) -> Result<Vec<Framed>, Error> {
        if !self.rest.is_empty() {
            return self.more().await;
        }
        match self.live.after_peer(self.cursor) {
            Recent::Changes(changes) => self.frames(&changes).await,
            Recent::Behind => self.behind().await,
            Recent::Nothing => Ok(Vec::new()),
        }
    }

    /// From the state of a task as of `peer_seq`, as a whole Task.
    pub(super) fn from_task(
        hub: Arc<Hub>,
        live: LiveRef,
        (peer_seq, want): (u64, Want),
        place: Place<PrincipalId>,
    ) -> Self {
        let first = Some(First::Task);
        Self { cursor: peer_seq, first, ..Self::from_start(hub, live, place) }.wanting(want)
    }

    pub fn epoch(&self) -> String {
        self.hub.store.epoch().0.clone()
    }

    /// Where the reader stands: the number before that of the next frame.
    pub fn position(&self) -> u64 {
        self.cursor - u64::from(self.first.is_some()).min(self.cursor)
    }

    /// The next frames: waits until there are some, or until there will be no more.
    pub async fn next(&mut self, patience: Duration) -> Result<Next, Error> {
        self.taken();
        if self.first.is_some() {
            return Box::pin(self.whole()).await.map(|task| Next::Frames(vec![task]));
        }
        if !self.rest.is_empty() {
            return Box::pin(self.more()).await.map(Next::Frames);
        }
        let live = self.live.clone();
        let mut stopping = self.hub.stopping.subscribe();
        loop {
            let mut woken = pin!(live.woken());
            woken.as_mut().enable();
            match live.after_peer(self.cursor) {
                // In boxes: a stream waits for most of its life, and would have room for them meanwhile.
                Recent::Changes(changes) => return Box::pin(self.frames(&changes)).await.map(Next::Frames),
                Recent::Behind => return Box::pin(self.behind()).await.map(Next::Frames),
                Recent::Nothing if self.at_end() => return Ok(Next::End),
                Recent::Nothing => {}
            }
            if *stopping.borrow_and_update() {
                return Ok(Next::Stopping);
            }
            tokio::select! {
                () = woken => {}
                _ = stopping.changed() => {}
                () = tokio::time::sleep(patience) => return Ok(Next::Quiet),
            }
        }
    }

    /// What was handed out is its reader's now, who counts it.
    pub fn taken(&mut self) {
        if self.rest.is_empty() {
            self.held = None;
        }
    }

    /// The whole task that comes first.
    async fn whole(&mut self) -> Result<Framed, Error> {
        self.hold(u64::MAX).await;
        let made = match self.first {
            Some(First::Gap(why)) => gap_frame(&self.hub, &self.live, self.want, why).await?,
            _ => task_frame(&self.hub, &self.live, (self.cursor, self.want)).await?,
        };
        self.first = None;
        self.cursor = made.peer_seq;
        Ok(made)
    }

    /// Holds so many bytes for the reader, once there is room for them.
    async fn hold(&mut self, most: u64) {
        let bytes = self.live.committed().map_or(0, |head| head.bytes).min(most);
        self.held = match self.reader {
            Some(reader) => room_for(&self.hub, reader, bytes).await,
            None => None,
        };
    }

    fn at_end(&self) -> bool {
        self.live.committed().is_none_or(|head| match self.until {
            Until::Settled => head.is_settled(),
            Until::Over => head.is_over(),
        })
    }

    async fn behind(&mut self) -> Result<Vec<Framed>, Error> {
        self.hold(BATCH_BYTES).await;
        match self.hub.store.after_peer(Scope::Admin, self.live.id(), self.cursor, BATCH).await? {
            Tail::Changes(changes) if !changes.is_empty() => {
                hold_changes(&mut self.held, &changes);
                self.frames(&changes).await
            }
            _ => {
                self.held = None;
                self.hold(u64::MAX).await;
                let gap =
                    gap_frame(&self.hub, &self.live, self.want, "the events in between are no longer kept").await?;
                self.cursor = gap.peer_seq;
                Ok(vec![gap])
            }
        }
    }

    /// Frames of what was taken before.
    async fn more(&mut self) -> Result<Vec<Framed>, Error> {
        let rest = std::mem::take(&mut self.rest);
        self.frames(&rest).await
    }

    async fn frames(&mut self, changes: &[Arc<Change>]) -> Result<Vec<Framed>, Error> {
        let mut frames = Vec::new();
        let Some(head) = self.live.committed() else { return Ok(frames) };
        for (at, change) in changes.iter().enumerate() {
            for (peer_seq, event) in change.for_peers() {
                if peer_seq <= self.cursor {
                    continue;
                }
                if frames.len() >= AT_ONCE {
                    self.rest = changes[at..].to_vec();
                    return Ok(frames);
                }
                self.cursor = peer_seq;
                match (event, frame(&head, event, change.at)) {
                    (Event::Opened {}, _) => {
                        frames.push(opened_frame(&self.hub, &self.live, (peer_seq, self.want)).await?);
                    }
                    (_, Some(StreamResponse::ArtifactUpdate(mut update))) => {
                        self.introduce(&mut update, peer_seq).await?;
                        frames.push(Framed { peer_seq, frame: StreamResponse::ArtifactUpdate(update) });
                    }
                    (_, Some(frame)) => frames.push(Framed { peer_seq, frame }),
                    (_, None) => {}
                }
            }
        }
        Ok(frames)
    }
}

impl Follow {
    /// A chunk can only extend what its reader has seen: where all before it was hidden, it is the beginning.
    async fn introduce(&mut self, update: &mut ArtifactUpdate, peer_seq: u64) -> Result<(), Error> {
        let id = &update.artifact.artifact_id;
        if self.introduced.contains(id) {
            return Ok(());
        }
        if update.append {
            let (_, before) = self.hub.folded(&self.live, peer_seq - 1, Some(0)).await?;
            update.append = before.artifacts.iter().any(|artifact| artifact.artifact_id == *id);
        }
        self.introduced.insert(id.clone());
        Ok(())
    }
}

/// Holds bytes that are about to be read for a reader, once there is room for them: what is read is in memory before
/// anybody else can count it. A few cost nothing.
pub(super) async fn room_for(hub: &Hub, reader: PrincipalId, bytes: u64) -> Option<Held> {
    if bytes < SMALL {
        return None;
    }
    let (budget, account) = (&hub.held_bytes, Account::Streams(reader));
    poll_fn(|context| if budget.has_room(account, context.waker()) { Poll::Ready(()) } else { Poll::Pending }).await;
    let mut held = budget.open(account);
    held.grow_anyway(usize::try_from(bytes).unwrap_or(usize::MAX));
    Some(held)
}

/// Holds what was read, in the place of what was expected.
pub(super) fn hold_changes(held: &mut Option<Held>, changes: &[Arc<Change>]) {
    if let Some(held) = held {
        held.release();
        let size = |change: &Arc<Change>| {
            crate::log::encode(change).map_or(0, |body| room::weight(&change.events, body.len()))
        };
        held.grow_anyway(changes.iter().map(size).sum());
    }
}

/// The task as it was when it became one, which is near the beginning of its log.
async fn opened_frame(hub: &Arc<Hub>, live: &LiveRef, (peer_seq, want): (u64, Want)) -> Result<Framed, Error> {
    let (head, fold) = hub.folded_early(live, peer_seq).await?;
    Ok(Framed { peer_seq, frame: StreamResponse::Task(fold.into_task(&head, want)) })
}

async fn task_frame(hub: &Arc<Hub>, live: &LiveRef, (peer_seq, want): (u64, Want)) -> Result<Framed, Error> {
    let (head, fold) = hub.folded(live, peer_seq, want.history).await?;
    Ok(Framed { peer_seq, frame: StreamResponse::Task(fold.into_task(&head, want)) })
}

/// The whole task, saying that events before it cannot be replayed.
async fn gap_frame(hub: &Arc<Hub>, live: &LiveRef, want: Want, why: &str) -> Result<Framed, Error> {
    let (head, fold) = hub.folded(live, u64::MAX, want.history).await?;
    if let Some(answer) = fold.answer {
        return Ok(Framed { peer_seq: head.peer_seq, frame: StreamResponse::Message(answer) });
    }
    let cursor = Cursor { epoch: hub.store.epoch().0.clone(), peer_seq: head.peer_seq }.to_string();
    let metadata = Object::of(&json!({ STREAM_RESUME: { "gap": true, "reason": why, "cursor": cursor } })).ok();
    let task = Task { metadata, ..fold.into_task(&head, want) };
    Ok(Framed { peer_seq: head.peer_seq, frame: StreamResponse::Task(task) })
}

impl Hub {
    /// Subscribes to a task (spec 3.1.6), or takes a stream up again after a cursor.
    pub async fn subscribe(
        self: &Arc<Self>,
        caller: &Caller,
        agent: AgentId,
        id: &str,
        cursor: Option<Cursor>,
        ended: Ended,
    ) -> Result<Follow, Error> {
        flotilla_protocol::a2a::validate::task_id("id", id)?;
        let live = self.task(caller.with_agent(agent), id).await?;
        let head = live.committed().filter(|head| head.kind == crate::task::Kind::Task);
        let head = head.ok_or_else(|| Refusal::no_task(id))?;
        let until = if ended == Ended::Shown { Until::Settled } else { Until::Over };
        let Some(cursor) = cursor else {
            if head.is_over() && ended == Ended::Refused {
                return Err(has_ended(id, head.state.name()).into());
            }
            let place = self.stream_place(caller.principal)?;
            let follow = Follow::from_task(Arc::clone(self), live, (head.peer_seq, Want::ALL), place);
            return Ok(Follow { until, ..follow });
        };
        let place = self.stream_place(caller.principal)?;
        let first = if cursor.epoch != self.store.epoch().0 {
            Some(First::Gap("the cursor is of another store"))
        } else if cursor.peer_seq > head.peer_seq {
            Some(First::Gap("the cursor is ahead of the task"))
        } else {
            None
        };
        let at = if first.is_some() { head.peer_seq } else { cursor.peer_seq };
        let follow = Follow::from_start(Arc::clone(self), live, place);
        Ok(Follow { cursor: at, until, first, ..follow })
    }

    pub(super) fn stream_place(&self, principal: PrincipalId) -> Result<Place<PrincipalId>, Refusal> {
        let most = self.limits.load().streams_per_caller;
        self.streams.place(principal, most, usize::MAX).map_err(|_| {
            let text = format!(
                "You read as many streams as you may ({most}). Close one, or ask for the task from time to time."
            );
            Limit::StreamsPerCaller.refuse(most, text)
        })
    }
}

fn has_ended(id: &str, state: &str) -> Refusal {
    let text = format!(
        "The task has ended ({state}), so there is nothing to subscribe to. Read it with GetTask, or replay its \
         events by sending the last id you saw as Last-Event-ID."
    );
    Refusal::new(Reason::UnsupportedOperation, text).fact("taskId", id)
}
