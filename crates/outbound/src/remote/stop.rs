//! Canceling at an agent elsewhere: it is asked, and what it answers is told as it is.

use super::Remote;
use super::call::Stage;
use super::fault::bare;
use crate::client::error::ClientError;
use flotilla_core::ports::{Stopped, Stopping};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::{Task, TaskState};
use flotilla_protocol::a2a::request::CancelTaskRequest;
use flotilla_protocol::work::Contents;
use std::sync::Arc;
use std::time::Duration;

/// How long the run may take to put the agent's answer into the log.
const NOTED: Duration = Duration::from_secs(10);

impl Remote {
    pub(super) async fn stop_task(&self, stopping: Stopping) -> Result<Stopped, Refusal> {
        let call = self.calls.get(stopping.task);
        let id = match &call {
            Some(call) => match tokio::time::timeout(self.options.times.answer, call.stop_or_link()).await {
                Ok(Stage::Linked(id)) => id,
                Ok(_) => return Ok(Stopped::Now(None)),
                Err(_) => {
                    let text = format!(
                        "The agent '{}' has not said yet what it calls this task, so it cannot be told to stop. The task \
                         goes on; try again later.",
                        self.options.name
                    );
                    return Err(self.refusal(Reason::TaskNotCancelable, text, &stopping));
                }
            },
            // It was never called, or its run is about to begin, which finds the task canceled.
            None if stopping.upstream.task.is_empty() => return Ok(Stopped::Now(None)),
            None => stopping.upstream.task.clone(),
        };
        let task = self.cancel_at(&id).await.map_err(|error| self.not_canceled(&error, &stopping))?;
        if task.id != id || task.status.state == TaskState::Unspecified {
            let text = format!("The agent '{}' answered with something else than the task.", self.options.name);
            return Err(self.refusal(Reason::InvalidAgentResponse, text, &stopping));
        }
        // Its id says which task it is; some make a context up with each answer.
        let task = Task { context_id: String::new(), ..task };
        match call {
            Some(call) => {
                // A run that is over has put it into the log already.
                let _ = tokio::time::timeout(NOTED, call.tell(Box::new(task))).await;
                Ok(Stopped::Told)
            }
            None => self.without_run(task, &stopping),
        }
    }

    /// A task that waits for its caller has no run that could report.
    fn without_run(&self, task: Task, stopping: &Stopping) -> Result<Stopped, Refusal> {
        let state = task.status.state;
        if state == TaskState::Canceled {
            let said = task.status.message.map(|message| Contents::Message(Box::new(Arc::unwrap_or_clone(message))));
            return Ok(Stopped::Now(said));
        }
        if state.is_terminal() {
            let text = format!("The agent '{}' says that the task has ended ({}).", self.options.name, state.name());
            return Err(self.refusal(Reason::TaskNotCancelable, text, stopping));
        }
        Ok(Stopped::Told)
    }

    async fn cancel_at(&self, id: &str) -> Result<Task, ClientError> {
        let client = self.way.client().await?;
        let request = CancelTaskRequest { id: id.to_owned(), ..CancelTaskRequest::default() };
        Ok(client.cancel(request).await?.value)
    }

    /// Tells the agent to stop what nobody waits for any more; whatever it answers.
    pub(super) fn abandon(self: &Arc<Self>, id: String) {
        let remote = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = remote.cancel_at(&id).await {
                tracing::warn!(agent = %remote.options.name, task = %id, %error, "the agent may go on with a task nobody waits for");
            }
        });
    }

    fn not_canceled(&self, error: &ClientError, stopping: &Stopping) -> Refusal {
        let agent = &self.options.name;
        tracing::info!(%agent, task = %stopping.task, %error, "not canceled");
        if error.is_passing() {
            let text = format!(
                "The agent '{agent}' cannot be reached ({}), so it cannot be told to stop. The task goes on; try again \
                 later.",
                bare(error)
            );
            return self.refusal(Reason::Unavailable, text, stopping);
        }
        let text = format!("The agent '{agent}' did not cancel the task: {}", bare(error));
        self.refusal(Reason::TaskNotCancelable, text, stopping)
    }

    fn refusal(&self, reason: Reason, text: String, stopping: &Stopping) -> Refusal {
        Refusal::new(reason, text).fact("taskId", stopping.task.to_string())
    }
}
