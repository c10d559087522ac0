//! What an agent elsewhere has told so far, so that what it tells next becomes reports, and nothing is reported twice.

pub(super) mod apart;
mod before;
mod check;
mod lifted;
mod remark;

pub use check::says;

use crate::client::frame::Sent;
use check::{history, parts};
use flotilla_protocol::a2a::model::{
    Artifact, ArtifactUpdate, Message, Role, StatusUpdate, Task, TaskState, TaskStatus,
};
use flotilla_protocol::held::{Compared, Held, hash};
use flotilla_protocol::wire::Object;
use flotilla_protocol::work::{Contents, Report, Trail, Upstream, Waits};
use lifted::lifted;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What is wrong with what the agent said, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Garbage(pub String);

#[derive(Debug)]
pub struct Seen {
    upstream: Upstream,
    /// The id of the message this run is about.
    asked: String,
    /// The ids were reported in this run.
    linked: bool,
    /// What the agent said, by id: a hash of what was in it, unless that was before this run.
    said: HashMap<String, Option<u64>>,
    /// Of those, the ids of messages that came as such within a task.
    pieces: HashSet<String>,
    artifacts: HashMap<String, Held>,
    /// Of those, the ids of what was told in this run.
    told: HashSet<String>,
    /// The whole task was told in this run.
    whole: bool,
    state: TaskState,
    metadata: Option<Object>,
    /// How the task waited before this run, until it is known to have moved since.
    before: Option<Waits>,
    /// Tasks are told as they are, and not in answer to the message: the agent is asked for them, or its stream begins
    /// with one.
    asks: bool,
    /// A Message in answer to what was said to a task, until it is known how the task is.
    message: Option<Arc<Message>>,
    /// Nothing more has to come: the task ended or waits for its caller, or there was a Message.
    settled: bool,
}

impl Seen {
    pub fn of(trail: &Trail, asked: &str) -> Self {
        let artifacts =
            trail.artifacts.iter().map(|artifact| (artifact.artifact_id.clone(), Held::of(&artifact.parts)));
        Self {
            upstream: Upstream { activated: Vec::new(), ..trail.upstream.clone() },
            asked: asked.to_owned(),
            linked: trail.linked,
            said: trail.said.iter().map(|id| (id.clone(), None)).collect(),
            pieces: HashSet::new(),
            artifacts: artifacts.collect(),
            told: HashSet::new(),
            whole: false,
            state: trail.state,
            metadata: None,
            // What the agent said in this run it said after the message.
            before: trail.upstream.waits.clone().filter(|_| trail.state == TaskState::Submitted),
            asks: false,
            message: None,
            settled: false,
        }
    }

    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Whether the agent is known to have taken the message of this run up as a task.
    pub fn is_linked(&self) -> bool {
        self.linked && !self.upstream.task.is_empty()
    }

    /// Whether the agent has told anything that the task came to: artifacts, or messages within it.
    pub fn has_results(&self) -> bool {
        !self.artifacts.is_empty() || !self.pieces.is_empty()
    }

    pub fn has_artifacts(&self) -> bool {
        !self.artifacts.is_empty()
    }

    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// The message starts a task of its own at the agent.
    pub fn begin_anew(&mut self) {
        self.upstream.task.clear();
        self.linked = false;
        self.believe();
    }

    /// Which of the extensions it was asked for the agent says it activated.
    pub fn activate(&mut self, extensions: Vec<String>) {
        self.upstream.activated = extensions;
    }

    /// What is new in something the agent said.
    pub fn take(&mut self, sent: Sent) -> Result<Vec<Report>, Garbage> {
        match sent {
            Sent::Task(task) => self.task(*task),
            Sent::Message(message) => self.message(*message),
            Sent::Status(update) => self.status_update(*update),
            Sent::Artifact(update) => self.artifact_update(*update),
        }
    }

    /// `place` and `id` say where the id of the task stands.
    fn link(&mut self, task: &str, context: &str, (place, id): (&str, &str)) -> Result<Option<Report>, Garbage> {
        if task.is_empty() {
            return Err(Garbage(format!("{place}.{id} is missing")));
        }
        // Some begin another task of the same conversation with whatever is said to one that waits.
        let goes_on = !self.linked && !context.is_empty() && self.upstream.context == context;
        if !self.upstream.task.is_empty() && self.upstream.task != task && !goes_on {
            let known = &self.upstream.task;
            return Err(Garbage(format!("{place}.{id} is '{task}', and the task asked for is '{known}'")));
        }
        if self.linked {
            self.check_context(context, place)?;
            if context.is_empty() || self.upstream.context == context {
                return Ok(None);
            }
        }
        task.clone_into(&mut self.upstream.task);
        if !context.is_empty() {
            context.clone_into(&mut self.upstream.context);
        }
        self.linked = true;
        Ok(Some(self.linked_report(Vec::new())))
    }

    /// Whether something of this context may be of the task.
    pub fn is_of(&self, context: &str) -> bool {
        self.check_context(context, "").is_ok()
    }

