//! What is tolerated on the way in, and what comes out byte for byte as it went in.

use crate::cast::{hub, id, state};
use flotilla_testkit::http::send;
use flotilla_testkit::{Binding, Client, Event};
use serde_json::{Value, json};

/// Sends one part to echo and checks that its text is found unchanged wherever the task is shown.
fn relayed(part: &str, member: &str) {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding).agent("echo");
        let params = format!(r#"{{"message":{{"messageId":"m-{binding:?}","role":"ROLE_USER","parts":[{part}]}}}}"#);
        let sent = send(owner.address, &owner.request_text("SendMessage", &params));
        assert_eq!(sent.text().matches(member).count(), 2, "in history and artifact: {}", sent.text());
        let body = sent.json();
        let task = if binding == Binding::JsonRpc { &body["result"]["task"] } else { &body["task"] };
        assert_eq!(state(task), "TASK_STATE_COMPLETED");
        let read = owner.response("GetTask", &json!({"id": id(task)}));
        assert_eq!(read.text().matches(member).count(), 2, "read: {}", read.text());
        let listed = owner.response("ListTasks", &json!({"includeArtifacts": true, "contextId": task["contextId"]}));
        assert_eq!(listed.text().matches(member).count(), 2, "listed: {}", listed.text());
        let params = params.replace("\"m-", "\"s-");
        let streamed = send(owner.address, &owner.request_text("SendStreamingMessage", &params));
        assert_eq!(streamed.text().matches(member).count(), 2, "streamed: {}", streamed.text());
    }
}

#[test]
fn numbers_keep_their_form() {
    for number in ["9007199254740993", "1.0", "1e2", "-0", "1E+30", "123456789012345678901234567890", "0.10"] {
        let member = format!(r#""data":{{"n":{number}}}"#);
        relayed(&format!("{{{member}}}"), &member);
    }
}

#[test]
fn white_space_escapes_and_order_in_data_are_kept() {
    let member = r#""data":{ "z" : [1 ,2],  "a":"\u00e9\/é", "a": null }"#;
    relayed(&format!("{{{member}}}"), member);
}

#[test]
fn null_is_a_value_of_data() {
    relayed(r#"{"data":null}"#, r#""data":null"#);
    relayed(r#"{"data":{"a":null}}"#, r#""data":{"a":null}"#);
}

#[test]
fn unknown_fields_of_a_part_are_relayed() {
    relayed(r#"{"text":"x","futureField":{"n": 1.0, "s":[ ]}}"#, r#""futureField":{"n": 1.0, "s":[ ]}"#);
}

#[test]
fn metadata_of_a_part_is_relayed() {
    relayed(r#"{"text":"x","metadata":{"timestamp": 42, "k":1e2}}"#, r#""metadata":{"timestamp": 42, "k":1e2}"#);
}

#[test]
fn unknown_fields_of_a_message_are_kept_in_the_history() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding).agent("echo");
        let unknown = r#""x-later":[ 1.0,{"a" :9007199254740993}]"#;
        let params = format!(
            r#"{{"unknownTop":1,"message":{{"messageId":"m-{binding:?}","role":"ROLE_USER","parts":[{{"text":"x"}}],
            {unknown}}}}}"#
        );
        let sent = send(owner.address, &owner.request_text("SendMessage", &params));
        assert!(sent.text().contains(unknown), "{}", sent.text());
    }
}

#[test]
fn line_breaks_in_data_do_not_break_a_stream() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding).agent("echo");
        let data = "{\"a\":\n [1,\r\n 2]}";
        let params =
            format!(r#"{{"message":{{"messageId":"m-{binding:?}","role":"ROLE_USER","parts":[{{"data":{data}}}]}}}}"#);
        let request = owner.request_text("SendStreamingMessage", &params);
        let answer = send(owner.address, &request);
        let artifact = answer.text().lines().find(|line| line.contains("artifactUpdate")).expect("the artifact");
        let data: Value =
            serde_json::from_str(artifact.strip_prefix("data: ").expect("data")).expect("JSON on one line");
        let frame = data.get("result").unwrap_or(&data);
        assert_eq!(frame["artifactUpdate"]["artifact"]["parts"][0]["data"], json!({"a": [1, 2]}));
        let read = owner.response("ListTasks", &json!({"includeArtifacts": true}));
        assert!(read.text().contains("{\"a\":\n [1,\r\n 2]}"), "outside a stream every byte is kept: {}", read.text());
    }
}

