//! Connections that acknowledge nothing: for the window, a run is theirs when it has arrived. After a cut it is sent again.

use super::super::session::Order;
use super::{Answers, Desk, Standing, State};

impl State {
    /// The window of a connection is full. One that has never acknowledged anything may know no word for it, and would
    /// get nothing more for ever: it is asked, once at a time, whether all has arrived.
    pub(super) fn ask_arrival(&mut self, index: usize) -> Option<Order> {
        let seat = &mut self.seats[index];
        let asks = seat.answers == Answers::Perhaps && seat.window > 0 && !seat.acknowledges && !seat.asked;
        seat.asked |= asks;
        asks.then_some(Order::AskArrival)
    }
}

impl Desk {
    /// The agent on a connection knows how to acknowledge a run.
    pub(in crate::roster) fn knows_to_acknowledge(&self, id: u64) {
        if let Some(seat) = self.state().seats.iter_mut().find(|seat| seat.id == id) {
            seat.acknowledges = true;
        }
    }

    /// All that was sent over a connection before it was asked has arrived.
    pub(in crate::roster) fn arrived(&self, id: u64) {
        let mut state = self.state();
        let State { seats, runs, .. } = &mut *state;
        let Some(seat) = seats.iter_mut().find(|seat| seat.id == id) else { return };
        seat.asked = false;
        for entry in runs.values_mut().filter(|entry| entry.stands() == Standing::Sent(id)) {
            entry.arrived = true;
        }
        seat.wake.notify_one();
    }
}
