//! HTTP+JSON (spec 11).

pub mod decode;
pub mod path;

use crate::answer;
use crate::app::App;
use crate::call::{Answer, Answered, perform};
use crate::meters::Binding;
use crate::parameters::Parameters;
use crate::reading::Reading;
use crate::sse::{self, Dress};
use crate::{body, caller};
use axum::body::Body;
use flotilla_core::error::{Error, Fault};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::StreamResponse;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use path::Target;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Serves one call; `agent` is the one the path names.
pub async fn serve(app: &Arc<App>, agent: Option<&str>, target: Target, request: Request<Body>) -> Response<Body> {
    let started = Instant::now();
    let method = target.method();
    let (parts, mut body) = request.into_parts();
    let media_type = answer::negotiated(&parts.headers);
    match answer(app, agent, target, &media_type, &parts, &mut body).await {
        Ok(response) => {
            app.meters.served(Binding::Rest, method, started);
            response
        }
        Err(error) => answer::after(app, &parts.headers, body, refuse_as(app, &app.refusal(error), media_type)).await,
    }
}

/// A refusal in this binding's form, for paths that are no operation.
pub fn refuse(app: &App, refusal: &Refusal) -> Response<Body> {
    refuse_as(app, refusal, answer::JSON)
}

fn refuse_as(app: &App, refusal: &Refusal, media_type: HeaderValue) -> Response<Body> {
    app.meters.refused(Binding::Rest, refusal);
    let status = StatusCode::from_u16(refusal.reason.row().http).unwrap_or(StatusCode::BAD_REQUEST);
    let response = answer::with_type(status, media_type, error_body(app, refusal));
    answer::refuse(response, refusal)
}

/// The `google.rpc.Status` form (spec 11.6).
pub fn error_body(app: &App, refusal: &Refusal) -> Vec<u8> {
    let row = refusal.reason.row();
    let body = json!({
        "error": {
            "code": row.http,
            "status": row.grpc,
            "message": refusal.message,
            "details": refusal.details(app.now()),
        }
    });
    body.to_string().into_bytes()
}

async fn answer(
    app: &Arc<App>,
    agent: Option<&str>,
    target: Target,
    media_type: &HeaderValue,
    parts: &Parts,
    body: &mut Body,
) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, parts).await?;
    let parameters = Parameters::of(&parts.headers, &parts.uri);
    parameters.check_version()?;
    let limits = app.hub.limits();
    let bytes = body::read(&parts.headers, body, &limits).await?;
    body::check_depth(&bytes, &limits, 0)?;
    if !bytes.is_empty() {
        body::check_type(&parts.headers)?;
    }
    let request = decode::request(&target, &parts.uri, &bytes)?;
    let answered = perform(app, &caller, agent, &parameters, request).await?;
    encode(app, media_type, answered)
}

fn encode(app: &Arc<App>, media_type: &HeaderValue, answered: Answered) -> Result<Response<Body>, Error> {
    let response = match answered.answer {
        Answer::Task(task) => plain(media_type, &task)?,
        Answer::Sent(sent) => plain(media_type, &sent)?,
        Answer::List(list) => plain(media_type, &list)?,
        Answer::PushConfig(config) => plain(media_type, &config)?,
        Answer::PushConfigs(list) => plain(media_type, &list)?,
        Answer::Empty => plain(media_type, &json!({}))?,
        Answer::Stream(follow, leave) => sse::respond(Reading::new(app, leave, follow), Bare),
    };
    Ok(answer::finish(response, answered.extensions))
}

fn plain<T: Serialize>(media_type: &HeaderValue, value: &T) -> Result<Response<Body>, Error> {
    let body = serde_json::to_vec(value).map_err(|error| Fault::new(format!("encoding an answer: {error}")))?;
    Ok(answer::with_type(StatusCode::OK, media_type.clone(), body))
}

/// Each frame is a StreamResponse object, nothing around it (spec 11.7).
struct Bare;

impl Dress for Bare {
    fn frame(&self, out: &mut Vec<u8>, frame: &StreamResponse) -> Result<(), serde_json::Error> {
        serde_json::to_writer(out, frame)
    }
    fn refusal(&self, app: &App, refusal: &Refusal) -> Vec<u8> {
        error_body(app, refusal)
    }
}

impl Target {
    fn method(&self) -> Method {
        match self {
            Self::Send => Method::SendMessage,
            Self::Stream => Method::SendStreamingMessage,
            Self::List => Method::ListTasks,
            Self::Get(_) => Method::GetTask,
            Self::Cancel(_) => Method::CancelTask,
            Self::Subscribe(_) => Method::SubscribeToTask,
            Self::CreatePush(_) => Method::CreatePushConfig,
            Self::ListPush(_) => Method::ListPushConfigs,
            Self::GetPush(..) => Method::GetPushConfig,
            Self::DeletePush(..) => Method::DeletePushConfig,
            Self::ExtendedCard => Method::GetExtendedAgentCard,
        }
    }
}
