//! The table of spec 5.4: each error that can be met now, with its numbers in each binding.

use crate::cast::{hub, id};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess, Refusal};
use serde_json::json;

/// A row of the table: reason, JSON-RPC code, HTTP status and its name.
type Row = (&'static str, i64, u16, &'static str);

fn matches(binding: Binding, refusal: &Refusal, row: Row) {
    let (reason, rpc, http, status) = row;
    assert_eq!((refusal.reason.as_str(), refusal.domain.as_str()), (reason, "a2a-protocol.org"));
    match binding {
        Binding::JsonRpc => assert_eq!((refusal.code, refusal.http, &refusal.status), (rpc, 200, &None), "{reason}"),
        Binding::HttpJson => {
            let expected = (i64::from(http), http, Some(status.to_owned()));
            assert_eq!((refusal.code, refusal.http, refusal.status.clone()), expected, "{reason}");
        }
        Binding::Grpc => assert_eq!(refusal.status.as_deref(), Some(status), "{reason}"),
    }
    assert!(!refusal.message.is_empty());
    assert!(refusal.metadata["timestamp"].is_string());
}

fn each(check: impl Fn(&HubProcess, Binding, Client)) {
    let hub = hub();
    for binding in Binding::ALL {
        let key = hub.key(&format!("{binding:?}"), &[]);
        check(&hub, binding, hub.stranger(binding).key(&key));
    }
}

#[test]
fn task_not_found() {
    each(|_, binding, client| {
        let refusal = client.call("GetTask", &json!({"id": "none"})).expect_err("refused");
        matches(binding, &refusal, ("TASK_NOT_FOUND", -32001, 404, "NOT_FOUND"));
        assert_eq!(refusal.metadata["taskId"], "none");
    });
}

#[test]
fn task_not_cancelable() {
    each(|_, binding, client| {
        let task = client.say("m", "complete");
        let refusal = client.call("CancelTask", &json!({"id": id(&task)})).expect_err("refused");
        matches(binding, &refusal, ("TASK_NOT_CANCELABLE", -32002, 400, "FAILED_PRECONDITION"));
    });
}

#[test]
fn push_notification_not_supported() {
    each(|_, binding, client| {
        let params = json!({"taskId": "any", "url": "https://example.com"});
        let refusal =
            client.clone().agent("still").call("CreateTaskPushNotificationConfig", &params).expect_err("refused");
        matches(binding, &refusal, ("PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, 400, "FAILED_PRECONDITION"));
    });
}

#[test]
fn unsupported_operation() {
    each(|_, binding, client| {
        let refusal = client.call("GetExtendedAgentCard", &json!({})).expect_err("refused");
        matches(binding, &refusal, ("UNSUPPORTED_OPERATION", -32004, 400, "FAILED_PRECONDITION"));
    });
}

#[test]
fn content_type_not_supported() {
    each(|_, binding, client| {
        let mut params = message("m", "x");
        params["message"]["parts"] = json!([{"data": 1}]);
        let refusal = client.agent("plain").call("SendMessage", &params).expect_err("refused");
        matches(binding, &refusal, ("CONTENT_TYPE_NOT_SUPPORTED", -32005, 400, "INVALID_ARGUMENT"));
    });
}

#[test]
fn extension_support_required() {
    each(|_, binding, client| {
        let refusal = client.agent("strict").call("SendMessage", &message("m", "x")).expect_err("refused");
        matches(binding, &refusal, ("EXTENSION_SUPPORT_REQUIRED", -32008, 400, "FAILED_PRECONDITION"));
    });
}

#[test]
fn version_not_supported() {
    each(|_, binding, client| {
        let refusal = client.header("a2a-version", "0.9").call("ListTasks", &json!({})).expect_err("refused");
        matches(binding, &refusal, ("VERSION_NOT_SUPPORTED", -32009, 400, "FAILED_PRECONDITION"));
    });
}

#[test]
fn a_wrong_field_is_an_invalid_parameter_with_its_path() {
    each(|_, binding, client| {
        let refusal = client.call("ListTasks", &json!({"pageSize": 0})).expect_err("refused");
        let expected = match binding {
            Binding::JsonRpc => (-32602, 200),
            Binding::HttpJson => (400, 400),
            Binding::Grpc => (3, 200),
        };
        assert_eq!((refusal.code, refusal.http), expected);
        assert_eq!(refusal.fields(), ["pageSize"]);
        assert!(!refusal.violations[0].1.is_empty(), "the violation says why");
    });
}

#[test]
fn an_agent_that_is_not_there_is_no_a2a_error() {
    each(|_, binding, client| {
        let refusal = client.agent("nobody").call("ListTasks", &json!({})).expect_err("refused");
        assert_ne!(refusal.domain, "a2a-protocol.org", "the specification has no such error");
        let expected = match binding {
            Binding::JsonRpc => (-32602, 200),
            Binding::HttpJson => (404, 404),
            Binding::Grpc => (5, 200),
        };
        assert_eq!((refusal.code, refusal.http), expected);
    });
}

#[test]
fn a_refused_stream_is_an_ordinary_answer_and_no_stream() {
    each(|_, binding, client| {
        if binding == Binding::Grpc {
            let refusal = client.stream("SendStreamingMessage", &json!({})).map(|_| ()).expect_err("refused");
            assert_eq!(refusal.fields(), ["message"]);
            return;
        }
        let response = client.response("SendStreamingMessage", &json!({}));
        assert_ne!(response.header("content-type"), Some("text/event-stream"));
        assert_eq!(response.status, if binding == Binding::JsonRpc { 200 } else { 400 });
        assert_eq!(Refusal::of(&response).fields(), ["message"]);
    });
}
