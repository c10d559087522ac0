//! Waiting for a task: over its stream while that holds, by asking when it does not.

use super::failure::Failure;
use super::output::{Text, compact, say, warn};
use super::render::Detail;
use super::send::resume;
use super::session::Session;
use super::settings::Setting;
use flotilla_outbound::client::fold::Fold;
use flotilla_outbound::client::follow::{Follow, Next};
use flotilla_outbound::client::frame::{Frame, Sent};
use flotilla_outbound::client::{Answer, Client};
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::a2a::request::GetTaskRequest;
use std::time::Duration;

/// A task that does not change is asked about ever less often, down to this many intervals between.
const SLOWEST: u32 = 5;
/// Asking fails for good after so many failures in a row.
const TRIES: u32 = 5;

/// How often to ask.
#[derive(Debug, Clone, Copy)]
pub struct Pace(Duration);

pub fn pace(session: &Session, flag: Option<String>) -> Result<Pace, Failure> {
    let interval = session.sources.length(Setting::PollInterval, flag)?.unwrap_or_default();
    if interval < Duration::from_millis(10) {
        return Err(Failure::usage("--poll-interval must be at least 10ms").hint("such as --poll-interval 2s"));
    }
    Ok(Pace(interval))
}

/// What is printed while waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Printed {
    Events,
    Nothing,
}

/// Follows until the task ends or waits for its caller; gives the whole task, or the one message.
pub async fn to_the_end(
    session: &Session,
    client: &Client,
    mut follow: Follow<'_>,
    printed: Printed,
    pace: Pace,
) -> Result<Answer<Sent>, Failure> {
    let mut task = String::new();
    let mut fold = Fold::default();
    let mut is_last = false;
    loop {
        let frame = match follow.next().await {
            Ok(Next::Frame(frame)) => frame,
            Ok(Next::Again { problem }) => {
                say(&format!("Stream: {problem}; taking it up again"));
                continue;
            }
            Ok(Next::End) if !task.is_empty() => break,
            Ok(Next::End) => return Err(Failure::internal("the agent's stream ended without an event")),
            Err(error) if task.is_empty() => return Err(error.into()),
            Err(error) => {
                say(&format!("Stream: {error}; asking for the task every {} instead", crate::config::Span(pace.0)));
                break;
            }
        };
        session.watch.saw(&frame.sent);
        frame.sent.ids().0.clone_into(&mut task);
        fold.take(&frame.sent);
        is_last = frame.sent.is_last();
        if printed == Printed::Events {
            print(session, &frame);
        }
        if is_last && (printed == Printed::Events || matches!(frame.sent, Sent::Message(_))) {
            return Ok(Answer { value: frame.sent, json: frame.json });
        }
    }
    let last = match (ask(session, client, &task, None, pace).await, fold.task().filter(|_| is_last)) {
        (Ok(last), _) => last,
        // The agent streamed the task to its end, and does not keep it.
        (Err(failure), Some(folded)) if failure.is_protocol() => {
            let json = serde_json::to_string(&folded).map_err(|error| Failure::internal(error.to_string()))?;
            Answer { value: folded, json }
        }
        (Err(failure), _) => return Err(failure),
    };
    let whole = Answer { json: format!("{{\"task\":{}}}", last.json), value: Sent::Task(Box::new(last.value)) };
    if printed == Printed::Events {
        print(session, &Frame { id: None, sent: whole.value.clone(), json: whole.json.replace(['\n', '\r'], " ") });
    }
    Ok(whole)
}

fn print(session: &Session, frame: &Frame) {
    session.watch.hush();
    if session.is_json() {
        return compact(&frame.json);
    }
    let mut text = Text::default();
    text.sent(&frame.sent, Detail { verbose: session.verbose, history: false }).gap().print();
}

/// An answer that is final, or what becomes of it.
pub async fn settled(
    session: &Session,
    client: &Client,
    sent: Answer<Sent>,
    pace: Pace,
) -> Result<Answer<Sent>, Failure> {
    session.watch.saw(&sent.value);
    if sent.value.is_last() {
        return Ok(sent);
    }
    let last = ask(session, client, sent.value.ids().0, None, pace).await?;
    Ok(Answer { json: format!("{{\"task\":{}}}", last.json), value: Sent::Task(Box::new(last.value)) })
}

/// Asks for the task until it has ended or waits for its caller.
pub async fn ask(
    session: &Session,
    client: &Client,
    id: &str,
    history: Option<i32>,
    pace: Pace,
) -> Result<Answer<flotilla_protocol::a2a::model::Task>, Failure> {
    let mut pause = pace.0;
    let mut failures = 0;
    let mut before: Option<TaskState> = None;
    loop {
        match client.task(request(id, history)).await {
            Ok(answer) => {
                failures = 0;
                let state = answer.value.status.state;
                session.watch.saw_whole(&answer.value);
                if state.is_settled() {
                    return Ok(answer);
                }
                pause = if before == Some(state) { (pause * 3 / 2).min(pace.0 * SLOWEST) } else { pace.0 };
                before = Some(state);
            }
            Err(error) if error.is_passing() && failures < TRIES => {
                failures += 1;
                say(&format!("Asking: {error}; trying again"));
                pause = (pause * 2).min(pace.0 * SLOWEST);
            }
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(pause).await;
    }
}

pub fn request(id: &str, history: Option<i32>) -> GetTaskRequest {
    let history_length = history.map(flotilla_protocol::wire::Int32);
    GetTaskRequest { id: id.to_owned(), history_length, ..GetTaskRequest::default() }
}

/// The command did its work; that the task did not do its own, or waits, is worth a word.
pub fn warn_of_outcome(sent: &Sent) {
    if let Some(state) = sent.state() {
        warn_of_state(state);
    }
}

pub fn warn_of_state(state: TaskState) {
    match state {
        TaskState::Failed | TaskState::Rejected | TaskState::Canceled => {
            warn(&format!("the task ended as {}", state.name()));
        }
        TaskState::InputRequired => warn("the task waits for your reply (TASK_STATE_INPUT_REQUIRED)"),
        TaskState::AuthRequired => warn("the task waits for you to authenticate (TASK_STATE_AUTH_REQUIRED)"),
        _ => {}
    }
}

/// After a stream: how to go on.
pub fn print_hints(session: &Session, last: &Sent) {
    if !session.is_json() {
        Text::default().field("Resume", &resume(session, last)).print();
    }
    warn_of_outcome(last);
}
