//! A Message in answer to what is said to a task: the task is not over with it, so it is told and the task asked for.

use super::{Contents, Message, Report, Seen, TaskState, TaskStatus, says, status};
use std::sync::Arc;

impl Seen {
    pub(super) fn remark(&mut self, message: Arc<Message>) -> Vec<Report> {
        (self.linked, self.before) = (true, None);
        self.is_new(&message);
        self.state = TaskState::Working;
        self.message = Some(Arc::clone(&message));
        vec![self.linked_report(Vec::new()), status(TaskState::Working, Some(message), None)]
    }

    /// Whether a status asks something else than what the task waited with. Some move that into the history.
    pub(super) fn asks_anew(&self, status: &TaskStatus) -> bool {
        let before = self.upstream.waits.as_ref().map_or("", |waits| waits.said.as_str());
        status.message.as_ref().is_some_and(|message| says(message) && message.message_id != before)
    }

    /// Whether there was one, and it is not known yet how the task is.
    pub fn has_message(&self) -> bool {
        self.message.is_some()
    }

    /// How the task is cannot be had: as far as is known it waits as before, with the Message.
    pub fn wait_with_message(&mut self) -> Option<Report> {
        let state = self.upstream.waits.as_ref()?.state;
        let message = self.message.take()?;
        (self.state, self.settled) = (state, true);
        Some(status(state, Some(message), None))
    }

    /// There is no task any more: the Message is how it ended.
    pub fn settle_with_message(&mut self) -> Option<Report> {
        let message = self.message.take()?;
        self.settled = true;
        let contents = Contents::Message(Box::new(Arc::unwrap_or_clone(message)));
        Some(Report::Answer { contents, metadata: None })
    }
}
