//! `flotilla task`: tasks of any agent.

use super::args::{ClientArgs, at_least};
use super::asking::{self, Asking, Pace};
use super::download::Download;
use super::failure::Failure;
use super::follow::{self, Printed};
use super::log::Log;
use super::output::{Text, compact, document, object as print_object, say, warn};
use super::push::PushConfigCommand;
use super::render::Detail;
use super::send::{self, resume};
use super::session::{Session, quoted};
use super::settings::Setting;
use super::tree::Tree;
use clap::{Args, Subcommand};
use flotilla_outbound::client::error::ClientError;
use flotilla_outbound::client::follow::Follow;
use flotilla_outbound::client::frame::Sent;
use flotilla_outbound::client::{Answer, Client};
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::model::{Task, TaskState};
use flotilla_protocol::a2a::request::{CancelTaskRequest, ListTasksRequest};
use flotilla_protocol::wire::Int32;

#[derive(Debug, Args)]
pub struct TaskArgs {
    #[command(subcommand)]
    command: TaskCommand,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Debug, Subcommand)]
enum TaskCommand {
    /// Show a task: its state and artifacts.
    Get(Get),
    /// List your tasks, page by page.
    List(List),
    /// Cancel a task.
    Cancel {
        /// The task's id
        id: String,
        /// Metadata of the request, a JSON object
        #[arg(long, value_name = "JSON")]
        metadata: Option<String>,
        /// With -o json: print the task on one line
        #[arg(long)]
        stream: bool,
    },
    /// Follow a task until it ends or asks for something.
    Subscribe(Subscribe),
    /// Save a task's artifacts as files.
    Download(Download),
    /// Manage where an agent reports a task's progress to.
    #[command(subcommand)]
    PushConfig(PushConfigCommand),
    /// Say why a task's work went where it went: each worker that was looked
    /// at, and what stood in its way.
    Why(super::why::Why),
    /// Show everything that happened in a task of an agent you own.
    Log(Log),
    /// Show what a task is part of, and what is part of it.
    Tree(Tree),
}

#[derive(Debug, Args)]
struct Get {
    /// The task's id
    id: String,
    /// Show at most so many of the latest messages too
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least(0))]
    history: Option<i32>,
    /// Ask again and again until the task ends or asks for something
    #[arg(long, visible_alias = "watch")]
    wait: bool,
    /// How often to ask
    #[arg(long, value_name = "TIME")]
    poll_interval: Option<String>,
    /// With -o json: print the task on one line
    #[arg(long)]
    stream: bool,
}

#[derive(Debug, Args)]
struct List {
    /// Only those of this context
    #[arg(long, value_name = "ID")]
    context_id: Option<String>,
    /// Only those in this state, such as WORKING
    #[arg(long, value_name = "STATE", value_parser = state)]
    status: Option<TaskState>,
    /// Show at most so many of the latest messages of each too
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least(0))]
    history: Option<i32>,
    /// At most so many in one page
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least(1))]
    page_size: Option<i32>,
    /// Go on where the page before ended
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
    /// Fetch all pages
    #[arg(long)]
    all: bool,
    /// With -o json: print one task a line
    #[arg(long)]
    stream: bool,
}

#[derive(Debug, Args)]
struct Subscribe {
    /// The task's id
    id: String,
    /// Print events as they come; with -o json one JSON object a line
    #[arg(long)]
    stream: bool,
    /// Go on after this event id, where the agent gives any
    #[arg(long, value_name = "EVENT")]
    after: Option<String>,
    /// How often to ask for the task when its stream fails
    #[arg(long, value_name = "TIME")]
    poll_interval: Option<String>,
}

impl TaskArgs {
    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        self.command.note_task(session);
        match self.command {
            TaskCommand::Log(log) => log.run(session).await,
            TaskCommand::Tree(tree) => tree.run(session).await,
            TaskCommand::Why(why) => why.run(session).await,
            TaskCommand::Get(get) => get.run(session, &session.client().await?).await,
            TaskCommand::List(list) => list.run(session, &session.client().await?).await,
            TaskCommand::Cancel { id, metadata, stream } => cancel(session, id, metadata, stream).await,
            TaskCommand::Subscribe(subscribe) => subscribe.run(session, &session.client().await?).await,
            TaskCommand::Download(download) => download.run(session, &session.client().await?).await,
            TaskCommand::PushConfig(command) => command.run(session, &session.client().await?).await,
        }
    }
}

