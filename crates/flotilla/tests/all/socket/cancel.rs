//! Canceling at an agent that dialed in: it is asked, and what it says of that is what its caller is told.

use super::{agent_key, caller, connected, dial};
use crate::cast::{id, reached, setup, state, text};
use flotilla_testkit::socket::Socket;
use flotilla_testkit::{Binding, Client, HubProcess, Refusal};
use serde_json::{Value, json};
use std::thread::JoinHandle;

fn hub() -> HubProcess {
    setup().config("sockets: {cancel: 5s, grace: 1s}").start()
}

fn cancel(client: &Client, task: &Value) -> JoinHandle<Result<Value, Refusal>> {
    let (client, params) = (client.clone(), json!({"id": id(task)}));
    std::thread::spawn(move || client.call("CancelTask", &params))
}

fn outcome(asking: JoinHandle<Result<Value, Refusal>>) -> Result<Value, Refusal> {
    asking.join().expect("the caller is answered")
}

/// An agent of A2A 1.0 that has a task, which it calls `theirs` if it is to.
fn at_work(hub: &HubProcess, name: &str, names_it: bool) -> (Socket, Client, Value, Value) {
    let mut agent = dial(hub, &agent_key(hub, name)).subprotocol("a2a.v1").open();
    let client = caller(hub, Binding::JsonRpc, name);
    let task = client.start("m", "Take your time");
    let request = agent.wait_for("a request", |frame| frame.get("method").is_some());
    if names_it {
        agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": working()}));
        reached(&client, id(&task), "TASK_STATE_WORKING");
    }
    (agent, client, task, request)
}

fn working() -> Value {
    json!({"task": {"id": "theirs", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}})
}

fn asked_to_cancel(agent: &mut Socket) -> Value {
    let request = agent.wait_for("a request to cancel", |frame| frame["method"] == "CancelTask");
    assert_eq!(request["params"]["id"], "theirs");
    request["id"].clone()
}

#[test]
fn an_agent_in_frames_says_that_it_has_stopped() {
    let hub = hub();
    let mut agent = connected(&hub, "slow");
    let client = caller(&hub, Binding::HttpJson, "slow");
    let task = client.start("m", "Take your time");
    let message = agent.kind("message");
    agent.send(&json!({"type": "ack", "taskId": message["taskId"], "run": 1}));
    let asking = cancel(&client, &task);
    let stop = agent.kind("cancel");
    assert_eq!((&stop["taskId"], &stop["run"]), (&message["taskId"], &json!(1)));
    let status = json!({"state": "canceled", "message": "Stopped half way"});
    agent.send(&json!({"type": "task_response", "taskId": message["taskId"], "run": 1, "status": status}));
    let canceled = outcome(asking).expect("canceled");
    assert_eq!((state(&canceled), text(&canceled["status"]["message"])), ("TASK_STATE_CANCELED", "Stopped half way"));
}

#[test]
fn an_agent_in_requests_refuses_or_goes_on_and_so_does_the_task() {
    let hub = hub();
    let (mut agent, client, task, _) = at_work(&hub, "stubborn", true);
    let asking = cancel(&client, &task);
    let request = asked_to_cancel(&mut agent);
    agent.send(&json!({"jsonrpc": "2.0", "id": request, "error": {"code": -32002, "message": "Too far gone"}}));
    let refused = outcome(asking).expect_err("refused");
    assert_eq!(refused.reason, "TASK_NOT_CANCELABLE");
    assert!(refused.message.contains("Too far gone"), "{refused:?}");
    let asking = cancel(&client, &task);
    let request = asked_to_cancel(&mut agent);
    agent.send(&json!({"jsonrpc": "2.0", "id": request, "result": working()["task"]}));
    assert_eq!(state(&outcome(asking).expect("it was told")), "TASK_STATE_WORKING");
    let asking = cancel(&client, &task);
    let request = asked_to_cancel(&mut agent);
    let done = json!({"id": "theirs", "contextId": "c", "status": {"state": "TASK_STATE_CANCELED"}});
    agent.send(&json!({"jsonrpc": "2.0", "id": request, "result": done}));
    assert_eq!(state(&outcome(asking).expect("canceled")), "TASK_STATE_CANCELED");
}

