//! The owner's view of a task: every event of its log, hidden ones too, a bounded number at a time.

use super::follow::{BATCH_BYTES, hold_changes, room_for};
use super::live::Recent;
use super::tally::Place;
use super::{Hub, LiveRef};
use crate::caller::{Caller, Scope};
use crate::error::Error;
use crate::held_bytes::Held;
use crate::ids::{PrincipalId, TaskId};
use crate::notice::Notices;
use crate::ports::Tail;
use crate::task::{Head, Kind};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::event::{Change, Event};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// How many changes are taken from the store at once.
const PAGE: usize = 1024;

/// A page of a log.
pub struct LogPage {
    pub head: Head,
    pub changes: Vec<Arc<Change>>,
    /// Events that were asked for are no longer kept.
    pub pruned: bool,
}

impl LogPage {
    /// The last event of this page, if there are more after it.
    pub fn next_after(&self) -> Option<u64> {
        self.changes.last().map(|change| change.last_seq()).filter(|last| *last < self.head.seq)
    }
}

/// What an owner who follows gets next.
pub enum OwnerNext {
    Changes(Vec<Arc<Change>>),
    /// Events up to now are no longer kept.
    Pruned,
    /// The task has ended, and everything is told.
    End,
    Stopping,
    Quiet,
}

/// A cursor over all events of a task.
pub struct OwnerFollow {
    hub: Arc<Hub>,
    live: LiveRef,
    cursor: u64,
    /// Held for the reader until the next changes are asked for.
    held: Option<Held>,
    /// Counts among the streams its caller reads.
    place: Place<PrincipalId>,
}

impl Hub {
    pub fn notices(&self) -> &Notices {
        &self.notices
    }
    /// The events after `seq`, as many as fit a page.
    pub async fn owner_log(&self, caller: &Caller, id: &str, seq: u64) -> Result<LogPage, Error> {
        let live = self.owned(caller, id).await?;
        let head = live.committed().ok_or_else(|| Refusal::no_task(id))?;
        let _turn = self.turns.page(caller.principal).await;
        match self.store.after(Scope::Admin, live.id(), seq, PAGE).await? {
            // The store may be ahead of the head that was read; the next page shows what it has more.
            Tail::Changes(changes) => Ok(LogPage { head, changes, pruned: false }),
            Tail::Pruned => Ok(LogPage { pruned: head.seq > seq, head, changes: Vec::new() }),
        }
    }

    /// What was decided about a task's dispatched work. Its caller may know too: only workers the caller may call were
    /// looked at.
    pub async fn why(&self, caller: &Caller, id: &str) -> Result<LogPage, Error> {
        let (live, owns) = match self.owned(caller, id).await {
            Ok(live) => (live, true),
            Err(Error::Refused(_)) => (self.task(Scope::Own { principal: caller.principal }, id).await?, false),
            Err(failed) => return Err(failed),
        };
        let head = live.committed().ok_or_else(|| Refusal::no_task(id))?;
        let named = owns || self.registry().by_id(head.agent).is_some_and(|agent| caller.may_call(&agent.name));
        if !named || head.kind == Kind::Message {
            return Err(Refusal::no_task(id).into());
        }
        let _turn = self.turns.page(caller.principal).await;
        let (mut changes, mut after, mut pruned) = (Vec::new(), 0, false);
        while after < head.seq {
            match self.store.after(Scope::Admin, live.id(), after, PAGE).await? {
                Tail::Changes(page) if !page.is_empty() => {
                    after = page.last().map_or(head.seq, |change| change.last_seq());
                    let tells = |event: &Event| matches!(event, Event::Routed { .. } | Event::RunLost { .. });
                    let decides = |change: &Arc<Change>| change.events.iter().any(tells);
                    changes.extend(page.into_iter().filter(decides));
                }
                tail => {
                    pruned = matches!(tail, Tail::Pruned);
                    break;
                }
            }
        }
        Ok(LogPage { head, changes, pruned })
    }

    /// A task of an agent the caller owns, or one of the fleet that its worker does. A key that is limited to agents shows
    /// the tasks of these only.
    async fn owned(&self, caller: &Caller, id: &str) -> Result<LiveRef, Error> {
        match self.task(caller.as_owner(), id).await {
            Ok(live) => {
                let registry = self.registry();
                let agent = live.committed().and_then(|head| registry.by_id(head.agent));
                if caller.agents.is_none() || agent.is_some_and(|agent| caller.may_call(&agent.name)) {
                    return Ok(live);
                }
            }
            Err(Error::Refused(_)) => {}
            Err(failed) => return Err(failed),
        }
        let head = match TaskId::parse(id) {
            Some(task) => self.store.head(Scope::Admin, task).await?,
            None => None,
        };
        match head {
            Some(head) if self.owns_doer(caller, &head).await? => self.task(Scope::Admin, id).await,
            _ => Err(Refusal::no_task(id).into()),
        }
    }

    /// Follows a task's log from after `seq` until the task has ended.
    pub async fn follow_log(self: &Arc<Self>, caller: &Caller, id: &str, seq: u64) -> Result<OwnerFollow, Error> {
        let live = self.owned(caller, id).await?;
        let place = self.stream_place(caller.principal)?;
        Ok(OwnerFollow { hub: Arc::clone(self), live, cursor: seq, held: None, place })
    }
}

impl OwnerFollow {
    /// The next changes: waits until there are some, or until there will be no more.
    pub async fn next(&mut self, patience: Duration) -> Result<OwnerNext, Error> {
        self.held = None;
        let live = self.live.clone();
        let mut stopping = self.hub.stopping.subscribe();
        loop {
            let mut woken = pin!(live.woken());
            woken.as_mut().enable();
            match live.after(self.cursor) {
                Recent::Changes(changes) => return Ok(self.take(changes)),
                Recent::Behind => return self.behind().await,
                Recent::Nothing if live.committed().is_none_or(|head| head.is_over()) => return Ok(OwnerNext::End),
                Recent::Nothing => {}
            }
            if *stopping.borrow_and_update() {
                return Ok(OwnerNext::Stopping);
            }
            tokio::select! {
                () = woken => {}
                _ = stopping.changed() => {}
                () = tokio::time::sleep(patience) => return Ok(OwnerNext::Quiet),
            }
        }
    }

    async fn behind(&mut self) -> Result<OwnerNext, Error> {
        let bytes = self.live.committed().map_or(0, |head| head.bytes).min(BATCH_BYTES);
        self.held = room_for(&self.hub, *self.place.key(), bytes).await;
        match self.hub.store.after(Scope::Admin, self.live.id(), self.cursor, PAGE).await? {
            Tail::Changes(changes) if !changes.is_empty() => {
                hold_changes(&mut self.held, &changes);
                Ok(self.take(changes))
            }
            _ => {
                self.cursor = self.live.committed().map_or(u64::MAX, |head| head.seq);
                Ok(OwnerNext::Pruned)
            }
        }
    }

    /// A change may hold events from before the cursor; the reader leaves those out by their numbers.
    fn take(&mut self, changes: Vec<Arc<Change>>) -> OwnerNext {
        if let Some(last) = changes.last() {
            self.cursor = last.last_seq();
        }
        OwnerNext::Changes(changes)
    }
}
