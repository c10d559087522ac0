//! An agent of A2A that comes back after a cut is asked what became of its tasks.

use super::{agent_key, caller};
use crate::cast::{id, reached, setup, text};
use flotilla_testkit::socket::Socket;
use flotilla_testkit::{Binding, Client, HubProcess};
use serde_json::{Value, json};

/// An agent that was cut off at work; how it comes back.
fn cut_off(hub: &HubProcess, name: &str) -> (impl Fn() -> Socket, Client, Value, Value) {
    let (key, address) = (agent_key(hub, name), hub.address());
    let back = move || flotilla_testkit::socket::Dial::new(address).key(&key).subprotocol("a2a.v1").open();
    let mut agent = back();
    let client = caller(hub, Binding::JsonRpc, name);
    let task = client.start("m", "Take your time");
    let request = agent.wait_for("a request", |frame| frame.get("method").is_some());
    let said = json!({"messageId": "half", "role": "ROLE_AGENT", "parts": [{"text": "Half way"}]});
    let working = json!({"id": "theirs", "contextId": "c", "status": {"state": "TASK_STATE_WORKING", "message": said}});
    agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"task": working}}));
    reached(&client, id(&task), "TASK_STATE_WORKING");
    agent.cut();
    (back, client, task, request["id"].clone())
}

fn asked(agent: &mut Socket, method: &str) -> Value {
    let request = agent.wait_for("a request", |frame| frame.get("method").is_some());
    assert_eq!((&request["method"], &request["params"]["id"]), (&json!(method), &json!("theirs")));
    request["id"].clone()
}

fn hub() -> HubProcess {
    setup().config("sockets: {grace: 30s}").start()
}

#[test]
fn its_stream_goes_on_and_nothing_is_told_twice() {
    let hub = hub();
    let (back, client, task, first) = cut_off(&hub, "steady");
    let mut agent = back();
    let follow = asked(&mut agent, "SubscribeToTask");
    let said = json!({"messageId": "half", "role": "ROLE_AGENT", "parts": [{"text": "Half way"}]});
    let now = json!({"id": "theirs", "contextId": "c", "status": {"state": "TASK_STATE_WORKING", "message": said},
                     "artifacts": [{"artifactId": "a", "parts": [{"text": "one "}]}]});
    let answer = |id: &Value, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    agent.send(&answer(&follow, json!({"task": now})));
    let piece = json!({"artifactUpdate": {"taskId": "theirs", "contextId": "c", "append": true, "lastChunk": true,
                       "artifact": {"artifactId": "a", "parts": [{"text": "two"}]}}});
    agent.send(&answer(&follow, piece.clone()));
    // It also goes on under the first request, as it may: that is the same again.
    agent.send(&answer(&first, piece));
    let done =
        json!({"statusUpdate": {"taskId": "theirs", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}});
    agent.send(&answer(&follow, done));
    let done = reached(&client, id(&task), "TASK_STATE_COMPLETED");
    let parts: Vec<&str> =
        done["artifacts"][0]["parts"].as_array().expect("parts").iter().filter_map(|p| p["text"].as_str()).collect();
    assert_eq!(parts, ["one ", "two"]);
    let history = done["history"].as_array().expect("history");
    let told = history.iter().filter(|message| text(message) == "Half way").count();
    assert_eq!(told, 1, "{done}");
}

#[test]
fn what_ended_meanwhile_is_asked_for() {
    let hub = hub();
    let (back, client, task, _) = cut_off(&hub, "quick");
    let mut agent = back();
    let follow = asked(&mut agent, "SubscribeToTask");
    agent.send(&json!({"jsonrpc": "2.0", "id": follow, "error": {"code": -32004, "message": "It has ended"}}));
    let get = asked(&mut agent, "GetTask");
    let ended = json!({"id": "theirs", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"},
                       "artifacts": [{"artifactId": "a", "parts": [{"text": "All of it"}]}]});
    agent.send(&json!({"jsonrpc": "2.0", "id": get, "result": ended}));
    let done = reached(&client, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(text(&done["artifacts"][0]), "All of it");
}

#[test]
fn what_the_agent_does_not_know_any_more_is_lost() {
    let hub = hub();
    let (back, client, task, _) = cut_off(&hub, "forgetful");
    let mut agent = back();
    let follow = asked(&mut agent, "SubscribeToTask");
    agent.send(&json!({"jsonrpc": "2.0", "id": follow, "error": {"code": -32001, "message": "No such task"}}));
    let failed = reached(&client, id(&task), "TASK_STATE_FAILED");
    assert!(text(&failed["status"]["message"]).contains("does not know the task"), "{failed}");
}
