//! The operations under their 0.3 names.

use crate::a2a::method::Method;

/// The JSON-RPC name. `tasks/list` is no method of the 0.3 text, but a common one.
pub fn name(method: Method) -> &'static str {
    match method {
        Method::SendMessage => "message/send",
        Method::SendStreamingMessage => "message/stream",
        Method::GetTask => "tasks/get",
        Method::ListTasks => "tasks/list",
        Method::CancelTask => "tasks/cancel",
        Method::SubscribeToTask => "tasks/resubscribe",
        Method::CreatePushConfig => "tasks/pushNotificationConfig/set",
        Method::GetPushConfig => "tasks/pushNotificationConfig/get",
        Method::ListPushConfigs => "tasks/pushNotificationConfig/list",
        Method::DeletePushConfig => "tasks/pushNotificationConfig/delete",
        Method::GetExtendedAgentCard => "agent/getAuthenticatedExtendedCard",
    }
}

pub fn from_name(text: &str) -> Option<Method> {
    Method::ALL.into_iter().find(|method| name(*method) == text)
}
