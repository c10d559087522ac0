//! `flotilla task log`: everything that happened in a task, for the owner of its agent.

use super::args::ClientArgs;
use super::failure::Failure;
use super::output::{Text, compact, document, say};
use super::owner::Hints;
use super::session::{Session, hub_key, quoted};
use super::settings::Setting;
use clap::Args;
use flotilla_outbound::client::error::ClientError;
use flotilla_outbound::hub::{self, Hub, LogPage};
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::approval::ApprovalRequest;
use flotilla_protocol::block::{Block, Kind};
use flotilla_protocol::event::Event;
use flotilla_protocol::lineage::{Ancestor, Origin};
use flotilla_protocol::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;

/// How often in a row a broken log is taken up again.
const TRIES: u32 = 5;
const HINTS: Hints = Hints {
    key: "the log is for the owner of the agent: set FLOTILLA_KEY to the owner's key, --hub to the hub",
    missing: "only what is of agents that your key's owner owns is there: set FLOTILLA_KEY to the owner's key",
};
/// After this number there are none.
const NO_EVENTS: u64 = i64::MAX.unsigned_abs();
const PRUNED: &str = "Note: the earliest events of this task are no longer kept (retention.events).";

#[derive(Debug, Args)]
pub struct Log {
    /// The task's id
    id: String,
    /// Go on until the task ends
    #[arg(long, short)]
    follow: bool,
    /// Only what came after this number
    #[arg(long, value_name = "SEQ", default_value_t = 0, allow_negative_numbers = true)]
    after: u64,
    /// With -o json: print one event a line, as --follow does
    #[arg(long)]
    stream: bool,
}

/// The log as one document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Whole {
    task_id: String,
    context_id: String,
    state: String,
    provenance: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_task_id: Option<String>,
    /// Whether the earliest events are no longer kept.
    pruned: bool,
    events: Vec<Box<RawValue>>,
}

/// One line of the log.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    seq: u64,
    at: Millis,
    for_peers: bool,
    event: Event,
}

