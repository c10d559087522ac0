//! Tokens to go on with after a cut, also one that the hub itself made by stopping.

use super::{Answers, CUT, Desk, Seat, Standing, State};
use crate::error::Fault;
use crate::ids::TaskId;
use crate::key::sha256;
use std::fmt::Write as _;

/// Letters of a token: what its process is known by, what is its own, and what shows that this hub gave it to this agent.
const PROCESS: usize = 16;
const OWN: usize = 32;
const SEALED: usize = 32;

/// The connection of those that were open before this process: no other has that number.
const BEFORE: u64 = 0;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// No secret is needed for it: whoever shows a token has shown the agent's key before, and could speak of its runs anyway.
fn sealed(said: &str, seal: &str) -> String {
    let mut sealed = hex(&sha256(format!("resume {said} {seal}").as_bytes()));
    sealed.truncate(SEALED);
    sealed
}

impl State {
    pub(super) fn fresh_token(&mut self, seal: &str) -> Result<String, Fault> {
        let mut bits = [0u8; (PROCESS + OWN) / 2];
        getrandom::fill(&mut bits).map_err(|error| Fault::new(format!("random numbers: {error}")))?;
        let (process, own) = bits.split_at(PROCESS / 2);
        if self.process.is_empty() {
            self.process = hex(process);
        }
        let said = format!("{}{}", self.process, hex(own));
        Ok(format!("{said}{}", sealed(&said, seal)))
    }

    /// The number of the connection whose runs a token stands for: the one it was given to, or one that was opened with it
    /// and may never have heard of its own. From here on it is the new connection that has the token.
    pub(super) fn take_token(&mut self, token: &str) -> Option<u64> {
        if let Some(id) = self.cut.iter().find(|(known, _)| known == token).map(|(_, id)| *id) {
            self.cut.retain(|(_, of)| *of != id);
            return Some(id);
        }
        let is_theirs = |seat: &&mut Seat| seat.token == token || seat.came_with.as_deref() == Some(token);
        let seat = self.seats.iter_mut().find(is_theirs)?;
        (seat.token, seat.came_with) = (String::new(), None);
        Some(seat.id)
    }

    /// What a connection that is gone can be gone on with. Its welcome may have been lost on the way.
    pub(super) fn keep_tokens(&mut self, seat: Seat) {
        let own = Some(seat.token).filter(|token| !token.is_empty());
        self.cut.extend(seat.came_with.into_iter().chain(own).map(|token| (token, seat.id)));
        self.cut.drain(..self.cut.len().saturating_sub(CUT));
    }

    /// Under which number the runs are that a connection had before the hub started. Of several that shared their work
    /// nobody knows which had which.
    pub(super) fn before(&self, token: &str, shares: bool, seal: &str) -> Option<u64> {
        let (said, shown) = token.split_at_checked(PROCESS + OWN)?;
        let is_earlier = !shares && !self.settled && !said.starts_with(&self.process) && shown == sealed(said, seal);
        is_earlier.then_some(self.returned)
    }

    /// A run that was taken before the hub started belongs to whoever came back for it, before or after it is found.
    pub(super) fn returns(&mut self, task: TaskId) {
        let Some(index) = self.seats.iter().position(|seat| self.returned != BEFORE && seat.id == self.returned) else {
            self.held.entry(self.returned).or_default().push(task);
            return;
        };
        let Some(entry) = self.runs.get_mut(&task) else { return };
        entry.answers = self.seats[index].answers;
        entry.standing.send_replace(Standing::Taken(self.seats[index].id));
        self.seats[index].asks_after(task, entry);
        if self.seats[index].answers == Answers::WhenGone {
            self.seats[index].orders.extend(entry.reminder(task));
            self.seats[index].wake.notify_one();
        }
    }
}

impl Desk {
    /// A connection has its welcome, and with it the token that takes the place of the one it came with.
    pub(in crate::roster) fn welcomed(&self, id: u64) {
        let mut state = self.state();
        let State { seats, process, settled, .. } = &mut *state;
        if let Some(seat) = seats.iter_mut().find(|seat| seat.id == id) {
            *settled |= seat.came_with.take().is_some_and(|token| !token.starts_with(process.as_str()));
        }
    }
}
