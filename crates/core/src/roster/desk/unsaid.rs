//! Runs that are over for the hub: whoever has one is told to stop, now or when it is back.

use super::super::session::Order;
use super::{Desk, Standing, State};
use crate::ids::TaskId;
use std::collections::VecDeque;

/// Of so many runs an agent is told when it is back; the oldest go.
const MOST: usize = 1_024;

impl State {
    /// What a new connection is to be told of runs that ended while nobody was there. One that shares its work with others
    /// is told of those it had itself.
    pub(super) fn take_unsaid(&mut self, resumed: Option<u64>, shares: bool) -> Vec<Order> {
        let is_theirs = |(on, _): &(u64, Order)| !shares || Some(*on) == resumed;
        let (told, kept): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.unsaid).into_iter().partition(is_theirs);
        self.unsaid = kept;
        told.into_iter().map(|(_, order)| order).collect()
    }
}

fn leave(unsaid: &mut VecDeque<(u64, Order)>, on: u64, order: Order) {
    if unsaid.len() == MOST {
        unsaid.pop_front();
    }
    unsaid.push_back((on, order));
}

impl Desk {
    /// The same of a run that was given away before the hub started, and has ended since.
    pub(in crate::roster) fn stop_when_back(&self, order: Order) {
        let mut state = self.state();
        let on = state.returned;
        leave(&mut state.unsaid, on, order);
    }

    /// Tells whoever has a run to stop it. One who is away is told first of all when it is back, and so is one that was sent
    /// it and did not say that it has it.
    pub(in crate::roster) fn stop(&self, task: TaskId) {
        let mut state = self.state();
        let State { seats, runs, unsaid, .. } = &mut *state;
        let Some(entry) = runs.get(&task) else { return };
        let on = match entry.stands() {
            // It was told before.
            Standing::Sent(_) | Standing::Taken(_) if entry.end.borrow().is_under_way() => return,
            Standing::Sent(on) | Standing::Taken(on) => on,
            Standing::Waiting if entry.attempt == 0 => return,
            Standing::Waiting | Standing::Away(_) => entry.last,
        };
        let order = entry.call_off(task);
        let here = seats.iter().position(|seat| seat.id == on);
        // Without its token it is back too, unless others may be there beside it.
        let here = here.or_else(|| seats.iter().rposition(|seat| !seat.shares));
        match here.and_then(|index| seats.get_mut(index)) {
            Some(seat) => {
                seat.orders.push_back(order);
                seat.wake.notify_one();
            }
            None => leave(unsaid, on, order),
        }
    }
}
