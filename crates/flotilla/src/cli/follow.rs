//! Waiting for a task: over its stream while that holds, by asking when it does not.

use super::asking::{Asking, Look, Pace};
use super::failure::Failure;
use super::output::{Text, compact, say, warn};
use super::render::Detail;
use super::send::resume;
use super::session::Session;
use flotilla_outbound::client::error::ClientError;
use flotilla_outbound::client::fold::Fold;
use flotilla_outbound::client::follow::{Follow, Next};
use flotilla_outbound::client::frame::{Frame, Sent};
use flotilla_outbound::client::{Answer, Client};
use flotilla_protocol::a2a::model::{Task, TaskState};

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
    let mut fold = Fold::default();
    let mut is_last = false;
    let mut asking: Option<Asking<'_>> = None;
    let settled = loop {
        let frame = match follow.next().await {
            Ok(Next::Frame(frame)) => frame,
            Ok(Next::Again { problem }) => {
                say(&format!("Stream: {problem}; taking it up again"));
                continue;
            }
            Ok(Next::End) if is_last => break None,
            Ok(Next::Lost { .. } | Next::End) if follow.task_id().is_empty() => {
                return Err(Failure::internal("the agent's stream ended without an event"));
            }
            Ok(next @ (Next::Lost { .. } | Next::End)) => {
                if let Next::Lost { problem } = next {
                    say(&format!("Stream: {problem}; asking for the task every {pace} until it is there again"));
                }
                let asking = asking.get_or_insert_with(|| Asking::new(client, follow.task_id(), None, pace));
                match meanwhile(session, &mut follow, asking).await? {
                    Some(settled) => break Some(settled),
                    None => continue,
                }
            }
            Err(error @ ClientError::Broken(_)) if follow.task_id().is_empty() => {
                return Err(unanswered(session, error));
            }
            Err(error) if follow.task_id().is_empty() => return Err(error.into()),
            Err(error) => {
                say(&format!("Stream: {error}; asking for the task every {pace} instead"));
                break None;
            }
        };
        asking = None;
        session.watch.saw(&frame.sent);
        fold.take(&frame.sent);
        is_last = frame.sent.is_last();
        if printed == Printed::Events {
            print(session, &frame);
        }
        if is_last && (printed == Printed::Events || matches!(frame.sent, Sent::Message(_))) {
            return Ok(Answer { value: frame.sent, json: frame.json });
        }
    };
    session.watch.speak();
    let asked = match settled {
        Some(settled) => Ok(settled),
        None => Asking::new(client, follow.task_id(), None, pace).until_the_end(session).await,
    };
    let last = match (asked, fold.task().filter(|_| is_last)) {
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

/// Why nothing was answered. What was on its way then may have come to the agent all the same.
pub fn unanswered(session: &Session, error: ClientError) -> Failure {
    let may_be_there = matches!(error, ClientError::Unreachable { .. } | ClientError::Broken(_));
    let failure = Failure::from(error);
    if !may_be_there {
        return failure;
    }
    let list = session.command("task list");
    failure.and_hint(&format!("what was sent may have been taken: {list} shows your tasks"))
}

/// Asks for the task while its stream is away: until the stream is there again, or the task has ended or waits, which is
/// given. Whoever answers may stream again, and where the agent gives event ids it has kept what was missed.
async fn meanwhile(
    session: &Session,
    follow: &mut Follow<'_>,
    asking: &mut Asking<'_>,
) -> Result<Option<Answer<Task>>, Failure> {
    session.watch.speak();
    loop {
        match asking.look(session).await? {
            Look::Settled(task) => {
                let is_worth_it = follow.has_cursor() && asking.is_first_end();
                let is_back = is_worth_it && follow.retry().await.is_ok();
                return Ok((!is_back).then_some(*task));
            }
            Look::Going => match follow.retry().await {
                Ok(()) => return Ok(None),
                Err(error) if error.is_passing() => {}
                Err(error) => {
                    say(&format!("Stream: {error}; asking for the task alone"));
                    return asking.until_the_end(session).await.map(Some);
                }
            },
            Look::Unanswered => {}
        }
        asking.rest().await;
    }
}

fn print(session: &Session, frame: &Frame) {
    session.watch.printed();
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
    let last = Asking::new(client, sent.value.ids().0, None, pace).until_the_end(session).await?;
    Ok(Answer { json: format!("{{\"task\":{}}}", last.json), value: Sent::Task(Box::new(last.value)) })
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
