//! A2A 0.3 over gRPC (`a2a.v1`): its messages and errors, exchanged with the model, which is that of 1.0.

mod card;
mod read;
mod request;
mod status;
mod write;

pub use card::{card, card_json};
pub use read::Reader;
pub use request::{cancel, create_push, get_task, list_push, named_config, send_message, subscribe};
pub use status::status;
pub use write::{frame, push_config, push_list, sent, task};

use flotilla_protocol::a2a::method::Method;

/// The service's full name, the first part of every path.
pub const SERVICE: &str = "a2a.v1.A2AService";
const PACKAGE: &str = "a2a.v1";

/// What this version calls an operation; it has no list of tasks.
pub fn name(method: Method) -> Option<&'static str> {
    match method {
        Method::SendMessage | Method::SendStreamingMessage | Method::GetTask | Method::CancelTask => {
            Some(method.name())
        }
        Method::CreatePushConfig | Method::GetPushConfig | Method::DeletePushConfig => Some(method.name()),
        Method::SubscribeToTask => Some("TaskSubscription"),
        Method::ListPushConfigs => Some("ListTaskPushNotificationConfig"),
        Method::GetExtendedAgentCard => Some("GetAgentCard"),
        Method::ListTasks => None,
    }
}

pub fn method(called: &str) -> Option<Method> {
    Method::ALL.into_iter().find(|method| name(*method) == Some(called))
}

#[cfg(test)]
mod tests;
