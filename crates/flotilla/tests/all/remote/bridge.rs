//! An agent of another hub, called through this one over every binding: what it says arrives as it was said.

use super::{chained, texts};
use crate::cast::{hub, id, reached, setup, state, text};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess};
use serde_json::{Value, json};

/// Runs a test for each binding and version between the two hubs.
fn over_each(agent: &str, check: impl Fn(&HubProcess, &HubProcess, &Client)) {
    for (transport, version) in [
        ("JSONRPC", "1.0"),
        ("HTTP+JSON", "1.0"),
        ("GRPC", "1.0"),
        ("JSONRPC", "0.3"),
        ("HTTP+JSON", "0.3"),
        ("GRPC", "0.3"),
    ] {
        let far = hub();
        let settings = format!(", transports: ['{transport}'], protocol_version: '{version}'");
        let near = chained(&far, agent, &settings);
        check(&near, &far, &near.owner(Binding::JsonRpc));
    }
}

fn reply(client: &Client, task: &Value, message_id: &str, words: &str) -> Value {
    let mut params = message(message_id, words);
    params["message"]["taskId"] = task["id"].clone();
    client.call("SendMessage", &params).expect("an answer")["task"].clone()
}

/// The events of the owner's view.
fn log(hub: &HubProcess, task: &Value) -> Vec<Value> {
    let page = hub.owner(Binding::JsonRpc).get(&format!("/api/tasks/{}/log", id(task))).json();
    page["events"].as_array().unwrap_or_else(|| panic!("no events in {page}")).clone()
}

/// The ids the agent gave a task, from the owner's view.
fn upstream(hub: &HubProcess, task: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let linked = log(hub, task).into_iter().filter_map(|event| {
        let upstream = event.pointer("/event/linked/upstream")?.clone();
        Some((text(&upstream["task"]), text(&upstream["context"])))
    });
    linked.collect()
}

#[test]
fn a_send_comes_back_whole() {
    over_each("mock", |_, _, client| {
        let task = client.say("m-1", "complete it");
        assert_eq!(state(&task), "TASK_STATE_COMPLETED");
        assert_eq!(text(&task["status"]["message"]), "All done");
        assert_eq!(texts(&task["artifacts"][0]), ["You said complete it"]);
        let history: Vec<&str> = task["history"].as_array().unwrap().iter().map(text).collect();
        assert_eq!(history, ["complete it", "On it"]);
        let ids = |value: &Value| (value["taskId"].clone(), value["contextId"].clone());
        for said in task["history"].as_array().unwrap().iter().chain([&task["status"]["message"]]) {
            assert_eq!(ids(said), (task["id"].clone(), task["contextId"].clone()), "the ids are this hub's");
        }
    });
}

#[test]
fn files_pass_between_hubs_in_every_form_of_0_3() {
    for transport in ["JSONRPC", "HTTP+JSON", "GRPC"] {
        let far = setup().config("hub: {default_agent: echo}\nagents: {echo: {kind: echo}}").start();
        let near = chained(&far, "echo", &format!(", transports: ['{transport}'], protocol_version: '0.3'"));
        let client = near.owner(Binding::JsonRpc);
        // The texts `true` and `deadbeef` are base64 too, and bytes that are no text are not.
        for (message_id, raw) in [("m-1", "dHJ1ZQ=="), ("m-2", "ZGVhZGJlZWY="), ("m-3", "AP9ieXRlcw==")] {
            let mut params = message(message_id, "x");
            params["message"]["parts"] = json!([{"raw": raw, "mediaType": "application/json"}]);
            let task = client.call("SendMessage", &params).expect("an answer")["task"].clone();
            assert_eq!(task["artifacts"][0]["parts"][0]["raw"], raw, "{transport}: {task}");
        }
    }
}

#[test]
fn a_stream_comes_as_it_is_made() {
    over_each("mock", |_, _, client| {
        let mut stream = client.stream("SendStreamingMessage", &message("m-1", "chunks 5")).expect("a stream");
        let frames: Vec<Value> = stream.rest().iter().map(|event| event.frame()).collect();
        assert!(frames[0]["task"].is_object(), "{frames:?}");
        let pieces = frames.iter().filter(|frame| frame["artifactUpdate"].is_object()).count();
        assert_eq!(pieces, 5, "{frames:?}");
        let task = client.task(frames[0]["task"]["id"].as_str().unwrap());
        assert_eq!(texts(&task["artifacts"][0]).len(), 5);
        assert_eq!(state(&task), "TASK_STATE_COMPLETED");
    });
}

#[test]
fn a_question_is_answered_in_the_same_task_there() {
    over_each("mock", |near, far, client| {
        for (words, asks) in [("ask me", "INPUT_REQUIRED"), ("sign in", "AUTH_REQUIRED")] {
            let task = client.say(&format!("m-{asks}"), words);
            assert_eq!(state(&task), format!("TASK_STATE_{asks}"));
            let task = reply(client, &task, &format!("r-{asks}"), "complete now");
            assert_eq!(state(&task), "TASK_STATE_COMPLETED");
            let ids = upstream(near, &task);
            assert_eq!(ids.len(), 2, "once in each run: {ids:?}");
            assert_eq!(ids[0], ids[1]);
            let theirs = far.owner(Binding::JsonRpc).task(&ids[0].0);
            let heard: Vec<&str> = theirs["history"].as_array().unwrap().iter().map(text).collect();
            assert!(heard.contains(&words) && heard.contains(&"complete now"), "{heard:?}");
        }
    });
}

