//! What is said to a task that waits at an agent elsewhere: how the agent answers, and what it did by itself before.

use super::follow::growing;
use super::{Answered, Run, Unsent, request};
use crate::client::Client;
use crate::client::error::ClientError;
use crate::client::frame::Sent;
use crate::remote::fault::{End, Failure, bare};
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::model::{Task, TaskState};
use flotilla_protocol::work::{Contents, Report};
use std::pin::pin;
use std::time::{Duration, Instant};

/// How long a task that is shown as it was before the message, in answer to that, may be one that has not moved yet.
pub(super) const MOMENT: Duration = Duration::from_secs(2);

impl Run {
    /// Sends a reply without a stream. A receipt could not be told from the task as it was before, so the agent is to
    /// answer when it is done; meanwhile it is asked, so that whoever looks on sees how it goes.
    pub(super) async fn reply(&mut self, client: &Client) -> Result<Answered, Unsent> {
        let asked = request::send(&self.assignment, &self.onward, self.seen.upstream(), false);
        let poll = self.remote.options.poll;
        let mut call = pin!(client.send(asked));
        let mut number = 0;
        while !self.seen.is_settled() {
            number += 1;
            tokio::select! {
                biased;
                answered = &mut call => return match answered {
                    Ok(answer) => Ok(Answered::Whole(Box::new(answer.value))),
                    Err(error) => Err(Box::pin(self.unsent(error, client)).await),
                },
                letter = self.letters.recv() => {
                    Box::pin(self.open(letter)).await?;
                    return Ok(Answered::Elsewhere);
                }
                () = tokio::time::sleep(growing(poll.first, number, poll.longest)) => self.look_on(client).await?,
            }
        }
        Ok(Answered::Elsewhere)
    }

    /// Tells how the task goes on. As it was before, it says nothing; nor does one that cannot be had: the answer to the
    /// message is still to come.
    async fn look_on(&mut self, client: &Client) -> Result<(), End> {
        let upstream = self.seen.upstream();
        match client.task(client.asking(&upstream.task, &upstream.context)).await {
            Ok(answer) if !self.seen.is_unmoved(&answer.value) => {
                self.tell(vec![Sent::Task(Box::new(answer.value))]).await
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// What was answered may be from before the message was looked at.
    pub(super) fn doubt(&mut self) {
        self.doubted = Some(Instant::now() + MOMENT);
    }

    /// Whether it is still open what the agent has answered. Its task says so, and no stream of it.
    pub(super) fn doubts(&self) -> bool {
        self.seen.has_message() || self.doubted.is_some() && self.seen.is_as_before()
    }

    /// Tells what the task was given while it waited: the stream of an answer need not show it.
    pub(super) async fn catch_up(&mut self, client: &Client) -> Result<(), End> {
        let upstream = self.seen.upstream();
        let asked = client.task(client.asking(&upstream.task, &upstream.context));
        let Ok(Ok(answer)) = tokio::time::timeout(MOMENT, asked).await else { return Ok(()) };
        let missed = if answer.value.id == upstream.task { self.seen.missed(answer.value) } else { Vec::new() };
        if missed.is_empty() { Ok(()) } else { self.handle.report(missed).await.map_err(|_| End::Fenced) }
    }

    /// What the agent answered a moment ago and shows still is its answer.
    pub(super) fn stop_doubting(&mut self) {
        if self.doubted.is_some_and(|until| until <= Instant::now()) {
            self.seen.believe();
        }
    }

    /// Nothing was sent. A task that waited for this message waits on, so that it can be said again.
    pub(super) fn unreached(&self, failure: Failure) -> Failure {
        let Some(state) = self.seen.state_before() else { return failure };
        let text = format!("{} The message was not sent, and the task waits as before.", failure.text);
        Failure { state, text, ..failure }
    }

    /// What an error says of the message's fate.
    pub(super) async fn unsent(&mut self, error: ClientError, client: &Client) -> Unsent {
        match error {
            ClientError::Unconnected { .. } | ClientError::Exhausted { .. } => Unsent::NotYet(error),
            ClientError::Unreachable { .. } | ClientError::Broken(_) => Unsent::Perhaps(error),
            error => match self.gone_on(&error, client).await {
                Some(task) if self.assignment.trail.waited => Unsent::Overtaken(task, error),
                // It came during the work, whose end is known: what is said now begins another task.
                Some(task) if task.status.state.is_terminal() => {
                    self.seen.begin_anew();
                    Unsent::NotYet(error)
                }
                _ => self.refused(error).await,
            },
        }
    }

    /// The agent's task, if that does not wait any more and the message was refused.
    async fn gone_on(&self, error: &ClientError, client: &Client) -> Option<Box<Task>> {
        let upstream = self.seen.upstream();
        let is_refused = matches!(error, ClientError::Refused { .. }) && !error.is(Reason::InvalidAgentResponse);
        if upstream.task.is_empty() || !is_refused {
            return None;
        }
        let task = client.task(client.asking(&upstream.task, &upstream.context)).await.ok()?.value;
        let state = task.status.state;
        let waits = state.is_interrupted() || state == TaskState::Unspecified;
        (task.id == upstream.task && !waits).then(|| Box::new(task))
    }

    /// What the agent did by itself is told, after word that it did not take the message: nothing is done twice.
    pub(super) async fn take_over(&mut self, task: Box<Task>, refused: &ClientError) -> Result<(), End> {
        let how = if task.status.state.is_terminal() { "ended the task" } else { "gone on with the task" };
        let text = format!(
            "The agent '{}' had {how} by itself before this message came, and did not take it ({}). What became of the \
             task follows. To ask for more, send a message without taskId.",
            self.name(),
            bare(refused)
        );
        self.seen.believe();
        let words = Report::Status { state: TaskState::Working, contents: Some(Contents::text(text)), metadata: None };
        self.handle.report(vec![words]).await.map_err(|_| End::Fenced)?;
        self.tell(vec![Sent::Task(task)]).await
    }

    /// Whether a Message is all there is: the agent does not know the task any more to which it was said, or does not say
    /// how it is. In that case it waits on, so it is looked at again.
    pub(super) async fn ends_with_message(&mut self, asked: Option<&ClientError>) -> Result<bool, End> {
        let Some(error) = asked else { return Ok(false) };
        let waited = self.assignment.trail.waited;
        let is_gone = error.is(Reason::TaskNotFound) || !waited && error.is_not_offered();
        let answer = match waited {
            _ if is_gone => self.seen.settle_with_message(),
            true => self.seen.wait_with_message(),
            false => None,
        };
        let Some(answer) = answer else { return Ok(false) };
        self.handle.report(vec![answer]).await.map_err(|_| End::Fenced)?;
        Ok(true)
    }
}