    /// A task belongs to one context for as long as it lasts.
    fn check_context(&self, context: &str, place: &str) -> Result<(), Garbage> {
        let known = &self.upstream.context;
        if context.is_empty() || known.is_empty() || known == context {
            return Ok(());
        }
        Err(Garbage(format!("{place}.contextId is '{context}', and the task belongs to '{known}'")))
    }

    fn linked_report(&self, unknown: flotilla_protocol::wire::Unknown) -> Report {
        Report::Linked { upstream: self.upstream.clone(), metadata: self.metadata.clone(), unknown }
    }

    /// The whole task as it is now: only what it holds beyond what was told is new.
    fn task(&mut self, task: Task) -> Result<Vec<Report>, Garbage> {
        let task = lifted(task);
        let state = known(task.status.state);
        self.whole = true;
        let labels_changed = task.metadata.is_some() && task.metadata != self.metadata;
        let is_stale = self.is_stale(&task.id, &task.status);
        let asks_anew = self.asks_anew(&task.status);
        let waits = !is_stale && self.waits(&task.status);
        let said = self.said_by_agent(task.status.message, "task.status.message")?;
        let link = self.link(&task.id, &task.context_id, ("task", "id"))?;
        let mut reports = Vec::new();
        if link.is_some() || labels_changed || waits {
            self.metadata.clone_from(&task.metadata);
            reports.push(self.linked_report(task.unknown));
        }
        let before = reports.len();
        let latest = said.as_ref().map(|message| message.message_id.clone()).unwrap_or_default();
        history(&task.history)?;
        for message in apart::messages(task.history, self, &latest) {
            let is_echo = message.role == Role::Unspecified && message.message_id == self.asked;
            let is_agents = message.role != Role::User && !is_echo && says(&message);
            if is_agents && message.message_id != latest && self.is_new(&message) {
                reports.push(status(TaskState::Working, Some(message), None));
                self.state = TaskState::Working;
            }
        }
        for (index, artifact) in apart::artifacts(task.artifacts.unwrap_or_default()).into_iter().enumerate() {
            if artifact.parts.is_empty() {
                return Err(Garbage(format!("task.artifacts[{index}].parts is empty")));
            }
            parts(&artifact.parts, &format!("task.artifacts[{index}]"))?;
            reports.extend(self.artifact(artifact, state.is_terminal()));
        }
        // The answer to the message itself that holds something new is one, however the task waited before.
        let is_answer = !self.asks && reports.len() > before;
        if !is_stale || is_answer {
            self.before = None;
            // A task that waits as before waits with what was said last.
            let aside = self.message.take().filter(|_| state.is_interrupted() && !asks_anew);
            let said = aside.or(said).filter(|message| self.is_news(state, message));
            reports.extend(self.status(state, said, None));
        }
        Ok(reports)
    }

    fn message(&mut self, message: Message) -> Result<Vec<Report>, Garbage> {
        parts(&message.parts, "message")?;
        if message.role == Role::User {
            return Err(Garbage("message.role is ROLE_USER, and an agent speaks as ROLE_AGENT".into()));
        }
        // Within a task it is something said on the way.
        if self.is_linked() {
            if !message.task_id.is_empty() {
                self.link(&message.task_id, &message.context_id, ("message", "taskId"))?;
            }
            let message = Arc::new(message);
            let new = says(&message) && self.is_piece(&message);
            return Ok(if new { vec![status(TaskState::Working, Some(message), None)] } else { Vec::new() });
        }
        if message.parts.is_empty() {
            return Err(Garbage("message.parts is empty".into()));
        }
        if !self.upstream.task.is_empty() {
            return Ok(self.remark(Arc::new(message)));
        }
        self.settled = true;
        let context = message.context_id.clone();
        let answer = Report::Answer { contents: Contents::Message(Box::new(message)), metadata: None };
        let activated = self.upstream.activated.clone();
        if context.is_empty() && activated.is_empty() {
            return Ok(vec![answer]);
        }
        let upstream = Upstream { context, activated, ..Upstream::default() };
        Ok(vec![Report::Linked { upstream, metadata: None, unknown: Vec::new() }, answer])
    }

    fn status_update(&mut self, update: StatusUpdate) -> Result<Vec<Report>, Garbage> {
        let state = known(update.status.state);
        // An update is news, whatever it says.
        self.before = None;
        let waits = self.waits(&update.status);
        let said = self.said_by_agent(update.status.message, "statusUpdate.status.message")?;
        let link = self.link(&update.task_id, &update.context_id, ("statusUpdate", "taskId"))?;
        let link = link.or_else(|| waits.then(|| self.linked_report(Vec::new())));
        let said = said.filter(|message| self.is_news(state, message));
        Ok(link.into_iter().chain(self.status(state, said, update.metadata)).collect())
    }

