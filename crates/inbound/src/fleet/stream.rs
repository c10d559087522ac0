//! Workers as they change: all of them first, and then each whenever something about it is new.

use super::{Shown, looking};
use crate::answer::with_type;
use crate::app::App;
use axum::body::Body;
use flotilla_core::access::Leave;
use flotilla_core::caller::Caller;
use flotilla_core::error::Error;
use flotilla_core::fleet::Seen;
use flotilla_core::notice::{Heard, Listener, What};
use futures_util::stream;
use http::header::CACHE_CONTROL;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use std::sync::Arc;

struct Reader {
    app: Arc<App>,
    caller: Caller,
    leave: Leave,
    listener: Listener,
    begun: bool,
    done: bool,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.app.meters.streams.decrement(1.0);
    }
}

/// `GET /api/fleet/stream`.
pub async fn follow(app: &Arc<App>, request: &Parts) -> Result<Response<Body>, Error> {
    let caller = looking(app, request).await?;
    app.meters.streams.increment(1.0);
    // Before the first look, so that nothing falls in between.
    let listener = app.hub.notices().listen();
    let leave = app.access.leave(&caller);
    let reader = Reader { app: Arc::clone(app), caller, leave, listener, begun: false, done: false };
    let chunks = stream::unfold(reader, |mut reader| async move {
        if reader.done {
            return None;
        }
        let chunk = reader.next().await;
        Some((Ok::<_, std::convert::Infallible>(bytes::Bytes::from(chunk)), reader))
    });
    let mut response =
        with_type(StatusCode::OK, HeaderValue::from_static("text/event-stream"), Body::from_stream(chunks));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

impl Reader {
    async fn next(&mut self) -> String {
        if !self.begun {
            self.begun = true;
            return self.all();
        }
        let app = Arc::clone(&self.app);
        let patience = app.settings().keep_alive;
        loop {
            tokio::select! {
                biased;
                _ = self.leave.ended() => return self.end(": the key is not valid any more\n\n"),
                () = app.hub.stopped() => return self.end(": the hub is stopping; reconnect\nretry: 1000\n\n"),
                heard = self.listener.next() => match heard {
                    Some(Heard::Notice(notice)) => {
                        let What::Worker { worker, .. } = &notice.what else { continue };
                        if let Ok(seen) = app.hub.worker(&self.caller, worker) {
                            return event(&app, &seen);
                        }
                    }
                    Some(Heard::Missed(_)) => return self.all(),
                    None => return self.end(""),
                },
                () = tokio::time::sleep(patience) => return ": keep-alive\n\n".to_owned(),
            }
        }
    }

    fn end(&mut self, last: &str) -> String {
        self.done = true;
        last.to_owned()
    }

    fn all(&self) -> String {
        let workers = self.app.hub.workers(&self.caller);
        let all: String = workers.iter().map(|seen| event(&self.app, seen)).collect();
        if all.is_empty() { ": no workers yet\n\n".to_owned() } else { all }
    }
}

fn event(app: &App, seen: &Seen) -> String {
    let json = serde_json::to_string(&Shown::of(seen, app.now())).unwrap_or_default();
    format!("event: worker\ndata: {json}\n\n")
}
