//! Requests of every operation: read where 0.3 is served, written where it is called.

use super::push::{Bare, BareRef};
use super::{Out, V03, Write, carried};
use crate::a2a::error::Refusal;
use crate::a2a::method::Method;
use crate::a2a::model::{Message, TaskState};
use crate::a2a::request::{
    CancelTaskRequest, ExtendedCardRequest, GetTaskRequest, ListPushConfigsRequest, ListTasksRequest, PushConfig,
    PushConfigRequest, Request, SendMessageConfiguration, SendMessageRequest, SubscribeToTaskRequest,
};
use crate::decode::message;
use crate::time::Millis;
use crate::wire;
use crate::wire::{Int32, Named as _, Object};
use serde::Deserialize;
use serde::de::Deserializer;
use serde::ser::Serializer;

/// Reads the parameters of an operation.
pub fn read(method: Method, params: &[u8]) -> Result<Request, Refusal> {
    Ok(match method {
        Method::SendMessage => Request::SendMessage(message::<V03<_>>(params)?.0),
        Method::SendStreamingMessage => Request::SendStreamingMessage(message::<V03<_>>(params)?.0),
        // The same fields under the same names in both versions.
        Method::GetTask => Request::GetTask(message::<GetTaskRequest>(params)?),
        Method::ListTasks => Request::ListTasks(message::<V03<_>>(params)?.0),
        Method::CancelTask => Request::CancelTask(message::<CancelTaskRequest>(params)?),
        Method::SubscribeToTask => Request::SubscribeToTask(message::<SubscribeToTaskRequest>(params)?),
        Method::CreatePushConfig => Request::CreatePushConfig(named(message::<V03<_>>(params)?.0)),
        Method::GetPushConfig => Request::GetPushConfig(message::<V03<_>>(params)?.0),
        Method::ListPushConfigs => {
            let V03(PushConfigRequest { tenant, task_id, .. }) = message(params)?;
            Request::ListPushConfigs(ListPushConfigsRequest { tenant, task_id, ..Default::default() })
        }
        Method::DeletePushConfig => Request::DeletePushConfig(message::<V03<_>>(params)?.0),
        Method::GetExtendedAgentCard => Request::GetExtendedAgentCard(message::<ExtendedCardRequest>(params)?),
    })
}

/// A config nobody named is the one of its task, so that setting it again replaces it.
pub fn named(config: PushConfig) -> PushConfig {
    if config.id.is_empty() { PushConfig { id: config.task_id.clone(), ..config } } else { config }
}

impl Write for Request {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::SendMessage(request) | Self::SendStreamingMessage(request) => request.write(serializer),
            Self::GetTask(request) => serde::Serialize::serialize(request, serializer),
            Self::ListTasks(request) => request.write(serializer),
            Self::CancelTask(request) => serde::Serialize::serialize(request, serializer),
            Self::SubscribeToTask(request) => serde::Serialize::serialize(request, serializer),
            Self::CreatePushConfig(config) => config.write(serializer),
            Self::GetPushConfig(request) | Self::DeletePushConfig(request) => request.write(serializer),
            Self::ListPushConfigs(request) => {
                let mut out = Out::new(serializer)?;
                out.put("tenant", &request.tenant)?;
                out.always("id", &request.task_id)?;
                out.rest(&request.unknown, PushRequestFields::NAMES)
            }
            Self::GetExtendedAgentCard(request) => serde::Serialize::serialize(request, serializer),
        }
    }
}

wire! {
    pub struct ConfigurationFields {
        accepted_output_modes: Vec<String> = "acceptedOutputModes" | "accepted_output_modes",
        /// Absent means true.
        blocking: Option<bool> = "blocking",
        history_length: Option<Int32> = "historyLength" | "history_length",
        push_config: Option<V03<Bare>> = "pushNotificationConfig" | "push_notification_config",
    }
}

impl<'de> Deserialize<'de> for V03<SendMessageConfiguration> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = ConfigurationFields::deserialize(deserializer)?;
        Ok(Self(SendMessageConfiguration {
            accepted_output_modes: fields.accepted_output_modes,
            push_config: fields.push_config.map(|V03(Bare(config))| config),
            history_length: fields.history_length,
            return_immediately: fields.blocking == Some(false),
            unknown: carried(fields.unknown, SendMessageConfiguration::NAMES),
        }))
    }
}

