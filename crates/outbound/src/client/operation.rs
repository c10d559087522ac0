//! Requests of every operation as JSON, with the tenant the chosen interface names.

use super::Client;
use super::error::ClientError;
use flotilla_protocol::a2a::model::Part;
use flotilla_protocol::a2a::request::Request;
use flotilla_protocol::v03::V03;
use flotilla_protocol::wire::{Base64, Json};
use std::borrow::Cow;
use std::time::Duration;

/// Exactly what the interface declares, or nothing (spec 8.3.2).
pub fn set_tenant(request: &mut Request, tenant: &str) {
    let field = match request {
        Request::SendMessage(r) | Request::SendStreamingMessage(r) => &mut r.tenant,
        Request::GetTask(r) => &mut r.tenant,
        Request::ListTasks(r) => &mut r.tenant,
        Request::CancelTask(r) => &mut r.tenant,
        Request::SubscribeToTask(r) => &mut r.tenant,
        Request::CreatePushConfig(r) => &mut r.tenant,
        Request::GetPushConfig(r) | Request::DeletePushConfig(r) => &mut r.tenant,
        Request::ListPushConfigs(r) => &mut r.tenant,
        Request::GetExtendedAgentCard(r) => &mut r.tenant,
    };
    tenant.clone_into(field);
}

pub fn json(request: &Request) -> Result<String, ClientError> {
    let json = match request {
        Request::SendMessage(r) | Request::SendStreamingMessage(r) => serde_json::to_string(r),
        Request::GetTask(r) => serde_json::to_string(r),
        Request::ListTasks(r) => serde_json::to_string(r),
        Request::CancelTask(r) => serde_json::to_string(r),
        Request::SubscribeToTask(r) => serde_json::to_string(r),
        Request::CreatePushConfig(r) => serde_json::to_string(r),
        Request::GetPushConfig(r) | Request::DeletePushConfig(r) => serde_json::to_string(r),
        Request::ListPushConfigs(r) => serde_json::to_string(r),
        Request::GetExtendedAgentCard(r) => serde_json::to_string(r),
    };
    json.map_err(|error| ClientError::Setting(format!("the request cannot be written as JSON: {error}")))
}

/// The parameters as JSON-RPC of 0.3 has them. `is_mixed` is an agent that takes the methods of 0.3 and whose card says
/// 1.0: it may read files as either has them.
pub fn old_json(request: &Request, is_mixed: bool) -> Result<String, ClientError> {
    let mut request = Cow::Borrowed(request);
    if is_mixed && let Request::SendMessage(sent) | Request::SendStreamingMessage(sent) = request.to_mut() {
        sent.message.iter_mut().flat_map(|message| &mut message.parts).for_each(say_both_ways);
    }
    let json = serde_json::to_string(&V03(&*request));
    json.map_err(|error| ClientError::Setting(format!("the request cannot be written as JSON: {error}")))
}

/// A file as 1.0 has it, beside what 0.3 makes of it.
fn say_both_ways(part: &mut Part) {
    if part.raw.is_none() && part.url.is_none() {
        return;
    }
    let members = [
        ("raw", part.raw.as_ref().map_or("", Base64::text)),
        ("url", part.url.as_deref().unwrap_or_default()),
        ("filename", &part.filename),
        ("mediaType", &part.media_type),
    ];
    let members = members.into_iter().filter(|(_, text)| !text.is_empty());
    let members: Vec<_> = members.filter_map(|(name, text)| Some((name.to_owned(), Json::of(text).ok()?))).collect();
    part.unknown.extend(members);
}

/// How long a stream may take to begin: one that starts work may begin with the agent's first word, whenever that is.
pub fn patience(client: &Client, request: &Request) -> Option<Duration> {
    let starts_work = matches!(request, Request::SendStreamingMessage(_));
    (!starts_work).then_some(client.net.limits.answer)
}