#[test]
fn an_agent_that_says_nothing_is_not_said_to_have_stopped() {
    let hub = setup().config("sockets: {cancel: 100ms}").start();
    let (mut agent, client, task, request) = at_work(&hub, "mute", true);
    let refused = outcome(cancel(&client, &task)).expect_err("refused");
    assert_eq!(refused.reason, "UNAVAILABLE");
    assert_eq!(state(&client.task(id(&task))), "TASK_STATE_WORKING");
    let done =
        json!({"statusUpdate": {"taskId": "theirs", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}});
    agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": done}));
    reached(&client, id(&task), "TASK_STATE_COMPLETED");
}

#[test]
fn one_that_has_not_named_its_task_is_asked_when_it_has() {
    let hub = hub();
    let (mut agent, client, task, request) = at_work(&hub, "late", false);
    let asking = cancel(&client, &task);
    // The hub has the request to cancel before the answer below only sometimes; both ways it is asked.
    agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": working()}));
    let request = asked_to_cancel(&mut agent);
    let done = json!({"id": "theirs", "contextId": "c", "status": {"state": "TASK_STATE_CANCELED"}});
    agent.send(&json!({"jsonrpc": "2.0", "id": request, "result": done}));
    assert_eq!(state(&outcome(asking).expect("canceled")), "TASK_STATE_CANCELED");
}

#[test]
fn one_that_is_cut_off_has_the_grace_time_to_come_back() {
    let hub = setup().config("sockets: {cancel: 50ms, grace: 1s}").start();
    let (agent, client, task, _) = at_work(&hub, "gone", true);
    agent.cut();
    flotilla_testkit::until("the cut is seen", || {
        hub.owner(Binding::HttpJson).get("/metrics").text().contains("flotilla_sockets_open 0").then_some(())
    });
    assert_eq!(state(&outcome(cancel(&client, &task)).expect("canceled")), "TASK_STATE_CANCELED");
}

/// An agent in frames that has taken a run and was cut off.
fn cut_off(hub: &HubProcess, name: &str) -> (String, String, Client, Value) {
    let key = agent_key(hub, name);
    let mut agent = dial(hub, &key).open();
    let token = agent.welcome["resumeToken"].as_str().expect("a token").to_owned();
    let client = caller(hub, Binding::JsonRpc, name);
    let task = client.start("m", "Take your time");
    let message = agent.kind("message");
    agent
        .send(&json!({"type": "task_response", "taskId": message["taskId"], "run": 1, "status": {"state": "working"}}));
    reached(&client, id(&task), "TASK_STATE_WORKING");
    agent.cut();
    flotilla_testkit::until("the cut is seen", || {
        hub.owner(Binding::HttpJson).get("/metrics").text().contains("flotilla_sockets_open 0").then_some(())
    });
    (key, token, client, task)
}

#[test]
fn an_agent_in_frames_that_is_cut_off_is_told_when_it_is_back_and_its_word_counts() {
    let hub = setup().config("sockets: {cancel: 30s, grace: 30s}").start();
    let (key, token, client, task) = cut_off(&hub, "back");
    let asking = cancel(&client, &task);
    let mut agent = dial(&hub, &key).query("resume", &token).open();
    let stop = agent.kind("cancel");
    assert_eq!(stop["taskId"], task["id"]);
    let status = json!({"state": "completed", "message": "I had finished"});
    agent.send(&json!({"type": "task_response", "taskId": task["id"], "run": 1, "status": status}));
    assert_eq!(state(&outcome(asking).expect("it was told")), "TASK_STATE_COMPLETED");
}

#[test]
fn an_agent_in_frames_that_is_cut_off_and_stays_away_is_not_said_to_have_been_told() {
    let hub = setup().config("sockets: {cancel: 50ms, grace: 1s}").start();
    let (key, _, client, task) = cut_off(&hub, "gone");
    let canceled = outcome(cancel(&client, &task)).expect("canceled");
    assert_eq!((state(&canceled), canceled["status"].get("message")), ("TASK_STATE_CANCELED", None));
    let stop = dial(&hub, &key).open().kind("cancel");
    assert_eq!(stop["taskId"], task["id"], "it is told when it is back after all");
}
