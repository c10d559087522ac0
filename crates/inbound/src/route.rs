//! Paths: which binding serves a request, and which agent it names.

use crate::app::App;
use crate::rest::path::{self, Missed};
use crate::{answer, browser, deliveries, door, grpc, health, jsonrpc, keys, owner, rest, well_known};
use axum::body::Body;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::sync::Arc;

/// Everything on one port. `{id}:cancel` is no pattern a router knows, so paths are matched by hand.
pub async fn serve(app: Arc<App>, request: Request<Body>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let decoded = decoded(&path);
    let segments: Vec<&str> = decoded.iter().map(AsRef::as_ref).collect();
    let settings = app.settings();
    let checked = door::check(&app, &settings, &request).and_then(|()| browser::origin(&settings, &request));
    match checked {
        Err(refusal) => refuse(&app, &segments, request, &refusal).await,
        Ok(Some(origin)) if browser::is_preflight(&request) => {
            browser::allow(&settings, browser::preflight(), Some(origin))
        }
        Ok(origin) => browser::allow(&settings, dispatch(app, &segments, request).await, origin),
    }
}

async fn dispatch(app: Arc<App>, segments: &[&str], request: Request<Body>) -> Response<Body> {
    match segments {
        [service, method] if grpc::is_asked(&request) => grpc::serve(&app, service, method, request).await,
        path if is_json_rpc(request.method(), path) => jsonrpc::serve(&app, path.get(1).copied(), request).await,
        ["agents", agent, rest @ ..] if path::is_ours(rest) => serve_rest(&app, Some(agent), rest, request).await,
        rest if path::is_ours(rest) => serve_rest(&app, None, rest, request).await,
        [tenant, rest @ ..] if *tenant != "api" && path::is_ours(rest) => {
            serve_rest(&app, Some(tenant), rest, request).await
        }
        ["api", "keys", named @ ..] => keys::serve(&app, named, request).await,
        ["api", "deliveries", rest @ ..] if rest.len() < 2 => deliveries::serve(&app, rest, request).await,
        other => {
            let (parts, body) = request.into_parts();
            let response = without_body(&app, other, &parts).await;
            answer::after(&app, &parts.headers, body, response).await
        }
    }
}

/// Split first, decode then: an encoded slash belongs to its segment.
pub fn decoded(path: &str) -> Vec<Cow<'_, str>> {
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    segments.map(|segment| percent_decode_str(segment).decode_utf8_lossy()).collect()
}

fn is_json_rpc(verb: &Method, segments: &[&str]) -> bool {
    *verb == Method::POST && matches!(segments, [] | ["a2a" | "rpc"] | ["agents", _] | ["agents", _, "a2a"])
}

/// Answers on a connection there is no place for: whoever watches over the hub is served, all others come again later.
pub async fn turn_away(app: Arc<App>, request: Request<Body>, most: usize) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let decoded = decoded(&path);
    match decoded.iter().map(AsRef::as_ref).collect::<Vec<&str>>().as_slice() {
        ["healthz" | "readyz" | "metrics"] | ["grpc.health.v1.Health", _] => serve(app, request).await,
        segments => refuse(&app, segments, request, &door::crowded(most)).await,
    }
}

/// A refusal in the form of the binding the request is for; its connection ends with it.
async fn refuse(app: &App, segments: &[&str], request: Request<Body>, refusal: &Refusal) -> Response<Body> {
    let form = if grpc::is_asked(&request) {
        grpc::refuse(app, refusal)
    } else if is_json_rpc(request.method(), segments) {
        jsonrpc::refuse(app, "null", refusal)
    } else {
        rest::refuse(app, refusal)
    };
    let (parts, body) = request.into_parts();
    let mut response = answer::after(app, &parts.headers, body, form).await;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Paths that take no body; one that comes all the same is read and dropped.
async fn without_body(app: &Arc<App>, segments: &[&str], request: &Parts) -> Response<Body> {
    let get = matches!(request.method, Method::GET | Method::HEAD);
    match segments {
        [".well-known", "agent-card.json" | "agent.json"] if get => well_known::serve(app, None, request).await,
        ["agents", agent, ".well-known", "agent-card.json" | "agent.json"] if get => {
            well_known::serve(app, Some(agent), request).await
        }
        [".well-known", "jwks.json"] if get => well_known::jwks(app, request),
        ["healthz"] if get => health::alive(),
        ["readyz"] if get => health::ready(app).await,
        ["metrics"] if get => health::metrics(app),
        ["api", "tasks", id, "log"] if get => owner::log(app, id, request).await,
        [flotilla_grpc::SERVICE, _] => grpc::not_grpc(app),
        [".well-known", "agent-card.json" | "agent.json" | "jwks.json"]
        | ["agents", _, ".well-known", "agent-card.json" | "agent.json"]
        | ["healthz" | "readyz" | "metrics"]
        | ["api", "tasks", _, "log"] => wrong_verb(app, request, "GET, HEAD"),
        [] | ["a2a" | "rpc"] | ["agents", _] | ["agents", _, "a2a"] => wrong_verb(app, request, "POST"),
        _ => no_such_path(app, request.uri.path()),
    }
}

async fn serve_rest(app: &Arc<App>, agent: Option<&str>, rest: &[&str], request: Request<Body>) -> Response<Body> {
    let missed = match path::target(request.method(), rest) {
        Ok(target) => return rest::serve(app, agent, target, request).await,
        Err(missed) => missed,
    };
    let (parts, body) = request.into_parts();
    let response = match missed {
        Missed::NoSuchPath => no_such_path(app, parts.uri.path()),
        Missed::Verb(allowed) => wrong_verb(app, &parts, allowed),
    };
    answer::after(app, &parts.headers, body, response).await
}

pub fn wrong_verb(app: &App, request: &Parts, allowed: &'static str) -> Response<Body> {
    let shown: String = request.uri.path().chars().take(200).collect();
    let text = format!("{shown} takes {allowed}, not {}.", request.method);
    answer::allow(rest::refuse(app, &Refusal::new(Reason::VerbNotAllowed, text)), allowed)
}

fn no_such_path(app: &App, path: &str) -> Response<Body> {
    let shown: String = path.chars().take(200).collect();
    let text = format!("There is nothing at {shown}. The agent card at /.well-known/agent-card.json lists what is.");
    rest::refuse(app, &Refusal::new(Reason::MethodNotFound, text))
}
