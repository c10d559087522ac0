//! `--a2a-version 0.3`: agents of that version, over every binding, whatever their cards and answers look like.

use super::agent::{Agent, Asked, Says, card};
use super::program::Place;
use serde_json::{Value, json};

/// The card of an agent of 0.3.
fn old_card(transport: &str, streaming: bool) -> Value {
    json!({
        "name": "Old", "description": "Speaks 0.3.", "version": "1", "protocolVersion": "0.3.0",
        "url": "${URL}/place", "preferredTransport": transport, "capabilities": {"streaming": streaming},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
    })
}

/// A card that says no more than where the agent is.
fn four_fields() -> Value {
    json!({"name": "Old", "description": "d", "version": "1", "url": "${URL}/place"})
}

fn kind_task(state: &str) -> Value {
    json!({"kind": "task", "id": "t-1", "contextId": "c-1", "status": {"state": state},
        "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": "the answer"}]}]})
}

fn proto_task(state: &str) -> Value {
    json!({"id": "t-1", "contextId": "c-1", "status": {"state": format!("TASK_STATE_{state}")},
        "artifacts": [{"artifactId": "a", "parts": [{"text": "the answer"}]}]})
}

const OLD: [&str; 2] = ["--a2a-version", "0.3"];

#[test]
fn json_rpc_has_other_names_and_forms() {
    let agent = Agent::start(old_card("JSONRPC", false), |_, _| Says::Result(kind_task("completed")));
    let ran = Place::new().run(&[&["send", "hi", "-a", &agent.url][..], &OLD].concat()).ok();
    assert_eq!(ran.field("State"), "TASK_STATE_COMPLETED");
    assert!(ran.out.contains("the answer"), "{ran:?}");
    let asked = &agent.asked()[0];
    assert_eq!((asked.path.as_str(), asked.method().as_str()), ("/place", "message/send"));
    assert_eq!(asked.header("a2a-version"), Some("0.3"));
    let params = &asked.json()["params"];
    assert_eq!(params["message"]["parts"], json!([{"kind": "text", "text": "hi"}]));
    assert_eq!(params["message"]["role"], "user");
    assert_eq!(params["configuration"]["blocking"], true);
    assert_eq!(agent.cards()[0].header("a2a-version"), Some("0.3"));
}

#[test]
fn a_stream_of_0_3_is_followed() {
    let update = |state: &str, last: bool| json!({"kind": "status-update", "taskId": "t-1", "contextId": "c-1", "status": {"state": state}, "final": last});
    let agent = Agent::start(old_card("JSONRPC", true), move |_, _| {
        Says::Events(vec![kind_task("working"), update("working", false), update("canceled", true)])
    });
    let ran = Place::new().run(&[&["send", "hi", "--stream", "-o", "json", "-a", &agent.url][..], &OLD].concat());
    let states: Vec<Value> = ran.lines().iter().map(state).collect();
    assert_eq!(states, ["TASK_STATE_WORKING", "TASK_STATE_WORKING", "TASK_STATE_CANCELED"], "{ran:?}");
}

fn state(line: &Value) -> Value {
    let inner = line.as_object().and_then(|members| members.values().next()).cloned().unwrap_or_default();
    inner["status"]["state"].clone()
}

#[test]
fn a_card_of_four_fields_is_enough() {
    let agent = Agent::start(four_fields(), |_, _| Says::Result(kind_task("completed")));
    let place = Place::new();
    place.run(&[&["send", "hi", "-a", &agent.url][..], &OLD].concat()).ok();
    assert_eq!(agent.asked()[0].method(), "message/send");
    let refused = place.run(&["send", "hi", "-a", &agent.url, "-o", "json"]);
    assert_eq!((refused.code, refused.error().as_str()), (1, "VersionNotSupportedError"));
    assert!(refused.out.contains("--a2a-version 0.3"), "{refused:?}");
    assert_eq!(agent.asked().len(), 1);
}

