//! How a task was before what is said to it: that is no answer, and what it was given since is not lost.

use super::{Report, Seen, Task, TaskState, TaskStatus, Waits, apart, parts};

impl Seen {
    /// Whether all that was seen of the task is how it was before the message.
    pub fn is_as_before(&self) -> bool {
        self.before.is_some()
    }

    /// The same, where no time will tell whether it has moved since.
    pub fn is_untimed(&self) -> bool {
        self.before.as_ref().is_some_and(|before| before.at.is_none())
    }

    /// How the task waits for all that is known, where that is so.
    pub fn state_before(&self) -> Option<TaskState> {
        self.before.as_ref().map(|before| before.state)
    }

    /// Whether a task shows nothing that came after the message.
    pub fn is_unmoved(&self, task: &Task) -> bool {
        let before = self.before.as_ref();
        before.is_some_and(|before| before.is_still(&task.status) || before.is_unmoved(task, &self.asked))
    }

    /// Whether a status is the one from before the message.
    pub(super) fn is_still(&self, status: &TaskStatus) -> bool {
        self.before.as_ref().is_some_and(|before| before.is_still(status))
    }

    /// What comes next is the agent's answer to the message, whatever it is.
    pub fn believe(&mut self) {
        self.before = None;
    }

    /// From here on tasks are told because they are asked for, or first in a stream, and not in answer to the message.
    pub fn ask(&mut self) {
        self.asks = true;
    }

    /// The next task is told in answer to the message.
    pub fn expect_answer(&mut self) {
        self.asks = false;
    }

    /// Whether a task is shown as it was before the message, which is no answer to it. A receipt without a time may be
    /// either, and is believed.
    pub(super) fn is_stale(&mut self, task: &str, status: &TaskStatus) -> bool {
        let is_other = task != self.upstream.task;
        let is_same = self.is_still(status) && !is_other;
        let is_stale = is_same && (self.asks || status.timestamp.is_some());
        if !is_stale {
            self.before = None;
        }
        is_stale
    }

    /// Notes how the task waits now. Says whether that is new.
    pub(super) fn waits(&mut self, status: &TaskStatus) -> bool {
        let waits = Waits::of(status);
        let is_new = waits.is_some() && waits != self.upstream.waits;
        if is_new {
            self.upstream.waits = waits;
        }
        is_new
    }

    /// Whether the whole task was told in this run, with all it was given before.
    pub fn has_whole(&self) -> bool {
        self.whole
    }

    /// What a task was given before the message and nobody told: artifacts that a stream of this run has not brought.
    pub fn missed(&mut self, task: Task) -> Vec<Report> {
        let shown = apart::artifacts(task.artifacts.unwrap_or_default());
        let has_another = shown.len() > self.artifacts.len();
        let mut reports = Vec::new();
        for artifact in shown {
            let id = &artifact.artifact_id;
            // Ids may be made up with each answer.
            let may_be_new = !self.told.contains(id) && (has_another || self.artifacts.contains_key(id));
            if may_be_new && !artifact.parts.is_empty() && parts(&artifact.parts, id).is_ok() {
                reports.extend(self.artifact(artifact, false));
            }
        }
        reports
    }
}
