//! The gRPC of 0.3: the same calls as other messages, and errors known by the word before their text.

use super::message::{framed, json, read};
use crate::client::error::{ClientError, name_of};
use flotilla_grpc::a2a_v03 as pb;
use flotilla_grpc::v03::{self, Reader};
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::push::ListPushConfigsResponse;
use flotilla_protocol::a2a::request::Request;
use flotilla_protocol::proto03::file::Files;

/// What the operation is called.
pub fn name(request: &Request) -> Result<&'static str, ClientError> {
    let none = "A2A 0.3 has no list of tasks over gRPC; use another binding, or remember the ids";
    v03::name(request.method()).ok_or_else(|| ClientError::local(Reason::UnsupportedOperation, none))
}

/// The message behind its flag and length; files as the agent wants them.
pub fn encode(request: &Request, files: Files) -> Vec<u8> {
    match request {
        Request::SendMessage(r) | Request::SendStreamingMessage(r) => framed(&v03::send_message(r, files)),
        Request::GetTask(r) => framed(&v03::get_task(r)),
        Request::CancelTask(r) => framed(&v03::cancel(&r.id)),
        Request::SubscribeToTask(r) => framed(&v03::subscribe(&r.id)),
        Request::CreatePushConfig(r) => framed(&v03::create_push(r)),
        Request::GetPushConfig(r) | Request::DeletePushConfig(r) => framed(&v03::named_config(&r.task_id, &r.id)),
        Request::ListPushConfigs(r) => framed(&v03::list_push(r)),
        // There is no such call in this version, so none is made: `name` has refused it.
        Request::ListTasks(_) | Request::GetExtendedAgentCard(_) => framed(&pb::GetAgentCardRequest {}),
    }
}

/// The answer to an operation that answers once, as the JSON of 1.0.
pub fn decode(method: Method, bytes: &[u8], reader: Reader) -> Result<String, ClientError> {
    match method {
        Method::SendMessage => json(reader.sent(read(bytes)?)),
        Method::SendStreamingMessage | Method::SubscribeToTask => frame(bytes, reader),
        Method::GetTask | Method::CancelTask => json(reader.task(read(bytes)?)),
        Method::CreatePushConfig | Method::GetPushConfig => json(reader.push_config(read(bytes)?)),
        Method::ListPushConfigs => {
            let page: pb::ListTaskPushNotificationConfigResponse = read(bytes)?;
            let configs = page.configs.into_iter().map(|config| reader.push_config(config)).collect::<Result<_, _>>();
            let next_page_token = page.next_page_token;
            json(configs.map(|configs| ListPushConfigsResponse { configs, next_page_token }))
        }
        Method::DeletePushConfig | Method::ListTasks => Ok("{}".to_owned()),
        Method::GetExtendedAgentCard => Ok(v03::card_json(read(bytes)?).to_string()),
    }
}

pub fn frame(bytes: &[u8], reader: Reader) -> Result<String, ClientError> {
    json(reader.frame(read(bytes)?))
}

/// The published SDKs write `TaskNotFoundError: text`. The reason behind such a name, and the text.
pub fn reason_in(message: String) -> (Option<String>, String) {
    let Some((name, text)) = message.split_once(": ") else { return (None, message) };
    let reason = Reason::ALL.into_iter().find(|reason| reason.row().standard && name_of(*reason) == name);
    match reason {
        Some(reason) => (Some(reason.row().reason.to_owned()), text.to_owned()),
        None => (None, message),
    }
}

#[cfg(test)]
mod tests {
    use super::reason_in;

    #[test]
    fn an_error_is_known_by_the_word_before_its_text() {
        let told = |text: &str| reason_in(text.to_owned());
        assert_eq!(told("TaskNotFoundError: gone"), (Some("TASK_NOT_FOUND".to_owned()), "gone".to_owned()));
        assert_eq!(told("UnsupportedOperationError: no: never").1, "no: never");
        assert_eq!(told("Unknown: x"), (None, "Unknown: x".to_owned()));
        assert_eq!(told("x"), (None, "x".to_owned()));
    }
}
