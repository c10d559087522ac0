//! What a desk knows of workers beyond other agents: numbered reports, runs that are asked to end, places, and drain.

use super::super::session::Order;
use super::{Answers, Desk, End, Entry, Seat, Standing, State};
use crate::ids::TaskId;
use flotilla_protocol::a2a::model::Message;
use std::sync::Arc;

impl Seat {
    /// Whether it takes another run. One that has no window takes none any more.
    pub(super) fn has_room(&self, sent: usize, load: usize) -> bool {
        sent < self.window && load < self.places
    }
}

impl Entry {
    /// The order to end the run, for a connection that has it now and was not told.
    pub(super) fn reminder(&self, task: TaskId) -> Option<Order> {
        let asked = *self.end.borrow() == End::Asked;
        asked.then(|| self.call_off(task))
    }

    pub(super) fn call_off(&self, task: TaskId) -> Order {
        Order::Stop { task, run: self.run, theirs: self.upstream.clone() }
    }
}

impl Desk {
    /// A connection is a worker's: it says when nothing of a run is left. It takes so many runs at once.
    pub(in crate::roster) fn serve_worker(&self, id: u64, places: usize) {
        let mut state = self.state();
        if let Some(seat) = state.seats.iter_mut().find(|seat| seat.id == id) {
            (seat.answers, seat.places) = (Answers::WhenGone, places);
        }
    }

    /// A connection takes no more runs. What it was sent and did not take goes elsewhere, or waits.
    pub(in crate::roster) fn drain(&self, id: u64) {
        let mut state = self.state();
        if let Some(seat) = state.seats.iter_mut().find(|seat| seat.id == id) {
            seat.window = 0;
        }
        let State { runs, queue, .. } = &mut *state;
        for (task, entry) in runs.iter_mut().filter(|(_, entry)| entry.stands() == Standing::Sent(id)) {
            entry.last = id;
            entry.standing.send_replace(Standing::Waiting);
            queue.insert(entry.place, *task);
        }
        state.wake_all();
    }

    /// The number that a run's next report has to have, where this one comes too soon.
    pub(in crate::roster) fn misses(&self, task: TaskId, run: u32, number: u64) -> Option<u64> {
        let state = self.state();
        let next = state.runs.get(&task).filter(|entry| entry.run == run)?.received + 1;
        (number > next).then_some(next)
    }

    /// Whether a report of this number is new; it is not any more. None if the run is over.
    pub(in crate::roster) fn receives(&self, task: TaskId, run: u32, number: u64) -> Option<bool> {
        let mut state = self.state();
        let entry = state.runs.get_mut(&task).filter(|entry| entry.run == run)?;
        let is_new = number > entry.received;
        entry.received = entry.received.max(number);
        Some(is_new)
    }

    /// Whoever has a run takes up what its caller says meanwhile.
    pub(in crate::roster) fn set_more(&self, task: TaskId, run: u32) {
        if let Some(entry) = self.state().runs.get_mut(&task).filter(|entry| entry.run == run) {
            entry.more = true;
        }
    }

    pub(in crate::roster) fn takes_more(&self, task: TaskId) -> bool {
        self.state().runs.get(&task).is_some_and(|entry| entry.more)
    }

    /// Passes on what the caller said to whoever has the run. One who is away gets it in another run.
    pub(in crate::roster) fn say(&self, task: TaskId, message: Arc<Message>) {
        let mut state = self.state();
        let State { seats, runs, .. } = &mut *state;
        let Some(entry) = runs.get(&task) else { return };
        let Standing::Taken(on) = entry.stands() else { return };
        if let Some(seat) = seats.iter_mut().find(|seat| seat.id == on) {
            seat.orders.push_back(Order::Say { task, run: entry.run, message });
            seat.wake.notify_one();
        }
    }

    /// Nothing of a run is left; whether somebody had asked for that.
    pub(in crate::roster) fn ended(&self, task: TaskId) -> bool {
        let state = self.state();
        let Some(entry) = state.runs.get(&task) else { return false };
        entry.end.send_replace(End::Gone).is_under_way()
    }

    pub(in crate::roster) fn is_asked_to_end(&self, task: TaskId) -> bool {
        self.state().runs.get(&task).is_some_and(|entry| entry.end.borrow().is_under_way())
    }
}
