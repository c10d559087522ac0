//! Waiting where a person can see it: signs of life, a limit, and a task that is never lost when the wait ends early.

use super::failure::{Failure, Local};
use super::output::say;
use super::session::quoted;
use flotilla_outbound::client::Client;
use flotilla_outbound::client::frame::Sent;
use flotilla_protocol::a2a::model::{Message, Task, TaskState};
use flotilla_protocol::a2a::request::ListTasksRequest;
use flotilla_protocol::wire::Int32;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// A wait shorter than this needs no comment.
const SILENCE: Duration = Duration::from_secs(3);
/// Then so often.
const SIGN: Duration = Duration::from_secs(15);

/// How long a task is looked for that no answer has named, and among how many of each task's latest messages.
const SEARCH: Duration = Duration::from_secs(2);
const LATEST: i32 = 10;

/// What is waited for that is no task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pastime {
    Webhooks,
    Workers,
}

impl Pastime {
    /// What its end means, and what to do then.
    fn end(self) -> (&'static str, &'static str) {
        match self {
            Self::Webhooks => (
                "nobody listens any more",
                "start it again to go on: the hub makes webhooks that fail again, as push.schedule says",
            ),
            Self::Workers => {
                ("the workers are not watched any more", "start it again to go on: it begins with how they all are")
            }
        }
    }
}

/// What is known of the task that is waited for.
#[derive(Clone, Default)]
struct Known {
    task: String,
    context: String,
    state: &'static str,
    /// The words of the command that goes on, where asking for the task does not.
    again: Option<String>,
    /// What was sent, and to whom.
    sent: Option<(Client, ListTasksRequest, String)>,
    told: &'static str,
    /// What is printed is sign of life enough, all of the time or while something was printed lately.
    hushed: bool,
    printed: Option<Instant>,
    /// Nothing was asked for: what comes is waited for until somebody has had enough.
    pastime: Option<Pastime>,
}

#[derive(Default)]
pub struct Watch {
    known: Mutex<Known>,
}

impl Watch {
    /// Takes note of what came.
    pub fn saw(&self, sent: &Sent) {
        self.saw_in(sent.ids(), sent.state().map(TaskState::name));
    }

    fn saw_in(&self, (task, context): (&str, &str), state: Option<&'static str>) {
        self.saw_task(task, state);
        if !context.is_empty() {
            self.change(|known| context.clone_into(&mut known.context));
        }
    }

    pub fn saw_whole(&self, task: &Task) {
        self.saw_in((&task.id, &task.context_id), Some(task.status.state.name()));
    }

    pub fn saw_task(&self, task: &str, state: Option<&'static str>) {
        self.change(|known| {
            if !task.is_empty() {
                task.clone_into(&mut known.task);
            }
            known.state = state.unwrap_or(known.state);
        });
    }

    /// Takes note of the task that a command is about, and of the words that go on with the same.
    pub fn is_about(&self, task: &str, again: String) {
        self.saw_task(task, None);
        self.change(|known| known.again = Some(again));
    }

