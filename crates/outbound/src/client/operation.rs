//! Requests of every operation as JSON, with the tenant the chosen interface names.

use super::Client;
use super::error::ClientError;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::request::Request;
use std::time::Duration;

pub fn method(request: &Request) -> Method {
    match request {
        Request::SendMessage(_) => Method::SendMessage,
        Request::SendStreamingMessage(_) => Method::SendStreamingMessage,
        Request::GetTask(_) => Method::GetTask,
        Request::ListTasks(_) => Method::ListTasks,
        Request::CancelTask(_) => Method::CancelTask,
        Request::SubscribeToTask(_) => Method::SubscribeToTask,
        Request::CreatePushConfig(_) => Method::CreatePushConfig,
        Request::GetPushConfig(_) => Method::GetPushConfig,
        Request::ListPushConfigs(_) => Method::ListPushConfigs,
        Request::DeletePushConfig(_) => Method::DeletePushConfig,
        Request::GetExtendedAgentCard(_) => Method::GetExtendedAgentCard,
    }
}

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

/// How long a stream may take to begin: one that starts work may begin with the agent's first word, whenever that is.
pub fn patience(client: &Client, request: &Request) -> Option<Duration> {
    let starts_work = matches!(request, Request::SendStreamingMessage(_));
    (!starts_work).then_some(client.net.limits.answer)
}
