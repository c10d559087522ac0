//! A look at a task that waits for its caller: whether the agent has gone on with it by itself.

use super::Remote;
use super::seen::{apart, says};
use crate::client::Client;
use crate::client::choose::Dialect;
use crate::client::error::ClientError;
use crate::client::frame::Sent;
use flotilla_core::ports::{Look, Waiting};
use flotilla_protocol::a2a::model::{Artifact, Message, Role, TaskState, TaskStatus};
use flotilla_protocol::held::{Compared, Held};
use flotilla_protocol::work::Waits;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Questions and streams of one agent at once that are only to see whether something moves.
const QUESTIONS: usize = 8;
const STREAMS: usize = 16;
/// How long after a task was asked for because of a chunk the next chunk is no reason to.
const AGAIN: Duration = Duration::from_secs(1);

pub struct Lookers {
    questions: Semaphore,
    streams: Semaphore,
}

impl Default for Lookers {
    fn default() -> Self {
        Self { questions: Semaphore::new(QUESTIONS), streams: Semaphore::new(STREAMS) }
    }
}

impl Remote {
    /// Asks for the task, and follows its stream as long as that brings nothing new.
    pub(super) async fn look_at(&self, waiting: Waiting) -> Look {
        if waiting.upstream.task.is_empty() || waiting.waited >= self.options.times.whole {
            return Look::Over;
        }
        let Ok(client) = self.client_for(&waiting.lineage).await else { return Look::Still };
        match self.shows_news(&client, &waiting).await {
            Ok(true) => Look::Moved,
            Ok(false) if may_subscribe(&client) => self.streams_news(&client, &waiting).await,
            Ok(false) => Look::Still,
            Err(error) => {
                if matches!(error, ClientError::AuthFailed { .. } | ClientError::CredentialsMissing { .. }) {
                    self.way.drop_token().await;
                }
                Look::Still
            }
        }
    }

    async fn shows_news(&self, client: &Client, waiting: &Waiting) -> Result<bool, ClientError> {
        let _turn = self.lookers.questions.acquire().await;
        let upstream = &waiting.upstream;
        let task = client.task(client.asking(&upstream.task, &upstream.context)).await?.value;
        Ok(is_news(waiting, &Sent::Task(Box::new(task))))
    }

    async fn streams_news(&self, client: &Client, waiting: &Waiting) -> Look {
        // Those who find no place ask again later.
        let Ok(_place) = self.lookers.streams.try_acquire() else { return Look::Still };
        let Ok(mut frames) = client.subscribe(&waiting.upstream.task, None).await else { return Look::Still };
        let mut asked: Option<Instant> = None;
        while let Ok(Ok(Some(frame))) = tokio::time::timeout(self.options.times.idle, frames.next()).await {
            let is_new = match &frame.sent {
                // Some show each reader all there was, chunk by chunk, so the task itself says whether it is new.
                Sent::Artifact(_) if asked.is_some_and(|at| at.elapsed() < AGAIN) => false,
                Sent::Artifact(_) => {
                    asked = Some(Instant::now());
                    self.shows_news(client, waiting).await.unwrap_or(false)
                }
                sent => is_news(waiting, sent),
            };
            if is_new {
                return Look::Moved;
            }
        }
        Look::Still
    }
}

/// The usual server of 0.3 adds what it streams to a second reader to its own task once more, so such a task is asked
/// for instead.
pub fn may_subscribe(client: &Client) -> bool {
    client.streams() && client.dialect() == Dialect::Current
}

fn is_news(waiting: &Waiting, sent: &Sent) -> bool {
    let task = &waiting.upstream.task;
    let unnoted = || Waits { state: waiting.state, at: None, said: String::new() };
    let waits = waiting.upstream.waits.clone().unwrap_or_else(unnoted);
    match sent {
        Sent::Task(told) => {
            let is_current = told.id == *task && !waits.is_after(&told.status);
            is_current && (has_moved(waiting, &told.status) || has_more(waiting, told.artifacts.as_deref()))
        }
        Sent::Status(update) => {
            let is_late = waits.is_later_than(&update.status);
            update.task_id == *task && !is_late && has_moved(waiting, &update.status)
        }
        Sent::Message(_) => true,
        Sent::Artifact(_) => false,
    }
}

