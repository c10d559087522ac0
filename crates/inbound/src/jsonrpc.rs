//! JSON-RPC 2.0 over HTTP (spec 9).

pub mod decode;

use crate::answer::{self, JSON};
use crate::app::App;
use crate::call::{Answer, Answered, perform};
use crate::meters::Binding;
use crate::parameters::Parameters;
use crate::reading::Reading;
use crate::sse::{self, Dress};
use crate::{body, caller};
use axum::body::Body;
use flotilla_core::error::{Error, Fault};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::StreamResponse;
use flotilla_protocol::jsonrpc::{self, Envelope};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// The levels of JSON an envelope puts around its parameters.
pub const ENVELOPE: usize = 1;

/// Serves one call; `agent` is the one the path names.
pub async fn serve(app: &Arc<App>, agent: Option<&str>, request: Request<Body>) -> Response<Body> {
    let started = Instant::now();
    let (parts, mut body) = request.into_parts();
    let mut id = String::from("null");
    match answer(app, agent, &parts, &mut body, &mut id, started).await {
        Ok(response) => response,
        Err(error) => {
            let response = refuse(app, &id, &app.refusal(error));
            answer::after(app, &parts.headers, body, response).await
        }
    }
}

/// A refusal in this binding's form, under the request's id.
pub fn refuse(app: &App, id: &str, refusal: &Refusal) -> Response<Body> {
    app.meters.refused(Binding::JsonRpc, refusal);
    let text = jsonrpc::error(id, refusal, app.now());
    answer::refuse(answer::with_type(http_status(refusal.reason), JSON, text), refusal)
}

/// JSON-RPC tells errors in its body; only what concerns HTTP itself is also an HTTP status.
fn http_status(reason: Reason) -> StatusCode {
    match reason {
        Reason::Unauthenticated
        | Reason::PermissionDenied
        | Reason::HostRequired
        | Reason::PayloadTooLarge
        | Reason::HeadersTooLarge
        | Reason::RequestTimeout
        | Reason::MediaTypeNotSupported
        | Reason::ResourceExhausted
        | Reason::QueueFull
        | Reason::TenantQueueFull
        | Reason::Unavailable => StatusCode::from_u16(reason.row().http).unwrap_or(StatusCode::BAD_REQUEST),
        _ => StatusCode::OK,
    }
}

async fn answer(
    app: &Arc<App>,
    agent: Option<&str>,
    parts: &Parts,
    body: &mut Body,
    id: &mut String,
    started: Instant,
) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, parts).await?;
    let headers = &parts.headers;
    let limits = app.hub.limits();
    let bytes = body::read(headers, body, &limits).await?;
    body::check_depth(&bytes, &limits, ENVELOPE)?;
    let envelope = Envelope::parse(&bytes)?;
    envelope.answer_id()?.clone_into(id);
    body::check_type(headers)?;
    let name = envelope.method_name()?;
    let parameters = Parameters::of(headers, &parts.uri);
    parameters.check_version()?;
    let method = decode::method(&name)?;
    let request = decode::request(method, envelope.params_text()?)?;
    let answered = perform(app, &caller, agent, &parameters, request).await?;
    let response = encode(app, id, answered)?;
    app.meters.served(Binding::JsonRpc, method, started);
    Ok(response)
}

fn encode(app: &Arc<App>, id: &str, answered: Answered) -> Result<Response<Body>, Error> {
    let response = match answered.answer {
        Answer::Task(task) => result(id, &task)?,
        Answer::Sent(sent) => result(id, &sent)?,
        Answer::List(list) => result(id, &list)?,
        Answer::PushConfig(config) => result(id, &config)?,
        Answer::PushConfigs(list) => result(id, &list)?,
        Answer::Empty => result(id, &json!({}))?,
        Answer::Stream(follow, leave) => {
            sse::respond(Reading::new(app, leave, follow), InEnvelope { id: id.to_owned() })
        }
    };
    Ok(answer::finish(response, answered.extensions))
}

fn result<T: Serialize>(id: &str, value: &T) -> Result<Response<Body>, Error> {
    let mut body = Vec::with_capacity(512);
    jsonrpc::write_result(&mut body, id, value).map_err(|error| Fault::new(format!("encoding an answer: {error}")))?;
    Ok(answer::with_type(StatusCode::OK, JSON, body))
}

/// Each frame is a response object under the request's id (spec 9.4.2).
struct InEnvelope {
    id: String,
}

impl Dress for InEnvelope {
    fn frame(&self, out: &mut Vec<u8>, frame: &StreamResponse) -> Result<(), serde_json::Error> {
        jsonrpc::write_result(out, &self.id, frame)
    }
    fn refusal(&self, app: &App, refusal: &Refusal) -> Vec<u8> {
        jsonrpc::error(&self.id, refusal, app.now())
    }
}
