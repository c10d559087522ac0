//! `flotilla send`: a message to an agent, and what comes of it.

use super::args::{ClientArgs, switch};
use super::asking::{self, Pace};
use super::failure::Failure;
use super::follow::{self, Printed};
use super::output::{Text, compact, document, warn};
use super::parts::Parts;
use super::render::Detail;
use super::session::{Session, quoted};
use super::settings::Setting;
use clap::Args;
use flotilla_outbound::client::follow::Follow;
use flotilla_outbound::client::frame::Sent;
use flotilla_outbound::client::{Answer, Client};
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::model::{Message, Role};
use flotilla_protocol::a2a::request::{SendMessageConfiguration, SendMessageRequest};
use flotilla_protocol::wire::{Json, Object};

#[derive(Debug, Args)]
pub struct Send {
    #[command(flatten)]
    parts: Parts,
    /// Go on with this task: answer what it asks
    #[arg(long, value_name = "ID", help_heading = "Which conversation")]
    task_id: Option<String>,
    /// Start a new task in this context
    #[arg(long, value_name = "ID", help_heading = "Which conversation")]
    context_id: Option<String>,
    /// Metadata of the request, a JSON object
    #[arg(long, value_name = "JSON", help_heading = "Which conversation")]
    metadata: Option<String>,
    /// Print events as they come; with -o json one JSON object a line
    #[arg(long, help_heading = "How to wait", conflicts_with_all = ["async", "wait"])]
    stream: bool,
    /// Do not wait: print the task as soon as it exists
    #[arg(
        long, visible_aliases = ["return-immediately", "no-wait"], value_name = "BOOL", help_heading = "How to wait",
        num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true,
        value_parser = switch!()
    )]
    r#async: Option<bool>,
    /// Wait until the task ends or asks for something (this is the default)
    #[arg(long, help_heading = "How to wait", conflicts_with = "async")]
    wait: bool,
    /// How often to look where the agent does not stream
    #[arg(long, value_name = "TIME", help_heading = "How to wait")]
    poll_interval: Option<String>,
    #[command(flatten)]
    pub client: ClientArgs,
}

impl Send {
    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        for (flag, given) in [("--task-id", &self.task_id), ("--context-id", &self.context_id)] {
            if given.as_ref().is_some_and(|given| given.trim().is_empty()) {
                let text = format!("{flag} is empty: name one, or leave the flag out to begin anew");
                return Err(Failure::usage(text));
            }
        }
        let continues = session.sources.value(Setting::TaskId, self.task_id.clone());
        let request = self.request(session, continues.as_deref())?;
        let flag = if self.wait { Some(false) } else { self.r#async };
        let at_once = !self.stream && session.sources.truth(Setting::Async, flag)?;
        let pace = Pace::of(session, self.poll_interval.clone())?;
        let client = session.client().await?;
        request.message.iter().for_each(|message| session.watch.sends(&client, message));
        let done = if at_once {
            send_at_once(&client, request, session).await
        } else if self.stream {
            stream(&client, request, session, pace).await
        } else {
            wait(&client, request, session, pace).await
        };
        // A rejected identifier is told as it is; no new task is made in its place.
        match (done, continues) {
            (Err(failure), Some(task)) if failure.is_refused(Reason::UnsupportedOperation) => {
                Err(after_the_end(session, &client, &task, failure).await)
            }
            (Err(failure), Some(_)) if failure.is_protocol() => {
                Err(failure.and_hint("--debug shows the agent's own words"))
            }
            (done, _) => done,
        }
    }

    fn request(&self, session: &Session, task: Option<&str>) -> Result<SendMessageRequest, Failure> {
        let context = session.sources.value(Setting::ContextId, self.context_id.clone());
        let message = Message {
            message_id: uuid::Uuid::new_v4().to_string(),
            role: Role::User,
            parts: self.parts.read()?,
            task_id: task.unwrap_or_default().to_owned(),
            context_id: context.unwrap_or_default(),
            ..Message::default()
        };
        let metadata = metadata(session, self.metadata.clone())?;
        Ok(SendMessageRequest { message: Some(message), metadata, ..SendMessageRequest::default() })
    }
}