/// Another state, or another question. Times and ids alone do not say so: some make them up with each answer.
fn has_moved(waiting: &Waiting, status: &TaskStatus) -> bool {
    if status.state != waiting.state {
        return status.state != TaskState::Unspecified;
    }
    let asks = |message: &&Arc<Message>| message.role != Role::User && says(message);
    let Some(asks) = status.message.as_ref().filter(asks) else { return false };
    let noted = waiting.upstream.waits.as_ref().map_or("", |waits| waits.said.as_str());
    let is_noted = !noted.is_empty() && noted == asks.message_id;
    !is_noted && waiting.said.as_ref().is_none_or(|said| said.parts != asks.parts)
}

/// An artifact that was given, or has grown, while the task waits. Ids alone do not say so, nor does what is in one: both
/// may be made up with each answer.
fn has_more(waiting: &Waiting, shown: Option<&[Arc<Artifact>]>) -> bool {
    let shown = apart::artifacts(shown.unwrap_or_default().to_vec());
    let told = |artifact: &Arc<Artifact>| waiting.artifacts.get(&artifact.artifact_id);
    let has_grown = |artifact: &Arc<Artifact>| {
        told(artifact).is_some_and(|held| matches!(held.compare(&Held::of(&artifact.parts)), Compared::Longer(_)))
    };
    let has_another = shown.len() > waiting.artifacts.len() && shown.iter().any(|artifact| told(artifact).is_none());
    // One without parts is an error, which is told when the task goes on.
    let is_usable = shown.iter().all(|artifact| !artifact.parts.is_empty());
    is_usable && (has_another || shown.iter().any(has_grown))
}

#[cfg(test)]
mod tests {
    use super::{Waiting, is_news};
    use flotilla_protocol::a2a::model::{Part, TaskState};
    use flotilla_protocol::held::Held;
    use flotilla_protocol::lineage::{Ancestor, Lineage, SpanId, Trace, TraceId};
    use flotilla_protocol::work::{Upstream, Waits};
    use serde_json::{Value, json};
    use std::collections::HashMap;
    use std::sync::Arc;
    use std::time::Duration;

    fn question(id: &str, text: &str) -> Value {
        json!({"messageId": id, "role": "ROLE_AGENT", "parts": [{"text": text}]})
    }

    fn waiting() -> Waiting {
        let waits = Waits { state: TaskState::AuthRequired, at: None, said: "q-1".into() };
        let upstream = Upstream { task: "t".into(), waits: Some(waits), ..Upstream::default() };
        let said = Some(serde_json::from_value(question("q-1", "login")).unwrap());
        let known = Held::of(&[Part::text("x")]);
        let artifacts = Arc::new(HashMap::from([("known".to_owned(), known)]));
        let here = Ancestor { hub: "h".into(), agent: "a".into(), task: "ours".into() };
        let trace = Trace::begun(TraceId::of([1; 16]).unwrap(), SpanId::of(1).unwrap());
        let lineage = Lineage { here, origin: None, deadline: None, trace };
        Waiting { upstream, lineage, state: TaskState::AuthRequired, said, artifacts, waited: Duration::ZERO }
    }

    #[test]
    fn another_state_or_another_question_is_news() {
        let status = |state: &str, said: Value| json!({"state": format!("TASK_STATE_{state}"), "message": said});
        let stamped = |mut status: Value| {
            status["timestamp"] = json!("2026-01-31T12:00:00Z");
            status
        };
        for (status, expected) in [
            (status("AUTH_REQUIRED", question("q-1", "login")), false),
            (stamped(status("AUTH_REQUIRED", question("q-1", "login"))), false),
            (status("AUTH_REQUIRED", question("made up", "login")), false),
            (status("AUTH_REQUIRED", question("q-1", "what the hub did not put there")), false),
            (status("AUTH_REQUIRED", json!(null)), false),
            (status("AUTH_REQUIRED", json!({"messageId": "u", "role": "ROLE_USER", "parts": [{"text": "x"}]})), false),
            (json!({}), false),
            (status("AUTH_REQUIRED", json!({"messageId": "made up", "role": "ROLE_AGENT", "parts": []})), false),
            (status("AUTH_REQUIRED", question("q-2", "login elsewhere")), true),
            (status("INPUT_REQUIRED", question("q-1", "login")), true),
            (status("WORKING", json!(null)), true),
            (status("COMPLETED", json!(null)), true),
        ] {
            for frame in [
                json!({"task": {"id": "t", "status": status}}),
                json!({"statusUpdate": {"taskId": "t", "status": status}}),
            ] {
                let sent = serde_json::from_value(frame.clone()).unwrap();
                assert_eq!(is_news(&waiting(), &sent), expected, "{frame}");
            }
            let other = json!({"task": {"id": "another", "status": status}});
            assert!(!is_news(&waiting(), &serde_json::from_value(other).unwrap()));
        }
    }

