//! Which connection has what: loads, tokens, and runs that change hands.

use super::{Standing, State};

impl State {
    pub(super) fn wake_all(&self) {
        for seat in &self.seats {
            seat.wake.notify_one();
        }
    }

    /// Of each connection, how many runs it was sent that it has not taken and that are not known to have arrived, and how
    /// many it has in all.
    pub(super) fn loads(&self) -> Vec<(usize, usize)> {
        let mut loads = vec![(0, 0); self.seats.len()];
        for entry in self.runs.values() {
            let (on, sent) = match entry.stands() {
                Standing::Sent(on) => (on, usize::from(!entry.arrived)),
                Standing::Taken(on) => (on, 0),
                _ => continue,
            };
            if let Some(index) = self.seats.iter().position(|seat| seat.id == on) {
                loads[index].0 += sent;
                loads[index].1 += 1;
            }
        }
        loads
    }

    /// Whether a connection is of the line there is, or begins another: who comes in the place of somebody, without the
    /// token of the latest, may be another program.
    pub(super) fn line_up(&mut self, id: u64, resumed: Option<u64>, shares: bool) {
        let goes_on = resumed.is_some_and(|old| shares || old == self.latest);
        let stands_beside = shares && !self.seats.is_empty();
        if !goes_on && !stands_beside {
            self.line = id;
        }
        self.latest = id;
    }

    /// The runs of one connection go on on another.
    pub(super) fn hand_over(&mut self, old: u64, new: u64) {
        let held = self.held.remove(&old).unwrap_or_default();
        if self.returned == old {
            self.returned = new;
        }
        for (task, entry) in &mut self.runs {
            if entry.last == old {
                entry.last = new;
            }
            match entry.stands() {
                Standing::Taken(on) if on == old => drop(entry.standing.send_replace(Standing::Taken(new))),
                Standing::Away(_) if held.contains(task) => drop(entry.standing.send_replace(Standing::Taken(new))),
                Standing::Sent(on) if on == old => {
                    entry.last = new;
                    entry.standing.send_replace(Standing::Waiting);
                    self.queue.insert(entry.place, *task);
                }
                _ => {}
            }
        }
    }
}
