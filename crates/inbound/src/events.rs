//! News for people, as server-sent events: workers, tasks, approvals, usage and alerts of the agents one owns.

use crate::answer::with_type;
use crate::app::App;
use crate::asked::check;
use crate::usage::figures;
use crate::{caller, rest};
use axum::body::Body;
use flotilla_core::access::Leave;
use flotilla_core::error::Error;
use flotilla_core::hub::{EventFollow, EventNext};
use flotilla_core::notice::{Notice, What};
use flotilla_core::rights::Right;
use flotilla_protocol::a2a::error::Refusal;
use futures_util::stream;
use http::header::CACHE_CONTROL;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

/// `GET /api/events`: from now on, or after the event `Last-Event-ID` names.
pub async fn follow(app: &Arc<App>, request: &Parts) -> Response<Body> {
    opened(app, request).await.unwrap_or_else(|error| rest::refuse(app, &app.refusal(error)))
}

async fn opened(app: &Arc<App>, request: &Parts) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, request).await?;
    caller.check(Right::TasksRead)?;
    check(&["lastEventId"], &request.uri)?;
    let header = request.headers.get("last-event-id").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let last = header.or_else(|| crate::asked::value(&request.uri, "lastEventId"));
    let after = last.as_deref().map(place).transpose()?;
    let follow = app.hub.listen(&caller, after)?;
    let leave = app.access.leave(&caller);
    app.meters.streams.increment(1.0);
    let reader = Reader { app: Arc::clone(app), leave, follow, greeted: false, done: false };
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

/// `<run of the hub>.<name of the event>`.
fn place(text: &str) -> Result<(&str, u64), Refusal> {
    let wrong = || Refusal::invalid("Last-Event-ID", "must be the id of an event of this stream");
    let (boot, number) = text.rsplit_once('.').ok_or_else(wrong)?;
    u64::from_str_radix(number, 16).map(|name| (boot, name)).map_err(|_| wrong())
}

struct Reader {
    app: Arc<App>,
    /// The reader may go on for as long as this holds.
    leave: Leave,
    follow: EventFollow,
    greeted: bool,
    done: bool,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.app.meters.streams.decrement(1.0);
    }
}

impl Reader {
    async fn next(&mut self) -> String {
        if !std::mem::replace(&mut self.greeted, true) {
            // So that whoever opened it knows that nothing is missed from here on.
            return ": listening\n\n".to_owned();
        }
        let patience = self.app.settings().keep_alive;
        let next = tokio::select! {
            biased;
            refusal = self.leave.ended() => Err(refusal),
            next = self.follow.next(patience) => Ok(next),
        };
        // A key that was revoked meanwhile sees nothing more.
        match self.leave.check().and(next) {
            Ok(EventNext::Notice(notice)) => self.event(kind(&notice), &self.shown(&notice)),
            Ok(EventNext::Gap) => {
                let text = "Some events are no longer kept. Look up how things are, then go on from here.";
                self.event("gap", &json!({ "message": text }))
            }
            Ok(EventNext::Quiet) => ": keep-alive\n\n".to_owned(),
            Ok(EventNext::Stopping) => {
                self.done = true;
                ": the hub is stopping; reconnect\nretry: 1000\n\n".to_owned()
            }
            Err(refusal) => {
                self.done = true;
                let body = rest::error_body(&self.app, &refusal);
                format!("event: error\ndata: {}\n\n", String::from_utf8_lossy(&body).replace(['\n', '\r'], " "))
            }
        }
    }

    fn event(&self, kind: &str, data: &Value) -> String {
        let id =
            self.follow.last().map(|name| format!("id: {}.{name:016x}\n", self.app.hub.boot())).unwrap_or_default();
        format!("{id}event: {kind}\ndata: {data}\n\n")
    }

    fn shown(&self, notice: &Notice) -> Value {
        let registry = self.app.hub.registry();
        let mut shown = match &notice.what {
            What::Worker { worker, health, epoch } => json!({"worker": &**worker, "health": health, "epoch": epoch}),
            What::Task { task, state, seq, worker, .. } => {
                let mut told = json!({"taskId": task.to_string(), "state": state, "seq": seq});
                if let Some(worker) = worker.and_then(|(_, id)| registry.by_id(id)) {
                    told["worker"] = worker.name.as_str().into();
                }
                told
            }
            What::Approval { approval, task, state } => {
                json!({"approvalId": &**approval, "taskId": task.to_string(), "state": state})
            }
            What::Alert { task, reason, text } => {
                json!({"taskId": task.map(|task| task.to_string()), "reason": &**reason, "text": &**text})
            }
            What::Usage { task, usage } => json!({"taskId": task.to_string(), "added": figures(usage)}),
        };
        shown["at"] = notice.at.to_string().into();
        shown["agent"] = registry.by_id(notice.agent).map(|agent| agent.name.clone()).into();
        shown
    }
}

fn kind(notice: &Notice) -> &'static str {
    match notice.what {
        What::Worker { .. } => "worker",
        What::Task { .. } => "task",
        What::Approval { .. } => "approval",
        What::Alert { .. } => "alert",
        What::Usage { .. } => "usage",
    }
}
