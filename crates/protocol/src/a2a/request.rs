//! What callers ask for: the request messages of each operation (spec 3.2).

use super::model::{Message, Task, TaskState};
use crate::a2a::error::Refusal;
use crate::a2a::method::Method;
use crate::time::Millis;
use crate::wire;
use crate::wire::{Int32, Json, Object};
use serde::Serialize;
use std::collections::HashMap;

wire! {
    pub struct AuthenticationInfo {
        scheme: String = "scheme",
        credentials: String = "credentials",
    }
}

wire! {
    /// A webhook for a task's updates.
    pub struct PushConfig {
        tenant: String = "tenant",
        id: String = "id",
        task_id: String = "taskId" | "task_id",
        url: String = "url",
        token: String = "token",
        authentication: Option<AuthenticationInfo> = "authentication",
    }
}

wire! {
    pub struct SendMessageConfiguration {
        accepted_output_modes: Vec<String> = "acceptedOutputModes" | "accepted_output_modes",
        push_config: Option<PushConfig> = "taskPushNotificationConfig" | "task_push_notification_config",
        history_length: Option<Int32> = "historyLength" | "history_length",
        return_immediately: bool = "returnImmediately" | "return_immediately",
    }
}

wire! {
    pub struct SendMessageRequest {
        tenant: String = "tenant",
        message: Option<Message> = "message",
        configuration: Option<SendMessageConfiguration> = "configuration",
        metadata: Option<Object> = "metadata",
    }
}

wire! {
    pub struct GetTaskRequest {
        tenant: String = "tenant",
        id: String = "id",
        history_length: Option<Int32> = "historyLength" | "history_length",
    }
}

wire! {
    pub struct ListTasksRequest {
        tenant: String = "tenant",
        context_id: String = "contextId" | "context_id",
        status: TaskState = "status",
        page_size: Option<Int32> = "pageSize" | "page_size",
        page_token: String = "pageToken" | "page_token",
        history_length: Option<Int32> = "historyLength" | "history_length",
        status_timestamp_after: Option<Millis> = "statusTimestampAfter" | "status_timestamp_after",
        include_artifacts: bool = "includeArtifacts" | "include_artifacts",
    }
}

wire! {
    pub struct CancelTaskRequest {
        tenant: String = "tenant",
        id: String = "id",
        metadata: Option<Object> = "metadata",
    }
}

wire! {
    pub struct SubscribeToTaskRequest {
        tenant: String = "tenant",
        id: String = "id",
    }
}

wire! {
    /// Get and Delete of one push config.
    pub struct PushConfigRequest {
        tenant: String = "tenant",
        task_id: String = "taskId" | "task_id",
        id: String = "id",
    }
}

wire! {
    pub struct ListPushConfigsRequest {
        tenant: String = "tenant",
        task_id: String = "taskId" | "task_id",
        page_size: Option<Int32> = "pageSize" | "page_size",
        page_token: String = "pageToken" | "page_token",
    }
}

wire! {
    pub struct ExtendedCardRequest {
        tenant: String = "tenant",
    }
}

/// How long a message may wait for an agent that is not there, in seconds: a member of this name in the configuration,
/// or in the request's metadata where a binding has no room for it there.
pub const TTL: &str = "x-ttl";

impl SendMessageRequest {
    pub fn ttl(&self) -> Result<Option<u32>, Refusal> {
        let in_configuration = self.configuration.iter().flat_map(|configuration| &configuration.unknown);
        let mut found = in_configuration.filter(|(name, _)| name == TTL).map(|(_, json)| json.clone()).next();
        if found.is_none()
            && let Some(metadata) = self.metadata.as_ref().filter(|metadata| metadata.0.text().contains(TTL))
        {
            let members: HashMap<String, Json> = serde_json::from_str(metadata.0.text()).unwrap_or_default();
            found = members.get(TTL).cloned();
        }
        let Some(json) = found.filter(|json| json.text() != "null") else { return Ok(None) };
        let wrong = || Refusal::invalid(TTL, "must be a whole number of seconds; 0 does not wait at all");
        // Doubles, because gRPC has no other numbers.
        let seconds: f64 = json.text().trim_matches('"').parse().map_err(|_| wrong())?;
        if seconds.fract() != 0.0 || !(0.0..=f64::from(u32::MAX)).contains(&seconds) {
            return Err(wrong());
        }
        Ok(Some(seconds as u32))
    }
}

/// A page of tasks; every field is always present (spec 3.1.4).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksResponse {
    pub tasks: Vec<Task>,
    pub next_page_token: String,
    pub page_size: i32,
    pub total_size: i64,
}

/// A decoded request of any operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    SendMessage(SendMessageRequest),
    SendStreamingMessage(SendMessageRequest),
    GetTask(GetTaskRequest),
    ListTasks(ListTasksRequest),
    CancelTask(CancelTaskRequest),
    SubscribeToTask(SubscribeToTaskRequest),
    CreatePushConfig(PushConfig),
    GetPushConfig(PushConfigRequest),
    ListPushConfigs(ListPushConfigsRequest),
    DeletePushConfig(PushConfigRequest),
    GetExtendedAgentCard(ExtendedCardRequest),
}

impl Request {
    pub fn method(&self) -> Method {
        match self {
            Self::SendMessage(_) => Method::SendMessage,
            Self::SendStreamingMessage(_) => Method::SendStreamingMessage,
            Self::GetTask(_) => Method::GetTask,
            Self::ListTasks(_) => Method::ListTasks,
            Self::CancelTask(_) => Method::CancelTask,
            Self::SubscribeToTask(_) => Method::SubscribeToTask,
            Self::CreatePushConfig(_) => Method::CreatePushConfig,
            Self::GetPushConfig(_) => Method::GetPushConfig,
            Self::ListPushConfigs(_) => Method::ListPushConfigs,
            Self::DeletePushConfig(_) => Method::DeletePushConfig,
            Self::GetExtendedAgentCard(_) => Method::GetExtendedAgentCard,
        }
    }

    /// The push config that comes with a message.
    pub fn inline_push_config(&self) -> Option<&PushConfig> {
        match self {
            Self::SendMessage(r) | Self::SendStreamingMessage(r) => r.configuration.as_ref()?.push_config.as_ref(),
            _ => None,
        }
    }

    /// The agent the request names, if it names one.
    pub fn tenant(&self) -> &str {
        match self {
            Self::SendMessage(r) | Self::SendStreamingMessage(r) => &r.tenant,
            Self::GetTask(r) => &r.tenant,
            Self::ListTasks(r) => &r.tenant,
            Self::CancelTask(r) => &r.tenant,
            Self::SubscribeToTask(r) => &r.tenant,
            Self::CreatePushConfig(r) => &r.tenant,
            Self::GetPushConfig(r) | Self::DeletePushConfig(r) => &r.tenant,
            Self::ListPushConfigs(r) => &r.tenant,
            Self::GetExtendedAgentCard(r) => &r.tenant,
        }
    }
}