    /// Takes note of what goes out: an agent that does not stream says nothing of the task before it is over.
    pub fn sends(&self, client: &Client, message: &Message) {
        let request = ListTasksRequest {
            context_id: message.context_id.clone(),
            history_length: Some(Int32(LATEST)),
            ..ListTasksRequest::default()
        };
        self.saw_task(&message.task_id, None);
        self.change(|known| known.sent = Some((client.clone(), request, message.message_id.clone())));
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.known.lock().expect("no panic while holding what is known"));
    }

    /// Something was printed, which is sign of life enough for a while.
    pub fn printed(&self) {
        self.change(|known| known.printed = Some(Instant::now()));
    }

    /// Gives no signs of life from here on.
    pub fn hush(&self) {
        self.change(|known| known.hushed = true);
    }

    /// Gives signs of life again: nothing else does for now.
    pub fn speak(&self) {
        self.change(|known| (known.hushed, known.printed) = (false, None));
    }

    /// Waits for whatever comes, and not for a task.
    pub fn waits_for(&self, pastime: Pastime) {
        self.change(|known| (known.hushed, known.pastime) = (true, Some(pastime)));
    }

    fn known(&self) -> Known {
        self.known.lock().expect("no panic while holding what is known").clone()
    }

    /// Does the work; ends early at the limit or when the person has had enough, and says how to go on. `command` makes
    /// the command to type from its words.
    pub async fn run(
        &self,
        limit: Option<Duration>,
        command: impl Fn(&str) -> String,
        work: impl Future<Output = Result<(), Failure>>,
    ) -> Result<(), Failure> {
        let started = Instant::now();
        let late = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let is_late = tokio::select! {
            done = work => {
                return done.map_err(|failure| self.known().broken_off(failure, &command).addressed(&command));
            }
            () = late => true,
            () = interrupted() => false,
            never = self.signs(started) => match never {},
        };
        self.search().await;
        let known = self.known();
        Err(if is_late { known.late(limit.unwrap_or_default(), command) } else { known.interrupted(command) })
    }

    /// Finds the task of what was sent, where no answer has named it yet.
    async fn search(&self) {
        let known = self.known();
        let Some((client, request, message)) = known.sent.filter(|_| known.task.is_empty()) else { return };
        let listed = tokio::select! {
            listed = client.tasks(request) => listed,
            () = tokio::time::sleep(SEARCH) => return,
            () = interrupted() => return,
        };
        let is_its = |task: &Task| task.history.iter().any(|kept| kept.message_id == message);
        if let Some(task) = listed.ok().and_then(|page| page.value.tasks.into_iter().find(is_its)) {
            self.saw_whole(&task);
        }
    }

    async fn signs(&self, started: Instant) -> std::convert::Infallible {
        tokio::time::sleep(SILENCE).await;
        loop {
            let known = self.known();
            if let Some(quiet) = known.printed.map(|at| at.elapsed()).filter(|quiet| *quiet < SIGN) {
                tokio::time::sleep(SIGN - quiet).await;
                continue;
            }
            let seconds = started.elapsed().as_secs();
            match (known.task.as_str(), known.state) {
                _ if known.hushed => {}
                ("", _) => say(&format!("Waiting: {seconds} s")),
                (task, "") => say(&format!("Waiting: {seconds} s for {task}")),
                (task, state) if state == known.told => say(&format!("Waiting: {seconds} s, {task} still {state}")),
                (task, state) => say(&format!("Waiting: {seconds} s, {task} is {state}")),
            }
            self.change(|now| now.told = known.state);
            tokio::time::sleep(SIGN).await;
        }
    }
}

impl Known {
    fn late(&self, limit: Duration, command: impl Fn(&str) -> String) -> Failure {
        let limit = crate::config::Span(limit);
        if let Some((ended, again)) = self.pastime.map(Pastime::end) {
            return Failure::new(Local::Timeout, format!("{ended}, after {limit} (--timeout)")).hint(again);
        }
        if self.task.is_empty() {
            let failure = Failure::new(Local::Timeout, format!("no result within {limit}; no task is known yet"));
            return failure.hint(self.unknown(command));
        }
        let text = format!("not done within {limit}: {}", self.standing());
        Failure::new(Local::Timeout, text).hint(self.go_on(command))
    }

    /// A failure in the midst of a wait leaves the task as it was.
    fn broken_off(&self, failure: Failure, command: &impl Fn(&str) -> String) -> Failure {
        let is_open = TaskState::from_name(self.state).is_some_and(|state| !state.is_settled());
        if !is_open || self.pastime.is_some() {
            return failure;
        }
        failure.and_then(&format!("the last that was heard: {}", self.standing()), &self.go_on(command))
    }

    fn interrupted(&self, command: impl Fn(&str) -> String) -> Failure {
        if let Some((ended, again)) = self.pastime.map(Pastime::end) {
            return Failure::interrupted(format!("interrupted; {ended}")).hint(again);
        }
        if self.task.is_empty() {
            return Failure::interrupted("interrupted; no task is known yet").hint(self.unknown(command));
        }
        let is_over = TaskState::from_name(self.state).is_some_and(TaskState::is_settled);
        let goes_on = if is_over { "" } else { ", and goes on without you" };
        let text = format!("interrupted; {}{goes_on}", self.standing());
        Failure::interrupted(text).hint(self.go_on(command))
    }

    /// The task, its context and its state, as far as they are known.
    fn standing(&self) -> String {
        let context = if self.context.is_empty() { String::new() } else { format!(" (context {})", self.context) };
        let state = if self.state.is_empty() { "in a state not known yet" } else { self.state };
        format!("task {}{context} is {state}", self.task)
    }

    fn go_on(&self, command: impl Fn(&str) -> String) -> String {
        match &self.again {
            Some(again) => command(again),
            None => command(&format!("task get --wait {}", quoted(&self.task))),
        }
    }

    fn unknown(&self, command: impl Fn(&str) -> String) -> String {
        match self.sent {
            Some(_) => format!("what was sent may still be worked on: {} shows your tasks", command("task list")),
            None => "run it again to go on; --debug shows how far it came".to_owned(),
        }
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
