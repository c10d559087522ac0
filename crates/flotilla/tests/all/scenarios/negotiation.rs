//! What callers and agents agree on first: version, extensions, media types, and operations that are not offered.

use super::{on_all, on_current};
use crate::cast::hub;
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Refusal, http2};
use serde_json::json;

#[test]
fn a_version_that_is_spoken_here_is_accepted() {
    on_current(|talk| {
        for version in ["1.0", "1.0.1", "1.0.0", ""] {
            talk.client = talk.client.clone().header("a2a-version", version);
            assert_eq!(talk.ok("ListTasks", json!({}))["totalSize"], 0, "{version}");
        }
        talk.client = talk.client.clone().without("a2a-version");
        assert_eq!(talk.ok("ListTasks", json!({}))["totalSize"], 0, "what it is can be seen without it");
    });
}

#[test]
fn a_version_may_be_a_query_parameter() {
    let hub = hub();
    for binding in Binding::JSON {
        let asking = |version| hub.owner(binding).without("a2a-version").query("A2A-Version", version);
        assert_eq!(asking("1.0").call("ListTasks", &json!({})).expect("a list")["totalSize"], 0);
        let refusal = asking("0.3").call("ListTasks", &json!({})).expect_err("refused");
        assert_eq!(refusal.reason, "VERSION_NOT_SUPPORTED");
    }
}

#[test]
fn a_version_that_is_not_spoken_here_is_refused_naming_what_is() {
    on_all(|talk| {
        for version in ["2.0", "1.1", "1", "1.00", "nonsense"] {
            talk.client = talk.client.clone().header("a2a-version", version);
            let refusal = talk.refused("ListTasks", json!({}));
            assert_eq!(refusal.reason, "VERSION_NOT_SUPPORTED", "{version}");
            assert_eq!(refusal.metadata["requestedVersion"], version);
            assert_eq!(refusal.metadata["supportedVersions"], "1.0, 0.3");
        }
    });
}

#[test]
fn a_version_is_named_once() {
    let hub = hub();
    for binding in [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc] {
        let owner = hub.owner(binding);
        let ask = |other: &str| {
            let mut request = owner.request_over_http2("ListTasks", &json!({}));
            request.headers.push(("a2a-version".to_owned(), other.to_owned()));
            http2::send(owner.address, &request)
        };
        let refusal = Refusal::of(&ask("0.3"));
        assert_eq!(refusal.reason, "VERSION_NOT_SUPPORTED", "{binding:?}");
        assert!(refusal.message.contains("several versions: 1.0, 0.3"), "{}", refusal.message);
        assert_eq!(refusal.metadata["requestedVersion"], "1.0, 0.3");
        let same = ask("1.0");
        assert!(same.status == 200 && same.header("grpc-status").is_none_or(|status| status == "0"), "{same:?}");
    }
}

#[test]
fn what_is_1_0_is_refused_where_0_3_is_named() {
    let hub = hub();
    for binding in Binding::ALL {
        for version in ["0.3", "0.3.0"] {
            let client = hub.owner(binding).header("a2a-version", version);
            let refusal = client.call("SendMessage", &message("m", "complete")).expect_err("refused");
            assert_eq!(refusal.reason, "VERSION_NOT_SUPPORTED", "{binding:?}");
            assert!(refusal.message.contains("0.3") && refusal.message.contains("1.0"), "{}", refusal.message);
        }
    }
}

#[test]
fn every_answer_says_its_version() {
    let hub = hub();
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        assert_eq!(owner.response("ListTasks", &json!({})).header("a2a-version"), Some("1.0"));
        assert_eq!(owner.response("GetTask", &json!({"id": "x"})).header("a2a-version"), Some("1.0"));
    }
}

#[test]
fn a_required_extension_must_be_named() {
    on_all(|talk| {
        talk.client = talk.client.clone().agent("strict");
        let params = talk.message("hello");
        let refusal = talk.refused("SendMessage", params.clone());
        assert_eq!(refusal.reason, "EXTENSION_SUPPORT_REQUIRED");
        assert_eq!(refusal.metadata["requiredExtensions"], "urn:test:required");
        talk.client = talk.client.clone().header("a2a-extensions", "urn:test:optional");
        assert_eq!(talk.refused("SendMessage", params.clone()).reason, "EXTENSION_SUPPORT_REQUIRED");
        assert_eq!(talk.refused_stream("SendStreamingMessage", params.clone()).reason, "EXTENSION_SUPPORT_REQUIRED");
        talk.client = talk.client.clone().header("a2a-extensions", "urn:other, urn:test:required");
        talk.ok("SendMessage", params);
        assert_eq!(talk.ok("ListTasks", json!({}))["totalSize"], 1);
    });
}

