//! Messages in frames that come again: known where they can be, said to be, and new where they are.

use super::{connected, dial};
use crate::cast::{hub, setup};
use crate::socket::{agent_key, answer, asked};
use flotilla_testkit::HubProcess;
use flotilla_testkit::socket::Socket;
use serde_json::{Value, json};

fn message(id: &str, text: &str) -> Value {
    json!({"type": "message", "id": id, "to": "weather", "payload": {"parts": [{"kind": "text", "text": text}]}})
}

/// Sends a frame; its task, and whether that is said to be known.
fn sent(socket: &mut Socket, frame: &Value) -> (Value, bool) {
    socket.send(frame);
    let ack = socket.wait_for("an answer", |frame| frame["type"] == "ack" || frame["type"] == "error");
    assert_eq!((&ack["type"], &ack["id"]), (&json!("ack"), &frame["id"]), "{ack}");
    (ack["taskId"].clone(), ack["duplicate"] == true)
}

fn calls(hub: &HubProcess, key: &str) -> Socket {
    dial(hub, key).query("role", "caller").open()
}

#[test]
fn a_frame_that_comes_again_is_known_also_after_a_cut() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    let mut agent = connected(&hub, "weather");
    let mut socket = calls(&hub, &key);
    let first = sent(&mut socket, &message("1", "Rain?"));
    assert!(!first.1);
    assert_eq!(agent.kind("message")["taskId"], first.0);
    let known = (first.0.clone(), true);
    assert_eq!(sent(&mut socket, &message("1", "Rain?")), known, "on the same connection");
    socket.cut();
    let mut socket = calls(&hub, &key);
    assert_eq!(sent(&mut socket, &message("1", "Rain?")), known, "after a cut");
    // Nothing of that reached the agent, but what is new.
    let second = sent(&mut socket, &message("2", "Rain?"));
    assert_eq!((agent.kind("message")["taskId"].clone(), false), second);
}

#[test]
fn after_good_bye_and_a_restart_of_the_hub_a_number_is_another_message() {
    let mut hub = setup().start();
    let (key, agent_key) = (agent_key(&hub, "caller"), agent_key(&hub, "weather"));
    let mut named = message("9", "Storm?");
    named["payload"]["messageId"] = json!("storm");
    let mut known = None;
    for day in ["monday", "tuesday"] {
        let mut agent = dial(&hub, &agent_key).open();
        let mut socket = calls(&hub, &key);
        let (task, repeated) = sent(&mut socket, &message("1", "Rain?"));
        assert!(!repeated, "{day}");
        let run = agent.wait_for("the question", |frame| frame["taskId"] == task);
        answer(&mut agent, &run, day);
        socket.wait_for("the answer", |frame| frame["task"]["status"]["state"] == "completed");
        let (task, repeated) = sent(&mut socket, &named);
        assert_eq!(repeated, known.is_some(), "an id of the message's own is good for longer");
        assert_eq!(*known.get_or_insert_with(|| task.clone()), task);
        socket.close();
        agent.close();
        hub.restart();
    }
}

#[test]
fn the_id_of_a_frame_may_be_a_number() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    let mut agent = connected(&hub, "weather");
    let mut socket = calls(&hub, &key);
    let mut numbered = message("", "Rain?");
    numbered["id"] = json!(7);
    let (task, known) = sent(&mut socket, &numbered);
    assert!(!known);
    let run = agent.kind("message");
    assert_eq!(run["taskId"], task);
    assert_eq!(sent(&mut socket, &numbered), (task.clone(), true));
    numbered["to"] = json!("nobody");
    socket.send(&numbered);
    assert_eq!(socket.kind("error")["id"], 7);
    agent.send(&json!({"type": "task_response", "id": 3, "taskId": task, "run": run["run"],
                       "status": {"state": "completed", "message": "Dry"}}));
    assert_eq!(agent.kind("ack")["id"], 3);
}

#[test]
fn a_number_that_is_used_anew_is_another_message() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    let mut agent = connected(&hub, "weather");
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let mut socket = calls(&hub, &key);
        tasks.push(sent(&mut socket, &message("1", "Rain?")));
        socket.close();
    }
    let mut socket = calls(&hub, &key);
    tasks.extend([message("1", "Snow?"), message("1", "Hail?")].map(|frame| sent(&mut socket, &frame)));
    for (task, known) in tasks {
        assert!(!known, "{task}");
        assert_eq!(agent.kind("message")["taskId"], task);
    }
    let mut named = message("9", "Storm?");
    named["payload"]["messageId"] = json!("storm");
    let (task, known) = sent(&mut socket, &named);
    assert!(!known);
    socket.close();
    named["id"] = json!("1");
    assert_eq!(sent(&mut calls(&hub, &key), &named), (task, true), "an id of the message's own is good on any");
}

#[test]
fn an_answer_in_a_frame_goes_to_the_task_that_asked_and_once() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    let mut agent = connected(&hub, "weather");
    let mut socket = calls(&hub, &key);
    let mut first = message("1", "Rain?");
    first["contextId"] = json!("sky");
    let (task, _) = sent(&mut socket, &first);
    let run = agent.kind("message");
    let mut asks = |agent: &mut Socket, run: &Value| {
        agent.send(&json!({"type": "task_response", "taskId": run["taskId"], "run": run["run"],
                           "status": {"state": "input-required", "message": "Where?"}}));
        socket.wait_for("the question", |frame| frame["task"]["status"]["state"] == "input-required");
    };
    asks(&mut agent, &run);
    let mut caller = calls(&hub, &key);
    assert_eq!(sent(&mut caller, &first), (task.clone(), true), "the question again is no answer");
    let mut reply = message("2", "Here");
    reply["contextId"] = json!("sky");
    assert_eq!(sent(&mut caller, &reply), (task.clone(), false));
    let run = agent.kind("message");
    assert_eq!((&run["taskId"], &run["run"], asked(&run)), (&task, &json!(2), "Here"));
    assert_eq!(sent(&mut caller, &reply), (task.clone(), true), "while the agent works");
    asks(&mut agent, &run);
    assert_eq!(sent(&mut caller, &reply), (task.clone(), true), "while it waits for another answer");
    reply["id"] = json!("3");
    assert_eq!(sent(&mut caller, &reply), (task.clone(), false));
    let run = agent.kind("message");
    assert_eq!((&run["taskId"], &run["run"]), (&task, &json!(3)));
    answer(&mut agent, &run, "Dry");
    caller.wait_for("the end", |frame| frame["task"]["status"]["state"] == "completed");
    assert_eq!(sent(&mut caller, &reply), (task.clone(), true), "when all is over");
    reply["id"] = json!("4");
    let (next, known) = sent(&mut caller, &reply);
    assert!(next != task && !known, "nobody waits any more");
    assert_eq!(agent.kind("message")["taskId"], next);
}
