//! Paths: which binding serves a request, and which agent it names.

use crate::app::App;
use crate::dialect::Dialect;
use crate::load::Load;
use crate::parameters::Parameters;
use crate::rest::path::{self, Missed};
use crate::well_known::Place;
use crate::ws::Manner;
use crate::{
    answer, api, browser, catalog, door, gopherhole, grpc, health, jsonrpc, metrics_text, rest, schemas, well_known, ws,
};
use axum::body::Body;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::version::Version;
use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

/// Everything on one port. `{id}:cancel` is no pattern a router knows, so paths are matched by hand.
pub async fn serve(app: Arc<App>, request: Request<Body>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let decoded = decoded(&path);
    let segments: Vec<&str> = decoded.iter().map(AsRef::as_ref).collect();
    let settings = app.settings();
    let checked = door::check(&app, &settings, &request).and_then(|()| browser::origin(&settings, &request));
    let origin = match checked {
        Err(refusal) => return Box::pin(refuse(&app, &segments, request, &refusal)).await,
        Ok(Some(origin)) if browser::is_preflight(&request) => {
            return browser::allow(&settings, browser::preflight(), Some(origin));
        }
        Ok(origin) => origin,
    };
    let (mut parts, body) = request.into_parts();
    let form = Form::of(&parts, &segments);
    let load = match Load::begin(&app, &parts) {
        Ok(load) => load,
        Err(_) if matches!(segments.as_slice(), ["healthz" | "readyz"]) => {
            return dispatch(&app, &segments, Request::from_parts(parts, Body::empty())).await;
        }
        // Nothing of it is kept, not even to read its body to the end.
        Err(refusal) => {
            let dialect = Dialect::by_version(&Parameters::of(&parts.headers, &parts.uri));
            return browser::allow(&settings, form.refuse(&app, dialect, &refusal), origin);
        }
    };
    parts.extensions.insert(load.clone());
    let response = dispatch(&app, &segments, Request::from_parts(parts, body)).await;
    let response = match load.answered(&response) {
        Ok(()) => response,
        Err(refusal) => form.refuse(&app, Dialect::of_answer(&response), &refusal),
    };
    browser::allow(&settings, response.map(|body| load.count(body)), origin)
}

/// Each way is in a box of its own, so that none is as large as the largest of them.
fn dispatch<'a>(
    app: &'a Arc<App>,
    segments: &'a [&str],
    request: Request<Body>,
) -> Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>> {
    match segments {
        [service, method] if grpc::is_asked(request.headers()) => grpc::serve(app, service, method, request),
        path if is_json_rpc(request.method(), path) => Box::pin(jsonrpc::serve(app, path.get(1).copied(), request)),
        path => Box::pin(dispatch_otherwise(app, path, request)),
    }
}

async fn dispatch_otherwise(app: &Arc<App>, segments: &[&str], request: Request<Body>) -> Response<Body> {
    let old = path::in_03(segments).filter(|(_, rest)| path::is_ours_in_03(rest));
    let (agent, rest, version) = match segments {
        _ if let Some((agent, rest)) = old => (agent, rest, Version::V03),
        ["agents", agent, rest @ ..] if path::is_ours(rest) => (Some(*agent), rest, Version::V10),
        rest if path::is_ours(rest) => (None, rest, Version::V10),
        [tenant, rest @ ..] if !matches!(*tenant, "api" | "v1") && path::is_ours(rest) => {
            (Some(*tenant), rest, Version::V10)
        }
        ["ws"] => return ws::serve(app, Manner::Frames, request).await,
        ["gopherhole", rest @ ..] if gopherhole::is_path(rest) => {
            return Box::pin(serve_gopherhole(app, rest, request)).await;
        }
        ["api", rest @ ..] => return Box::pin(api::serve(app, rest, request)).await,
        other => {
            let (parts, body) = request.into_parts();
            let response = without_body(app, other, &parts).await;
            return answer::after(app, &parts.headers, body, response).await;
        }
    };
    serve_rest(app, agent, rest, version, request).await
}

async fn serve_gopherhole(app: &Arc<App>, rest: &[&str], request: Request<Body>) -> Response<Body> {
    match rest {
        ["ws"] => ws::serve(app, Manner::GopherHole, request).await,
        ["api", rest @ ..] => api::serve(app, rest, request).await,
        _ if *request.method() == Method::POST => gopherhole::http::serve(app, request).await,
        _ => {
            let (parts, body) = request.into_parts();
            answer::after(app, &parts.headers, body, wrong_verb(app, &parts, "POST")).await
        }
    }
}

/// Split first, decode then: an encoded slash belongs to its segment.
pub fn decoded(path: &str) -> Vec<Cow<'_, str>> {
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    let is_escaped = path.contains('%');
    let decode = |segment| match is_escaped {
        true => percent_decode_str(segment).decode_utf8_lossy(),
        false => Cow::Borrowed(segment),
    };
    segments.map(decode).collect()
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
    let (parts, body) = request.into_parts();
    let dialect = Dialect::by_version(&Parameters::of(&parts.headers, &parts.uri));
    let refused = Form::of(&parts, segments).refuse(app, dialect, refusal);
    let mut response = answer::after(app, &parts.headers, body, refused).await;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The form a request is refused in, wherever that happens.
