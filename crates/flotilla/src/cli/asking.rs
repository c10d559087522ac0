//! Asking for a task again and again: at a pace that slows down, and not for ever where nobody answers.

use super::failure::Failure;
use super::output::say;
use super::session::{Session, quoted};
use super::settings::Setting;
use crate::config::Span;
use flotilla_outbound::client::{Answer, Client};
use flotilla_protocol::a2a::model::{Task, TaskState};
use flotilla_protocol::a2a::request::GetTaskRequest;
use flotilla_protocol::wire::Int32;
use std::time::Duration;

/// A task that does not change is asked about ever less often, down to this many intervals between.
const SLOWEST: u32 = 5;
/// Asking fails for good after so many failures in a row.
const TRIES: u32 = 5;

/// How often to ask.
#[derive(Debug, Clone, Copy)]
pub struct Pace(Duration);

impl Pace {
    pub fn of(session: &Session, flag: Option<String>) -> Result<Self, Failure> {
        let interval = session.sources.length(Setting::PollInterval, flag)?.unwrap_or_default();
        if interval < Duration::from_millis(10) {
            return Err(Failure::usage("--poll-interval must be at least 10ms").hint("such as --poll-interval 2s"));
        }
        Ok(Self(interval))
    }
}

impl std::fmt::Display for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Span(self.0).fmt(f)
    }
}

/// What a look at a task showed.
pub enum Look {
    /// It has ended, or waits for its caller.
    Settled(Box<Answer<Task>>),
    Going,
    /// Nobody answered, and may a moment later.
    Unanswered,
}

pub struct Asking<'a> {
    client: &'a Client,
    id: String,
    history: Option<i32>,
    pace: Pace,
    pause: Duration,
    /// Failures in a row.
    failures: u32,
    before: Option<TaskState>,
    /// How often it was seen to have ended, or to wait.
    ends: u32,
}

impl<'a> Asking<'a> {
    pub fn new(client: &'a Client, id: &str, history: Option<i32>, pace: Pace) -> Self {
        Self { client, id: id.to_owned(), history, pace, pause: pace.0, failures: 0, before: None, ends: 0 }
    }

    /// Asks once.
    pub async fn look(&mut self, session: &Session) -> Result<Look, Failure> {
        match self.client.task(request(&self.id, self.history)).await {
            Ok(answer) => {
                self.failures = 0;
                let state = answer.value.status.state;
                session.watch.saw_whole(&answer.value);
                if state.is_settled() {
                    self.ends += 1;
                    return Ok(Look::Settled(Box::new(answer)));
                }
                let is_same = self.before.replace(state) == Some(state);
                self.pause = if is_same { (self.pause * 3 / 2).min(self.pace.0 * SLOWEST) } else { self.pace.0 };
                Ok(Look::Going)
            }
            Err(error) if error.is_passing() && self.failures < TRIES => {
                self.failures += 1;
                say(&format!("Asking: {error}; trying again"));
                self.pause = (self.pause * 2).min(self.pace.0 * SLOWEST);
                Ok(Look::Unanswered)
            }
            Err(error) => {
                let is_passing = error.is_passing();
                let again = session.command(&format!("task get --wait {}", quoted(&self.id)));
                let failure = Failure::from(error);
                Err(if is_passing { failure.and_hint(&format!("go on with: {again}")) } else { failure })
            }
        }
    }

    /// Whether the end of the task was seen once and not before.
    pub fn is_first_end(&self) -> bool {
        self.ends == 1
    }

    /// Waits until it is time to ask again.
    pub async fn rest(&self) {
        tokio::time::sleep(self.pause).await;
    }

    /// Asks until the task has ended or waits for its caller.
    pub async fn until_the_end(&mut self, session: &Session) -> Result<Answer<Task>, Failure> {
        loop {
            if let Look::Settled(task) = self.look(session).await? {
                return Ok(*task);
            }
            self.rest().await;
        }
    }
}

pub fn request(id: &str, history: Option<i32>) -> GetTaskRequest {
    GetTaskRequest { id: id.to_owned(), history_length: history.map(Int32), ..GetTaskRequest::default() }
}
