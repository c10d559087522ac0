//! Requests of the dialect that are not let in: its clients read a refusal only where HTTP tells of no error.

use super::{Came, Program, is_of_push};
use crate::answer::{self, JSON};
use crate::app::App;
use crate::dialect::Dialect;
use crate::jsonrpc::ENVELOPE;
use crate::meters::Binding;
use crate::{body, sse};
use axum::body::Body;
use flotilla_core::caller::Caller;
use flotilla_core::limits::Limits;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::jsonrpc::{self, Envelope};
use flotilla_protocol::{gopherhole, v03};
use http::header::EXPECT;
use http::request::Parts;
use http::{Response, StatusCode};
use std::time::Duration;

/// The largest body that is read for somebody who is turned away, and for how long.
const MOST_BYTES: usize = 64 * 1024;
const PATIENCE: Duration = Duration::from_secs(2);

/// The refusal in the dialect's own form, if the request is one of it: it says so itself, or it is of a program that is
/// known to speak it. `caller` is none if that is what is wrong.
pub async fn told(
    app: &App,
    parts: &Parts,
    body: &mut Body,
    caller: Option<&Caller>,
    refusal: &Refusal,
) -> Option<Response<Body>> {
    // Whoever asks before sending a body is not to send it.
    if parts.headers.contains_key(EXPECT) {
        return None;
    }
    let limits = app.hub.limits();
    let limits = Limits { body: limits.body.min(MOST_BYTES), ..limits };
    let bytes = tokio::time::timeout(PATIENCE, body::read(parts, body, &limits)).await.ok()?.ok()?;
    body::check_depth(&bytes, &limits, ENVELOPE).ok()?;
    let envelope = Envelope::parse(&bytes).ok()?;
    let (id, method) = (envelope.answer_id().ok()?, envelope.method_name().ok()?);
    let named = Method::from_name(&method).or_else(|| v03::method::from_name(&method));
    let came = Came::new(Program::of(&parts.headers), id);
    let of_speaker = || {
        let asks = named.is_some_and(|named| {
            matches!(named, Method::GetTask | Method::CancelTask | Method::ListTasks | Method::SubscribeToTask)
                || is_of_push(named)
        });
        asks && came.numbered && caller.is_some_and(|caller| app.speakers.know(caller, came.program))
    };
    if !gopherhole::is_dialect(&method, envelope.params_text().ok()?) && !of_speaker() {
        return None;
    }
    app.meters.refused(Binding::JsonRpc, refusal);
    let told = jsonrpc::error(id, refusal, app.now());
    let response = match named {
        Some(Method::SendStreamingMessage | Method::SubscribeToTask) => sse::single(&told),
        _ => answer::with_type(StatusCode::OK, JSON, told),
    };
    Some(answer::refuse(response, Dialect::V10, refusal))
}
