//! Work for workers over the hub's own API: given, and why it went where it went.

use crate::answer::{self, JSON, with_type};
use crate::app::App;
use crate::parameters::Parameters;
use crate::{body, caller, rest, route};
use axum::body::Body;
use flotilla_core::dispatch::Target;
use flotilla_core::error::{Error, Fault};
use flotilla_core::fleet::FLEET;
use flotilla_core::fleet::contract::addressee;
use flotilla_core::hub::{Outcome, SendOptions};
use flotilla_core::rights::Right;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::{Message, Part, Role, TaskState};
use flotilla_protocol::a2a::request::{SendMessageConfiguration, SendMessageRequest};
use flotilla_protocol::event::Event;
use flotilla_protocol::fleet::route::Step;
use flotilla_protocol::fleet::{Dispatch, Found, HANDSHAKE, Handshake, Kind, read};
use flotilla_protocol::lineage::ANCESTRY;
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::Object;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// `POST /api/dispatch`: takes a TASK_DISPATCH, whose `to` says whom it is for; answers with the task.
pub async fn serve(app: &Arc<App>, request: Request<Body>) -> Response<Body> {
    let (parts, mut body) = request.into_parts();
    let answered = match parts.method {
        Method::POST => dispatch(app, &parts, &mut body).await,
        _ => Ok(route::wrong_verb(app, &parts, "POST")),
    };
    let response = answered.unwrap_or_else(|error| rest::refuse(app, &app.refusal(error)));
    answer::after(app, &parts.headers, body, response).await
}

async fn dispatch(app: &Arc<App>, request: &Parts, body: &mut Body) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, request).await?;
    caller.check(Right::TasksWrite)?;
    let limits = app.hub.limits();
    let bytes = body::read(request, body, &limits).await?;
    body::check_depth(&bytes, &limits, 0)?;
    body::check_type(&request.headers)?;
    let parameters = Parameters::of(&request.headers, &request.uri);
    parameters.check_key()?;
    let Given { mut dispatch, newer } = dispatched(&String::from_utf8_lossy(&bytes))?;
    let metadata = ancestry(&mut dispatch)?;
    let context = context(&mut dispatch)?;
    let named = match addressee(&dispatch)? {
        Target::Worker(name) => name,
        Target::Label(_) | Target::Skill(_) if newer.is_some() => {
            let text = "a label or a skill can be named in version 2.0 only; name a worker, or leave 'to' out";
            return Err(Refusal::invalid("to", text).into());
        }
        Target::Any | Target::Label(_) | Target::Skill(_) => {
            if app.hub.show_fleet() {
                app.cards_changed();
            }
            FLEET.to_owned()
        }
    };
    let agent = Arc::clone(app.hub.registry().resolve(&caller, Some(&named), "")?);
    let idempotency_key = parameters.idempotency_key.clone();
    let options = SendOptions { idempotency_key, told: parameters.told.clone(), ..SendOptions::default() };
    let outcome =
        Box::pin(app.hub.send(&caller, &agent, Box::new(message(&dispatch, newer, metadata, context)?), options))
            .await?;
    let (Outcome::Task(task), _) = outcome else { return Err(Fault::new("dispatched work that is no task").into()) };
    encoded(&serde_json::json!({ "agent": agent.name, "task": task }))
}

/// What is to be done, and for whom.
struct Given {
    dispatch: Dispatch,
    /// The dispatch itself, if it is of a version that is not spoken here: its brief goes on as plain text, and the task's
    /// log says so.
    newer: Option<Value>,
}

fn dispatched(json: &str) -> Result<Given, Refusal> {
    match read(json) {
        Found::Handshake(Handshake::Dispatch(dispatch)) => Ok(Given { dispatch: *dispatch, newer: None }),
        Found::OtherVersion(Kind::Dispatch, _) => plain(json),
        Found::Wrong(problem) => Err(Refusal::invalid("body", problem)),
        Found::Nothing | Found::OtherVersion(..) | Found::Handshake(_) => {
            Err(Refusal::invalid("body", "must be a TASK_DISPATCH; docs/fleet.md shows one"))
        }
    }
}

/// As much of a dispatch as can be understood whatever its version is.
fn plain(json: &str) -> Result<Given, Refusal> {
    let mut members: Map<String, Value> =
        serde_json::from_str(json).map_err(|error| Refusal::invalid("body", error.to_string()))?;
    let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
    let brief = text("brief").filter(|brief| !brief.trim().is_empty());
    let brief = brief.ok_or_else(|| Refusal::invalid("brief", "must say what is to be done"))?;
    let mut dispatch = Dispatch { brief, to: text("to"), ..Dispatch::default() };
    for name in ["metadata", "parentTaskId", "parent_task_id", "contextId"] {
        dispatch.more.extend(members.remove(name).map(|told| (name.to_owned(), told)));
    }
    Ok(Given { dispatch, newer: Some(Value::Object(members)) })
}

