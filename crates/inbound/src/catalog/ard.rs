//! The registry of ARD (Agentic Resource Discovery) below `/api/ard`: search, and a plain list. No key is needed.

use super::request::{self, Federation, Mark, Search};
use crate::answer::{self, JSON, with_type};
use crate::app::App;
use crate::parameters::query;
use crate::{body, well_known};
use axum::body::Body;
use flotilla_core::caller::Caller;
use flotilla_core::registry::Agent;
use flotilla_core::relevance::{CUTOFF, Need};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use http::header::RETRY_AFTER;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::sync::Arc;

/// Serves what is below `/api/ard`.
pub async fn serve(app: &Arc<App>, path: &[&str], request: Request<Body>) -> Response<Body> {
    let (parts, mut body) = request.into_parts();
    let response = match (&parts.method, path) {
        (&Method::POST, ["search"]) => search(app, &parts, &mut body).await,
        (&Method::GET | &Method::HEAD, ["agents"]) => list(app, &parts),
        // What a registry says that does not have explore.
        _ => Ok(error(StatusCode::NOT_IMPLEMENTED, "NOT_IMPLEMENTED", "There is no explore here.")),
    };
    let response = response.unwrap_or_else(|refusal| refuse(&refusal));
    answer::after(app, &parts.headers, body, response).await
}

async fn search(app: &App, request: &Parts, body: &mut Body) -> Result<Response<Body>, Refusal> {
    // All who show no key are one caller here, as they are elsewhere.
    app.hub.count_request(Caller::anonymous().principal)?;
    let limits = app.hub.limits();
    let bytes = body::read(request, body, &limits).await?;
    body::check_depth(&bytes, &limits, 0)?;
    let search = request::read(&bytes).map_err(|problem| Refusal::new(Reason::InvalidParams, problem))?;
    Ok(with_type(StatusCode::OK, JSON, found(app, &search).to_string()))
}

fn found(app: &App, search: &Search) -> Value {
    let (settings, registry) = (app.settings(), app.hub.registry());
    let need = Need::of(&search.text);
    let mut fitting: Vec<(u8, &Arc<Agent>, Value)> = Vec::new();
    for agent in super::public(app, &registry) {
        let score = need.score(agent);
        if score >= CUTOFF {
            let entry = super::entry(app, &settings, agent);
            if fits(&entry, search, &super::publisher(&settings)) {
                fitting.push((score, agent, entry));
            }
        }
    }
    fitting.sort_by(|a, b| (Reverse(a.0), &a.1.name).cmp(&(Reverse(b.0), &b.1.name)));
    let after =
        |mark: &Mark| fitting.partition_point(|f| (Reverse(f.0), &f.1.name) <= (Reverse(mark.score), &mark.name));
    let start = search.after.as_ref().map_or(0, after);
    let rest = &fitting[start..];
    let page = &rest[..rest.len().min(search.size)];
    let result = |(score, _, entry): &(u8, &Arc<Agent>, Value)| {
        let mut result = entry.clone();
        result["score"] = (*score).into();
        result["source"] = super::base(&settings).into();
        result
    };
    let results: Vec<Value> = page.iter().map(result).collect();
    let mut answer = json!({"results": results});
    if search.federation == Federation::Referrals {
        answer["referrals"] = json!([]);
    }
    if let (Some((score, agent, _)), true) = (page.last(), rest.len() > page.len()) {
        answer["pageToken"] = Mark { score: *score, name: agent.name.clone() }.token().into();
    }
    answer
}

/// Each member that is named must have one of the values.
fn fits(entry: &Value, search: &Search, publisher: &str) -> bool {
    let has = |key: &str, wanted: &String| match (key, &entry[key]) {
        ("publisher", _) => publisher.eq_ignore_ascii_case(wanted),
        (_, Value::Array(values)) => {
            values.iter().filter_map(Value::as_str).any(|value| value.eq_ignore_ascii_case(wanted))
        }
        (_, value) => value.as_str().is_some_and(|value| value.eq_ignore_ascii_case(wanted)),
    };
    search.filter.iter().all(|(key, values)| values.iter().any(|wanted| has(key, wanted)))
}

/// All public agents by name.
fn list(app: &App, request: &Parts) -> Result<Response<Body>, Refusal> {
    app.hub.count_request(Caller::anonymous().principal)?;
    let invalid = |problem: String| Refusal::new(Reason::InvalidParams, problem);
    let (mut size, mut after) = (None, None);
    for (name, value) in query(&request.uri) {
        match name.as_ref() {
            "pageSize" => size = Some(value.parse().map_err(|_| invalid("pageSize must be a number".into()))?),
            "pageToken" => after = Some(Mark::read(&value).map_err(invalid)?.name),
            other => {
                return Err(invalid(format!("'{other}' is not understood here; there are pageSize and pageToken")));
            }
        }
    }
    let size = request::page_size(size, 20).map_err(invalid)?;
    let (settings, registry) = (app.settings(), app.hub.registry());
    let total = super::public(app, &registry).count();
    let mut rest = super::public(app, &registry).filter(|agent| Some(&agent.name) > after.as_ref());
    let page: Vec<&Arc<Agent>> = rest.by_ref().take(size).collect();
    let items: Vec<Value> = page.iter().map(|agent| super::entry(app, &settings, agent)).collect();
    let mut answer = json!({"items": items, "total": total});
    if let (Some(last), true) = (page.last(), rest.next().is_some()) {
        answer["pageToken"] = Mark { score: 0, name: last.name.clone() }.token().into();
    }
    Ok(well_known::public(app, request, answer.to_string().into_bytes()))
}

/// ARD has a form of its own for errors.
fn refuse(refusal: &Refusal) -> Response<Body> {
    let row = refusal.reason.row();
    let status = StatusCode::from_u16(row.http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let code = match refusal.reason {
        Reason::Unauthenticated => "UNAUTHENTICATED",
        Reason::ResourceExhausted => "RATE_LIMIT_EXCEEDED",
        Reason::Internal => "INTERNAL_ERROR",
        _ => "INVALID_ARGUMENT",
    };
    let mut response = error(status, code, &refusal.message);
    if let Some(seconds) = refusal.retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn error(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    with_type(status, JSON, json!({"errorCode": code, "message": message}).to_string())
}
