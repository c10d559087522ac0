//! The owner's own view: a task's whole log, tool calls and thoughts included, by pages or as it grows.

use crate::answer::{JSON, with_type};
use crate::app::App;
use crate::parameters::query;
use crate::reading::CHUNK;
use crate::{caller, rest};
use axum::body::Body;
use flotilla_core::access::Leave;
use flotilla_core::caller::Caller;
use flotilla_core::error::{Error, Fault};
use flotilla_core::hub::{OwnerFollow, OwnerNext};
use flotilla_core::rights::Right;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::lineage::Origin;
use flotilla_protocol::time::Millis;
use futures_util::stream;
use http::header::{ACCEPT, CACHE_CONTROL};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use std::sync::Arc;

/// A page of a task's log as its owner sees it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Log<'a> {
    task_id: String,
    context_id: &'a str,
    state: TaskState,
    seq: u64,
    run: u32,
    /// This hub, as chains name it.
    hub_id: &'a str,
    trace_id: String,
    provenance: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_task_id: Option<&'a str>,
    /// Where the task comes from, if its caller told.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'a Origin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Millis>,
    /// Whether events that were asked for are no longer kept.
    pruned: bool,
    /// Where the next page starts; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<u64>,
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

/// `GET /api/tasks/{id}/log?after=SEQ`: a page, or, for who accepts server-sent events, all that comes.
pub async fn log(app: &Arc<App>, id: &str, request: &Parts) -> Response<Body> {
    let streams = request.headers.get_all(ACCEPT).iter().any(|value| value == "text/event-stream");
    let answer = if streams { follow(app, id, request).await } else { page(app, id, request).await };
    answer.unwrap_or_else(|error| rest::refuse(app, &app.refusal(error)))
}

fn after(request: &Parts) -> Result<u64, Refusal> {
    match query(&request.uri).find(|(name, _)| name == "after") {
        Some((_, text)) => text.parse().map_err(|_| Refusal::invalid("after", "must be a number of an event")),
        None => Ok(0),
    }
}

fn entries<'a>(changes: &'a [Arc<Change>], after: u64) -> impl Iterator<Item = Entry<'a>> {
    let entries = changes.iter().flat_map(|change| {
        let numbered = change.events.iter().zip(change.first_seq..);
        numbered.map(|(event, seq)| Entry { seq, at: change.at, for_peers: event.is_for_peers(), event })
    });
    entries.filter(move |entry| entry.seq > after)
}

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(value).map_err(|error| Fault::new(format!("encoding a log: {error}")))
}

/// Whoever asks must be allowed to read tasks; whose they are is for the hub to say.
async fn owner(app: &App, request: &Parts) -> Result<Caller, Error> {
    let caller = caller::identify(app, request).await?;
    caller.check(Right::TasksRead)?;
    Ok(caller)
}

async fn page(app: &Arc<App>, id: &str, request: &Parts) -> Result<Response<Body>, Error> {
    let caller = owner(app, request).await?;
    let after = after(request)?;
    let page = app.hub.owner_log(&caller, id, after).await?;
    let log = Log {
        task_id: page.head.id.to_string(),
        context_id: &page.head.context,
        state: page.head.state,
        seq: page.head.seq,
        run: page.head.run,
        hub_id: app.hub.store().hub_id(),
        trace_id: page.head.trace_id().to_string(),
        provenance: page.head.provenance().name(),
        parent_task_id: page.head.parent_task(),
        origin: page.head.origin.as_deref(),
        deadline: page.head.deadline,
        pruned: page.pruned,
        next_after: page.next_after(),
        events: entries(&page.changes, after).collect(),
    };
    Ok(with_type(StatusCode::OK, JSON, encode(&log)?))
}

async fn follow(app: &Arc<App>, id: &str, request: &Parts) -> Result<Response<Body>, Error> {
    let caller = owner(app, request).await?;
    let after = after(request)?;
    let follow = app.hub.follow_log(&caller, id, after).await?;
    let leave = app.access.leave(&caller);
    app.meters.streams.increment(1.0);
    let waiting = Vec::new().into_iter();
    let reader = Reader { app: Arc::clone(app), leave, follow, waiting, after, done: false };
    let chunks = stream::unfold(reader, |mut reader| async move {
        if reader.done {
            return None;
        }
        let chunk = reader.next().await;
        Some((Ok::<_, std::convert::Infallible>(bytes::Bytes::from(chunk)), reader))
    });
    let kind = HeaderValue::from_static("text/event-stream");
    let mut response = with_type(StatusCode::OK, kind, Body::from_stream(chunks));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// One owner's connection.
struct Reader {
    app: Arc<App>,
    /// The reader may go on for as long as this holds.
    leave: Leave,
    follow: OwnerFollow,
    /// Changes that are not written yet.
    waiting: std::vec::IntoIter<Arc<Change>>,
    after: u64,
    done: bool,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.app.meters.streams.decrement(1.0);
    }
}

impl Reader {
    async fn next(&mut self) -> Vec<u8> {
        let patience = self.app.settings().keep_alive;
        let next = if self.waiting.len() > 0 {
            Ok(OwnerNext::Changes(Vec::new()))
        } else {
            tokio::select! {
                biased;
                next = self.follow.next(patience) => next,
                refusal = self.leave.ended() => Err(refusal.into()),
            }
        };
        // A key that was revoked meanwhile sees nothing more.
        let next = self.leave.check().map_err(Error::from).and(next);
        match next.and_then(|next| self.chunk(next)) {
            Ok(chunk) => chunk,
            Err(error) => {
                self.done = true;
                let refusal = self.app.refusal(error);
                event(None, &rest::error_body(&self.app, &refusal))
            }
        }
    }

    fn chunk(&mut self, next: OwnerNext) -> Result<Vec<u8>, Error> {
        Ok(match next {
            OwnerNext::Changes(changes) => {
                if !changes.is_empty() {
                    self.waiting = changes.into_iter();
                }
                self.write()?
            }
            OwnerNext::Pruned => event(None, br#"{"pruned":true}"#),
            OwnerNext::Quiet => b": keep-alive\n\n".to_vec(),
            OwnerNext::End => {
                self.done = true;
                b"event: end\ndata: {}\n\n".to_vec()
            }
            OwnerNext::Stopping => {
                self.done = true;
                b": the hub is stopping; reconnect with the last seq as after\nretry: 1000\n\n".to_vec()
            }
        })
    }
}

impl Reader {
    /// As much of what waits as a reader is given at once; the rest when it has taken that.
    fn write(&mut self) -> Result<Vec<u8>, Error> {
        let mut chunk = Vec::new();
        while chunk.len() < CHUNK
            && let Some(change) = self.waiting.next()
        {
            for entry in entries(std::slice::from_ref(&change), self.after) {
                chunk.extend(event(Some(entry.seq), &encode(&entry)?));
                self.after = entry.seq;
            }
        }
        Ok(chunk)
    }
}

/// An event's data is one line; line breaks between the tokens of opaque JSON become spaces.
fn event(seq: Option<u64>, json: &[u8]) -> Vec<u8> {
    let mut out = seq.map(|seq| format!("id: {seq}\n").into_bytes()).unwrap_or_default();
    out.extend_from_slice(b"data: ");
    out.extend(json.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    out.extend_from_slice(b"\n\n");
    out
}