/// What is told beside the dispatch of where the call comes from, as the `metadata` of a send tells it.
fn ancestry(dispatch: &mut Dispatch) -> Result<Option<Object>, Refusal> {
    for name in ["parentTaskId", "parent_task_id"] {
        if dispatch.more.contains_key(name) {
            let text = format!(
                "is not known here; tell the tasks this is part of as metadata: \
                 {{\"{ANCESTRY}\": {{\"chain\": [...]}}}} (docs/ancestry.md)"
            );
            return Err(Refusal::invalid(name, text));
        }
    }
    let Some(metadata) = dispatch.more.remove("metadata").filter(|metadata| !metadata.is_null()) else {
        return Ok(None);
    };
    let object = Object::of(&metadata).map_err(|_| Refusal::invalid("metadata", "must be an object"))?;
    Ok(Some(object))
}

/// The context the work belongs to, told beside the dispatch as `contextId`; without one it is a context of its own.
fn context(dispatch: &mut Dispatch) -> Result<String, Refusal> {
    match dispatch.more.remove("contextId") {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(context)) if !context.is_empty() => Ok(context),
        Some(_) => {
            Err(Refusal::invalid("contextId", "must be the id of a context, a text; leave it out for a new one"))
        }
    }
}

fn message(
    dispatch: &Dispatch,
    newer: Option<Value>,
    beside: Option<Object>,
    context_id: String,
) -> Result<SendMessageRequest, Fault> {
    let told = newer.unwrap_or_else(|| serde_json::json!(dispatch));
    let metadata = Object::of(&serde_json::json!({ HANDSHAKE: told }));
    let message = Message {
        message_id: uuid::Uuid::now_v7().to_string(),
        context_id,
        role: Role::User,
        parts: vec![Part::text(dispatch.brief.clone())],
        metadata: Some(metadata.map_err(|error| Fault::new(format!("encoding a dispatch: {error}")))?),
        extensions: vec![HANDSHAKE.to_owned()],
        ..Message::default()
    };
    let configuration = SendMessageConfiguration { return_immediately: true, ..SendMessageConfiguration::default() };
    Ok(SendMessageRequest {
        message: Some(message),
        configuration: Some(configuration),
        metadata: beside,
        ..SendMessageRequest::default()
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Why<'a> {
    task_id: String,
    context_id: &'a str,
    state: TaskState,
    /// The log was folded, and single decisions may be gone.
    pruned: bool,
    steps: Vec<Decided<'a>>,
}

#[derive(Serialize)]
struct Decided<'a> {
    seq: u64,
    at: Millis,
    run: u32,
    #[serde(flatten)]
    step: Cow<'a, Step>,
}

/// `GET /api/tasks/{id}/why`: each decision about the task's work, for its caller and for the agent's owner.
pub async fn why(app: &Arc<App>, id: &str, request: &Parts) -> Response<Body> {
    let told = told(app, id, request).await;
    told.unwrap_or_else(|error| rest::refuse(app, &app.refusal(error)))
}

async fn told(app: &Arc<App>, id: &str, request: &Parts) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, request).await?;
    caller.check(Right::TasksRead)?;
    let page = app.hub.why(&caller, id).await?;
    let events = page.changes.iter().flat_map(|change| {
        let numbered = change.events.iter().zip(change.first_seq..);
        numbered.map(|(event, seq)| (seq, change.at, event))
    });
    let steps = events.filter_map(|(seq, at, event)| match event {
        Event::Routed { run, step } => Some(Decided { seq, at, run: *run, step: Cow::Borrowed(&**step) }),
        Event::RunLost { run, reason } => {
            Some(Decided { seq, at, run: *run, step: Cow::Owned(Step::Lost { detail: reason.clone() }) })
        }
        _ => None,
    });
    let mut steps: Vec<Decided<'_>> = steps.collect();
    if steps.iter().all(|decided| matches!(*decided.step, Step::Lost { .. })) {
        // Under no dispatch nothing was decided.
        steps.clear();
    }
    let (task_id, context_id, state) = (page.head.id.to_string(), &*page.head.context, page.head.state);
    encoded(&Why { task_id, context_id, state, pruned: page.pruned, steps })
}

fn encoded<T: Serialize>(value: &T) -> Result<Response<Body>, Error> {
    let body = serde_json::to_vec(value).map_err(|error| Fault::new(format!("encoding dispatched work: {error}")))?;
    Ok(with_type(StatusCode::OK, JSON, body))
}
