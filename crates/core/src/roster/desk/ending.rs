//! Runs that are asked to end: who is asked, what they answer, and runs that are asked after when an agent comes back.

use super::super::session::Order;
use super::{Desk, Entry, Seat, Standing, State};
use crate::ids::TaskId;
use std::sync::Arc;
use tokio::sync::watch;

/// Whether a run is to end at its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::roster) enum End {
    /// Nobody asked for it.
    Open,
    Asked,
    /// Nothing of it is left, or nobody will ever know.
    Gone,
    /// The agent was asked, and goes on; what it says of that is in the log.
    Heard,
    /// The agent does not end it, and says why.
    Refused(Arc<str>),
}

impl End {
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self, Self::Asked | Self::Gone)
    }
}

/// How an agent answers when it is asked to end a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::roster) enum Answers {
    /// It was never heard of that way.
    Never,
    /// In frames of the hub's own, as what it says of the run: many know no such frame.
    Perhaps,
    /// To a request, which it takes or refuses.
    ToRequests,
    /// A worker: when nothing of the run is left.
    WhenGone,
}

/// A run that was asked to end.
pub(in crate::roster) struct Ending {
    pub answers: Answers,
    pub end: watch::Receiver<End>,
    pub standing: watch::Receiver<Standing>,
}

impl Seat {
    /// The same for one that takes requests; others speak of a run when they have something to say.
    pub(super) fn asks_after(&mut self, task: TaskId, entry: &Entry) {
        if self.answers == Answers::ToRequests {
            self.ask_after(task, entry);
        }
    }

    /// Asks what became of a run that its agent took on another connection.
    fn ask_after(&mut self, task: TaskId, entry: &Entry) {
        if !entry.upstream.is_empty() {
            self.orders.push_back(Order::Resume { task, run: entry.run });
            self.orders.extend(entry.reminder(task));
            self.wake.notify_one();
        }
    }
}

impl State {
    /// Runs that were taken on a connection which is gone are asked after on the latest one: an agent may come back before
    /// the cut is seen. One that shares its work with others is not asked about theirs.
    pub(super) fn ask_after_away(&mut self) {
        let Self { seats, runs, .. } = self;
        let Some(seat) = seats.last_mut().filter(|seat| seat.answers == Answers::ToRequests && !seat.shares) else {
            return;
        };
        for (task, entry) in runs.iter().filter(|(_, entry)| matches!(entry.stands(), Standing::Away(_))) {
            seat.ask_after(*task, entry);
        }
    }
}

impl Desk {
    /// Asks whoever has a run to end it, and says how to learn what comes of that. None where there is nobody to ask.
    pub(in crate::roster) fn ask_to_end(&self, task: TaskId) -> Option<Ending> {
        let mut state = self.state();
        let State { seats, runs, .. } = &mut *state;
        let entry = runs.get(&task)?;
        let on = match entry.stands() {
            Standing::Waiting => return None,
            Standing::Sent(on) | Standing::Taken(on) => Some(on),
            // It is told when it comes back.
            Standing::Away(_) => None,
        };
        let seat = seats.iter_mut().find(|seat| Some(seat.id) == on);
        let answers = seat.as_ref().map_or(entry.answers, |seat| seat.answers);
        if answers == Answers::Never {
            return None;
        }
        let end = entry.end.subscribe();
        let asked = entry.end.send_if_modified(|end| {
            let is_first = !end.is_under_way();
            if is_first {
                *end = End::Asked;
            }
            is_first
        });
        // A worker that was asked before and has lost sight of the run says so when it is asked again.
        let asks = asked || answers == Answers::WhenGone;
        if let (true, Some(seat), Some(order)) = (asks, seat, entry.reminder(task)) {
            seat.orders.retain(|waiting| !matches!(waiting, Order::Stop { task: of, .. } if *of == task));
            seat.orders.push_back(order);
            seat.wake.notify_one();
        }
        Some(Ending { answers, end, standing: entry.standing.subscribe() })
    }

    /// What an agent made of being asked: it goes on, or says why it does not stop.
    pub fn goes_on(&self, task: TaskId, refused: Option<&str>) {
        let state = self.state();
        let Some(entry) = state.runs.get(&task) else { return };
        entry.end.send_if_modified(|end| {
            let was_asked = *end == End::Asked;
            if was_asked {
                *end = refused.map_or(End::Heard, |words| End::Refused(words.into()));
            }
            was_asked
        });
    }

    /// Whether it was a worker that took the run last: what it does not say has ended may still be alive.
    pub(in crate::roster) fn is_with_worker(&self, task: TaskId) -> bool {
        self.state().runs.get(&task).is_some_and(|entry| entry.answers == Answers::WhenGone)
    }

