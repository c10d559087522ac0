//! The owner's own view: a task's whole log, tool calls and thoughts included.

use crate::answer::{JSON, with_type};
use crate::app::App;
use crate::parameters::query;
use crate::{caller, rest};
use axum::body::Body;
use flotilla_core::error::Error;
use flotilla_protocol::a2a::error::Refusal;
use http::request::Parts;
use http::{Response, StatusCode};
use serde_json::{Value, json};

/// `GET /api/tasks/{id}/log?after=SEQ`.
pub async fn log(app: &App, id: &str, request: &Parts) -> Response<Body> {
    match read(app, id, request).await {
        Ok(body) => with_type(StatusCode::OK, JSON, body.to_string()),
        Err(error) => rest::refuse(app, &app.refusal(error)),
    }
}

async fn read(app: &App, id: &str, request: &Parts) -> Result<Value, Error> {
    let caller = caller::identify(&app.access, &request.headers).await?;
    let after = match query(&request.uri).find(|(name, _)| name == "after") {
        Some((_, text)) => text.parse().map_err(|_| Refusal::invalid("after", "must be a number of an event"))?,
        None => 0,
    };
    let (head, changes) = app.hub.owner_log(&caller, id, after).await?;
    let events: Vec<Value> = changes
        .iter()
        .flat_map(|change| {
            change.events.iter().zip(change.first_seq..).map(move |(event, seq)| (change.at, seq, event))
        })
        .filter(|(_, seq, _)| *seq > after)
        .map(|(at, seq, event)| json!({"seq": seq, "at": at, "forPeers": event.is_for_peers(), "event": event}))
        .collect();
    let first_kept = changes.first().map_or(head.seq + 1, |change| change.first_seq);
    Ok(json!({
        "taskId": head.id.to_string(),
        "contextId": &*head.context,
        "state": head.state,
        "seq": head.seq,
        "run": head.run,
        "pruned": after + 1 < first_kept && head.seq > after,
        "events": events,
    }))
}