impl TaskCommand {
    /// Whoever waits for an agent that does not answer is told of the task that was named all the same.
    fn note_task(&self, session: &Session) {
        let about = |id: &str, words: &str| session.watch.is_about(id, format!("task {words} {}", quoted(id)));
        match self {
            Self::Get(Get { id, .. }) | Self::Subscribe(Subscribe { id, .. }) => session.watch.saw_task(id, None),
            Self::Cancel { id, .. } => about(id, "cancel"),
            Self::Download(download) => session.watch.is_about(download.id(), download.words()),
            Self::PushConfig(command) => about(command.task(), "push-config list"),
            Self::Why(why) => about(why.id(), "why"),
            Self::Log(log) => session.watch.is_about(log.id(), log.words(None)),
            Self::Tree(tree) => about(tree.id(), "tree"),
            Self::List(_) => {}
        }
    }
}

impl Get {
    async fn run(self, session: &Session, client: &Client) -> Result<(), Failure> {
        let pace = Pace::of(session, self.poll_interval)?;
        let task = if self.wait {
            Asking::new(client, &self.id, self.history, pace).until_the_end(session).await?
        } else {
            client.task(asking::request(&self.id, self.history)).await?
        };
        show(session, task, self.history.is_some(), self.stream);
        Ok(())
    }
}

/// A task, once.
fn show(session: &Session, task: Answer<Task>, history: bool, on_one_line: bool) {
    let state = task.value.status.state;
    if session.is_json() {
        print_object(&task.json, on_one_line);
    } else {
        let mut text = Text::default();
        text.task(&task.value, Detail { verbose: session.verbose, history: history || session.verbose });
        text.field("Resume", &resume(session, &Sent::Task(Box::new(task.value)))).print();
    }
    follow::warn_of_state(state);
}

async fn cancel(session: &Session, id: String, metadata: Option<String>, stream: bool) -> Result<(), Failure> {
    let metadata = send::metadata(session, metadata)?;
    let client = session.client().await?;
    let mut task = client.cancel(CancelTaskRequest { id: id.clone(), metadata, ..CancelTaskRequest::default() }).await;
    if matches!(task, Err(ClientError::TooLarge { .. })) {
        // The agent did what it was asked to; only its answer, with all that was ever said, is too much.
        warn("the agent's answer is too large to be read; the task is shown without its messages");
        task = client.task(asking::request(&id, Some(0))).await;
    }
    let task = task.map_err(|error| {
        let is_there = !error.is(Reason::TaskNotFound);
        let again = session.command(&format!("task get --history 0 {}", quoted(&id)));
        let failure = Failure::from(error);
        if is_there { failure.and_hint(&format!("see where it stands with: {again}")) } else { failure }
    })?;
    if session.is_json() {
        print_object(&task.json, stream);
    } else {
        let mut text = Text::default();
        text.task(&task.value, Detail { verbose: session.verbose, history: session.verbose }).print();
    }
    Ok(())
}

impl List {
    async fn run(self, session: &Session, client: &Client) -> Result<(), Failure> {
        let context_id = session.sources.value(Setting::ContextId, self.context_id.clone()).unwrap_or_default();
        // Messages nobody is shown are not asked for: they may be larger than all the rest.
        let most = if session.verbose { self.history } else { self.history.or(Some(0)) };
        let mut request = ListTasksRequest {
            context_id,
            history_length: most.map(Int32),
            status: self.status.unwrap_or_default(),
            page_size: self.page_size.map(Int32),
            page_token: self.page_token.clone().unwrap_or_default(),
            ..ListTasksRequest::default()
        };
        let mut shown = 0;
        let mut all: Vec<Task> = Vec::new();
        loop {
            let mut page = client.tasks(request.clone()).await?;
            shown += page.value.tasks.len();
            let next = std::mem::take(&mut page.value.next_page_token);
            let is_last = next.is_empty() || !self.all;
            match (session.is_json(), self.stream) {
                (false, _) => list(session, &page.value.tasks, self.history.is_some()),
                (true, true) => page.value.tasks.iter().for_each(one_line),
                (true, false) if !self.all => document(&page.json),
                // One document, as if it were one page.
                (true, false) => {
                    all.append(&mut page.value.tasks);
                    if is_last {
                        document(&whole(&all, page.value.total_size));
                    }
                }
            }
            if is_last {
                let more = if next.is_empty() { String::new() } else { session.command(&self.next(&next)) };
                if !session.is_json() {
                    let total = page.value.total_size.max(i64::try_from(shown).unwrap_or(i64::MAX));
                    Text::default().field("Total", &total.to_string()).field("Next page", &more).print();
                } else if self.stream && !more.is_empty() {
                    // A document of one page has the token in it, and lines have no place for it.
                    say(&format!("Next page: {more}"));
                }
                return Ok(());
            }
            request.page_token = next;
        }
    }
}