#[test]
fn activated_extensions_are_echoed_and_unknown_ones_are_not() {
    let hub = hub();
    for binding in Binding::ALL {
        let owner = hub.owner(binding).agent("strict");
        let named = owner.clone().header("a2a-extensions", "urn:unknown,urn:test:required,urn:test:optional");
        let response = named.response("ListTasks", &json!({}));
        assert_eq!(response.header("a2a-extensions"), Some("urn:test:required,urn:test:optional"));
        let stream = named.stream("SendStreamingMessage", &message(&format!("m-{binding:?}"), "hello"));
        let stream = stream.expect("a stream");
        assert_eq!(stream.header("a2a-extensions"), Some("urn:test:required,urn:test:optional"));
        let response = hub.owner(binding).header("a2a-extensions", "urn:unknown").response("ListTasks", &json!({}));
        assert_eq!((response.status, response.header("a2a-extensions")), (200, None));
    }
}

#[test]
fn a_part_the_agent_does_not_take_is_refused() {
    on_all(|talk| {
        talk.client = talk.client.clone().agent("plain");
        for part in [
            json!({"data": {"a": 1}}),
            json!({"text": "<p>", "mediaType": "text/html"}),
            json!({"raw": "AAAA"}),
            json!({"url": "https://example.com/x.png", "mediaType": "image/png"}),
        ] {
            let mut params = talk.message("hello");
            params["message"]["parts"] = json!([{"text": "fine"}, part]);
            let refusal = talk.refused("SendMessage", params.clone());
            assert_eq!(refusal.reason, "CONTENT_TYPE_NOT_SUPPORTED");
            assert!(refusal.message.contains("text/plain"), "{}", refusal.message);
            assert_eq!(talk.refused_stream("SendStreamingMessage", params).reason, "CONTENT_TYPE_NOT_SUPPORTED");
        }
        assert_eq!(talk.ok("ListTasks", json!({}))["totalSize"], 0);
    });
}

#[test]
fn an_output_mode_the_agent_does_not_make_is_refused() {
    on_all(|talk| {
        talk.client = talk.client.clone().agent("plain");
        let mut params = talk.message("hello");
        params["configuration"] = json!({"acceptedOutputModes": ["image/png", "audio/*"]});
        assert_eq!(talk.refused("SendMessage", params.clone()).reason, "CONTENT_TYPE_NOT_SUPPORTED");
        assert_eq!(talk.refused_stream("SendStreamingMessage", params).reason, "CONTENT_TYPE_NOT_SUPPORTED");
        assert_eq!(talk.ok("ListTasks", json!({}))["totalSize"], 0);
        for accepted in [json!(["image/png", "text/plain"]), json!(["text/*"]), json!(["*/*"]), json!([])] {
            let mut params = talk.message("hello");
            params["configuration"] = json!({"acceptedOutputModes": accepted});
            talk.ok("SendMessage", params);
        }
    });
}

#[test]
fn push_notifications_are_refused_by_every_operation_of_an_agent_that_has_none() {
    on_all(|talk| {
        talk.client = talk.client.clone().agent("still");
        let task = talk.say("ask");
        let config = json!({"taskId": task["id"], "url": "https://example.com/hook"});
        let one = json!({"taskId": task["id"], "id": "c1"});
        let refusals: Vec<Refusal> = vec![
            talk.refused("CreateTaskPushNotificationConfig", config.clone()),
            talk.refused("GetTaskPushNotificationConfig", one.clone()),
            talk.refused("ListTaskPushNotificationConfigs", json!({"taskId": task["id"]})),
            talk.refused("DeleteTaskPushNotificationConfig", one),
        ];
        assert!(refusals.iter().all(|refusal| refusal.reason == "PUSH_NOTIFICATION_NOT_SUPPORTED"));
        let mut params = talk.message("complete");
        params["configuration"] = json!({"taskPushNotificationConfig": {"url": "https://example.com/hook"}});
        assert_eq!(talk.refused("SendMessage", params.clone()).reason, "PUSH_NOTIFICATION_NOT_SUPPORTED");
        assert_eq!(talk.ok("ListTasks", json!({}))["totalSize"], 1);
    });
}

#[test]
fn there_is_no_extended_card() {
    on_current(|talk| {
        assert_eq!(talk.refused("GetExtendedAgentCard", json!({})).reason, "UNSUPPORTED_OPERATION");
        assert_eq!(talk.refused("GetExtendedAgentCard", json!({"tenant": "echo"})).reason, "UNSUPPORTED_OPERATION");
    });
}