#[test]
fn http_json_is_asked_in_the_form_of_the_proto() {
    let agent = Agent::start(old_card("HTTP+JSON", false), |asked, _| {
        Says::Json(if asked.path.contains("message:send") {
            json!({"task": proto_task("CANCELLED")})
        } else {
            proto_task("CANCELLED")
        })
    });
    let place = Place::new();
    let ran = place.run(&[&["send", "hi", "-a", &agent.url][..], &OLD].concat()).ok();
    assert_eq!(ran.field("State"), "TASK_STATE_CANCELED");
    assert!(ran.out.contains("the answer"), "{ran:?}");
    let asked = &agent.asked()[0];
    assert_eq!(asked.path, "/place/v1/message:send");
    let body = asked.json();
    assert_eq!(body["message"]["content"], json!([{"text": "hi"}]));
    assert_eq!((&body["message"]["role"], &body["configuration"]["blocking"]), (&json!("ROLE_USER"), &json!(true)));
    place.run(&[&["task", "get", "t-1", "--history", "3", "-a", &agent.url][..], &OLD].concat()).ok();
    assert_eq!(agent.asked()[1].path, "/place/v1/tasks/t-1?historyLength=3");
    place.run(&[&["task", "cancel", "t-1", "-a", &agent.url][..], &OLD].concat()).ok();
    assert_eq!(agent.asked()[2].path, "/place/v1/tasks/t-1:cancel");
}

/// An agent that reads only the form with `kind`.
fn picky(asked: &Asked, _: usize) -> Says {
    if asked.json()["message"]["parts"].is_null() {
        return Says::Status(400, json!({"code": -32602, "message": "message.parts is missing"}));
    }
    Says::Json(kind_task("completed"))
}

#[test]
fn http_json_is_asked_in_the_other_form_if_the_first_is_not_understood() {
    let agent = Agent::start(old_card("HTTP+JSON", false), picky);
    let ran = Place::new().run(&[&["send", "hi", "-a", &agent.url][..], &OLD].concat()).ok();
    assert_eq!(ran.field("State"), "TASK_STATE_COMPLETED");
    let bodies: Vec<Value> = agent.asked().iter().map(Asked::json).collect();
    assert_eq!(bodies[1]["message"]["parts"], json!([{"kind": "text", "text": "hi"}]));
    assert_eq!(bodies[0]["message"]["messageId"], bodies[1]["message"]["messageId"], "the same message");
}

#[test]
fn errors_of_0_3_have_the_names_they_have_in_1_0() {
    for (status, body, name) in [
        (404, json!({"message": "gone"}), "TaskNotFoundError"),
        (409, json!({"message": "done"}), "TaskNotCancelableError"),
        (501, json!({"message": "no"}), "UnsupportedOperationError"),
        (400, json!({"code": -32001, "message": "gone"}), "TaskNotFoundError"),
    ] {
        let told = body.clone();
        let agent = Agent::start(old_card("HTTP+JSON", false), move |_, _| Says::Status(status, told.clone()));
        let args = ["task", "cancel", "t-1", "-o", "json", "-a", &agent.url];
        let ran = Place::new().run(&[&args[..], &OLD].concat());
        assert_eq!((ran.code, ran.error().as_str()), (1, name), "{body}");
        assert!(ran.out.contains(body["message"].as_str().unwrap_or_default()), "{ran:?}");
    }
}

#[test]
fn an_agent_of_1_0_that_answers_as_0_3_is_understood() {
    let agent = Agent::start(card(json!({})), |_, _| Says::Result(kind_task("completed")));
    let ran = Place::new().run(&["send", "hi", "-a", &agent.url]).ok();
    assert_eq!(ran.field("State"), "TASK_STATE_COMPLETED");
    assert_eq!(agent.asked()[0].method(), "SendMessage");
}

#[test]
fn a_card_of_1_0_has_nothing_for_0_3() {
    let agent = Agent::start(card(json!({})), |_, _| Says::Result(kind_task("completed")));
    let ran = Place::new().run(&[&["send", "hi", "-o", "json", "-a", &agent.url][..], &OLD].concat());
    assert_eq!((ran.code, ran.error().as_str()), (1, "VersionNotSupportedError"));
    assert!(ran.out.contains("leave out --a2a-version to speak 1.x"), "{ran:?}");
    assert_eq!(agent.asked().len(), 0);
}
