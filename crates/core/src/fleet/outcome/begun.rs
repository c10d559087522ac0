//! Whether a worker has begun: one that has cannot be blocked any more, for its work is not undone by giving it to another.

use crate::fleet::contract::Past;
use crate::fleet::spent::Spent;
use flotilla_protocol::fleet::TaskResult;
use flotilla_protocol::fleet::result::{BlockedReason, Status};
use flotilla_protocol::fleet::route::Check;
use flotilla_protocol::work::Contents;
use std::collections::BTreeSet;

/// What a run left in its task so far.
pub(super) struct Begun {
    /// Before it was taken up again.
    before: bool,
    made: BTreeSet<String>,
    said: bool,
    /// What is said may be another's: a hub that says why its worker does not begin.
    by_others: bool,
}

impl Begun {
    /// What the log says of a run that is taken up again.
    pub(super) fn before(past: &Past) -> Self {
        Self { before: past.made, made: BTreeSet::new(), said: false, by_others: false }
    }

    /// All that it left is read again.
    pub(super) fn read_again(&mut self) {
        *self = Self { before: false, made: BTreeSet::new(), said: false, by_others: self.by_others };
    }

    pub(super) fn may_be_another_s(&mut self) {
        self.by_others = true;
    }

    pub(super) fn made(&mut self, artifact: &str) {
        self.made.insert(artifact.to_owned());
    }

    /// The artifact ends with the result: what stands before that is of its last word.
    pub(super) fn ends(&mut self, artifact: Option<&str>) {
        if let Some(artifact) = artifact {
            self.made.remove(artifact);
        }
    }

    /// It said something while it went on.
    pub(super) fn said(&mut self, contents: Option<&Contents>) {
        self.said |= contents.is_some_and(|contents| !contents.parts().is_empty());
    }

    /// What shows it, if anything does.
    pub(super) fn shown(&self, spent: &Spent, told: &TaskResult) -> Option<&'static str> {
        let claims = [told.tokens_spent, told.tokens_claimed].into_iter().flatten().any(|tokens| tokens > 0);
        match () {
            () if self.before || !self.made.is_empty() => Some("made something of it"),
            () if spent.run_used() || claims => Some("used tokens for it"),
            () if self.said && !self.by_others => Some("spoken of it"),
            () => None,
        }
    }
}

/// The result of work that was begun, in the place of one that says it was not, and what is wrong with that one.
pub(super) fn broken_off(blocked: &TaskResult, how: &str) -> (TaskResult, Check) {
    let reason = blocked.blocked_reason.as_ref().unwrap_or(&BlockedReason::MissingCapability).name();
    let detail = blocked.detail.as_deref().filter(|detail| !detail.is_empty());
    let said = detail.map_or_else(|| reason.to_owned(), |detail| format!("{reason}: {detail}"));
    let error = format!("The worker answered blocked ({said}) after it had {how}, so the work was begun.");
    let check = Check { name: "blocked".into(), ok: false, detail: format!("it answered blocked after it had {how}") };
    (TaskResult { status: Status::Error, error: Some(error), blocked_reason: None, ..blocked.clone() }, check)
}
