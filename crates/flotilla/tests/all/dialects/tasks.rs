//! A task is the same whatever it was made in: read, answered, followed and canceled in the other version.

use super::{call, old_message, request};
use crate::cast::{hub, id, reached, state};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client};
use serde_json::{Value, json};

/// A caller who only knows 0.3.
fn old(client: &Client) -> Client {
    client.clone().without("a2a-version")
}

#[test]
fn a_task_made_in_either_version_is_read_in_the_other() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let made = call(&old(&owner), "message/send", old_message("m-1", "complete"))["result"].clone();
    assert_eq!((made["kind"].as_str(), made["status"]["state"].as_str()), (Some("task"), Some("completed")), "{made}");
    let read = owner.task(id(&made));
    assert_eq!(state(&read), "TASK_STATE_COMPLETED");
    assert_eq!(read["history"][0]["role"], "ROLE_USER");
    assert_eq!(read["artifacts"][0]["parts"], json!([{"text": "You said complete"}]));

    let made = owner.say("m-2", "complete");
    let read = call(&old(&owner), "tasks/get", json!({"id": id(&made), "historyLength": 10}))["result"].clone();
    assert_eq!(read["artifacts"][0]["parts"], json!([{"kind": "text", "text": "You said complete"}]));
    assert_eq!(read["history"][0]["role"], "user");
    let listed = call(&old(&owner), "tasks/list", json!({"status": "completed"}))["result"].clone();
    assert_eq!((listed["totalSize"].as_u64(), listed["tasks"][0]["kind"].as_str()), (Some(2), Some("task")));
}

#[test]
fn a_question_asked_in_one_version_is_answered_in_the_other() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let asked = call(&old(&owner), "message/send", old_message("m-1", "ask"))["result"].clone();
    assert_eq!(asked["status"]["state"], "input-required");
    let mut reply = message("m-2", "large");
    reply["message"]["taskId"] = asked["id"].clone();
    let done = owner.call("SendMessage", &reply).expect("an answer")["task"].clone();
    assert_eq!(state(&done), "TASK_STATE_COMPLETED");

    let asked = owner.say("m-3", "ask");
    let mut reply = old_message("m-4", "small");
    reply["message"]["taskId"] = asked["id"].clone();
    let done = call(&old(&owner), "message/send", reply)["result"].clone();
    assert_eq!((&done["id"], done["status"]["state"].as_str()), (&asked["id"], Some("completed")), "{done}");
}

#[test]
fn a_send_of_0_3_waits_unless_it_says_otherwise() {
    let hub = hub();
    let owner = old(&hub.owner(Binding::JsonRpc));
    let mut params = old_message("m-1", "hold");
    params["configuration"] = json!({"blocking": false});
    let begun = call(&owner, "message/send", params)["result"].clone();
    assert!(matches!(begun["status"]["state"].as_str(), Some("submitted" | "working")), "{begun}");
    let canceled = call(&owner, "tasks/cancel", json!({"id": begun["id"]}))["result"].clone();
    assert_eq!(canceled["status"]["state"], "canceled");
    reached(&hub.owner(Binding::JsonRpc), id(&begun), "TASK_STATE_CANCELED");
    let mut params = old_message("m-2", "complete");
    params["configuration"] = json!({"historyLength": 0});
    assert_eq!(call(&owner, "message/send", params)["result"]["status"]["state"], "completed");
    let direct = call(&owner, "message/send", old_message("m-3", "direct"))["result"].clone();
    assert_eq!((direct["kind"].as_str(), direct["role"].as_str()), (Some("message"), Some("agent")));
}

/// What a stream of 0.3 brings, each frame by its kind and state.
fn frames(client: &Client, method: &str, params: Value) -> Vec<String> {
    let response = client.send(request(method, params));
    assert_eq!(response.header("content-type"), Some("text/event-stream"), "{}", response.text());
    let data = response.text().lines().filter_map(|line| line.strip_prefix("data: ").map(str::to_owned));
    data.map(|line| {
        let event: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(event["id"], 1);
        let frame = &event["result"];
        let last = if frame["final"] == true { " final" } else { "" };
        format!(
            "{} {}{last}",
            frame["kind"].as_str().unwrap_or("error"),
            frame["status"]["state"].as_str().unwrap_or("")
        )
    })
    .collect()
}

#[test]
fn a_stream_of_0_3_ends_with_the_final_update() {
    let hub = hub();
    let owner = old(&hub.owner(Binding::JsonRpc));
    let told = frames(&owner, "message/stream", old_message("m-1", "complete"));
    let expected = ["task submitted", "status-update working", "artifact-update ", "status-update completed final"];
    assert_eq!(told, expected);
    let told = frames(&owner, "message/stream", old_message("m-2", "ask"));
    assert_eq!(told.last().map(String::as_str), Some("status-update input-required final"), "{told:?}");
    assert_eq!(frames(&owner, "message/stream", old_message("m-3", "direct")), ["message "]);
}

#[test]
fn a_stream_of_a_task_at_rest_is_the_task_in_0_3() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let task = owner.say("m-1", "complete");
    assert_eq!(frames(&old(&owner), "tasks/resubscribe", json!({"id": id(&task)})), ["task completed"]);
    for (message_id, words, state) in [("m-2", "ask", "input-required"), ("m-3", "sign in", "auth-required")] {
        let waiting = owner.say(message_id, words);
        let told = frames(&old(&owner), "tasks/resubscribe", json!({"id": id(&waiting)}));
        assert_eq!(told, [format!("task {state}")]);
    }
}

#[test]
fn a_refused_stream_of_0_3_is_a_stream_with_the_error() {
    let hub = hub();
    let owner = old(&hub.owner(Binding::JsonRpc));
    let response = owner.send(request("tasks/resubscribe", json!({"id": "nowhere"})));
    assert_eq!((response.status, response.header("content-type")), (200, Some("text/event-stream")));
    assert!(response.text().contains("\"code\":-32001"), "{}", response.text());
    let stranger = old(&hub.stranger(Binding::JsonRpc));
    assert_eq!(stranger.send(request("tasks/resubscribe", json!({"id": "nowhere"}))).status, 401);
}

#[test]
fn errors_of_0_3_have_its_codes_and_an_object_as_data() {
    let hub = hub();
    let owner = old(&hub.owner(Binding::JsonRpc));
    let error = |method, params| call(&owner, method, params)["error"].clone();
    let missing = error("tasks/get", json!({"id": "nowhere"}));
    assert_eq!((&missing["code"], &missing["data"]["reason"]), (&json!(-32001), &json!("TASK_NOT_FOUND")));
    let ended = call(&owner, "message/send", old_message("m", "complete"))["result"]["id"].clone();
    assert_eq!(error("tasks/cancel", json!({"id": ended}))["code"], -32002);
    assert_eq!(error("agent/getAuthenticatedExtendedCard", json!({}))["code"], -32007);
    assert_eq!(error("message/send", json!({}))["code"], -32602);
    let wrong = error("message/send", json!({"message": {"kind": "message", "parts": [{"kind": "image"}]}}));
    assert_eq!(wrong["data"]["fieldViolations"][0]["field"], "message.parts[0]");
    assert_eq!(error("tasks/forget", json!({}))["code"], -32601);
}
