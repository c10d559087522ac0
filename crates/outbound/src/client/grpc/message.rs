//! Requests as gRPC messages, and answers as the JSON the other bindings would have brought.

use crate::client::error::ClientError;
use flotilla_grpc::a2a as pb;
use flotilla_grpc::{Reader, card_json, list_tasks, metadata, push_config, send_message};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::push::ListPushConfigsResponse;
use flotilla_protocol::a2a::request::Request;
use prost::Message;
use serde::Serialize;

/// The message behind its flag and length.
pub fn encode(request: &Request) -> Vec<u8> {
    match request {
        Request::SendMessage(r) | Request::SendStreamingMessage(r) => framed(&send_message(r)),
        Request::GetTask(r) => framed(&pb::GetTaskRequest {
            tenant: r.tenant.clone(),
            id: r.id.clone(),
            history_length: r.history_length.map(|length| length.0),
        }),
        Request::ListTasks(r) => framed(&list_tasks(r)),
        Request::CancelTask(r) => framed(&pb::CancelTaskRequest {
            tenant: r.tenant.clone(),
            id: r.id.clone(),
            metadata: metadata(r.metadata.as_ref()),
        }),
        Request::SubscribeToTask(r) => {
            framed(&pb::SubscribeToTaskRequest { tenant: r.tenant.clone(), id: r.id.clone() })
        }
        Request::CreatePushConfig(r) => framed(&push_config(r)),
        Request::GetPushConfig(r) => framed(&pb::GetTaskPushNotificationConfigRequest {
            tenant: r.tenant.clone(),
            task_id: r.task_id.clone(),
            id: r.id.clone(),
        }),
        Request::ListPushConfigs(r) => framed(&pb::ListTaskPushNotificationConfigsRequest {
            tenant: r.tenant.clone(),
            task_id: r.task_id.clone(),
            page_size: r.page_size.map_or(0, |size| size.0),
            page_token: r.page_token.clone(),
        }),
        Request::DeletePushConfig(r) => framed(&pb::DeleteTaskPushNotificationConfigRequest {
            tenant: r.tenant.clone(),
            task_id: r.task_id.clone(),
            id: r.id.clone(),
        }),
        Request::GetExtendedAgentCard(r) => framed(&pb::GetExtendedAgentCardRequest { tenant: r.tenant.clone() }),
    }
}

pub(super) fn framed(message: &impl Message) -> Vec<u8> {
    let length = u32::try_from(message.encoded_len()).unwrap_or(u32::MAX);
    let mut out = vec![0];
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&message.encode_to_vec());
    out
}

pub(super) fn read<T: Message + Default>(bytes: &[u8]) -> Result<T, ClientError> {
    T::decode(bytes).map_err(ClientError::malformed)
}

pub(super) fn json<T: Serialize>(value: Result<T, Refusal>) -> Result<String, ClientError> {
    let value = value.map_err(|refusal| ClientError::malformed(refusal.message))?;
    serde_json::to_string(&value).map_err(ClientError::malformed)
}

/// The answer to an operation that answers once; its opaque JSON may be nested so deep.
pub fn decode(request: &Request, bytes: &[u8], json_depth: usize) -> Result<String, ClientError> {
    let reader = Reader { json_depth };
    match request {
        Request::SendMessage(_) => json(reader.sent(read(bytes)?)),
        Request::SendStreamingMessage(_) | Request::SubscribeToTask(_) => frame(bytes, json_depth),
        Request::GetTask(_) | Request::CancelTask(_) => json(reader.task(read(bytes)?)),
        Request::ListTasks(_) => json(reader.list(read(bytes)?)),
        Request::CreatePushConfig(_) | Request::GetPushConfig(_) => json(Ok(reader.push_config(read(bytes)?))),
        Request::ListPushConfigs(_) => {
            let page: pb::ListTaskPushNotificationConfigsResponse = read(bytes)?;
            let configs: Vec<_> = page.configs.into_iter().map(|config| reader.push_config(config)).collect();
            json(Ok(ListPushConfigsResponse { configs, next_page_token: page.next_page_token }))
        }
        Request::DeletePushConfig(_) => Ok("{}".to_owned()),
        Request::GetExtendedAgentCard(_) => Ok(card_json(read(bytes)?).to_string()),
    }
}

pub fn frame(bytes: &[u8], json_depth: usize) -> Result<String, ClientError> {
    json(Reader { json_depth }.frame(read(bytes)?))
}

#[cfg(test)]
mod tests {
    use super::decode;
    use flotilla_grpc::a2a as pb;
    use flotilla_protocol::a2a::request::{GetTaskRequest, ListPushConfigsRequest, Request};
    use prost::Message as _;

    #[test]
    fn answers_are_what_the_other_bindings_bring() {
        let timestamp = Some(prost_types::Timestamp { seconds: 1_769_860_800, nanos: 328_108_000 });
        let status = Some(pb::TaskStatus { state: 3, timestamp, ..Default::default() });
        let task = pb::Task { id: "t".into(), status, ..Default::default() };
        let json = decode(&Request::GetTask(GetTaskRequest::default()), &task.encode_to_vec(), 9).unwrap();
        assert!(json.contains(r#""timestamp":"2026-01-31T12:00:00.328108Z""#), "{json}");
        let list = Request::ListPushConfigs(ListPushConfigsRequest::default());
        assert_eq!(decode(&list, &[], 9).unwrap(), r#"{"configs":[]}"#, "no token where there is no other page");
    }
}