fn accepted(owner: &Client, params: &str) -> Value {
    owner.call_text("SendMessage", params).unwrap_or_else(|refusal| panic!("{params}: {refusal:?}"))["task"].clone()
}

#[test]
fn names_are_read_in_both_spellings_and_written_in_one() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding).agent("echo");
        let task = accepted(
            &owner,
            &format!(
                r#"{{"message":{{"message_id":"m-{binding:?}","context_id":"c","reference_task_ids":["r"],
                "role":"ROLE_USER","parts":[{{"text":"x","media_type":"text/x-test"}}]}},
                "configuration":{{"history_length":1,"return_immediately":false,"accepted_output_modes":["*/*"]}}}}"#
            ),
        );
        let kept = &task["history"][0];
        assert_eq!(kept["messageId"], format!("m-{binding:?}"));
        assert_eq!((&kept["contextId"], &kept["referenceTaskIds"]), (&json!("c"), &json!(["r"])));
        assert_eq!(task["artifacts"][0]["parts"][0]["mediaType"], "text/x-test");
    }
}

#[test]
fn enums_are_read_by_number_and_written_by_name() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding).agent("echo");
        let params = format!(r#"{{"message":{{"messageId":"m-{binding:?}","role":1,"parts":[{{"text":"x"}}]}}}}"#);
        let task = accepted(&owner, &params);
        assert_eq!(task["history"][0]["role"], "ROLE_USER");
    }
    // In a query only names are allowed (spec 11.5).
    let owner = hub.owner(Binding::JsonRpc).agent("echo");
    assert_eq!(owner.call("ListTasks", &json!({"status": 3})).expect("completed tasks")["totalSize"], 2);
    assert_eq!(owner.call("ListTasks", &json!({"status": 4})).expect("failed tasks")["totalSize"], 0);
}

#[test]
fn every_base64_alphabet_is_read_and_the_standard_one_written() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding).agent("echo");
        for (index, raw) in ["-_8=", "-_8", "+/8=", "+/8"].into_iter().enumerate() {
            let params = format!(
                r#"{{"message":{{"messageId":"m-{index}-{binding:?}","role":"ROLE_USER",
                "parts":[{{"raw":"{raw}"}}]}}}}"#
            );
            assert_eq!(accepted(&owner, &params)["artifacts"][0]["parts"][0]["raw"], "+/8=", "{raw}");
        }
    }
}

#[test]
fn null_is_an_absent_field() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding).agent("echo");
        let params = format!(
            r#"{{"tenant":null,"metadata":null,"configuration":null,"message":{{"messageId":"m-{binding:?}",
            "contextId":null,"taskId":null,"role":"ROLE_USER","metadata":null,"extensions":null,
            "parts":[{{"text":"x","url":null,"filename":null}}]}}}}"#
        );
        assert_eq!(state(&accepted(&owner, &params)), "TASK_STATE_COMPLETED");
    }
}

#[test]
fn text_of_every_script_is_relayed() {
    let hub = hub();
    let text = "Grüße, 世界 🚀 \u{2028} \"quoted\" \\ \u{7f} \t tab\nline";
    for binding in Binding::JSON {
        let owner = hub.owner(binding).agent("echo");
        let params = flotilla_testkit::client::message(&format!("m-{binding:?}"), text);
        let mut stream = owner.stream("SendStreamingMessage", &params).expect("a stream");
        let frames: Vec<Value> = stream.rest().iter().map(Event::frame).collect();
        let artifact = frames.iter().find_map(|frame| frame.get("artifactUpdate")).expect("the artifact");
        assert_eq!(artifact["artifact"]["parts"][0]["text"], text);
    }
}

#[test]
fn the_owners_log_keeps_opaque_json_too() {
    let hub = hub();
    let data = r#"{"b":123456789012345678901234567890,"a":1.0}"#;
    let params = format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{data}}}]}}}}"#);
    let owner = hub.owner(Binding::HttpJson);
    let sent = owner.clone().agent("echo").call_text("SendMessage", &params).expect("a task");
    let log = owner.get(&format!("/api/tasks/{}/log", id(&sent["task"])));
    assert_eq!(log.text().matches(data).count(), 2, "asked and produced: {}", log.text());
}