/// A task that has ended takes no more; another can be begun beside it.
async fn after_the_end(session: &Session, client: &Client, id: &str, failure: Failure) -> Failure {
    let ended = client.task(asking::request(id, Some(0))).await.map(|answer| answer.value);
    let ended = ended.ok().filter(|task| task.status.state.is_terminal() && !task.context_id.is_empty());
    let failure = match ended {
        Some(task) => {
            let again = session.command(&format!("send --context-id {} \"<message>\"", quoted(&task.context_id)));
            failure.hint(format!("the task has ended; begin another in its context with: {again}"))
        }
        None => failure,
    };
    failure.and_hint("--debug shows the agent's own words")
}

/// `--metadata` as the object it must be.
pub fn metadata(session: &Session, flag: Option<String>) -> Result<Option<Object>, Failure> {
    let said = session.sources.said(Setting::Metadata, flag.is_some());
    let Some(text) = session.sources.value(Setting::Metadata, flag) else { return Ok(None) };
    let wrong = || Failure::usage(format!("{said} takes a JSON object, such as '{{\"key\":\"value\"}}'"));
    let json = Json::new(text.trim().to_owned()).map_err(|_| wrong())?;
    if json.text().starts_with('{') { Ok(Some(Object(json))) } else { Err(wrong()) }
}

async fn send_at_once(client: &Client, request: SendMessageRequest, session: &Session) -> Result<(), Failure> {
    let configuration = SendMessageConfiguration { return_immediately: true, ..Default::default() };
    let request = SendMessageRequest { configuration: Some(configuration), ..request };
    show(session, &answered(session, client, request).await?);
    Ok(())
}

async fn answered(session: &Session, client: &Client, request: SendMessageRequest) -> Result<Answer<Sent>, Failure> {
    client.send(request).await.map_err(|error| follow::unanswered(session, error))
}

async fn streamed<'a>(
    session: &Session,
    client: &'a Client,
    request: SendMessageRequest,
) -> Result<Follow<'a>, Failure> {
    let opened = client.send_streaming(request).await;
    opened.map(|stream| Follow::new(client, stream)).map_err(|error| follow::unanswered(session, error))
}

/// Waits over a stream where the agent has one, else over its answer; either way by asking when that falls short.
async fn wait(client: &Client, request: SendMessageRequest, session: &Session, pace: Pace) -> Result<(), Failure> {
    let sent = if client.card().capabilities.streaming {
        follow::to_the_end(session, client, streamed(session, client, request).await?, Printed::Nothing, pace).await?
    } else {
        let sent = answered(session, client, request).await?;
        session.watch.saw(&sent.value);
        follow::settled(session, client, sent, pace).await?
    };
    show(session, &sent);
    Ok(())
}

async fn stream(client: &Client, request: SendMessageRequest, session: &Session, pace: Pace) -> Result<(), Failure> {
    if !client.card().capabilities.streaming {
        warn("the agent does not stream; waiting for its answer instead");
        let sent = answered(session, client, request).await?;
        let sent = follow::settled(session, client, sent, pace).await?;
        if session.is_json() {
            compact(&sent.json);
            follow::warn_of_outcome(&sent.value);
        } else {
            show(session, &sent);
        }
        return Ok(());
    }
    let follow = streamed(session, client, request).await?;
    let last = follow::to_the_end(session, client, follow, Printed::Events, pace).await?;
    follow::print_hints(session, &last.value);
    Ok(())
}

/// The result, once.
pub fn show(session: &Session, sent: &Answer<Sent>) {
    if session.is_json() {
        document(&sent.json);
        follow::warn_of_outcome(&sent.value);
        return;
    }
    let mut text = Text::default();
    text.sent(&sent.value, Detail { verbose: session.verbose, history: session.verbose });
    text.field("Resume", &resume(session, &sent.value)).print();
    follow::warn_of_outcome(&sent.value);
}

/// The command that goes on from here.
pub fn resume(session: &Session, sent: &Sent) -> String {
    let (task, context) = sent.ids();
    match sent.state() {
        Some(state) if state.is_interrupted() => {
            session.command(&format!("send --task-id {} \"<reply>\"", quoted(task)))
        }
        Some(state) if !state.is_terminal() => session.command(&format!("task get --wait {}", quoted(task))),
        _ if !context.is_empty() => session.command(&format!("send --context-id {} \"<message>\"", quoted(context))),
        _ => String::new(),
    }
}
