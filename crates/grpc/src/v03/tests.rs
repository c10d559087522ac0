//! What is written is read back the same, as far as this version can say it.

use super::{Reader, card, card_json, frame, method, name, push_config, send_message, task};
use crate::a2a_v03 as pb;
use flotilla_protocol::a2a::card::AgentCard;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::StreamResponse;
use flotilla_protocol::a2a::request::{PushConfig, Request};
use flotilla_protocol::proto03::file::Files;
use prost::Message as _;

const READER: Reader = Reader { json_depth: 64, files: Files::Text };

const TASK: &str = r#"{"task":{"id":"t","contextId":"c",
    "status":{"state":"TASK_STATE_CANCELED","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"no"}]},
        "timestamp":"2025-01-01T00:00:00.000Z"},
    "artifacts":[{"artifactId":"a","name":"n","parts":[
        {"text":"x","metadata":{"k":1}},
        {"raw":"iVBORw==","filename":"f.png","mediaType":"image/png"},
        {"url":"https://e/f","filename":"f","mediaType":"text/plain"},
        {"data":{"count":42}},
        {"data":[1,2]}]}],
    "history":[{"messageId":"h","role":"ROLE_USER","parts":[{"text":"hi"}],"extensions":["urn:x"]}],
    "metadata":{"a":[true,null]}}}"#;

fn round(frame_json: &str) -> StreamResponse {
    let model: StreamResponse = serde_json::from_str(frame_json).unwrap();
    let wire = frame(&model, Files::Text).encode_to_vec();
    READER.frame(pb::StreamResponse::decode(wire.as_slice()).unwrap()).unwrap()
}

#[test]
fn a_task_comes_back_as_it_was() {
    let again = serde_json::to_value(round(TASK)).unwrap();
    assert_eq!(again, serde_json::from_str::<serde_json::Value>(TASK).unwrap());
}

#[test]
fn updates_say_whether_they_are_the_last() {
    for (state, last) in [("WORKING", false), ("INPUT_REQUIRED", true), ("AUTH_REQUIRED", true), ("COMPLETED", true)] {
        let update =
            format!(r#"{{"statusUpdate":{{"taskId":"t","contextId":"c","status":{{"state":"TASK_STATE_{state}"}}}}}}"#);
        let written = frame(&serde_json::from_str(&update).unwrap(), Files::Bytes);
        let Some(pb::stream_response::Payload::StatusUpdate(written)) = written.payload else { panic!("an update") };
        assert_eq!(written.r#final, last, "{state}");
        assert_eq!(round(&update), serde_json::from_str(&update).unwrap());
    }
}

fn waits(request: &pb::SendMessageRequest) -> bool {
    match READER.request(Method::SendMessage, &request.encode_to_vec()).unwrap() {
        Request::SendMessage(read) => !read.configuration.unwrap_or_default().return_immediately,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_send_waits_unless_its_configuration_does_not_say_so() {
    let configured = |blocking| pb::SendMessageRequest {
        configuration: Some(pb::SendMessageConfiguration { blocking, ..Default::default() }),
        ..Default::default()
    };
    assert!(waits(&pb::SendMessageRequest::default()));
    assert!(waits(&configured(true)));
    assert!(!waits(&configured(false)));
    assert!(waits(&send_message(&Default::default(), Files::Text)), "our own client says that it waits");
}

#[test]
fn no_history_length_is_all_of_it() {
    let asked = |history_length| {
        let request = pb::GetTaskRequest { name: "tasks/t".into(), history_length };
        match READER.request(Method::GetTask, &request.encode_to_vec()).unwrap() {
            Request::GetTask(read) => (read.id, read.history_length.map(|length| length.0)),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(asked(0), ("t".to_owned(), None));
    assert_eq!(asked(2), ("t".to_owned(), Some(2)));
}

#[test]
fn a_config_s_id_may_stand_in_either_place() {
    let create = |config_id: &str, own: &str| {
        let inner = pb::PushNotificationConfig { id: own.into(), url: "http://e".into(), ..Default::default() };
        let config = pb::TaskPushNotificationConfig { name: "None".into(), push_notification_config: Some(inner) };
        let request = pb::CreateTaskPushNotificationConfigRequest {
            parent: "tasks/t".into(),
            config_id: config_id.into(),
            config: Some(config),
        };
        match READER.request(Method::CreatePushConfig, &request.encode_to_vec()).unwrap() {
            Request::CreatePushConfig(read) => (read.task_id, read.id),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(create("a", ""), ("t".to_owned(), "a".to_owned()));
    assert_eq!(create("", "b"), ("t".to_owned(), "b".to_owned()));
    assert_eq!(create("", ""), ("t".to_owned(), "t".to_owned()), "one without a name is its task's");
    let config = PushConfig { task_id: "t".into(), id: "c".into(), url: "http://e".into(), ..Default::default() };
    assert_eq!(READER.push_config(push_config(&config)), Ok(config));
}

#[test]
fn every_operation_but_the_list_has_a_name() {
    let without: Vec<Method> = Method::ALL.into_iter().filter(|method| name(*method).is_none()).collect();
    assert_eq!(without, [Method::ListTasks]);
    for called in Method::ALL.into_iter().filter_map(name) {
        assert_eq!(method(called).and_then(name), Some(called));
    }
    assert_eq!(method("ListTasks"), None);
}

#[test]
fn an_empty_message_of_a_status_is_none() {
    let status = pb::TaskStatus { state: 2, update: Some(pb::Message::default()), timestamp: None };
    let read = READER.task(pb::Task { id: "t".into(), status: Some(status), ..Default::default() }).unwrap();
    assert_eq!(read.status.message, None);
    assert_eq!(task(&read, Files::Bytes).status.unwrap().update, None);
}

#[test]
fn a_card_leads_to_the_interfaces_of_its_version() {
    let ours: AgentCard = serde_json::from_str(
        r#"{"name":"n","description":"d","version":"1","capabilities":{"streaming":true},
        "supportedInterfaces":[{"url":"http://h/new","protocolBinding":"JSONRPC","protocolVersion":"1.0"},
            {"url":"http://h/a2a","protocolBinding":"JSONRPC","protocolVersion":"0.3"},
            {"url":"http://h:1","protocolBinding":"GRPC","protocolVersion":"0.3"}],
        "securitySchemes":{"k":{"apiKeySecurityScheme":{"location":"header","name":"X"}}},
        "securityRequirements":[{"schemes":{"k":{"list":[]}}}],
        "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],
        "skills":[{"id":"i","name":"n","description":"d","tags":["t"]}]}"#,
    )
    .unwrap();
    let read = card_json(pb::AgentCard::decode(card(&ours).encode_to_vec().as_slice()).unwrap());
    assert_eq!(read["url"], "http://h/a2a");
    assert_eq!(read["preferredTransport"], "JSONRPC");
    assert_eq!(read["additionalInterfaces"], serde_json::json!([{"url": "http://h:1", "transport": "GRPC"}]));
    assert_eq!(read["securitySchemes"]["k"], serde_json::json!({"type": "apiKey", "in": "header", "name": "X"}));
    assert_eq!(read["security"], serde_json::json!([{"k": []}]));
    assert_eq!(read["capabilities"]["streaming"], true);
}
