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

fn piece(number: u32) -> Value {
    json!({"artifactUpdate": {"taskId": "theirs", "contextId": "c", "append": number > 0, "lastChunk": number == 2,
           "artifact": {"artifactId": "a", "parts": [{"text": format!("p{number}")}]}}})
}

fn so_far(count: u32, state: &str) -> Value {
    let parts: Vec<Value> = (0..count).map(|number| json!({"text": format!("p{number}")})).collect();
    json!({"id": "theirs", "contextId": "c", "status": {"state": state},
           "artifacts": [{"artifactId": "a", "parts": parts}]})
}

fn parts_of(task: &Value) -> Vec<&str> {
    let parts = task["artifacts"][0]["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

fn ended() -> Value {
    json!({"statusUpdate": {"taskId": "theirs", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}})
}

fn answer(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// It says what it has made so far, and is cut off once more; the question it answered.
fn cut_again(mut agent: Socket, client: &Client, task: &Value) -> Value {
    let question = asked(&mut agent, "SubscribeToTask");
    agent.send(&answer(&question, json!({"task": so_far(1, "TASK_STATE_WORKING")})));
    flotilla_testkit::until("the first part is told", || (parts_of(&client.task(id(task))) == ["p0"]).then_some(()));
    agent.cut();
    question
}

#[test]
fn what_was_lost_in_a_cut_is_not_missing_though_the_agent_goes_on_under_an_old_id() {
    let hub = hub();
    let (back, client, task, _) = cut_off(&hub, "hasty");
    let first = cut_again(back(), &client, &task);
    // The second part is lost. It goes on under the id it knows, and says that it is done.
    let mut agent = back();
    agent.send(&answer(&first, piece(2)));
    agent.send(&answer(&first, ended()));
    agent.send(&json!({"jsonrpc": "2.0", "id": first, "streamEnd": true}));
    let second = asked(&mut agent, "SubscribeToTask");
    assert_ne!(first, second, "each question has an id of its own");
    assert_eq!(client.task(id(&task))["status"]["state"], "TASK_STATE_WORKING", "what is missing may still come");
    agent.send(&answer(&second, json!({"task": so_far(3, "TASK_STATE_COMPLETED")})));
    agent.send(&json!({"jsonrpc": "2.0", "id": second, "streamEnd": true}));
    let done = reached(&client, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(parts_of(&done), ["p0", "p1", "p2"]);
}

#[test]
fn an_agent_that_cannot_say_what_became_of_its_task_is_taken_at_its_word() {
    let hub = hub();
    let (back, client, task, first) = cut_off(&hub, "simple");
    let mut agent = back();
    agent.send(&json!({"jsonrpc": "2.0", "id": first, "result": piece(0)}));
    agent.send(&json!({"jsonrpc": "2.0", "id": first, "result": ended()}));
    for method in ["SubscribeToTask", "GetTask"] {
        let question = asked(&mut agent, method);
        agent.send(&json!({"jsonrpc": "2.0", "id": question, "error": {"code": -32601, "message": "What?"}}));
    }
    let done = reached(&client, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(parts_of(&done), ["p0"]);
}

#[test]
fn what_goes_on_under_an_older_question_goes_on_to_its_end() {
    let hub = hub();
    let (back, client, task, _) = cut_off(&hub, "stubborn");
    let first = cut_again(back(), &client, &task);
    // It has one follower, and will not have another; but it shows its task, and goes on under the id it knows.
    let mut agent = back();
    let second = asked(&mut agent, "SubscribeToTask");
    agent.send(&json!({"jsonrpc": "2.0", "id": second, "error": {"code": -32004, "message": "Followed already"}}));
    let get = asked(&mut agent, "GetTask");
    agent.send(&answer(&get, so_far(1, "TASK_STATE_WORKING")));
    for frame in [piece(1), piece(2), ended()] {
        agent.send(&answer(&first, frame));
    }
    let done = reached(&client, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(parts_of(&done), ["p0", "p1", "p2"]);
}
