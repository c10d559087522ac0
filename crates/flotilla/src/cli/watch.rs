//! Waiting where a person can see it: signs of life, a limit, and a task that is never lost when the wait ends early.

use super::failure::{Failure, Local};
use super::output::say;
use flotilla_outbound::client::frame::Sent;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// A wait shorter than this needs no comment.
const SILENCE: Duration = Duration::from_secs(3);
/// Then so often.
const SIGN: Duration = Duration::from_secs(15);

/// What to do when nobody listens any more.
const LISTEN_AGAIN: &str = "start it again to go on: the hub makes webhooks that fail again, as push.schedule says";

/// What is known of the task that is waited for.
#[derive(Debug, Clone, Default)]
struct Known {
    task: String,
    state: &'static str,
    told: &'static str,
    /// What is printed is sign of life enough.
    hushed: bool,
    /// Nothing was asked for: what comes is waited for until somebody has had enough.
    listens: bool,
}

#[derive(Default)]
pub struct Watch {
    known: Mutex<Known>,
}

impl Watch {
    /// Takes note of what came.
    pub fn saw(&self, sent: &Sent) {
        let state = sent.state().map(flotilla_protocol::a2a::model::TaskState::name);
        self.saw_task(sent.ids().0, state);
    }

    pub fn saw_task(&self, task: &str, state: Option<&'static str>) {
        let mut known = self.known.lock().expect("no panic while holding what is known");
        if !task.is_empty() {
            task.clone_into(&mut known.task);
        }
        if let Some(state) = state {
            known.state = state;
        }
    }

    /// Gives no signs of life from here on.
    pub fn hush(&self) {
        self.known.lock().expect("no panic while holding what is known").hushed = true;
    }

    /// Waits for whatever comes, and not for a task.
    pub fn listens(&self) {
        let mut known = self.known.lock().expect("no panic while holding what is known");
        (known.hushed, known.listens) = (true, true);
    }

    fn known(&self) -> Known {
        self.known.lock().expect("no panic while holding what is known").clone()
    }

    /// Does the work; ends early at the limit or when the person has had enough, and says how to go on.
    pub async fn run(
        &self,
        limit: Option<Duration>,
        go_on: impl Fn(&str) -> String,
        work: impl Future<Output = Result<(), Failure>>,
    ) -> Result<(), Failure> {
        let started = Instant::now();
        let late = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            done = work => done,
            () = late => Err(self.late(limit.unwrap_or_default(), go_on)),
            () = interrupted() => Err(self.interrupted(go_on)),
            never = self.signs(started) => match never {},
        }
    }

    async fn signs(&self, started: Instant) -> std::convert::Infallible {
        tokio::time::sleep(SILENCE).await;
        loop {
            let known = self.known();
            let seconds = started.elapsed().as_secs();
            match (known.task.as_str(), known.state) {
                _ if known.hushed => {}
                ("", _) => say(&format!("Waiting: {seconds} s")),
                (task, state) if state == known.told => say(&format!("Waiting: {seconds} s, {task} still {state}")),
                (task, state) => say(&format!("Waiting: {seconds} s, {task} is {state}")),
            }
            self.known.lock().expect("no panic while holding what is known").told = known.state;
            tokio::time::sleep(SIGN).await;
        }
    }

    fn late(&self, limit: Duration, go_on: impl Fn(&str) -> String) -> Failure {
        let known = self.known();
        let limit = crate::config::Span(limit);
        if known.listens {
            let failure = Failure::new(Local::Timeout, format!("nobody listens any more, after {limit} (--timeout)"));
            return failure.hint(LISTEN_AGAIN);
        }
        if known.task.is_empty() {
            let failure = Failure::new(Local::Timeout, format!("no result within {limit}; no task is known yet"));
            return failure.hint("the agent may still be at it: --async gets the task's id at once");
        }
        let text = format!("not done within {limit}: task {} is {}", known.task, known.state);
        Failure::new(Local::Timeout, text).hint(go_on(&known.task))
    }

    fn interrupted(&self, go_on: impl Fn(&str) -> String) -> Failure {
        let known = self.known();
        if known.listens {
            return Failure::interrupted("interrupted; nobody listens any more").hint(LISTEN_AGAIN);
        }
        if known.task.is_empty() {
            let failure = Failure::interrupted("interrupted; no task is known yet");
            return failure.hint("what was sent may still be worked on: flotilla task list shows your tasks");
        }
        Failure::interrupted(format!("interrupted; task {} goes on without you", known.task)).hint(go_on(&known.task))
    }
}

/// Resolves when the person or the system wants the program to end.
async fn interrupted() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    let Ok(mut interrupt) = signal(SignalKind::interrupt()) else { return std::future::pending().await };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