    #[test]
    fn an_artifact_more_is_news_and_one_under_another_id_is_not() {
        for (shown, expected) in [
            (&[("known", "x")][..], false),
            (&[("made up", "x")], false),
            (&[("known", "made up")], false),
            (&[], false),
            (&[("known", "x y")], true),
            (&[("known", "x"), ("known", "y")], true),
            (&[("known", "x"), ("new", "y")], true),
            (&[("known", "x"), ("new", "")], false),
        ] {
            let part = |text: &str| json!({"text": text});
            let parts = |texts: &str| texts.split_whitespace().map(part).collect::<Vec<Value>>();
            let artifacts: Vec<Value> =
                shown.iter().map(|(id, texts)| json!({"artifactId": id, "parts": parts(texts)})).collect();
            let status = json!({"state": "TASK_STATE_AUTH_REQUIRED"});
            let frame = json!({"task": {"id": "t", "status": status, "artifacts": artifacts}});
            let sent = serde_json::from_value(frame).unwrap();
            assert_eq!(is_news(&waiting(), &sent), expected, "{shown:?}");
        }
    }

    #[test]
    fn what_an_agent_shows_from_before_the_wait_is_none() {
        let (before, after) = (json!("2026-01-31T11:59:59Z"), json!("2026-01-31T12:00:01Z"));
        let (at, never) = (json!("2026-01-31T12:00:00Z"), json!(null));
        for (waits, asked_at, shown, shown_at, in_task, in_update) in [
            ("INPUT_REQUIRED", &at, "WORKING", &before, false, false),
            ("INPUT_REQUIRED", &at, "WORKING", &at, false, true),
            ("INPUT_REQUIRED", &at, "WORKING", &never, false, true),
            ("INPUT_REQUIRED", &at, "WORKING", &after, true, true),
            ("INPUT_REQUIRED", &at, "AUTH_REQUIRED", &before, false, false),
            ("INPUT_REQUIRED", &at, "COMPLETED", &before, true, true),
            ("INPUT_REQUIRED", &never, "WORKING", &never, false, true),
            ("INPUT_REQUIRED", &never, "COMPLETED", &never, true, true),
            ("AUTH_REQUIRED", &at, "WORKING", &never, false, true),
            ("AUTH_REQUIRED", &at, "WORKING", &after, true, true),
            ("AUTH_REQUIRED", &never, "SUBMITTED", &never, false, true),
            ("AUTH_REQUIRED", &never, "WORKING", &never, true, true),
        ] {
            let status = |state: &str, at: &Value| json!({"state": format!("TASK_STATE_{state}"), "timestamp": at});
            let mut waiting = waiting();
            waiting.upstream.waits = Waits::of(&serde_json::from_value(status(waits, asked_at)).unwrap());
            waiting.state = waiting.upstream.waits.as_ref().unwrap().state;
            let shown = status(shown, shown_at);
            for (frame, expected) in [
                (json!({"task": {"id": "t", "status": shown}}), in_task),
                (json!({"statusUpdate": {"taskId": "t", "status": shown}}), in_update),
            ] {
                let sent = serde_json::from_value(frame.clone()).unwrap();
                assert_eq!(is_news(&waiting, &sent), expected, "after {waits} at {asked_at}: {frame}");
            }
        }
    }
}
