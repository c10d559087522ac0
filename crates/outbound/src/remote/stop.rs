//! Canceling at an agent elsewhere: it is asked, and what it answers is told as it is.

use super::Remote;
use super::call::{Call, Stage};
use super::fault::bare;
use super::request;
use super::search::{Found, search};
use crate::client::error::{ClientError, Code};
use flotilla_core::ports::{Stopped, Stopping};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::{Task, TaskState};
use flotilla_protocol::lineage::Lineage;
use flotilla_protocol::work::Contents;
use std::sync::Arc;
use std::time::Duration;

/// How long an agent usually takes to say what it calls a task, if it says so before the work is done.
const MOMENT: Duration = Duration::from_secs(1);
/// How long the run may take to put the agent's answer into the log.
const NOTED: Duration = Duration::from_secs(10);

impl Remote {
    pub(super) async fn stop_task(&self, stopping: Stopping) -> Result<Stopped, Refusal> {
        let call = self.calls.get(stopping.task);
        let id = match &call {
            Some(call) => match self.named(call, &stopping).await {
                Ok(Stage::Linked(id)) => id,
                Ok(_) => return Ok(Stopped::Now(None)),
                Err(reason) => {
                    let text = format!(
                        "The agent '{}' has not said yet what it calls this task, and {reason}, so it cannot be told to \
                         stop. The task goes on; try again later.",
                        self.options.name
                    );
                    return Err(self.refusal(Reason::TaskNotCancelable, text, &stopping));
                }
            },
            // It was never called, or its run is about to begin, which finds the task canceled.
            None if stopping.upstream.task.is_empty() => return Ok(Stopped::Now(None)),
            None => stopping.upstream.task.clone(),
        };
        let task = match self.cancel_at(&id, &stopping.lineage).await {
            Ok(task) => task,
            Err(error) => {
                let refusal = self.not_canceled(&error, &stopping);
                let Some(task) = self.ended(&error, &id, &stopping.lineage).await else { return Err(refusal) };
                return self.over_before(task, call.as_deref(), &stopping).await;
            }
        };
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

    /// What a call has come to, once it is stopped or its id is known. An agent that answers when its work is done says
    /// no id before, so after a moment it is searched for the task, as after a crash; what is said to a task that waited
    /// belongs to that. An error says why it is not known.
    async fn named(&self, call: &Call, stopping: &Stopping) -> Result<Stage, String> {
        let patience = self.options.times.answer;
        if let Ok(stage) = tokio::time::timeout(patience.min(MOMENT), call.stop_or_link()).await {
            return Ok(stage);
        }
        if !stopping.upstream.task.is_empty() {
            return Ok(Stage::Linked(stopping.upstream.task.clone()));
        }
        let found = match (&call.sent, self.client_for(&stopping.lineage).await) {
            (Some(sent), Ok(client)) => search(&client, sent, &stopping.upstream).await,
            (_, Err(error)) => Err(error),
            (None, Ok(_)) => Ok(Found::NotYet),
        };
        let reason = match found {
            Ok(Found::Task(task)) => return Ok(Stage::Linked(task.id)),
            Ok(Found::Unknown(reason)) => reason.to_owned(),
            Ok(Found::NotYet) => "it does not show the message".to_owned(),
            Err(error) => format!("it cannot be asked ({})", bare(&error)),
        };
        tokio::time::timeout(patience, call.stop_or_link()).await.map_err(|_| reason)
    }

    /// A task that waits for its caller has no run that could report.
    fn without_run(&self, task: Task, stopping: &Stopping) -> Result<Stopped, Refusal> {
        let state = task.status.state;
        if state == TaskState::Canceled {
            let said = task.status.message.map(|message| Contents::Message(Box::new(Arc::unwrap_or_clone(message))));
            return Ok(Stopped::Now(said));
        }
        if state.is_terminal() {
            return Ok(Stopped::Ended(self.has_ended(state, stopping)));
        }
        Ok(Stopped::Told)
    }

    /// The task of an agent that does not cancel it, if that is over.
    async fn ended(&self, error: &ClientError, id: &str, lineage: &Lineage) -> Option<Task> {
        if error.is_passing() || error.is_unusable() {
            return None;
        }
        let client = self.client_for(lineage).await.ok()?;
        let task = client.task(client.asking(id, "")).await.ok()?.value;
        (task.id == id && task.status.state.is_terminal()).then_some(task)
    }

    /// It was over when the agent was told to stop. How it ended is told, and then that it cannot be canceled.
    async fn over_before(&self, task: Task, call: Option<&Call>, stopping: &Stopping) -> Result<Stopped, Refusal> {
        let told = match call {
            Some(call) => tokio::time::timeout(NOTED, call.tell(Box::new(task.clone()))).await == Ok(true),
            None => false,
        };
        match task.status.state {
            // A run that is about to end hears nothing any more.
            _ if !told => self.without_run(task, stopping),
            TaskState::Canceled => Ok(Stopped::Told),
            state => Err(self.has_ended(state, stopping)),
        }
    }

    fn has_ended(&self, state: TaskState, stopping: &Stopping) -> Refusal {
        let text = format!(
            "The agent '{}' had ended the task ({}) before it was told to stop. Ask for the task to see what it came to.",
            self.options.name,
            state.name()
        );
        self.refusal(Reason::TaskNotCancelable, text, stopping)
    }

    async fn cancel_at(&self, id: &str, lineage: &Lineage) -> Result<Task, ClientError> {
        let client = self.client_for(lineage).await?;
        Ok(client.cancel(request::cancel(id, &lineage.onward())).await?.value)
    }

    /// Tells the agent to stop what nobody waits for any more; whatever it answers.
    pub(super) fn abandon(self: &Arc<Self>, id: String, lineage: Lineage) {
        let remote = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = remote.cancel_at(&id, &lineage).await {
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
        if error.is_unusable() || matches!(error, ClientError::NotJson { .. }) {
            let text = format!(
                "The agent '{agent}' was told to stop, and its answer cannot be used ({}). The task goes on until it says \
                 otherwise; ask for it, or try again.",
                bare(error)
            );
            return self.refusal(Reason::InvalidAgentResponse, text, stopping);
        }
        // It broke, which is neither yes nor no.
        if matches!(error, ClientError::Refused { code: Some(Code::Number(500..=599)), .. })
            && error.is(Reason::Internal)
        {
            let text = format!(
                "The agent '{agent}' broke when it was told to stop ({}). The task goes on until it says otherwise; try \
                 again later.",
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