    /// What the agent says with a status. Some put the message they were sent there, which is nothing they say.
    fn said_by_agent(&self, said: Option<Arc<Message>>, place: &str) -> Result<Option<Arc<Message>>, Garbage> {
        let Some(message) = said.filter(|message| says(message)) else { return Ok(None) };
        parts(&message.parts, place)?;
        match message.role {
            Role::User if message.message_id == self.asked => Ok(None),
            Role::User => Err(Garbage(format!("{place}.role is ROLE_USER, and an agent speaks as ROLE_AGENT"))),
            Role::Agent | Role::Unspecified => Ok(Some(message)),
        }
    }

    fn status(&mut self, state: TaskState, message: Option<Arc<Message>>, metadata: Option<Object>) -> Option<Report> {
        let changes = state != self.state || message.is_some() || metadata.is_some();
        self.settled = state.is_settled();
        // An agent's SUBMITTED is nothing the hub has not said itself.
        let tells = changes && (state != TaskState::Submitted || message.is_some());
        // A task that waits for its caller again says so again.
        if !tells && !self.settled {
            return None;
        }
        self.state = state;
        let state = if state == TaskState::Submitted { TaskState::Working } else { state };
        Some(status(state, message, metadata))
    }

    fn artifact_update(&mut self, update: ArtifactUpdate) -> Result<Vec<Report>, Garbage> {
        let link = self.link(&update.task_id, &update.context_id, ("artifactUpdate", "taskId"))?;
        let ArtifactUpdate { artifact, append, last_chunk, metadata, .. } = update;
        if artifact.artifact_id.is_empty() {
            return Err(Garbage("artifactUpdate.artifact.artifactId is missing".into()));
        }
        // Some end an artifact with a chunk that holds nothing.
        if artifact.parts.is_empty() && !append && !last_chunk {
            return Err(Garbage("artifactUpdate.artifact.parts is empty".into()));
        }
        parts(&artifact.parts, "artifactUpdate.artifact")?;
        let held = self.artifacts.entry(artifact.artifact_id.clone()).or_default();
        if !append {
            *held = Held::default();
        }
        held.add(&artifact.parts);
        self.told.insert(artifact.artifact_id.clone());
        Ok(link.into_iter().chain([chunk(artifact, append, last_chunk, metadata)]).collect())
    }

    /// A whole artifact: nothing if it is known, the rest if it has grown, else all of it. A task that is under way may
    /// be told as it was a moment ago; what it ends with counts.
    fn artifact(&mut self, artifact: Arc<Artifact>, is_last_word: bool) -> Option<Report> {
        let whole = Held::of(&artifact.parts);
        let held = self.artifacts.get(&artifact.artifact_id);
        let compared = held.map_or(Compared::Other, |held| held.compare(&whole));
        let is_shorter = held.is_some_and(|held| whole.is_shorter(held));
        if compared == Compared::Known && !(is_shorter && is_last_word) {
            return None;
        }
        self.artifacts.insert(artifact.artifact_id.clone(), whole);
        match compared {
            Compared::Longer(from) => {
                let parts = artifact.parts[from..].to_vec();
                Some(chunk(Arc::new(Artifact { parts, ..(*artifact).clone() }), true, false, None))
            }
            Compared::Known | Compared::Other => Some(chunk(artifact, false, false, None)),
        }
    }

    /// Notes what was said; one without an id is always new.
    fn is_new(&mut self, message: &Message) -> bool {
        if message.message_id.is_empty() {
            return true;
        }
        let known = self.said.contains_key(&message.message_id);
        if !known {
            self.said.insert(message.message_id.clone(), Some(hash(&message.parts)));
        }
        !known
    }

    /// The same for what is said with a status. What a task ends or waits with belongs to that status, also if it was said
    /// before: it is the question its caller is to answer.
    fn is_news(&mut self, state: TaskState, message: &Message) -> bool {
        let is_new = self.is_new(message);
        if !is_new && state.is_settled() {
            self.said.insert(message.message_id.clone(), Some(hash(&message.parts)));
        }
        is_new || state.is_settled()
    }

    /// The same for a message on the way: some say what they say piece by piece, all under one id.
    fn is_piece(&mut self, message: &Message) -> bool {
        let is_new = self.is_new(message);
        if is_new {
            self.pieces.insert(message.message_id.clone());
        }
        is_new || self.pieces.contains(&message.message_id)
    }
}

/// A state that is not known says no more than that there is a task, and is asked for again.
fn known(state: TaskState) -> TaskState {
    if state == TaskState::Unspecified { TaskState::Submitted } else { state }
}

fn status(state: TaskState, message: Option<Arc<Message>>, metadata: Option<Object>) -> Report {
    let contents = message.map(|message| Contents::Message(Box::new(Arc::unwrap_or_clone(message))));
    Report::Status { state, contents, metadata }
}

fn chunk(artifact: Arc<Artifact>, append: bool, last_chunk: bool, metadata: Option<Object>) -> Report {
    let mut artifact = Box::new(Arc::unwrap_or_clone(artifact));
    let contents = Contents::Parts(std::mem::take(&mut artifact.parts));
    Report::Artifact { artifact, contents, append, last_chunk, metadata }
}

#[cfg(test)]
mod tests;
