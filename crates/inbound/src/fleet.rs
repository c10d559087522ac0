//! The hub's API for workers: announce, look, follow, drain.

mod shown;
mod stream;

use crate::answer::{self, JSON, with_type};
use crate::app::App;
use crate::parameters::query;
use crate::{body, caller, rest, route};
use axum::body::Body;
use flotilla_core::caller::Caller;
use flotilla_core::error::{Error, Fault};
use flotilla_core::fleet::Via;
use flotilla_core::rights::Right;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::fleet::{Version, announcement};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use serde::Serialize;
use shown::Shown;
use std::sync::Arc;

/// Serves what is below `/api/fleet`.
pub async fn serve(app: &Arc<App>, rest: &[&str], request: Request<Body>) -> Response<Body> {
    let (parts, mut body) = request.into_parts();
    let get = matches!(parts.method, Method::GET | Method::HEAD);
    let post = parts.method == Method::POST;
    let answered = match rest {
        [] if get => list(app, &parts).await,
        ["stream"] if get => stream::follow(app, &parts).await,
        ["announce"] if post => announce(app, &parts, &mut body).await,
        [worker] if get => show(app, worker, &parts).await,
        [worker, "drain"] if post => drain(app, worker, &parts, true).await,
        [worker, "undrain"] if post => drain(app, worker, &parts, false).await,
        [worker, "resume"] if post => resume(app, worker, &parts).await,
        [_, "drain" | "undrain" | "resume"] | ["announce"] => Ok(route::wrong_verb(app, &parts, "POST")),
        [] | [_] => Ok(route::wrong_verb(app, &parts, "GET, HEAD")),
        _ => Ok(route::no_such_path(app, parts.uri.path())),
    };
    let response = answered.unwrap_or_else(|error| rest::refuse(app, &app.refusal(error)));
    answer::after(app, &parts.headers, body, response).await
}

/// Whoever looks at workers must be allowed to read of agents; whose they are is for the hub to say.
async fn looking(app: &App, request: &Parts) -> Result<Caller, Error> {
    let caller = caller::identify(app, request).await?;
    caller.check(Right::AgentsRead)?;
    Ok(caller)
}

async fn list(app: &App, request: &Parts) -> Result<Response<Body>, Error> {
    let caller = looking(app, request).await?;
    let seen = app.hub.workers(&caller);
    let workers: Vec<Shown<'_>> = seen.iter().map(|seen| Shown::of(seen, app.now())).collect();
    encoded(&serde_json::json!({ "workers": workers }))
}

async fn show(app: &App, worker: &str, request: &Parts) -> Result<Response<Body>, Error> {
    let caller = looking(app, request).await?;
    encoded(&Shown::of(&app.hub.worker(&caller, worker)?, app.now()))
}

async fn drain(app: &Arc<App>, worker: &str, request: &Parts, draining: bool) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, request).await?;
    encoded(&Shown::of(&app.hub.drain(&caller, worker, draining).await?, app.now()))
}

async fn resume(app: &Arc<App>, worker: &str, request: &Parts) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, request).await?;
    encoded(&Shown::of(&app.hub.resume_worker(&caller, worker).await?, app.now()))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Taken {
    worker: String,
    taken: bool,
    epoch: Option<u64>,
    /// The version of the handshake it is spoken to in; none if that is plain text.
    version: Option<Version>,
    lease_seconds: u64,
    /// Whether work can be sent to it now, and what to do if it cannot.
    reachable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

const NOTE: &str = "It is in the roster, and OFFLINE: no work can reach an agent that is not connected. Connect to /ws with \
                    this key.";

const TEXT_ONLY: &str = "Version 2.0 of the handshake is spoken here. Work is sent to this worker as plain text, and of an \
                         announcement in another major version only its agent_id and versions count.";

/// The agent is the one of `?agent=NAME`, or else of the announcement's own `agent_id`.
async fn announce(app: &Arc<App>, request: &Parts, body: &mut Body) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, request).await?;
    caller.check(Right::AgentsConnect)?;
    let limits = app.hub.limits();
    let bytes = body::read(request, body, &limits).await?;
    body::check_depth(&bytes, &limits, 0)?;
    let announce =
        announcement(&String::from_utf8_lossy(&bytes)).map_err(|problem| Refusal::invalid("body", problem))?;
    let asked = query(&request.uri).find(|(name, _)| name == "agent").map(|(_, value)| value.into_owned());
    let agent = app.hub.announcing(&caller, asked.as_deref().unwrap_or(&announce.worker.agent_id))?;
    let announced = app.hub.announce_worker(&agent, *announce, Via::Http).await?;
    let left = announced.lease_until.0.saturating_sub(app.now().0) / 1000;
    let lease_seconds = u64::try_from(left).unwrap_or(0);
    let reachable = agent.link.absence().is_none();
    encoded(&Taken {
        worker: agent.name.clone(),
        taken: announced.taken,
        epoch: announced.epoch,
        version: announced.version,
        lease_seconds,
        reachable,
        note: (!reachable).then_some(NOTE).or(announced.version.is_none().then_some(TEXT_ONLY)),
    })
}

pub(super) fn encoded<T: Serialize>(value: &T) -> Result<Response<Body>, Error> {
    let body = serde_json::to_vec(value).map_err(|error| Fault::new(format!("encoding workers: {error}")))?;
    Ok(with_type(StatusCode::OK, JSON, body))
}