    /// Whether nobody was sent the run, or has it.
    pub(in crate::roster) fn waits(&self, task: TaskId) -> bool {
        self.state().runs.get(&task).is_none_or(|entry| entry.stands() == Standing::Waiting)
    }

    /// Whether a connection has the run now.
    pub(in crate::roster) fn is_held(&self, task: TaskId) -> bool {
        let state = self.state();
        let stands = state.runs.get(&task).map(Entry::stands);
        matches!(stands, Some(Standing::Sent(_) | Standing::Taken(_)))
    }

    /// Whether whoever was sent a run has a word for having it. One that takes requests just answers when it can.
    pub(in crate::roster) fn acknowledges(&self, task: TaskId) -> bool {
        self.state().runs.get(&task).is_some_and(|entry| entry.answers != Answers::ToRequests)
    }

    /// Whether whoever was sent a run speaks in frames of the hub's own, and so of tasks alone.
    pub(in crate::roster) fn speaks_frames(&self, task: TaskId) -> bool {
        self.state().runs.get(&task).is_some_and(|entry| entry.answers == Answers::Perhaps)
    }

    /// Whether it takes requests, which it may answer with a Message.
    pub(in crate::roster) fn takes_requests(&self, task: TaskId) -> bool {
        !self.acknowledges(task)
    }

    /// Whether somebody is connected who takes messages, and not runs by the number of its places as a worker does.
    pub(in crate::roster) fn is_crowded(&self) -> bool {
        self.state().seats.iter().any(|seat| seat.window > 0 && seat.answers != Answers::WhenGone)
    }

    /// Whether its agent is connected, and all its connections take requests of A2A, or runs as a worker does.
    pub fn speaks_a2a(&self) -> bool {
        let state = self.state();
        !state.seats.is_empty() && state.seats.iter().all(|seat| seat.answers != Answers::Perhaps)
    }

    /// Whether somebody waits for a run to end.
    pub fn is_to_end(&self, task: TaskId) -> bool {
        self.state().runs.get(&task).is_some_and(|entry| *entry.end.borrow() == End::Asked)
    }

    /// A connection takes frames of the hub's own.
    pub(in crate::roster) fn serve_frames(&self, id: u64) {
        if let Some(seat) = self.state().seats.iter_mut().find(|seat| seat.id == id) {
            seat.answers = Answers::Perhaps;
        }
    }

    /// A connection takes requests: it is asked what became of the runs it had, and of those nobody has spoken of since
    /// they were taken.
    pub(in crate::roster) fn serve_requests(&self, id: u64) {
        let mut state = self.state();
        let State { seats, runs, .. } = &mut *state;
        let Some(seat) = seats.iter_mut().find(|seat| seat.id == id) else { return };
        seat.answers = Answers::ToRequests;
        for (task, entry) in runs.iter().filter(|(_, entry)| entry.stands() == Standing::Taken(id)) {
            seat.ask_after(*task, entry);
        }
        state.ask_after_away();
    }

    /// Whether a run was taken on another connection than this, so that nothing said of it counts before its agent was
    /// asked what became of it. If an order to ask waits, it is the asker's now.
    pub(in crate::roster) fn is_to_be_asked(&self, id: u64, task: TaskId, run: u32) -> bool {
        let mut state = self.state();
        let State { seats, runs, .. } = &mut *state;
        let Some(seat) = seats.iter_mut().find(|seat| seat.id == id) else { return false };
        let waiting = seat.orders.len();
        let asks = |order: &Order| matches!(order, Order::Resume { task: of, run: its } if (*of, *its) == (task, run));
        seat.orders.retain(|order| !asks(order));
        if seat.orders.len() < waiting {
            return true;
        }
        let Some(entry) = runs.get(&task).filter(|entry| entry.run == run && !entry.upstream.is_empty()) else {
            return false;
        };
        let is_elsewhere = match entry.stands() {
            Standing::Waiting => false,
            Standing::Sent(on) | Standing::Taken(on) => on != id,
            Standing::Away(_) => true,
        };
        is_elsewhere && !seat.shares && seat.answers == Answers::ToRequests
    }

    /// What the agent calls a task of its own.
    pub fn link(&self, task: TaskId, upstream: &str) {
        if let Some(entry) = self.state().runs.get_mut(&task)
            && !upstream.is_empty()
        {
            upstream.clone_into(&mut entry.upstream);
        }
    }

    /// Empty if it has not said so.
    pub fn linked(&self, task: TaskId) -> String {
        self.state().runs.get(&task).map(|entry| entry.upstream.clone()).unwrap_or_default()
    }
}
