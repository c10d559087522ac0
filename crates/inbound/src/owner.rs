//! The owner's own view: a task's whole log, tool calls and thoughts included.

use crate::answer::{JSON, with_type};
use crate::app::App;
use crate::parameters::query;
use crate::{caller, rest};
use axum::body::Body;
use flotilla_core::error::{Error, Fault};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::event::Event;
use flotilla_protocol::time::Millis;
use http::request::Parts;
use http::{Response, StatusCode};
use serde::Serialize;

/// A task's log as its owner sees it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Log<'a> {
    task_id: String,
    context_id: &'a str,
    state: TaskState,
    seq: u64,
    run: u32,
    /// Whether events that were asked for are no longer kept.
    pruned: bool,
    events: Vec<Entry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    seq: u64,
    at: Millis,
    for_peers: bool,
    event: &'a Event,
}

/// `GET /api/tasks/{id}/log?after=SEQ`.
pub async fn log(app: &App, id: &str, request: &Parts) -> Response<Body> {
    match read(app, id, request).await {
        Ok(body) => with_type(StatusCode::OK, JSON, body),
        Err(error) => rest::refuse(app, &app.refusal(error)),
    }
}

async fn read(app: &App, id: &str, request: &Parts) -> Result<Vec<u8>, Error> {
    let caller = caller::identify(&app.access, &request.headers).await?;
    let after = match query(&request.uri).find(|(name, _)| name == "after") {
        Some((_, text)) => text.parse().map_err(|_| Refusal::invalid("after", "must be a number of an event"))?,
        None => 0,
    };
    let (head, changes) = app.hub.owner_log(&caller, id, after).await?;
    let first_kept = changes.first().map_or(head.seq + 1, |change| change.first_seq);
    let events = changes.iter().flat_map(|change| {
        change.events.iter().zip(change.first_seq..).map(move |(event, seq)| Entry {
            seq,
            at: change.at,
            for_peers: event.is_for_peers(),
            event,
        })
    });
    let log = Log {
        task_id: head.id.to_string(),
        context_id: &head.context,
        state: head.state,
        seq: head.seq,
        run: head.run,
        pruned: after + 1 < first_kept && head.seq > after,
        events: events.filter(|entry| entry.seq > after).collect(),
    };
    serde_json::to_vec(&log).map_err(|error| Fault::new(format!("encoding a log: {error}")).into())
}
