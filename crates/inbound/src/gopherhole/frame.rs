//! A message in a frame of its own, which may come again: after a cut its sender cannot know whether it was taken.

use super::{News, conversation, post_to};
use crate::app::App;
use flotilla_core::caller::Caller;
use flotilla_core::error::Error;
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::model::{Role, Task};
use flotilla_protocol::a2a::request::{SendMessageConfiguration, SendMessageRequest, TTL};
use flotilla_protocol::gopherhole;
use flotilla_protocol::hub_frame::{FrameId, Sending};
use flotilla_protocol::lineage::Trace;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Whoever sends again does so by then. The same id after that is a number that was used anew.
const AGAIN_WITHIN: Duration = Duration::from_secs(600);

/// What came of a message.
pub struct Sent {
    pub task: Task,
    /// How the task is shown.
    pub shown: Value,
    /// The same was sent before: nothing was done now.
    pub repeated: bool,
    pub news: Option<News>,
}

/// Sends a message. It is known by its own `messageId`, or else by the frame's id, as far as that can mean the same one.
pub async fn send_frame(app: &Arc<App>, caller: &Caller, sending: Sending) -> Result<Sent, Error> {
    let message = gopherhole::read_message(&sending.payload, Role::User)?;
    let numbered = sending.id.as_ref().and_then(FrameId::text).filter(|_| message.message_id.is_empty());
    let Some(id) = numbered else {
        let own = if message.message_id.is_empty() { Uuid::now_v7().to_string() } else { message.message_id };
        return send_as(app, caller, &sending, &own).await;
    };
    let sitting = app.sittings.name(caller.principal);
    let sent = send_as(app, caller, &sending, &format!("{sitting}{id}")).await;
    let is_new = match &sent {
        Ok(sent) => sent.repeated && is_old(&sent.task, &format!("{sitting}{id}")),
        Err(Error::Refused(refusal)) => refusal.reason == Reason::IdempotencyConflict,
        Err(_) => false,
    };
    if !is_new {
        return sent;
    }
    app.sittings.renew(caller.principal, &sitting);
    let sitting = app.sittings.name(caller.principal);
    send_as(app, caller, &sending, &format!("{sitting}{id}")).await
}

/// Whether a task was begun with a message so long ago that it is not that one which comes again.
fn is_old(task: &Task, id: &str) -> bool {
    let began = task.history.first().is_some_and(|first| first.message_id == gopherhole::message_id(id));
    let begun_at = Uuid::try_parse(&task.id).ok().and_then(|id| id.get_timestamp());
    let now = uuid::Timestamp::now(uuid::NoContext).to_unix().0;
    began && begun_at.is_some_and(|at| now > at.to_unix().0 + AGAIN_WITHIN.as_secs())
}

async fn send_as(app: &Arc<App>, caller: &Caller, sending: &Sending, id: &str) -> Result<Sent, Error> {
    let mut message = gopherhole::read_message(&sending.payload, Role::User)?;
    message.message_id = gopherhole::message_id(id);
    if let Some(task) = &sending.task_id {
        message.task_id.clone_from(task);
    }
    if let Some(context) = &sending.context_id {
        message.context_id.clone_from(context);
    }
    let configuration = SendMessageConfiguration {
        return_immediately: true,
        unknown: sending.ttl.iter().map(|ttl| (TTL.to_owned(), ttl.clone())).collect(),
        ..SendMessageConfiguration::default()
    };
    let request = SendMessageRequest {
        message: Some(message),
        configuration: Some(configuration),
        metadata: sending.metadata.clone(),
        ..SendMessageRequest::default()
    };
    let trace = sending.traceparent.as_deref().and_then(|parent| Trace::parse(parent, sending.tracestate.as_deref()));
    let request = conversation::once_to_agent(app, caller, &sending.to, request).await?;
    let (posted, parties) = post_to(app, caller, &sending.to, request, trace).await?;
    let shown = gopherhole::task(&posted.task, &parties);
    Ok(Sent { task: *posted.task, shown, repeated: posted.repeated, news: posted.news })
}
