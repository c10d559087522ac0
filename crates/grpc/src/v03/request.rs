//! What a client of 0.3 sends: requests of the model become its messages.

use super::write::{bare_config, message, push_config};
use crate::a2a_v03 as pb;
use crate::write::object;
use flotilla_protocol::a2a::request::{
    GetTaskRequest, ListPushConfigsRequest, PushConfig, SendMessageConfiguration, SendMessageRequest,
};
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::proto03::name;

/// Always with a configuration: without `blocking` servers answer before the work is done. Files go as their
/// reader wants them.
pub fn send_message(request: &SendMessageRequest, files: Files) -> pb::SendMessageRequest {
    let asked = request.configuration.clone().unwrap_or_default();
    let SendMessageConfiguration { accepted_output_modes, push_config, history_length, return_immediately, .. } = asked;
    pb::SendMessageRequest {
        request: request.message.as_ref().map(|one| message(one, files)),
        configuration: Some(pb::SendMessageConfiguration {
            accepted_output_modes,
            push_notification: push_config.as_ref().map(bare_config),
            history_length: history_length.map_or(0, |length| length.0),
            blocking: !return_immediately,
        }),
        metadata: object(request.metadata.as_ref()),
    }
}

pub fn get_task(request: &GetTaskRequest) -> pb::GetTaskRequest {
    let history_length = request.history_length.map_or(0, |length| length.0);
    pb::GetTaskRequest { name: name::of_task(&request.id), history_length }
}

pub fn cancel(id: &str) -> pb::CancelTaskRequest {
    pb::CancelTaskRequest { name: name::of_task(id) }
}

pub fn subscribe(id: &str) -> pb::TaskSubscriptionRequest {
    pb::TaskSubscriptionRequest { name: name::of_task(id) }
}

pub fn create_push(config: &PushConfig) -> pb::CreateTaskPushNotificationConfigRequest {
    pb::CreateTaskPushNotificationConfigRequest {
        parent: name::of_task(&config.task_id),
        config_id: config.id.clone(),
        config: Some(push_config(config)),
    }
}

pub fn list_push(request: &ListPushConfigsRequest) -> pb::ListTaskPushNotificationConfigRequest {
    pb::ListTaskPushNotificationConfigRequest {
        parent: name::of_task(&request.task_id),
        page_size: request.page_size.map_or(0, |size| size.0),
        page_token: request.page_token.clone(),
    }
}

/// To get and to delete one are the same but for their type's name.
pub fn named_config(task: &str, id: &str) -> pb::GetTaskPushNotificationConfigRequest {
    pb::GetTaskPushNotificationConfigRequest { name: name::of_config(task, id) }
}