/// The log is the hub's, which knows a task by its id: what says how to call an agent has no say here.
pub fn only_the_hub(command: &str, args: &ClientArgs) -> Result<(), Failure> {
    let given = [
        ("--agent-card", args.agent_card.is_some()),
        ("--agent", args.agent.is_some()),
        ("--transport", !args.transport.is_empty()),
        ("--a2a-version", args.a2a_version.is_some()),
        ("--svc-param", !args.svc_param.is_empty()),
    ];
    let Some((flag, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
    let text = format!("{command} asks the hub and not an agent, so {flag} says nothing to it");
    Err(Failure::usage(text).hint(format!("leave out {flag}, and name the hub with --hub URL or FLOTILLA_URL")))
}

impl Log {
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The words that go on after an event, or do the same again if none was shown.
    pub fn words(&self, shown: Option<u64>) -> String {
        let mut words = format!("task log {}", quoted(&self.id));
        for (flag, is_given) in [(" --follow", self.follow), (" --stream", self.stream)] {
            words.push_str(if is_given { flag } else { "" });
        }
        let after = shown.unwrap_or(self.after);
        if after > 0 {
            words.push_str(&format!(" --after {after}"));
        }
        words
    }

    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        only_the_hub("task log", &session.args)?;
        let key = session.sources.value(Setting::Bearer, session.args.bearer.clone());
        let key = key.or_else(|| session.sources.value(Setting::ApiKey, session.args.api_key.clone())).or_else(hub_key);
        let hub = Hub::new(session.net.clone(), &session.hub_url(), key);
        let done = if self.follow { self.follow(session, &hub).await } else { self.pages(session, &hub).await };
        done.map_err(|error| HINTS.failure(error))
    }

    async fn pages(&self, session: &Session, hub: &Hub) -> Result<(), ClientError> {
        let as_one = session.is_json() && !self.stream;
        let mut page = hub.log(&self.id, self.after).await?;
        if page.pruned {
            say(PRUNED);
        }
        show_head(session, &page);
        let (pruned, mut events) = (page.pruned, Vec::new());
        loop {
            if as_one {
                events.append(&mut page.events);
            }
            for entry in &page.events {
                self.print(session, entry.get())?;
            }
            let Some(next) = page.next_after else { break };
            page = hub.log(&self.id, next).await?;
        }
        if as_one {
            let LogPage { task_id, context_id, state, provenance, parent_task_id, .. } = page;
            let whole = Whole { task_id, context_id, state, provenance, parent_task_id, pruned, events };
            let whole = serde_json::to_string(&whole);
            document(&whole.map_err(ClientError::malformed)?);
        }
        Ok(())
    }

    /// The hub closes the stream when the task has ended; a stream that breaks is taken up where it was.
    async fn follow(&self, session: &Session, hub: &Hub) -> Result<(), ClientError> {
        show_head(session, &hub.log(&self.id, NO_EVENTS).await?);
        let mut after = self.after;
        let mut failures = 0;
        loop {
            let problem = match self.some(session, hub, &mut after, &mut failures).await {
                Ok(()) => return Ok(()),
                Err(error) if error.is_passing() && failures < TRIES => error,
                Err(error) => return Err(error),
            };
            failures += 1;
            say(&format!("Stream: {problem}; taking it up again after {after}"));
            tokio::time::sleep(Duration::from_millis(250) * 2u32.pow(failures - 1)).await;
        }
    }

    async fn some(&self, session: &Session, hub: &Hub, after: &mut u64, failures: &mut u32) -> Result<(), ClientError> {
        let mut events = hub.follow_log(&self.id, *after).await?;
        while let Some(event) = events.next().await? {
            let entry = hub::entry(event)?;
            match entry.as_str() {
                "{}" => return Ok(()),
                r#"{"pruned":true}"# => say(PRUNED),
                _ => *after = self.print(session, &entry)?,
            }
            *failures = 0;
        }
        Err(ClientError::Broken("the hub closed the log before the task ended".into()))
    }

    /// Prints one entry; its number.
    fn print(&self, session: &Session, json: &str) -> Result<u64, ClientError> {
        let entry: Entry = serde_json::from_str(json).map_err(ClientError::malformed)?;
        if session.is_json() {
            compact(json);
        } else {
            readable(&entry, session.verbose).print();
        }
        session.watch.printed();
        session.watch.is_about(&self.id, self.words(Some(entry.seq)));
        if let Event::Status { state, .. } = &entry.event {
            session.watch.saw_task(&self.id, Some(state.name()));
        }
        Ok(entry.seq)
    }
}

/// Whose log it is, and where the task stands.
fn show_head(session: &Session, page: &LogPage) {
    session.watch.saw_task(&page.task_id, TaskState::from_name(&page.state).map(TaskState::name));
    if !session.is_json() {
        let mut text = Text::default();
        text.field("Task", &page.task_id).field("Context", &page.context_id).field("State", &page.state);
        text.field("Provenance", &page.provenance).field("Parent", page.parent_task_id.as_deref().unwrap_or_default());
        text.gap().print();
    }
}

/// `Event: SEQ TIME kind …`, then what was said.
fn readable(entry: &Entry, verbose: bool) -> Text {
    let mut text = Text::default();
    let (what, about) = summary(&entry.event);
    let hidden = if entry.for_peers || !verbose { "" } else { " (hidden from peers)" };
    text.field("Event", format!("{} {} {what}{hidden} {about}", entry.seq, entry.at).trim_end());
    match &entry.event {
        Event::Asked { message, .. } => text.plain(&message.parts),
        Event::Answered { said } | Event::Status { said: Some(said), .. } if said.blocks.is_empty() => {
            text.plain(&said.message.parts)
        }
        Event::Answered { said } | Event::Status { said: Some(said), .. } => text.contents(&said.blocks),
        Event::Produced { chunk } if chunk.blocks.is_empty() => text.plain(&chunk.artifact.parts),
        Event::Produced { chunk } => text.contents(&chunk.blocks),
        Event::Noted { blocks, .. } => text.contents(blocks),
        _ => &mut text,
    };
    text
}

fn summary(event: &Event) -> (&'static str, String) {
    match event {
        Event::Descended { origin, deadline } => ("descended", descent(origin.as_deref(), *deadline)),
        Event::Asked { message, origin: None, .. } => ("asked", message.message_id.clone()),
        Event::Asked { message, origin, .. } => {
            ("asked", format!("{} ({})", message.message_id, descent(origin.as_deref(), None)))
        }
        Event::Opened {} => ("opened", String::new()),
        Event::Answered { .. } => ("answered", String::new()),
        Event::Status { state, .. } => ("status", state.name().to_owned()),
        Event::Produced { chunk } => {
            let artifact = &chunk.artifact;
            let name = if artifact.name.is_empty() { &artifact.artifact_id } else { &artifact.name };
            (if chunk.append { "artifact, more of" } else { "artifact" }, name.clone())
        }
        Event::Noted { .. } => ("noted", String::new()),
        Event::RunQueued { run } => ("queued", format!("run {run}")),
        Event::RunStarted { run } => ("started", format!("run {run}")),
        Event::TakenUp { run } => ("taken up", format!("run {run}")),
        Event::Linked { run, upstream, .. } => {
            ("linked", format!("run {run}: the agent's task '{}', context '{}'", upstream.task, upstream.context))
        }
        Event::Received { run, id, .. } if !id.is_empty() => ("received", format!("run {run}: what it told as '{id}'")),
        Event::Received { run, number, .. } => ("received", format!("run {run}: report {number} of its worker")),
        Event::StopAsked { run } => ("asked to stop", format!("run {run}")),
        Event::RunLost { run, reason } => ("lost", format!("run {run}: {reason}")),
        Event::ApprovalAsked { id, request, .. } => ("asks leave", asked(id, request)),
        Event::ApprovalSettled { id, state, by, note, .. } => {
            let note = if note.is_empty() { String::new() } else { format!(": {note}") };
            (state.name(), format!("{id} by {by}{note}"))
        }
        Event::Routed { run, step } => ("routed", format!("run {run}: {}", super::why::summary(step))),
        Event::NearLimit { limit, used, most } => ("near a limit", format!("{limit}: {used} of {most}")),
    }
}

/// The tool, what it is to be used with, and what is asked in words, as far as they are told.
fn asked(id: &str, request: &ApprovalRequest) -> String {
    let input = request.input.as_ref().map(|input| input.text()).unwrap_or_default();
    [id, &request.tool, input, &request.text].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// `a2a-remote hops 2 from HUB/AGENT TASK, deadline TIME, trace ID`, as far as it is known.
fn descent(origin: Option<&Origin>, deadline: Option<Millis>) -> String {
    let told = origin.map(|origin| format!("{} hops {}", origin.provenance.name(), origin.hops));
    let mut told: Vec<String> = told.into_iter().collect();
    if let Some(Ancestor { hub, agent, task }) = origin.and_then(Origin::parent) {
        told.push(format!("from {hub}/{agent} {task}").trim_end().to_owned());
    }
    told.extend(deadline.map(|deadline| format!("deadline {deadline}")));
    told.extend(origin.and_then(|origin| origin.trace.as_ref()).map(|trace| format!("trace {}", trace.id)));
    told.join(", ")
}

impl Text {
    fn contents(&mut self, blocks: &[Block]) -> &mut Self {
        for block in blocks {
            self.content(block);
        }
        self
    }

    /// A content block in human form.
    fn content(&mut self, block: &Block) -> &mut Self {
        let value: serde_json::Value = serde_json::from_str(block.json().text()).unwrap_or_default();
        let word = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        match block.kind() {
            Kind::Text => self.block("Text", &word("text")),
            Kind::Thinking => self.block("Thinking", &word("thinking")),
            Kind::RedactedThinking => self.field("Thinking", "(redacted by the model)"),
            Kind::ToolUse | Kind::ServerToolUse => {
                self.field("Tool call", &format!("{} ({})", word("name"), word("id")));
                self.block("Input", &serde_json::to_string_pretty(&value["input"]).unwrap_or_default())
            }
            Kind::ToolResult | Kind::WebSearchToolResult => {
                let failed = if value["is_error"].as_bool() == Some(true) { ", failed" } else { "" };
                self.field("Tool result", &format!("{}{failed}", word("tool_use_id")));
                self.block("Output", &output(&value["content"]))
            }
            Kind::Usage => self.field("Usage", &usage(&value)),
            Kind::Progress => {
                let total = if value["total"].is_null() { String::new() } else { format!(" of {}", value["total"]) };
                self.field("Progress", format!("{}{total} {}", value["progress"], word("message")).trim_end())
            }
            _ => match block.to_part() {
                Some(part) => self.plain(&[part]),
                None => self.block("Content", &super::pretty::pretty(block.json().text())),
            },
        }
    }
}

/// A tool's output: its texts, or the JSON it is.
fn output(content: &serde_json::Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let texts: Option<Vec<&str>> =
        content.as_array().and_then(|list| list.iter().map(|item| item["text"].as_str()).collect());
    texts.map_or_else(|| serde_json::to_string_pretty(content).unwrap_or_default(), |texts| texts.join("\n"))
}

/// The counters of a usage block, one after the other.
fn usage(value: &serde_json::Value) -> String {
    let members = value.as_object().into_iter().flatten().filter(|(name, _)| *name != "type");
    members.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}
