//! Tokens to go on with after a cut, also one that the hub itself made by stopping.

use super::{Answers, Standing, State};
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

    /// Under which number the runs are that a connection had before the hub started. Of several that shared their work
    /// nobody knows which had which.
    pub(super) fn before(&self, token: &str, shares: bool, seal: &str) -> Option<u64> {
        let (said, shown) = token.split_at_checked(PROCESS + OWN)?;
        let is_earlier = !shares && !said.starts_with(&self.process) && shown == sealed(said, seal);
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