#[derive(Clone, Copy)]
enum Form {
    Grpc,
    JsonRpc,
    Rest,
    RestIn03,
    GopherHole,
}

impl Form {
    fn of(request: &Parts, segments: &[&str]) -> Self {
        if grpc::is_asked(&request.headers) {
            Self::Grpc
        } else if is_json_rpc(&request.method, segments) {
            Self::JsonRpc
        } else if path::in_03(segments).is_some() {
            Self::RestIn03
        } else if matches!(segments, ["gopherhole", rest @ ..] if gopherhole::is_request(rest)) {
            Self::GopherHole
        } else {
            Self::Rest
        }
    }

    fn refuse(self, app: &App, dialect: Dialect, refusal: &Refusal) -> Response<Body> {
        match self {
            Self::Grpc => grpc::refuse(app, refusal),
            Self::JsonRpc => jsonrpc::turn_away(app, dialect, refusal),
            Self::RestIn03 => rest::refuse_in_03(app, refusal),
            Self::Rest => rest::refuse(app, refusal),
            Self::GopherHole => gopherhole::http::refuse(app, &HeaderMap::new(), "null", refusal),
        }
    }
}

/// Paths that take no body; one that comes all the same is read and dropped.
async fn without_body(app: &Arc<App>, segments: &[&str], request: &Parts) -> Response<Body> {
    let get = matches!(request.method, Method::GET | Method::HEAD);
    if let Some((agent, ["card"])) = path::in_03(segments) {
        let place = Place::Api(agent);
        return if get { well_known::serve(app, place, request).await } else { wrong_verb(app, request, "GET, HEAD") };
    }
    match segments {
        [".well-known", "agent-card.json"] if get => well_known::serve(app, Place::Root, request).await,
        [".well-known", "agent.json"] if get => well_known::serve(app, Place::OldRoot, request).await,
        ["agents", agent, ".well-known", "agent-card.json"] if get => {
            well_known::serve(app, Place::Agent(agent), request).await
        }
        ["agents", agent, ".well-known", "agent.json"] if get => {
            well_known::serve(app, Place::OldAgent(agent), request).await
        }
        [".well-known", "jwks.json"] if get => well_known::jwks(app, request),
        [".well-known", "ai-catalog.json"] if get => catalog::serve(app, request),
        ["healthz"] if get => health::alive(),
        ["readyz"] if get => health::ready(app).await,
        ["metrics"] if get => metrics_text::serve(app, request).await,
        ["schemas", "fleet", file] if get => {
            schemas::fleet(file).unwrap_or_else(|| no_such_path(app, request.uri.path()))
        }
        [service @ (flotilla_grpc::SERVICE | flotilla_grpc::v03::SERVICE), _] => grpc::not_grpc(app, service),
        [".well-known", "agent-card.json" | "agent.json" | "jwks.json" | "ai-catalog.json"]
        | ["agents", _, ".well-known", "agent-card.json" | "agent.json"]
        | ["healthz" | "readyz" | "metrics"]
        | ["schemas", "fleet", _] => wrong_verb(app, request, "GET, HEAD"),
        [] | ["a2a" | "rpc"] | ["agents", _] | ["agents", _, "a2a"] => wrong_verb(app, request, "POST"),
        _ => no_such_path(app, request.uri.path()),
    }
}

async fn serve_rest(
    app: &Arc<App>,
    agent: Option<&str>,
    rest: &[&str],
    version: Version,
    request: Request<Body>,
) -> Response<Body> {
    let target = match version {
        Version::V10 => path::target(request.method(), rest),
        Version::V03 => path::target_in_03(request.method(), rest),
    };
    let missed = match target {
        Ok(target) => return rest::serve(app, agent, version, target, request).await,
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
    answer::allow(refuse_path(app, request.uri.path(), Reason::VerbNotAllowed, text), allowed)
}

pub fn no_such_path(app: &App, path: &str) -> Response<Body> {
    let shown: String = path.chars().take(200).collect();
    let text = format!("There is nothing at {shown}. The agent card at /.well-known/agent-card.json lists what is.");
    refuse_path(app, path, Reason::MethodNotFound, text)
}

/// A path that leads nowhere is refused in the form of the version it is of.
fn refuse_path(app: &App, path: &str, reason: Reason, text: String) -> Response<Body> {
    let decoded = decoded(path);
    let segments: Vec<&str> = decoded.iter().map(AsRef::as_ref).collect();
    let refusal = Refusal::new(reason, text);
    if path::in_03(&segments).is_some() { rest::refuse_in_03(app, &refusal) } else { rest::refuse(app, &refusal) }
}