#[test]
fn a_message_stays_a_message_and_its_conversation_goes_on() {
    over_each("mock", |_, far, client| {
        let answer = client.call("SendMessage", &message("m-1", "direct")).expect("an answer")["message"].clone();
        assert_eq!(text(&answer), "Hello yourself");
        assert!(answer["taskId"].is_null() && answer["messageId"].is_string());
        let mut params = message("m-2", "complete");
        params["message"]["contextId"] = answer["contextId"].clone();
        let first = client.call("SendMessage", &params).expect("an answer")["task"].clone();
        params["message"]["messageId"] = "m-3".into();
        let second = client.call("SendMessage", &params).expect("an answer")["task"].clone();
        assert_eq!(first["contextId"], second["contextId"]);
        let listed = far.owner(Binding::JsonRpc).call("ListTasks", &json!({"historyLength": 5})).expect("a list");
        let tasks = listed["tasks"].as_array().unwrap();
        let context = |message_id: &str| {
            let held = |task: &&Value| task["history"][0]["messageId"] == message_id;
            tasks.iter().find(held).unwrap_or_else(|| panic!("{message_id} in {listed}"))["contextId"].clone()
        };
        assert_eq!(context("m-2"), context("m-3"), "one conversation here is one there");
        assert_ne!(context("m-2"), first["contextId"], "under an id of its own");
    });
}

#[test]
fn what_is_opaque_stays_as_it_was_written() {
    for transport in ["JSONRPC", "HTTP+JSON"] {
        let far = hub();
        let near = chained(&far, "echo", &format!(", transports: ['{transport}']"));
        let client = near.owner(Binding::JsonRpc);
        let params = r#"{"message": {"messageId": "m-1", "role": "ROLE_USER", "extensions": ["urn:x:1"], "later": [1.0],
            "metadata": {"n": 9007199254740993, "x": 1.50}, "parts": [
            {"data": {"big": 123456789012345678901234567890, "z": 1.0, "a": 1}, "metadata": {"k": 2.0}},
            {"raw": "AAEC", "filename": "a.bin", "mediaType": "application/x-thing"},
            {"url": "https://example.com/f", "mediaType": "image/png", "unheard": {"of": 1.0}}]}}"#;
        let request = client.request_text("SendMessage", params);
        let answered = client.send(request).text().to_owned();
        for kept in [
            r#"{"big": 123456789012345678901234567890, "z": 1.0, "a": 1}"#,
            r#"{"k": 2.0}"#,
            r#""raw":"AAEC""#,
            r#""unheard":{"of": 1.0}"#,
            r#""later":[1.0]"#,
        ] {
            assert!(answered.contains(kept), "{kept} in {answered}");
        }
        let listed = far.owner(Binding::JsonRpc).agent("echo").call("ListTasks", &json!({"historyLength": 5}));
        let heard = listed.expect("a list")["tasks"][0]["history"][0].clone();
        assert_eq!(heard["extensions"], json!(["urn:x:1"]));
        assert_eq!(heard["messageId"], "m-1");
        assert_eq!(heard["metadata"]["n"], json!(9_007_199_254_740_993_u64));
    }
}

#[test]
fn two_callers_with_the_same_message_id_have_two_tasks_there() {
    let far = hub();
    let near = chained(&far, "mock", "");
    let (one, two) = (near.caller(Binding::JsonRpc, "one"), near.caller(Binding::JsonRpc, "two"));
    let first = one.call("SendMessage", &message("same", "complete for one")).expect("an answer")["task"].clone();
    let second = two.call("SendMessage", &message("same", "complete for two")).expect("an answer")["task"].clone();
    assert_eq!(texts(&first["artifacts"][0]), ["You said complete for one"]);
    assert_eq!(texts(&second["artifacts"][0]), ["You said complete for two"]);
}

#[test]
fn its_failures_are_told_as_they_are() {
    over_each("mock", |_, _, client| {
        for (words, end, said) in
            [("fail", "FAILED", "It broke"), ("reject", "REJECTED", "Not my job"), ("give up", "CANCELED", "I gave up")]
        {
            let task = client.say(words, words);
            assert_eq!((state(&task), text(&task["status"]["message"])), (&*format!("TASK_STATE_{end}"), said));
        }
    });
}

#[test]
fn a_message_during_the_work_is_taken_up_after_it() {
    let far = hub();
    let near = chained(&far, "mock", "");
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "work 300ms");
    reached(&client, id(&task), "TASK_STATE_WORKING");
    let mut params = message("m-2", "complete that too");
    params["message"]["taskId"] = task["id"].clone();
    let task = client.call("SendMessage", &params).expect("an answer")["task"].clone();
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    assert_eq!(texts(&task["artifacts"][0]), ["You said complete that too"]);
}

/// A card names a gRPC interface as HOST:PORT, with no scheme.
#[test]
fn grpc_is_spoken_where_a_card_that_was_fetched_offers_it() {
    for version in ["1.0", "0.3"] {
        let far = hub();
        let near = chained(&far, "mock", &format!(", transports: ['GRPC'], protocol_version: '{version}'"));
        let client = near.owner(Binding::JsonRpc);
        assert_eq!(state(&client.say("m-1", "complete")), "TASK_STATE_COMPLETED");
        let listed = client.get("/api/agents").json();
        let far = &listed["agents"][0]["remote"];
        assert_eq!((&far["binding"], &far["version"]), (&json!("GRPC"), &json!(version)));
    }
}
