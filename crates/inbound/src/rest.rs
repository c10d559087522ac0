//! HTTP+JSON (spec 11).

pub mod decode;
pub mod form;
pub mod old;
pub mod path;

use crate::answer;
use crate::app::App;
use crate::call::{Answer, Answered, perform};
use crate::dialect::{self, Dialect};
use crate::meters::Binding;
use crate::parameters::Parameters;
use crate::reading::Reading;
use crate::spoken::Spoken;
use crate::sse::{self, Dress};
use crate::{body, caller, jsonrpc, well_known};
use axum::body::Body;
use flotilla_core::error::{Error, Fault};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::StreamResponse;
use flotilla_protocol::a2a::version::Version;
use flotilla_protocol::v03;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use path::Target;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Serves one call of the version its path is of; `agent` is the one the path names.
pub async fn serve(
    app: &Arc<App>,
    agent: Option<&str>,
    version: Version,
    target: Target,
    request: Request<Body>,
) -> Response<Body> {
    let started = Instant::now();
    let (parts, mut body) = request.into_parts();
    let mut asking = Asking::of(version, &parts);
    match answer(app, agent, target, &mut asking, &parts, &mut body, started).await {
        Ok(response) => response,
        Err(error) => answer::after(app, &parts.headers, body, refuse_as(app, &app.refusal(error), asking)).await,
    }
}

/// What an answer needs to know of its request.
#[derive(Debug, Clone)]
struct Asking {
    dialect: Dialect,
    media_type: HeaderValue,
}

impl Asking {
    /// 0.3 has no media type of its own.
    fn of(version: Version, request: &Parts) -> Self {
        match version {
            Version::V10 => Self { dialect: Dialect::V10, media_type: answer::negotiated(&request.headers) },
            Version::V03 => Self { dialect: Dialect::V03(form::DEFAULT), media_type: answer::JSON },
        }
    }
}

/// A refusal in this binding's form, for paths that are no operation.
pub fn refuse(app: &App, refusal: &Refusal) -> Response<Body> {
    refuse_as(app, refusal, Asking { dialect: Dialect::V10, media_type: answer::JSON })
}

/// The same for paths of 0.3.
pub fn refuse_in_03(app: &App, refusal: &Refusal) -> Response<Body> {
    refuse_as(app, refusal, Asking { dialect: Dialect::V03(form::DEFAULT), media_type: answer::JSON })
}

fn refuse_as(app: &App, refusal: &Refusal, asking: Asking) -> Response<Body> {
    app.meters.refused(Binding::Rest, refusal);
    let status = match asking.dialect {
        Dialect::V10 => refusal.reason.row().http,
        Dialect::V03(_) => v03::error::http(refusal.reason),
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let response = answer::with_type(status, asking.media_type.clone(), asking.refusal(app, refusal));
    answer::refuse(response, asking.dialect, refusal)
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
    asking: &mut Asking,
    parts: &Parts,
    body: &mut Body,
    started: Instant,
) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, parts).await?;
    let parameters = Parameters::of(&parts.headers, &parts.uri);
    dialect::check(asking.dialect.version(), &parameters)?;
    let limits = app.hub.limits();
    let bytes = body::read(parts, body, &limits).await?;
    if form::is_json_rpc(asking.dialect, &target, &bytes) {
        let request = Request::from_parts(parts.clone(), Body::from(bytes));
        return Ok(jsonrpc::serve(app, agent, request).await);
    }
    let method = target.method();
    body::check_depth(&bytes, &limits, 0)?;
    if !bytes.is_empty() {
        body::check_type(&parts.headers)?;
    }
    let request = match asking.dialect {
        Dialect::V10 => decode::request(&target, &parts.uri, &bytes)?,
        Dialect::V03(_) => {
            let user_agent = form::user_agent(&parts.headers);
            let asked = form::asked(&parts.uri)?;
            let told = form::of(&target, &parts.uri, &bytes);
            let settled = app.forms.settle(caller.principal, user_agent, told);
            asking.dialect = Dialect::V03(form::of_caller(asked.unwrap_or(settled), user_agent));
            // A body is read as what it is; only one that does not show it is what the query says.
            let spoken = told.or(asked).unwrap_or(settled);
            old::request(form::of_caller(spoken, user_agent), &target, &parts.uri, &bytes)?
        }
    };
    let answered = perform(app, &caller, agent, asking.dialect, &parameters, request).await?;
    let response = encode(app, parts, asking.clone(), answered)?;
    app.meters.served(Binding::Rest, method, started);
    Ok(response)
}

fn encode(app: &Arc<App>, request: &Parts, asking: Asking, answered: Answered) -> Result<Response<Body>, Error> {
    let dialect = asking.dialect;
    let response = match answered.answer {
        Answer::Task(task) => plain(&asking, &*task)?,
        Answer::Sent(sent) => plain(&asking, &sent)?,
        Answer::List(list) => plain(&asking, &list)?,
        Answer::PushConfig(config) => plain(&asking, &*config)?,
        Answer::PushConfigs(list) => plain(&asking, &list)?,
        Answer::Card(card) => well_known::extended(app, request, card.json, asking.media_type),
        Answer::Empty => answer::with_type(StatusCode::OK, asking.media_type, "{}"),
        Answer::Stream(follow, leave) => sse::respond(Reading::new(app, leave, follow), asking),
    };
    Ok(answer::finish(response, dialect, answered.extensions))
}

fn plain<T: Spoken>(asking: &Asking, value: &T) -> Result<Response<Body>, Error> {
    let mut body = Vec::with_capacity(512);
    let written = value.write(asking.dialect, &mut body);
    written.map_err(|error| Fault::new(format!("encoding an answer: {error}")))?;
    Ok(answer::with_type(StatusCode::OK, asking.media_type.clone(), body))
}

/// Each frame is a StreamResponse object, nothing around it (spec 11.7).
impl Dress for Asking {
    fn frame(&self, out: &mut Vec<u8>, frame: &StreamResponse) -> Result<(), serde_json::Error> {
        frame.write(self.dialect, out)
    }
    fn refusal(&self, app: &App, refusal: &Refusal) -> Vec<u8> {
        match self.dialect {
            Dialect::V10 => error_body(app, refusal),
            Dialect::V03(_) => v03::error::object(refusal, app.now()).to_string().into_bytes(),
        }
    }
    fn is_last(&self, frame: &StreamResponse) -> bool {
        self.dialect.ends_with(frame)
    }
    /// In 0.3 there is nothing in an error by which it could be told from a frame.
    fn failure(&self) -> Option<&'static str> {
        matches!(self.dialect, Dialect::V03(_)).then_some("error")
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
