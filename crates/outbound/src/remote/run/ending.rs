//! How a task at an agent elsewhere ends that has nothing to show so far: it is asked for before that is believed.

use super::Run;
use super::follow::growing;
use super::reply::MOMENT;
use crate::client::Client;
use crate::client::frame::{Frame, Sent};
use crate::remote::fault::End;
use crate::remote::seen::says;
use flotilla_protocol::a2a::model::{Role, StatusUpdate, Task, TaskState, TaskStatus};
use std::time::Instant;

impl Run {
    /// Whether a task is complete with nothing to show.
    pub(super) fn is_bare(&self, sent: &Sent) -> bool {
        let Sent::Task(task) = sent else { return false };
        let TaskStatus { state, message, .. } = &task.status;
        let is_silent = !message.as_deref().is_some_and(says)
            && task.history.iter().all(|message| message.role == Role::User || !says(message));
        let has_artifacts = task.artifacts.as_ref().is_some_and(|artifacts| !artifacts.is_empty());
        *state == TaskState::Completed && is_silent && !has_artifacts && !self.seen.has_results()
    }

    /// How a stream ends that brought no artifact. Some stream how a task goes and not what comes of it, so the task is
    /// asked for before that is believed.
    pub(super) async fn take_end(&mut self, client: &Client, last: Sent) -> Result<(), End> {
        let Sent::Status(update) = last else {
            let fuller = if self.is_bare(&last) { fuller(client, &last).await } else { None };
            return self.tell(vec![fuller.unwrap_or(last)]).await;
        };
        if !self.seen.is_linked() {
            self.tell(vec![begun(&update)]).await?;
        }
        let upstream = self.seen.upstream();
        let TaskStatus { state, message, .. } = &update.status;
        // What is of another task or context is told as such, whatever the task came to.
        if update.task_id == upstream.task && self.seen.is_of(&update.context_id) {
            if *state == TaskState::Completed && !message.as_deref().is_some_and(says) && !self.seen.has_results() {
                self.ask_after_end(client).await?;
                if self.seen.is_settled() {
                    return Ok(());
                }
            } else if let Some(task) = shown(client, &upstream.task, &upstream.context).await {
                // What it shows beside is of use if it can be read: the end that was told counts either way.
                match self.tell(vec![on_the_way(task, &update)]).await {
                    Err(End::Failed(failure)) => tracing::debug!(problem = failure.text, "a task is not shown as one"),
                    told => told?,
                }
            }
        }
        self.tell(vec![Sent::Status(update)]).await
    }

    /// Asks what a task came to whose stream says that it is complete, and no more. One that is still shown at work may
    /// be shown late, for a moment; one that cannot be reached may come back. After that the stream is believed.
    async fn ask_after_end(&mut self, client: &Client) -> Result<(), End> {
        let (poll, lost) = (self.remote.options.poll, self.remote.options.times.lost);
        let (start, mut asked) = (Instant::now(), 0);
        loop {
            let patience = match self.ask(client).await? {
                None => MOMENT,
                Some(error) if error.is_passing() => lost,
                Some(_) => return Ok(()),
            };
            if self.seen.is_settled() || start.elapsed() >= patience {
                return Ok(());
            }
            asked += 1;
            self.pause(growing(poll.first, asked, poll.longest)).await?;
        }
    }
}

/// Word that there is a task, and no more, from a word of its end.
fn begun(end: &StatusUpdate) -> Sent {
    let status = TaskStatus { state: TaskState::Submitted, ..TaskStatus::default() };
    let (task_id, context_id) = (end.task_id.clone(), end.context_id.clone());
    Sent::Status(Box::new(StatusUpdate { task_id, context_id, status, ..StatusUpdate::default() }))
}

/// What a task came to but for its end, which a stream told of.
fn on_the_way(mut task: Task, end: &StatusUpdate) -> Sent {
    let last = end.status.message.as_ref().map_or("", |message| message.message_id.as_str());
    task.history.retain(|message| message.message_id.is_empty() || message.message_id != last);
    task.status = TaskStatus { state: TaskState::Submitted, ..TaskStatus::default() };
    // Some make one up with each answer.
    task.context_id.clone_from(&end.context_id);
    Sent::Task(Box::new(task))
}

/// The task as it is now, if it can be had soon.
async fn shown(client: &Client, id: &str, context: &str) -> Option<Task> {
    let asked = tokio::time::timeout(MOMENT, client.task(client.asking(id, context))).await;
    Some(asked.ok()?.ok()?.value).filter(|task| task.id == id)
}

/// What a task came to that is complete with nothing to show: some answer with no more than its status.
pub(super) async fn fuller(client: &Client, sent: &Sent) -> Option<Sent> {
    let (task, context) = sent.ids();
    let shown = shown(client, task, context).await?;
    (shown.status.state == TaskState::Completed).then(|| Sent::Task(Box::new(shown)))
}

/// Where frames say that the task is over, if none up to there brings an artifact.
pub(super) fn end_without_artifact(frames: &[Frame]) -> Option<usize> {
    let end = frames.iter().position(|frame| frame.sent.state().is_some_and(TaskState::is_terminal))?;
    let has_artifact = |frame: &Frame| match &frame.sent {
        Sent::Artifact(_) => true,
        Sent::Task(task) => task.artifacts.as_ref().is_some_and(|artifacts| !artifacts.is_empty()),
        Sent::Status(_) | Sent::Message(_) => false,
    };
    (!frames[..=end].iter().any(has_artifact)).then_some(end)
}
