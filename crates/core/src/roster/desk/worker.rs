//! What a desk knows of workers beyond other agents: numbered reports, runs that are asked to end, places, and drain.

use super::super::session::Order;
use super::{Answers, Desk, End, Entry, Seat, Standing, State};
use crate::ids::TaskId;

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
        asked.then(|| Order::Stop { task, run: self.run, work: self.work.clone() })
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
        for (task, entry) in runs.iter().filter(|(_, entry)| entry.stands() == Standing::Sent(id)) {
            entry.standing.send_replace(Standing::Waiting);
            queue.insert(entry.place, *task);
        }
        state.wake_all();
    }

    /// Whether a report of this number is new; it is not any more.
    pub(in crate::roster) fn receives(&self, task: TaskId, number: u64) -> bool {
        let mut state = self.state();
        let Some(entry) = state.runs.get_mut(&task) else { return false };
        let is_new = number > entry.received;
        entry.received = entry.received.max(number);
        is_new
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
