//! Fields that are wrong: each is named by its path, all at once, and nothing is done.

use super::no_task;
use crate::cast::hub;
use flotilla_testkit::{Binding, Client, Refusal};
use serde_json::json;

const SENDS: [&str; 2] = ["SendMessage", "SendStreamingMessage"];

fn refused(client: &Client, method: &str, params: &str) -> Refusal {
    match client.call_text(method, params) {
        Err(refusal) => refusal,
        Ok(answer) => panic!("{params} should have been refused, but came to {answer}"),
    }
}

/// Every send with these parameters is refused, naming these fields.
fn names(cases: &[(&str, &[&str])]) {
    let hub = hub();
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        for (params, fields) in cases {
            for method in SENDS {
                if !owner.can_say(method, params) {
                    continue;
                }
                let refusal = refused(&owner, method, params);
                assert_eq!(refusal.fields(), *fields, "{method} {params}: {}", refusal.message);
                assert_eq!(refusal.reason, "INVALID_PARAMS");
            }
        }
        no_task(&owner);
    }
}

#[test]
fn empty_parameters_make_no_task() {
    names(&[("{}", &["message"]), (r#"{"message":null}"#, &["message"]), (r#"{"configuration":{}}"#, &["message"])]);
}

#[test]
fn all_that_is_missing_is_told_at_once() {
    names(&[
        (r#"{"message":{}}"#, &["message.messageId", "message.role", "message.parts"]),
        (r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[]}}"#, &["message.parts"]),
        (r#"{"message":{"messageId":"","role":"ROLE_USER","parts":[{"text":"x"}]}}"#, &["message.messageId"]),
        (r#"{"message":{"messageId":"m","role":"ROLE_UNSPECIFIED","parts":[{"text":"x"}]}}"#, &["message.role"]),
        (r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}}"#, &["message.role"]),
    ]);
}

#[test]
fn a_wrong_type_is_told_by_its_path() {
    names(&[
        (r#"{"message":[]}"#, &["message"]),
        (r#"{"message":"hello"}"#, &["message"]),
        (r#"{"message":{"messageId":5}}"#, &["message.messageId"]),
        (r#"{"message":{"role":true}}"#, &["message.role"]),
        (r#"{"message":{"role":"user"}}"#, &["message.role"]),
        (r#"{"message":{"role":99}}"#, &["message.role"]),
        (r#"{"message":{"parts":{}}}"#, &["message.parts"]),
        (r#"{"message":{"parts":["hello"]}}"#, &["message.parts[0]"]),
        (r#"{"message":{"parts":[{"text":"a"},{"text":5}]}}"#, &["message.parts[1].text"]),
        (r#"{"message":{"parts":[{"raw":"not base64!"}]}}"#, &["message.parts[0].raw"]),
        (r#"{"message":{"metadata":[]}}"#, &["message.metadata"]),
        (r#"{"message":{"extensions":"urn:x"}}"#, &["message.extensions"]),
        (r#"{"configuration":"fast"}"#, &["configuration"]),
        (r#"{"configuration":{"returnImmediately":"yes"}}"#, &["configuration.returnImmediately"]),
        (r#"{"configuration":{"historyLength":"many"}}"#, &["configuration.historyLength"]),
        (r#"{"configuration":{"historyLength":1.5}}"#, &["configuration.historyLength"]),
        (r#"{"configuration":{"historyLength":9007199254740993}}"#, &["configuration.historyLength"]),
        (r#"{"configuration":{"acceptedOutputModes":[1]}}"#, &["configuration.acceptedOutputModes[0]"]),
        (r#"{"metadata":"x"}"#, &["metadata"]),
        (r#"{"tenant":7}"#, &["tenant"]),
    ]);
}

#[test]
fn a_part_holds_exactly_one_content() {
    let with =
        |part: &str| format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"a"}},{part}]}}}}"#);
    let second: &[&str] = &["message.parts[1]"];
    for part in [
        r#"{"text":"a","url":"https://example.com"}"#,
        r#"{"text":"a","data":{}}"#,
        r#"{"raw":"AAAA","url":"https://example.com"}"#,
        r#"{"text":"a","raw":"AAAA","url":"u","data":1}"#,
        r#"{}"#,
        r#"{"mediaType":"text/plain","filename":"x"}"#,
        r#"{"text":null}"#,
    ] {
        names(&[(&with(part), second)]);
    }
}

#[test]
fn control_characters_in_ids_are_refused() {
    names(&[
        (r#"{"message":{"messageId":"a\r\nb","role":"ROLE_USER","parts":[{"text":"x"}]}}"#, &["message.messageId"]),
        (
            r#"{"message":{"messageId":"m","contextId":"a\r\nb","role":"ROLE_USER","parts":[{"text":"x"}]}}"#,
            &["message.contextId"],
        ),
        (
            r#"{"message":{"messageId":"m","taskId":"a\nb","role":"ROLE_USER","parts":[{"text":"x"}]}}"#,
            &["message.taskId"],
        ),
        (r#"{"message":{"messageId":"a\u0000b","role":"ROLE_USER","parts":[{"text":"x"}]}}"#, &["message.messageId"]),
    ]);
}

#[test]
fn an_id_has_a_length_it_may_not_exceed() {
    let long = "x".repeat(5000);
    let with = |field: &str| {
        format!(r#"{{"message":{{"messageId":"m","{field}":"{long}","role":"ROLE_USER","parts":[{{"text":"x"}}]}}}}"#)
    };
    names(&[(&with("contextId"), &["message.contextId"]), (&with("taskId"), &["message.taskId"])]);
}

#[test]
fn a_field_given_twice_is_refused() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding);
        for (field, message) in [
            ("message.messageId", r#"{"messageId":"a","messageId":"b","role":"ROLE_USER","parts":[{"text":"x"}]}"#),
            ("message.messageId", r#"{"messageId":"a","message_id":"b","role":"ROLE_USER","parts":[{"text":"x"}]}"#),
            ("message.parts[0].text", r#"{"messageId":"a","role":"ROLE_USER","parts":[{"text":"x","text":"y"}]}"#),
        ] {
            for method in SENDS {
                let refusal = refused(&owner, method, &format!("{{\"message\":{message}}}"));
                assert_eq!(refusal.reason, "INVALID_PARAMS", "{message}");
                assert_eq!(refusal.fields(), [field]);
                assert!(refusal.message.contains("given twice"), "{}", refusal.message);
            }
        }
        no_task(&owner);
    }
}

#[test]
fn line_breaks_in_an_id_to_read_never_reach_a_header() {
    let hub = hub();
    for binding in Binding::ALL {
        let response = hub.owner(binding).response("GetTask", &json!({"id": "a\r\nx-injected: yes"}));
        assert_eq!(response.header("x-injected"), None);
        assert_eq!(Refusal::of(&response).reason, "TASK_NOT_FOUND");
    }
}

#[test]
fn an_id_is_required_where_a_task_is_meant() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        for params in [json!({}), json!({"id": ""}), json!({"id": null})] {
            let refusal = owner.call(method, &params).expect_err("refused");
            assert_eq!(refusal.fields(), ["id"], "{method}");
        }
        let refusal = owner.call(method, &json!({"id": 7})).expect_err("refused");
        assert_eq!(refusal.fields(), ["id"], "{method}");
    }
}

#[test]
fn a_number_beyond_32_bits_is_refused_in_a_query_too() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    for (query, field) in [
        ("historyLength=9007199254740993", "historyLength"),
        ("pageSize=ten", "pageSize"),
        ("includeArtifacts=maybe", "includeArtifacts"),
        ("status=DONE", "status"),
        ("pageSize=1.5", "pageSize"),
    ] {
        let response = owner.get(&format!("/tasks?{query}"));
        assert_eq!(response.status, 400, "{query}");
        assert_eq!(Refusal::of(&response).fields(), [field], "{query}");
    }
}
