//! To the wire: the model becomes generated messages, for what is not written at once (`answer`). Fields the proto does not
//! know stay behind.

use crate::a2a::{self as pb, part::Content};
use crate::json;
use flotilla_protocol::a2a::model::{Message, Part};
use flotilla_protocol::a2a::push::ListPushConfigsResponse;
use flotilla_protocol::a2a::request::{ListTasksRequest, PushConfig, SendMessageConfiguration, SendMessageRequest};
use flotilla_protocol::time::Moment;
use flotilla_protocol::wire::Object;
use prost_types::{Struct, Timestamp};

pub(crate) fn object(object: Option<&Object>) -> Option<Struct> {
    object.map(json::to_struct)
}

pub(crate) fn timestamp(moment: Moment) -> Timestamp {
    let (seconds, nanos) = moment.parts();
    Timestamp { seconds, nanos }
}

fn part(part: &Part) -> pb::Part {
    let content = if let Some(text) = &part.text {
        Some(Content::Text(text.clone()))
    } else if let Some(raw) = &part.raw {
        Some(Content::Raw(raw.decode()))
    } else if let Some(url) = &part.url {
        Some(Content::Url(url.clone()))
    } else {
        part.data.0.as_ref().map(|data| Content::Data(json::to_value(data)))
    };
    pb::Part {
        content,
        metadata: object(part.metadata.as_ref()),
        filename: part.filename.clone(),
        media_type: part.media_type.clone(),
    }
}

pub fn message(message: &Message) -> pb::Message {
    pb::Message {
        message_id: message.message_id.clone(),
        context_id: message.context_id.clone(),
        task_id: message.task_id.clone(),
        role: message.role as i32,
        parts: message.parts.iter().map(part).collect(),
        metadata: object(message.metadata.as_ref()),
        extensions: message.extensions.clone(),
        reference_task_ids: message.reference_task_ids.clone(),
    }
}

pub fn push_config(config: &PushConfig) -> pb::TaskPushNotificationConfig {
    pb::TaskPushNotificationConfig {
        tenant: config.tenant.clone(),
        id: config.id.clone(),
        task_id: config.task_id.clone(),
        url: config.url.clone(),
        token: config.token.clone(),
        authentication: config.authentication.as_ref().map(|shown| pb::AuthenticationInfo {
            scheme: shown.scheme.clone(),
            credentials: shown.credentials.clone(),
        }),
    }
}

pub fn push_list(list: &ListPushConfigsResponse) -> pb::ListTaskPushNotificationConfigsResponse {
    pb::ListTaskPushNotificationConfigsResponse {
        configs: list.configs.iter().map(push_config).collect(),
        next_page_token: list.next_page_token.clone(),
    }
}

/// What a client sends; requests of few fields are built where they are used.
pub fn send_message(request: &SendMessageRequest) -> pb::SendMessageRequest {
    let configuration = |asked: &SendMessageConfiguration| pb::SendMessageConfiguration {
        accepted_output_modes: asked.accepted_output_modes.clone(),
        task_push_notification_config: asked.push_config.as_ref().map(push_config),
        history_length: asked.history_length.map(|length| length.0),
        return_immediately: asked.return_immediately,
    };
    pb::SendMessageRequest {
        tenant: request.tenant.clone(),
        message: request.message.as_ref().map(message),
        configuration: request.configuration.as_ref().map(configuration),
        metadata: object(request.metadata.as_ref()),
    }
}

pub fn list_tasks(request: &ListTasksRequest) -> pb::ListTasksRequest {
    pb::ListTasksRequest {
        tenant: request.tenant.clone(),
        context_id: request.context_id.clone(),
        status: request.status as i32,
        page_size: request.page_size.map(|size| size.0),
        page_token: request.page_token.clone(),
        history_length: request.history_length.map(|length| length.0),
        status_timestamp_after: request.status_timestamp_after.map(|after| timestamp(after.into())),
        include_artifacts: request.include_artifacts.then_some(true),
    }
}

pub fn metadata(metadata: Option<&Object>) -> Option<Struct> {
    object(metadata)
}
