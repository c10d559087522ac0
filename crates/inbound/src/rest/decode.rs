//! HTTP+JSON paths, queries and bodies as requests.

use super::path::Target;
use crate::parameters::query;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::request::{PushConfig, Request, SendMessageRequest};
use flotilla_protocol::decode::message;
use http::Uri;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub fn request(target: &Target, uri: &Uri, body: &[u8]) -> Result<Request, Refusal> {
    Ok(match target {
        Target::Send => Request::SendMessage(send(uri, body)?),
        Target::Stream => Request::SendStreamingMessage(send(uri, body)?),
        Target::List => Request::ListTasks(from_query(uri, &[])?),
        Target::Get(id) => Request::GetTask(from_query(uri, &[("id", id)])?),
        Target::Cancel(id) => {
            let mut request: flotilla_protocol::a2a::request::CancelTaskRequest = from_body(body)?;
            same("id", id, &mut request.id)?;
            tenant(uri, &mut request.tenant);
            Request::CancelTask(request)
        }
        Target::Subscribe(id) => {
            let mut request: flotilla_protocol::a2a::request::SubscribeToTaskRequest = from_body(body)?;
            same("id", id, &mut request.id)?;
            tenant(uri, &mut request.tenant);
            Request::SubscribeToTask(request)
        }
        Target::CreatePush(id) => {
            let mut request: PushConfig = from_body(body)?;
            same("taskId", id, &mut request.task_id)?;
            tenant(uri, &mut request.tenant);
            Request::CreatePushConfig(request)
        }
        Target::ListPush(id) => Request::ListPushConfigs(from_query(uri, &[("taskId", id)])?),
        Target::GetPush(id, config) => Request::GetPushConfig(from_query(uri, &[("taskId", id), ("id", config)])?),
        Target::DeletePush(id, config) => {
            Request::DeletePushConfig(from_query(uri, &[("taskId", id), ("id", config)])?)
        }
        Target::ExtendedCard => Request::GetExtendedAgentCard(from_query(uri, &[])?),
    })
}

fn send(uri: &Uri, body: &[u8]) -> Result<SendMessageRequest, Refusal> {
    let mut request: SendMessageRequest = from_body(body)?;
    tenant(uri, &mut request.tenant);
    Ok(request)
}

/// An empty body is an empty object: some clients send a POST without one.
pub(super) fn from_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    if body.iter().all(u8::is_ascii_whitespace) { message(b"{}") } else { message(body) }
}

/// Query parameters carry the fields' JSON names (spec 11.5), so they are read as the same message.
pub(super) fn from_query<T: DeserializeOwned>(uri: &Uri, path: &[(&str, &str)]) -> Result<T, Refusal> {
    let mut fields = Map::new();
    for (name, value) in query(uri) {
        let value = match &*value {
            "" => continue,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            // An enum may be given by its number, as in a body.
            number if name == "status" && number.bytes().all(|byte| byte.is_ascii_digit()) => {
                number.parse().map_or_else(|_| Value::String(number.to_owned()), |number: u32| number.into())
            }
            text => Value::String(text.to_owned()),
        };
        fields.insert(name.into_owned(), value);
    }
    for (name, value) in path {
        fields.insert((*name).to_owned(), Value::String((*value).to_owned()));
    }
    message(Value::Object(fields).to_string().as_bytes())
}

/// What the path says holds; a body that says otherwise is a mistake to tell, not to guess about.
pub(super) fn same(field: &str, path: &str, body: &mut String) -> Result<(), Refusal> {
    if !body.is_empty() && body != path {
        return Err(Refusal::invalid(field, format!("is '{body}' in the body, but '{path}' in the path")));
    }
    path.clone_into(body);
    Ok(())
}

pub(super) fn tenant(uri: &Uri, tenant: &mut String) {
    if tenant.is_empty()
        && let Some((_, value)) = query(uri).find(|(name, _)| name == "tenant")
    {
        *tenant = value.into_owned();
    }
}
