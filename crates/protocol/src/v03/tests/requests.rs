//! Requests, push configs and refusals.

use super::{newer, same};
use crate::a2a::error::{Reason, Refusal};
use crate::a2a::method::Method;
use crate::a2a::push::ListPushConfigsResponse;
use crate::a2a::request::{ListTasksRequest, PushConfig, PushConfigRequest, Request, SendMessageRequest};
use crate::time::Millis;
use crate::v03::{V03, error, method, request};

const MESSAGE: &str = r#"{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"a"}]}"#;

fn sent(configuration: &str) -> SendMessageRequest {
    let params = format!(r#"{{"message":{MESSAGE}{configuration}}}"#);
    match request::read(Method::SendMessage, params.as_bytes()) {
        Ok(Request::SendMessage(request)) => request,
        other => panic!("not a send: {other:?}"),
    }
}

#[test]
fn every_operation_has_its_name() {
    for operation in Method::ALL {
        assert_eq!(method::from_name(method::name(operation)), Some(operation));
        assert_eq!(method::from_name(operation.name()), None, "0.3 and 1.0 share no name");
    }
}

#[test]
fn blocking_is_the_default() {
    let waits = |configuration| !sent(configuration).configuration.unwrap_or_default().return_immediately;
    assert!(waits(""));
    assert!(waits(r#","configuration":{}"#));
    assert!(waits(r#","configuration":{"blocking":true}"#));
    assert!(!waits(r#","configuration":{"blocking":false}"#));
    let written = serde_json::to_string(&V03(&sent(""))).expect("JSON");
    assert_eq!(
        written,
        format!(r#"{{"message":{MESSAGE},"configuration":{{"acceptedOutputModes":[],"blocking":true}}}}"#)
    );
}

#[test]
fn sends_with_all_they_may_hold() {
    same::<SendMessageRequest>(
        &format!(
            r#"{{"tenant":"echo","message":{MESSAGE},"configuration":{{"acceptedOutputModes":["text/plain"],"blocking":false,"historyLength":2,"pushNotificationConfig":{{"id":"c","url":"https://a","token":"t","authentication":{{"schemes":["Bearer"],"credentials":"x"}}}}}},"metadata":{{"k":1.0}},"later":1}}"#
        ),
        r#"{"tenant":"echo","message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}]},"configuration":{"acceptedOutputModes":["text/plain"],"taskPushNotificationConfig":{"id":"c","url":"https://a","token":"t","authentication":{"scheme":"Bearer","credentials":"x"}},"historyLength":2,"returnImmediately":true},"metadata":{"k":1.0},"later":1}"#,
    );
}

#[test]
fn push_configs_stand_beside_their_task() {
    same::<PushConfig>(
        r#"{"taskId":"t","pushNotificationConfig":{"id":"c","url":"https://a","metadata":{"k":1}}}"#,
        r#"{"id":"c","taskId":"t","url":"https://a","metadata":{"k":1}}"#,
    );
    same::<PushConfigRequest>(r#"{"id":"t","pushNotificationConfigId":"c"}"#, r#"{"taskId":"t","id":"c"}"#);
    same::<ListTasksRequest>(
        r#"{"contextId":"c","status":"input-required","pageSize":2}"#,
        r#"{"contextId":"c","status":"TASK_STATE_INPUT_REQUIRED","pageSize":2}"#,
    );
    let configs = newer::<ListPushConfigsResponse>(r#"[{"taskId":"t","pushNotificationConfig":{"url":"u"}}]"#);
    assert_eq!(configs.as_deref(), Ok(r#"{"configs":[{"taskId":"t","url":"u"}]}"#));
}

#[test]
fn of_several_schemes_the_first_counts() {
    let two = r#"{"taskId":"t","pushNotificationConfig":{"url":"u","authentication":{"schemes":["Basic","Bearer"]}}}"#;
    assert!(newer::<PushConfig>(two).unwrap().contains(r#""scheme":"Basic""#));
    let none = r#"{"taskId":"t","pushNotificationConfig":{"url":"u","authentication":{"schemes":[]}}}"#;
    assert!(!newer::<PushConfig>(none).unwrap().contains("authentication"));
}

#[test]
fn a_config_without_a_name_is_named_after_its_task() {
    let params = br#"{"taskId":"t","pushNotificationConfig":{"url":"u"}}"#;
    let Ok(Request::CreatePushConfig(config)) = request::read(Method::CreatePushConfig, params) else {
        panic!("not a config");
    };
    assert_eq!(config.id, "t");
}

#[test]
fn every_request_is_read_as_it_was_written() {
    let cases = [
        (Method::GetTask, r#"{"id":"t","historyLength":1}"#),
        (Method::ListTasks, r#"{"status":"working"}"#),
        (Method::CancelTask, r#"{"id":"t","metadata":{"k":1}}"#),
        (Method::SubscribeToTask, r#"{"id":"t"}"#),
        (Method::CreatePushConfig, r#"{"taskId":"t","pushNotificationConfig":{"id":"c","url":"u"}}"#),
        (Method::GetPushConfig, r#"{"id":"t","pushNotificationConfigId":"c"}"#),
        (Method::ListPushConfigs, r#"{"id":"t"}"#),
        (Method::DeletePushConfig, r#"{"id":"t","pushNotificationConfigId":"c"}"#),
        (Method::GetExtendedAgentCard, "{}"),
    ];
    for (method, params) in cases {
        let read = request::read(method, params.as_bytes()).expect(params);
        assert_eq!(read.method(), method);
        assert_eq!(serde_json::to_string(&V03(read)).expect("JSON"), params);
    }
}

#[test]
fn a_wrong_field_is_named_by_its_place() {
    let params = br#"{"message":{"parts":[{"kind":"text","text":"a"},{"kind":"image"}]}}"#;
    let refusal = request::read(Method::SendMessage, params).unwrap_err();
    assert_eq!(refusal.violations[0].field, "message.parts[1]");
}

#[test]
fn refusals_have_an_object_as_data() {
    let refusal = Refusal::invalid("configuration.taskPushNotificationConfig.url", "is required");
    let told = error::object(&refusal, Millis(0));
    assert_eq!(told["code"], -32602);
    assert_eq!(told["data"]["fieldViolations"][0]["field"], "configuration.pushNotificationConfig.url");
    assert!(told["message"].as_str().unwrap().contains("configuration.pushNotificationConfig.url"));
    let told = error::object(&Refusal::new(Reason::TaskNotFound, "No.").fact("taskId", "t"), Millis(0));
    assert_eq!((&told["data"]["reason"], &told["data"]["taskId"]), (&"TASK_NOT_FOUND".into(), &"t".into()));
    for (reason, text) in [
        (Reason::TaskNotFound, "Task not found. No."),
        (Reason::ParseError, "Invalid JSON payload. No."),
        (Reason::InvalidRequest, "Request payload validation error. No."),
        (Reason::MethodNotFound, "Method not found. No."),
        (Reason::VerbNotAllowed, "Method not found. No."),
    ] {
        assert_eq!(error::object(&Refusal::new(reason, "No."), Millis(0))["message"], text);
    }
}
