//! Paths: which binding serves a request, and which agent it names.

use crate::app::App;
use crate::rest::path::{self, Missed};
use crate::{answer, health, jsonrpc, owner, rest, well_known};
use axum::body::Body;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use std::sync::Arc;

/// Everything on one port. `{id}:cancel` is no pattern a router knows, so paths are matched by hand.
pub async fn serve(app: Arc<App>, request: Request<Body>) -> Response<Body> {
    let decoded = percent_decode_str(request.uri().path()).decode_utf8_lossy().into_owned();
    let segments: Vec<&str> = decoded.split('/').filter(|segment| !segment.is_empty()).collect();
    let post = *request.method() == Method::POST;
    match segments.as_slice() {
        [] | ["a2a" | "rpc"] if post => jsonrpc::serve(&app, None, request).await,
        ["agents", agent] | ["agents", agent, "a2a"] if post => jsonrpc::serve(&app, Some(agent), request).await,
        ["agents", agent, rest @ ..] if path::is_ours(rest) => serve_rest(&app, Some(agent), rest, request).await,
        rest if path::is_ours(rest) => serve_rest(&app, None, rest, request).await,
        [tenant, rest @ ..] if path::is_ours(rest) => serve_rest(&app, Some(tenant), rest, request).await,
        other => {
            let (parts, body) = request.into_parts();
            let response = without_body(&app, other, &parts).await;
            answer::after(&app, body, response).await
        }
    }
}

/// Paths that take no body; one that comes all the same is read and dropped.
async fn without_body(app: &App, segments: &[&str], request: &Parts) -> Response<Body> {
    match segments {
        [".well-known", "agent-card.json" | "agent.json"] => well_known::serve(app, None, request),
        ["agents", agent, ".well-known", "agent-card.json" | "agent.json"] => {
            well_known::serve(app, Some(agent), request)
        }
        ["healthz"] => health::alive(),
        ["readyz"] => health::ready(app).await,
        ["metrics"] => health::metrics(app),
        ["api", "tasks", id, "log"] if request.method == Method::GET => owner::log(app, id, request).await,
        [] | ["a2a" | "rpc"] | ["agents", _] | ["agents", _, "a2a"] => {
            answer::allow(answer::with_type(StatusCode::METHOD_NOT_ALLOWED, answer::JSON, JSON_RPC_HINT), "POST")
        }
        _ => no_such_path(app, request.uri.path()),
    }
}

const JSON_RPC_HINT: &str = "{\"error\":{\"code\":405,\"status\":\"UNIMPLEMENTED\",\"message\":\"This is the JSON-RPC \
endpoint: POST a JSON-RPC 2.0 request to it. The agent card is at /.well-known/agent-card.json.\"}}";

async fn serve_rest(app: &Arc<App>, agent: Option<&str>, rest: &[&str], request: Request<Body>) -> Response<Body> {
    let missed = match path::target(request.method(), rest) {
        Ok(target) => return rest::serve(app, agent, target, request).await,
        Err(missed) => missed,
    };
    let (parts, body) = request.into_parts();
    let response = match missed {
        Missed::NoSuchPath => no_such_path(app, parts.uri.path()),
        Missed::Verb(allowed) => {
            let text = format!("This path takes {allowed}, not {}.", parts.method);
            let mut response = rest::refuse(app, &Refusal::new(Reason::MethodNotFound, text));
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            answer::allow(response, allowed)
        }
    };
    answer::after(app, body, response).await
}

fn no_such_path(app: &App, path: &str) -> Response<Body> {
    let shown: String = path.chars().take(200).collect();
    let text = format!("There is nothing at {shown}. The agent card at /.well-known/agent-card.json lists what is.");
    rest::refuse(app, &Refusal::new(Reason::MethodNotFound, text))
}