impl Write for SendMessageConfiguration {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        // Readers of before 0.3 demand it; none at all is what the SDKs of 0.3 say too.
        out.always("acceptedOutputModes", &self.accepted_output_modes)?;
        out.always("blocking", &!self.return_immediately)?;
        out.put("historyLength", &self.history_length)?;
        if let Some(config) = &self.push_config {
            out.always("pushNotificationConfig", &V03(BareRef(config)))?;
        }
        out.rest(&self.unknown, ConfigurationFields::NAMES)
    }
}

wire! {
    pub struct SendFields {
        /// No field of 0.3, but whoever names an agent means it.
        tenant: String = "tenant",
        message: Option<V03<Message>> = "message",
        configuration: Option<V03<SendMessageConfiguration>> = "configuration",
        metadata: Option<Object> = "metadata",
    }
}

impl<'de> Deserialize<'de> for V03<SendMessageRequest> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = SendFields::deserialize(deserializer)?;
        Ok(Self(SendMessageRequest {
            tenant: fields.tenant,
            message: fields.message.map(|message| message.0),
            configuration: fields.configuration.map(|configuration| configuration.0),
            metadata: fields.metadata,
            unknown: fields.unknown,
        }))
    }
}

impl Write for SendMessageRequest {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.put("tenant", &self.tenant)?;
        if let Some(message) = &self.message {
            out.always("message", &V03(message))?;
        }
        // Always there: an agent of 0.3 may take an absent `blocking` either way.
        let default = SendMessageConfiguration::default();
        out.always("configuration", &V03(self.configuration.as_ref().unwrap_or(&default)))?;
        out.put("metadata", &self.metadata)?;
        out.rest(&self.unknown, &[])
    }
}

wire! {
    /// Get and Delete name the task `id`, and the config by a longer name.
    pub struct PushRequestFields {
        tenant: String = "tenant",
        id: String = "id",
        config_id: String = "pushNotificationConfigId" | "push_notification_config_id",
    }
}

impl<'de> Deserialize<'de> for V03<PushConfigRequest> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PushRequestFields { tenant, id, config_id, unknown } = PushRequestFields::deserialize(deserializer)?;
        let unknown = carried(unknown, PushConfigRequest::NAMES);
        Ok(Self(PushConfigRequest { tenant, task_id: id, id: config_id, unknown }))
    }
}

impl Write for PushConfigRequest {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.put("tenant", &self.tenant)?;
        out.always("id", &self.task_id)?;
        out.put("pushNotificationConfigId", &self.id)?;
        out.rest(&self.unknown, PushRequestFields::NAMES)
    }
}

wire! {
    pub struct ListFields {
        tenant: String = "tenant",
        context_id: String = "contextId" | "context_id",
        status: V03<TaskState> = "status",
        page_size: Option<Int32> = "pageSize" | "page_size",
        page_token: String = "pageToken" | "page_token",
        history_length: Option<Int32> = "historyLength" | "history_length",
        after: Option<Millis> = "statusTimestampAfter" | "status_timestamp_after",
        include_artifacts: bool = "includeArtifacts" | "include_artifacts",
    }
}

impl<'de> Deserialize<'de> for V03<ListTasksRequest> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = ListFields::deserialize(deserializer)?;
        Ok(Self(ListTasksRequest {
            tenant: fields.tenant,
            context_id: fields.context_id,
            status: fields.status.0,
            page_size: fields.page_size,
            page_token: fields.page_token,
            history_length: fields.history_length,
            status_timestamp_after: fields.after,
            include_artifacts: fields.include_artifacts,
            unknown: fields.unknown,
        }))
    }
}

impl Write for ListTasksRequest {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.put("tenant", &self.tenant)?;
        out.put("contextId", &self.context_id)?;
        if self.status != TaskState::Unspecified {
            out.always("status", &V03(&self.status))?;
        }
        out.put("pageSize", &self.page_size)?;
        out.put("pageToken", &self.page_token)?;
        out.put("historyLength", &self.history_length)?;
        out.put("statusTimestampAfter", &self.status_timestamp_after)?;
        out.put("includeArtifacts", &self.include_artifacts)?;
        out.rest(&self.unknown, &[])
    }
}
