//! JSON-RPC 2.0 over HTTP (spec 9).

pub mod decode;

use crate::answer::{self, JSON};
use crate::app::App;
use crate::call::{Answer, Answered, perform};
use crate::dialect::{self, Dialect};
use crate::meters::Binding;
use crate::parameters::Parameters;
use crate::reading::Reading;
use crate::spoken::Spoken;
use crate::sse::{self, Dress};
use crate::{body, caller};
use axum::body::Body;
use flotilla_core::error::{Error, Fault};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::StreamResponse;
use flotilla_protocol::jsonrpc::{self, Envelope};
use flotilla_protocol::v03;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use std::sync::Arc;
use std::time::Instant;

/// The levels of JSON an envelope puts around its parameters.
pub const ENVELOPE: usize = 1;

/// What an answer needs to know of its request.
#[derive(Debug, Clone)]
struct Asking {
    /// The request's id, as it came.
    id: String,
    dialect: Dialect,
    /// Whether a stream is asked for.
    streams: bool,
}

impl Asking {
    /// As much as is known before the body is read.
    fn of(parameters: &Parameters) -> Self {
        Self { id: "null".into(), dialect: Dialect::by_version(parameters), streams: false }
    }
}

/// Serves one call; `agent` is the one the path names.
pub async fn serve(app: &Arc<App>, agent: Option<&str>, request: Request<Body>) -> Response<Body> {
    let started = Instant::now();
    let (parts, mut body) = request.into_parts();
    let parameters = Parameters::of(&parts.headers, &parts.uri);
    let mut asking = Asking::of(&parameters);
    match answer(app, agent, &parts, parameters, &mut body, &mut asking, started).await {
        Ok(response) => response,
        Err(error) => {
            let response = refuse(app, &asking, &app.refusal(error));
            Box::pin(answer::after(app, &parts.headers, body, response)).await
        }
    }
}

/// A refusal of a request that was not read.
pub fn turn_away(app: &App, dialect: Dialect, refusal: &Refusal) -> Response<Body> {
    refuse(app, &Asking { id: "null".into(), dialect, streams: false }, refusal)
}

/// A refusal in this binding's form, under the request's id.
fn refuse(app: &App, asking: &Asking, refusal: &Refusal) -> Response<Body> {
    app.meters.refused(Binding::JsonRpc, refusal);
    let (status, told) = (http_status(refusal.reason), asking.refusal(app, refusal));
    // Clients of 0.3 read the answer to a streaming method as a stream, or say no more than that it is none.
    let response = if asking.streams && asking.dialect != Dialect::V10 && status == StatusCode::OK {
        sse::single(&told)
    } else {
        answer::with_type(status, JSON, told)
    };
    answer::refuse(response, asking.dialect, refusal)
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
    parameters: Parameters,
    body: &mut Body,
    asking: &mut Asking,
    started: Instant,
) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, parts).await?;
    let headers = &parts.headers;
    let limits = app.hub.limits();
    let bytes = body::read(parts, body, &limits).await?;
    body::check_depth(&bytes, &limits, ENVELOPE)?;
    let envelope = Envelope::parse(&bytes)?;
    envelope.answer_id()?.clone_into(&mut asking.id);
    body::check_type(headers)?;
    let name = envelope.method_name()?;
    let (dialect, method) = dialect::of_method(&name, &parameters);
    let params = envelope.params_text()?;
    let dialect = decode::dialect(dialect, &name, &asking.id, params);
    asking.dialect = dialect;
    let method = method?;
    asking.streams = matches!(method, Method::SendStreamingMessage | Method::SubscribeToTask);
    let request = decode::request(dialect, method, params)?;
    let answered = perform(app, &caller, agent, dialect, &parameters, request).await?;
    let response = encode(app, asking.clone(), answered)?;
    app.meters.served(Binding::JsonRpc, method, started);
    Ok(response)
}

fn encode(app: &Arc<App>, asking: Asking, answered: Answered) -> Result<Response<Body>, Error> {
    let dialect = asking.dialect;
    let response = match answered.answer {
        Answer::Task(task) => result(&asking, &*task)?,
        Answer::Sent(sent) => result(&asking, &sent)?,
        Answer::List(list) => result(&asking, &list)?,
        Answer::PushConfig(config) => result(&asking, &*config)?,
        Answer::PushConfigs(list) => result(&asking, &list)?,
        Answer::Card(card) => written(&asking, &card.json)?,
        Answer::Empty => {
            let nothing: &[u8] = if dialect == Dialect::V10 { b"{}" } else { b"null" };
            written(&asking, nothing)?
        }
        Answer::Stream(follow, leave) => sse::respond(Reading::new(app, leave, follow), asking),
    };
    Ok(answer::finish(response, dialect, answered.extensions))
}

fn result<T: Spoken>(asking: &Asking, value: &T) -> Result<Response<Body>, Error> {
    json(jsonrpc::result(&asking.id, |out| value.write(asking.dialect, out)))
}

fn written(asking: &Asking, bytes: &[u8]) -> Result<Response<Body>, Error> {
    json(jsonrpc::result(&asking.id, |out| {
        out.extend_from_slice(bytes);
        Ok(())
    }))
}

fn json(body: Result<Vec<u8>, serde_json::Error>) -> Result<Response<Body>, Error> {
    let body = body.map_err(|error| Fault::new(format!("encoding an answer: {error}")))?;
    Ok(answer::with_type(StatusCode::OK, JSON, body))
}

/// Each frame is a response object under the request's id (spec 9.4.2).
impl Dress for Asking {
    fn frame(&self, out: &mut Vec<u8>, frame: &StreamResponse) -> Result<(), serde_json::Error> {
        jsonrpc::write_result(out, &self.id, |out| frame.write(self.dialect, out))
    }
    fn refusal(&self, app: &App, refusal: &Refusal) -> Vec<u8> {
        match self.dialect {
            Dialect::V10 => jsonrpc::error(&self.id, refusal, app.now()),
            Dialect::V03(_) => v03::error::json_rpc(&self.id, refusal, app.now()),
        }
    }
    fn is_last(&self, frame: &StreamResponse) -> bool {
        self.dialect.ends_with(frame)
    }
}
