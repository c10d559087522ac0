//! Decisions on a task: made on its latest decided state, and handed to the store in their order.

use super::committed::{Follows, Tell};
use super::early::Begun;
use super::live::Loaded;
use super::{Hub, LiveRef};
use crate::caller::Scope;
use crate::error::{Error, Fault};
use crate::ports::{Commit, Dedupe, NotCommitted};
use crate::task::{Command, RunState, apply, room, step};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::event::Change;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// How often a decision is made anew when the task changed under it.
pub(super) const ATTEMPTS: usize = 5;
/// Steps of a task of the runtime that a commit counts for. After 128 others have their turn.
const COST: usize = 16;

/// The fate of a submitted command: nothing to do, or a commit under way.
type Pending = Option<oneshot::Receiver<Result<u64, NotCommitted>>>;

impl Hub {
    /// Decides and commits; decides again if the task changed under the decision.
    pub(super) async fn change(
        self: &Arc<Self>,
        live: &LiveRef,
        command: impl Fn() -> Command,
    ) -> Result<Option<u64>, Error> {
        for _ in 0..ATTEMPTS {
            let permit = self.permit().await?;
            let Some(committed) = self.submit(live, command(), None, permit)? else {
                return Ok(None);
            };
            let outcome = settled(committed).await;
            give_way().await;
            match outcome {
                Ok(seq) => return Ok(Some(seq)),
                Err(NotCommitted::Failed(fault)) => return Err(fault.into()),
                Err(NotCommitted::Stale | NotCommitted::Duplicate(_)) => self.reload(live).await?,
            }
        }
        Err(Fault::new(format!("task {} changed under {ATTEMPTS} decisions in a row", live.id())).into())
    }

    pub(super) async fn reload(&self, live: &LiveRef) -> Result<(), Error> {
        match self.store.head(Scope::Admin, live.id()).await? {
            Some(head) => {
                live.load(head);
                Ok(())
            }
            None => Err(Refusal::no_task(&live.id().to_string()).into()),
        }
    }

    pub(super) async fn permit(&self) -> Result<OwnedSemaphorePermit, Fault> {
        Arc::clone(&self.permits).acquire_owned().await.map_err(|_| Fault::new("the hub has stopped"))
    }

    /// Decides, and lets the store tell what became of it.
    pub(super) fn submit(
        self: &Arc<Self>,
        live: &LiveRef,
        command: Command,
        dedupe: Option<Dedupe>,
        permit: OwnedSemaphorePermit,
    ) -> Result<Pending, Error> {
        let (tell, told) = oneshot::channel();
        let submitted = self.submit_with(live, command, dedupe, permit, Tell::Each(tell))?;
        Ok(submitted.then_some(told))
    }

    /// The same for whoever is to be told. False if nothing changes.
    pub(super) fn submit_with(
        self: &Arc<Self>,
        live: &LiveRef,
        command: Command,
        dedupe: Option<Dedupe>,
        permit: OwnedSemaphorePermit,
        tell: Tell,
    ) -> Result<bool, Error> {
        let submitted = self.hand_in(live, command, dedupe, permit, tell)?;
        if submitted == Submitted::ToAttend {
            self.store.attend();
        }
        Ok(submitted != Submitted::Nothing)
    }

    /// Decides on the latest decided state and hands the change to the store, in order.
    fn hand_in(
        self: &Arc<Self>,
        live: &LiveRef,
        command: Command,
        dedupe: Option<Dedupe>,
        permit: OwnedSemaphorePermit,
        tell: Tell,
    ) -> Result<Submitted, Error> {
        let mut sequencer = live.sequencer();
        let Loaded { decided, .. } =
            sequencer.loaded().ok_or_else(|| Fault::new("a decision on a task that is not loaded"))?;
        // A full log must still be able to end.
        let may_overflow = matches!(
            command.plain(),
            Command::Lost { .. }
                | Command::Cancel { .. }
                | Command::Moved { .. }
                | Command::AskToStop { .. }
                | Command::Overdue { .. }
                | Command::Overspent(_)
        );
        let from_caller = match command.plain() {
            // A run that only looks on gives its place up.
            Command::Say(say) if decided.run_state != RunState::Watching => Some(say.held.is_some()),
            _ => None,
        };
        let mut decision = step(decided, command)?;
        if decision.events.is_empty() {
            return Ok(Submitted::Nothing);
        }
        let (limits, at) = (self.limits.load(), self.clock.now());
        let begun = self.begin(decided, &mut decision, at, &limits);
        if !may_overflow {
            room::fits(decided, &decision.events, &limits)?;
        }
        room::warn(decided, &mut decision.events, &limits);
        let (first_seq, first_peer_seq) = (decided.seq + 1, decided.peer_seq + 1);
        let mut change = Change { first_seq, first_peer_seq, at, events: decision.events };
        let mut body = crate::log::encode(&change)?;
        if !may_overflow {
            room::holds(decided, room::weight(&change.events, body.len()), &limits)?;
        }
        let weight = room::weight(&change.events, body.len());
        if room::warn_of_bytes(decided, &mut change.events, weight, &limits) {
            body = crate::log::encode(&change)?;
        }
        let change = Arc::new(change);
        let state_before = (decided.version > 0).then(|| decided.state_code());
        let mut places = self.places(decided, &decision.effects, (from_caller, body.len()), &limits)?;
        let remains = match begun {
            Some(Begun::Over) => {
                decision.effects.clear();
                places.run = None;
                None
            }
            Some(Begun::Remains(remains)) => Some(remains),
            None => None,
        };
        let (was_over, was_waiting, deadline_before) =
            (decided.is_over(), decided.waits_for_caller(), decided.deadline);
        apply(decided, &change);
        decided.bytes += room::weight(&change.events, body.len()) as u64;
        let head = decided.clone();
        let ends = head.is_over() && !was_over;
        let follows = Follows { effects: decision.effects, remains, places, ends, was_waiting, deadline_before };
        let done = self.when_committed(live, &head, &change, body.len(), follows, (tell, permit));
        let is_mine = self.store.commit(Commit { head, state_before, change, body, dedupe, done });
        Ok(if is_mine { Submitted::ToAttend } else { Submitted::Queued })
    }
}

/// What the store was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Submitted {
    Nothing,
    Queued,
    /// A commit that waits for whoever made it.
    ToAttend,
}

/// A commit may have been flushed where it was made. Whoever always has another one to make lets those follow it, after a
/// few, who were told of the last.
async fn give_way() {
    for _ in 0..COST {
        tokio::task::coop::consume_budget().await;
    }
}

pub(super) async fn settled(committed: oneshot::Receiver<Result<u64, NotCommitted>>) -> Result<u64, NotCommitted> {
    committed.await.unwrap_or_else(|_| Err(NotCommitted::Failed(Fault::new("the store stopped before the commit"))))
}