impl List {
    /// The words that go on with the same listing.
    fn next(&self, token: &str) -> String {
        let [size, history] = [self.page_size, self.history].map(|number| number.map(|number| number.to_string()));
        let flags = [
            ("--context-id", &self.context_id),
            ("--status", &self.status.map(|state| state.name().to_owned())),
            ("--history", &history),
            ("--page-size", &size),
        ];
        let given = flags.into_iter().filter_map(|(flag, value)| Some(format!(" {flag} {}", quoted(value.as_ref()?))));
        format!("task list{} --page-token {}", given.collect::<String>(), quoted(token))
    }
}

fn one_line(task: &Task) {
    compact(&serde_json::to_string(task).unwrap_or_default());
}

/// All pages as one ListTasksResponse.
fn whole(tasks: &[Task], total: i64) -> String {
    let size = i32::try_from(tasks.len()).unwrap_or(i32::MAX);
    let tasks = serde_json::to_string(tasks).unwrap_or_default();
    format!("{{\"tasks\":{tasks},\"nextPageToken\":\"\",\"pageSize\":{size},\"totalSize\":{total}}}")
}

fn list(session: &Session, tasks: &[Task], history: bool) {
    let mut text = Text::default();
    for task in tasks {
        let detail = Detail { verbose: session.verbose, history: history || session.verbose };
        text.task(task, detail).gap();
    }
    text.print();
}

/// A state by its name, with or without the prefix.
fn state(name: &str) -> Result<TaskState, String> {
    let full = name.to_ascii_uppercase().replace('-', "_");
    let found = TaskState::from_name(&full).or_else(|| TaskState::from_name(&format!("TASK_STATE_{full}")));
    // To the agent, no state is any state: whoever names one means it.
    let found = found.filter(|state| *state != TaskState::Unspecified);
    found.ok_or_else(|| format!("it is none of {}", TaskState::choices()))
}

impl Subscribe {
    async fn run(self, session: &Session, client: &Client) -> Result<(), Failure> {
        let pace = Pace::of(session, self.poll_interval.clone())?;
        if !client.card().capabilities.streaming {
            return self.ask(session, client, pace).await;
        }
        let again = || session.command(&format!("task get {}", quoted(&self.id)));
        let follow = Follow::task(client, &self.id, self.after.as_deref()).await;
        let follow = follow.map_err(|error| match error.is(Reason::UnsupportedOperation) {
            true => Failure::from(error).hint(format!("read the task with: {}", again())),
            false => Failure::from(error),
        })?;
        let printed = if self.stream { Printed::Events } else { Printed::Nothing };
        let last = follow::to_the_end(session, client, follow, printed, pace).await?;
        if self.stream {
            follow::print_hints(session, &last.value);
            return Ok(());
        }
        match last.value {
            Sent::Task(task) => {
                let json = serde_json::from_str::<TaskOnly>(&last.json).map(|only| only.task.get().to_owned());
                let json = json.map_err(|error| Failure::internal(error.to_string()))?;
                show(session, Answer { value: *task, json }, false, false);
            }
            _ => super::send::show(session, &last),
        }
        Ok(())
    }
}

impl Subscribe {
    /// The task is there to be asked for where the agent does not stream.
    async fn ask(&self, session: &Session, client: &Client, pace: Pace) -> Result<(), Failure> {
        warn("the agent does not stream; asking for the task instead");
        let last = Asking::new(client, &self.id, None, pace).until_the_end(session).await?;
        if self.stream && session.is_json() {
            compact(&format!("{{\"task\":{}}}", last.json));
            follow::warn_of_state(last.value.status.state);
            return Ok(());
        }
        show(session, last, false, false);
        Ok(())
    }
}

/// The task of an answer, as it was written.
#[derive(serde::Deserialize)]
struct TaskOnly {
    task: Box<serde_json::value::RawValue>,
}
