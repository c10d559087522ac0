//! HTTP+JSON of 0.3: below `/v1`, in one of two forms, which no card tells apart.

use super::{list_query, query, segment};
use crate::client::error::{ClientError, Told};
use crate::client::{Client, Dialect};
use crate::net::Outgoing;
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::request::Request;
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::proto03::{json as proto, name};
use flotilla_protocol::v03::{Form, V03};
use reqwest::Method;
use serde_json::{Value, json};

const JSON: &str = "application/json";

/// The verb and the path.
fn target(request: &Request) -> Result<(Method, String), ClientError> {
    let task = |id: &str| segment(id).map(|id| format!("/v1/tasks/{id}"));
    let push = |id: &str| task(id).map(|task| format!("{task}/pushNotificationConfigs"));
    let config = |task: &str, id: &str| Ok(format!("{}/{}", push(task)?, segment(id)?));
    Ok(match request {
        Request::SendMessage(_) => (Method::POST, "/v1/message:send".into()),
        Request::SendStreamingMessage(_) => (Method::POST, "/v1/message:stream".into()),
        Request::GetTask(r) => {
            let history = r.history_length.map(|n| format!("historyLength={}", n.0));
            (Method::GET, format!("{}{}", task(&r.id)?, query([history])))
        }
        Request::ListTasks(r) => (Method::GET, format!("/v1/tasks{}", list_query(r))),
        Request::CancelTask(r) => (Method::POST, format!("{}:cancel", task(&r.id)?)),
        Request::SubscribeToTask(r) => (Method::GET, format!("{}:subscribe", task(&r.id)?)),
        Request::CreatePushConfig(r) => (Method::POST, push(&r.task_id)?),
        Request::GetPushConfig(r) => (Method::GET, config(&r.task_id, &r.id)?),
        Request::ListPushConfigs(r) => (Method::GET, push(&r.task_id)?),
        Request::DeletePushConfig(r) => (Method::DELETE, config(&r.task_id, &r.id)?),
        Request::GetExtendedAgentCard(_) => (Method::GET, "/v1/card".into()),
    })
}

/// Whether the body depends on the form.
fn has_form(request: &Request) -> bool {
    matches!(request, Request::SendMessage(_) | Request::SendStreamingMessage(_) | Request::CreatePushConfig(_))
}

fn body(request: &Request, form: Form, files: Files) -> Result<Option<String>, ClientError> {
    let written = match (request, form) {
        (Request::SendMessage(r) | Request::SendStreamingMessage(r), Form::Proto | Form::ProtoBytes) => {
            proto::write_send(r, files)
        }
        (Request::CreatePushConfig(config), Form::Proto | Form::ProtoBytes) => proto::write_create_push(config),
        (request, Form::Kind | Form::Bare) if has_form(request) => serde_json::to_string(&V03(request)),
        (Request::CancelTask(r), _) => Ok(json!({"name": name::of_task(&r.id)}).to_string()),
        _ => return Ok(None),
    };
    let wrong = |error| ClientError::Setting(format!("the request cannot be written as JSON: {error}"));
    written.map(Some).map_err(wrong)
}

pub fn request(client: &Client, asked: &Request, form: Form) -> Result<Outgoing, ClientError> {
    let (verb, path) = target(asked)?;
    // Some cards name the place with the version's path, most without.
    let url = super::below(&client.choice.interface.url, "/v1", &path);
    Ok(client.outgoing(verb, url, body(asked, form, client.files())?, JSON))
}

/// Whether an agent that answered like this may not have understood the form, so that the other one is worth a try:
/// nothing was begun.
pub fn is_misunderstood(asked: &Request, http: u16) -> bool {
    has_form(asked) && matches!(http, 400 | 415 | 422)
}

/// What an agent of 0.3 says of a refusal: a text, and often the code of JSON-RPC; else the status counts.
pub fn refusal(client: &Client, text: &str, http: u16) -> Option<Told> {
    if client.dialect() != Dialect::Old {
        return None;
    }
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    let error = if body["error"].is_object() { &body["error"] } else { &body };
    // A page in the place of an answer is not the agent's: what the status alone says counts.
    if !error.is_object() && http >= 500 && http != 501 {
        return None;
    }
    let message = error["message"].as_str().map_or_else(|| Told::words(http, text), str::to_owned);
    let rpc = error["code"].as_i64().filter(|code| *code < 0);
    let by_status = match http {
        404 => Some(Reason::TaskNotFound),
        409 => Some(Reason::TaskNotCancelable),
        415 => Some(Reason::ContentTypeNotSupported),
        501 => Some(Reason::UnsupportedOperation),
        502 => Some(Reason::InvalidAgentResponse),
        _ => None,
    };
    let named = error["data"]["reason"].as_str().map(str::to_owned).or_else(|| Told::reason_in(&error["details"]));
    let reason = named.or_else(|| by_status.filter(|_| rpc.is_none()).map(|reason| reason.row().reason.to_owned()));
    Some(Told { message, reason, rpc, http: Some(http), ..Told::default() })
}
