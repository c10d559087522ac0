//! The owner's view of approvals: what their agents ask leave for, and the way to answer.

use crate::answer::{self, JSON, with_type};
use crate::app::App;
use crate::asked::{check, value};
use crate::{body, caller, rest, route};
use axum::body::Body;
use flotilla_core::approval::Approval;
use flotilla_core::caller::Caller;
use flotilla_core::error::{Error, Fault};
use flotilla_core::rights::Right;
use flotilla_core::task::approve::Answer;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::approval::ApprovalState;
use flotilla_protocol::decode::message;
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::Json;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    id: String,
    task_id: String,
    run: u32,
    agent: String,
    workspace: String,
    kind: &'static str,
    state: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Json>,
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
    created_at: Millis,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Answered<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answered<'a> {
    by: &'a str,
    at: Millis,
    #[serde(skip_serializing_if = "str::is_empty")]
    note: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Json>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    always: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    approvals: Vec<Shown<'a>>,
    /// Where the next page starts; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_before: Option<String>,
}

async fn shown<'a>(app: &App, approval: &'a Approval) -> Result<Shown<'a>, Error> {
    let registry = app.hub.registry();
    let agent = registry.by_id(approval.agent);
    let workspace = match agent {
        Some(agent) => app.hub.store().workspace_name(agent.workspace).await?,
        None => String::new(),
    };
    let request = &approval.request;
    Ok(Shown {
        id: approval.id.to_string(),
        task_id: approval.task.to_string(),
        run: approval.run,
        agent: agent.map(|agent| agent.name.clone()).unwrap_or_default(),
        workspace,
        kind: request.kind.name(),
        state: approval.state().name(),
        tool: &request.tool,
        input: request.input.as_ref(),
        text: &request.text,
        created_at: approval.created_at,
        expires_at: approval.expires_at,
        answer: approval.settled.as_ref().map(|settled| Answered {
            by: &settled.answer.by,
            at: settled.at,
            note: &settled.answer.note,
            input: settled.answer.input.as_ref(),
            always: settled.answer.always,
        }),
    })
}

/// What an owner sends to answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Said {
    decision: Word,
    #[serde(default)]
    note: String,
    /// What to use the tool with instead.
    #[serde(default)]
    input: Option<Json>,
    /// For every further question of the task about the same tool.
    #[serde(default)]
    always: bool,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Word {
    Allow,
    Deny,
}

/// `/api/approvals` and `/api/approvals/{id}`.
pub async fn serve(app: &Arc<App>, rest: &[&str], request: Request<Body>) -> Response<Body> {
    let (parts, mut body) = request.into_parts();
    let get = matches!(parts.method, Method::GET | Method::HEAD);
    let response = match rest {
        [] if get => list(app, &parts).await,
        [id] if get => show(app, id, &parts).await,
        [id] if parts.method == Method::POST => decide(app, id, &parts, &mut body).await,
        [] => Ok(route::wrong_verb(app, &parts, "GET, HEAD")),
        _ => Ok(route::wrong_verb(app, &parts, "GET, HEAD, POST")),
    };
    let response = response.unwrap_or_else(|error| rest::refuse(app, &app.refusal(error)));
    answer::after(app, &parts.headers, body, response).await
}

async fn owner(app: &App, request: &Parts, right: Right) -> Result<Caller, Error> {
    let caller = caller::identify(app, request).await?;
    caller.check(right)?;
    Ok(caller)
}

async fn list(app: &App, request: &Parts) -> Result<Response<Body>, Error> {
    const KNOWN: [&str; 4] = ["state", "task", "agent", "before"];
    let caller = owner(app, request, Right::TasksRead).await?;
    check(&KNOWN, &request.uri)?;
    let [state, task, agent, before] = KNOWN.map(|name| value(&request.uri, name));
    let [state, task, agent, before] = [&state, &task, &agent, &before].map(Option::as_deref);
    let page = app.hub.approval_page(&caller, state, task, agent, before).await?;
    let mut approvals = Vec::with_capacity(page.approvals.len());
    for approval in &page.approvals {
        approvals.push(shown(app, approval).await?);
    }
    encode(&Page { approvals, next_before: page.next.map(|id| id.to_string()) })
}

async fn show(app: &App, id: &str, request: &Parts) -> Result<Response<Body>, Error> {
    let caller = owner(app, request, Right::TasksRead).await?;
    check(&[], &request.uri)?;
    encode(&shown(app, &app.hub.approval(&caller, id).await?).await?)
}

async fn decide(app: &Arc<App>, id: &str, request: &Parts, body: &mut Body) -> Result<Response<Body>, Error> {
    let caller = owner(app, request, Right::ApprovalsWrite).await?;
    check(&[], &request.uri)?;
    let limits = app.hub.limits();
    let bytes = body::read(request, body, &limits).await?;
    body::check_depth(&bytes, &limits, 0)?;
    body::check_type(&request.headers)?;
    let Said { decision, note, input, always } = message(&bytes)?;
    if decision == Word::Deny && input.is_some() {
        return Err(Refusal::invalid("input", "goes with the decision \"allow\" only").into());
    }
    let state = if decision == Word::Allow { ApprovalState::Allowed } else { ApprovalState::Denied };
    let answer = Answer { state, by: String::new(), note, input, always };
    encode(&shown(app, &app.hub.answer_approval(&caller, id, answer).await?).await?)
}

fn encode<T: Serialize>(value: &T) -> Result<Response<Body>, Error> {
    let body = serde_json::to_vec(value).map_err(|error| Fault::new(format!("encoding approvals: {error}")))?;
    Ok(with_type(StatusCode::OK, JSON, body))
}
