//! Nothing is missing anywhere: every operation and every refusal, over every binding, alike.

use super::on_current;
use crate::cast::{hub, id};
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::method::Method;
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess, Refusal, Talk};
use serde_json::{Value, json};

/// Parameters of an operation on a task that waits; a new operation does not compile until it has some.
fn params(method: Method, talk: &mut Talk, task: &Value) -> Value {
    match method {
        Method::SendMessage | Method::SendStreamingMessage => talk.message("complete"),
        Method::GetTask | Method::CancelTask | Method::SubscribeToTask => json!({"id": task["id"]}),
        Method::ListTasks | Method::GetExtendedAgentCard => json!({}),
        Method::CreatePushConfig => json!({"taskId": task["id"], "url": "https://example.com"}),
        Method::ListPushConfigs => json!({"taskId": task["id"]}),
        Method::GetPushConfig | Method::DeletePushConfig => json!({"taskId": task["id"], "id": "c"}),
    }
}

#[test]
fn every_operation_is_there_in_every_binding() {
    on_current(|talk| {
        for method in Method::ALL {
            let task = talk.say("ask");
            let params = params(method, talk, &task);
            if method == Method::SubscribeToTask {
                let mut stream = talk.client.stream(method.name(), &params).expect("a stream");
                let first = stream.expect();
                talk.note_stream(method.name(), &params, &[first]);
            } else if method == Method::SendStreamingMessage {
                talk.stream(method.name(), params);
            } else if let Err(refusal) = talk.call(method.name(), params) {
                assert_ne!(refusal.reason, "METHOD_NOT_FOUND", "{method:?}");
            }
        }
    });
}

/// How a caller comes to be refused for this reason, if any caller can; a new reason does not compile until it is here.
fn provoke(reason: Reason, hub: &HubProcess, client: &Client) -> Option<Refusal> {
    let call = |client: &Client, method: &str, params: Value| client.call(method, &params).expect_err("refused");
    let fresh = |text: &str| message(&format!("{reason:?}-{text}"), text);
    Some(match reason {
        Reason::TaskNotFound => call(client, "GetTask", json!({"id": "none"})),
        Reason::TaskNotCancelable => {
            let ended = client.say(&format!("{reason:?}"), "complete");
            call(client, "CancelTask", json!({"id": id(&ended)}))
        }
        Reason::PushNotificationNotSupported => {
            call(&client.clone().agent("still"), "ListTaskPushNotificationConfigs", json!({"taskId": "any"}))
        }
        Reason::UnsupportedOperation => call(client, "GetExtendedAgentCard", json!({})),
        Reason::ContentTypeNotSupported => {
            let mut params = fresh("x");
            params["message"]["parts"] = json!([{"data": 1}]);
            call(&client.clone().agent("plain"), "SendMessage", params)
        }
        Reason::ExtensionSupportRequired => call(&client.clone().agent("strict"), "SendMessage", fresh("x")),
        Reason::VersionNotSupported => call(&client.clone().header("a2a-version", "9.9"), "ListTasks", json!({})),
        Reason::InvalidParams => call(client, "SendMessage", json!({})),
        Reason::Unauthenticated => call(&client.clone().key("nonsense"), "ListTasks", json!({})),
        Reason::AgentNotFound => call(&client.clone().agent("nobody"), "ListTasks", json!({})),
        Reason::IdempotencyConflict => {
            client.say(&format!("{reason:?}-fail"), "complete");
            call(client, "SendMessage", fresh("fail"))
        }
        Reason::PermissionDenied => {
            let name = format!("reader-{:?}", client.binding);
            let key = hub.make_key(&[&name, "--principal", "reader", "--scope", "tasks:read"]);
            call(&client.clone().key(&key), "SendMessage", fresh("complete"))
        }
        // These need another configuration; the tests of limits meet them over every binding.
        Reason::PayloadTooLarge | Reason::ResourceExhausted | Reason::RequestTimeout => return None,
        // Limits, on sockets too.
        Reason::QueueFull | Reason::TenantQueueFull => return None,
        // These are about one binding's wire alone: errors/ and grpc.rs.
        Reason::ParseError
        | Reason::InvalidRequest
        | Reason::MethodNotFound
        | Reason::VerbNotAllowed
        | Reason::MediaTypeNotSupported
        | Reason::CompressionNotSupported
        | Reason::DeadlineExceeded
        | Reason::HostRequired
        | Reason::HeadersTooLarge => return None,
        // These are about the hub's own API: keys/api.rs.
        Reason::NotFound | Reason::AlreadyExists => return None,
        // No caller can bring these about at will.
        Reason::InvalidAgentResponse
        | Reason::ExtendedAgentCardNotConfigured
        | Reason::Internal
        | Reason::Unavailable => return None,
    })
}

#[test]
fn every_refusal_has_its_codes_in_every_binding() {
    let hub = hub();
    let mut met = 0;
    for reason in Reason::ALL {
        let row = reason.row();
        let told: Vec<Refusal> = Binding::ALL
            .into_iter()
            .filter_map(|binding| provoke(reason, &hub, &hub.caller(binding, &format!("{reason:?}-{binding:?}"))))
            .collect();
        if told.is_empty() {
            continue;
        }
        let [rpc, rest, grpc] = told.as_slice() else { panic!("{reason:?} is not told by every binding") };
        met += 1;
        for refusal in &told {
            assert_eq!(refusal.reason, row.reason);
            assert_eq!((&refusal.message, &refusal.violations), (&rpc.message, &rpc.violations), "{reason:?}");
        }
        assert_eq!(rpc.code, i64::from(row.rpc), "{reason:?}");
        assert_eq!((rest.code, rest.http), (i64::from(row.http), row.http), "{reason:?}");
        assert_eq!(grpc.status.as_deref(), Some(row.grpc), "{reason:?}");
    }
    assert_eq!(met, 12);
}
