//! Workers that take nothing new: plain messages wait for them, and what they have goes on.

use super::{announce, give, is, owner, post, result, worker, worker_saying};
use crate::cast::{hub, hub_with, id, reached, state, text};
use crate::socket::{answer, asked};
use flotilla_testkit::{Binding, Client, HubProcess, client};
use serde_json::{Value, json};

fn drain(hub: &HubProcess, name: &str, verb: &str) {
    assert_eq!(post(&owner(hub), &format!("/api/fleet/{name}/{verb}"), &json!({})).status, 200);
}

fn send(to: &Client, number: usize, ttl: Option<u32>) -> Result<Value, flotilla_testkit::Refusal> {
    let mut params = client::message(&format!("m-{number}"), &format!("Message {number}"));
    params["configuration"] = json!({"returnImmediately": true});
    if let Some(ttl) = ttl {
        params["metadata"] = json!({"x-ttl": ttl});
    }
    to.call("SendMessage", &params).map(|answer| answer["task"].clone())
}

fn waits(task: &Value, why: &str) {
    assert_eq!(state(task), "TASK_STATE_SUBMITTED", "{task}");
    assert!(text(&task["status"]["message"]).contains(why), "{task}");
}

#[test]
fn what_begins_something_waits_for_a_drained_worker_and_what_goes_on_does_not() {
    let mut hub = hub();
    let mut ada = worker(&hub, "ada");
    let client = owner(&hub).agent("ada");
    let begun = client.start("begun", "Begin");
    let question = ada.kind("message");
    let status = json!({"state": "input-required", "message": "Which?"});
    ada.send(&json!({"type": "task_response", "taskId": question["taskId"], "run": 1, "status": status}));
    reached(&client, id(&begun), "TASK_STATE_INPUT_REQUIRED");
    drain(&hub, "ada", "drain");
    let waiting: Vec<Value> = (0..20).map(|number| send(&client, number, None).expect("it waits")).collect();
    waiting.iter().for_each(|task| waits(task, "draining"));
    let refused = send(&client, 99, Some(0)).expect_err("it may not wait");
    assert_eq!((refused.reason.as_str(), refused.message.contains("takes nothing new now")), ("UNAVAILABLE", true));
    let mut reply = client::message("reply", "This one");
    reply["message"]["taskId"] = begun["id"].clone();
    reply["configuration"] = json!({"returnImmediately": true});
    client.call("SendMessage", &reply).expect("it goes on");
    let message = ada.kind("message");
    assert_eq!(asked(&message), "This one", "what it has goes on");
    answer(&mut ada, &message, "Done");
    reached(&client, id(&begun), "TASK_STATE_COMPLETED");
    drop(ada);
    hub.restart();
    let mut ada = worker(&hub, "ada");
    let client = owner(&hub).agent("ada");
    waits(&client.task(id(&waiting[0])), "draining");
    let canceled = client.call("CancelTask", &json!({"id": id(&waiting[3])})).expect("nobody has it");
    assert_eq!(state(&canceled), "TASK_STATE_CANCELED");
    drain(&hub, "ada", "undrain");
    for (number, task) in waiting.iter().enumerate().filter(|(number, _)| *number != 3) {
        let message = ada.kind("message");
        assert_eq!((asked(&message), &message["taskId"]), (&*format!("Message {number}"), &task["id"]), "in order");
        answer(&mut ada, &message, "Done");
        reached(&client, id(task), "TASK_STATE_COMPLETED");
    }
}

#[test]
fn a_message_does_not_wait_for_a_drained_worker_beyond_its_time() {
    let hub = hub_with("limits: {absent_wait: 100ms}");
    let _ada = worker(&hub, "ada");
    drain(&hub, "ada", "drain");
    let client = owner(&hub).agent("ada");
    waits(&client.say("blocking", "Hello?"), "draining");
    let task = send(&client, 1, Some(1)).expect("it waits");
    let failed = reached(&client, id(&task), "TASK_STATE_FAILED");
    assert!(text(&failed["status"]["message"]).contains("took nothing new within 1 s"), "{failed}");
}

#[test]
fn a_program_of_the_hub_s_own_is_waited_for_over_restarts() {
    let mut hub = hub();
    let key = hub.make_key(&["desk", "--principal", "owner", "--scope", "agents:read,agents:connect"]);
    let desk = hub.stranger(Binding::HttpJson).key(&key);
    assert_eq!(post(&desk, "/api/fleet/announce?agent=echo", &announce("echo", 1)).status, 200);
    drain(&hub, "echo", "drain");
    let task = owner(&hub).agent("echo").start("m", "Echo this");
    waits(&task, "draining");
    for _ in 0..8 {
        hub.restart();
    }
    let client = owner(&hub).agent("echo");
    waits(&client.task(id(&task)), "draining");
    drain(&hub, "echo", "undrain");
    reached(&client, id(&task), "TASK_STATE_COMPLETED");
    let log = owner(&hub).get(&format!("/api/tasks/{}/log", id(&task))).json();
    assert_eq!(log["run"], 1, "it was begun once: {log}");
}

#[test]
fn a_paused_account_takes_no_plain_messages_either() {
    let hub = hub();
    let with = |name: &str| {
        let mut told = announce(name, 1);
        told["worker"]["account"] = json!("team");
        told
    };
    let mut ada = worker_saying(&hub, "ada", &with("ada"));
    let mut bob = worker_saying(&hub, "bob", &with("bob"));
    give(&hub, &json!({"to": "ada", "on_blocked": []}));
    let message = ada.kind("message");
    result(&mut ada, &message, &json!({"status": "blocked", "blocked_reason": "usage_limit", "retry_after": 3600}));
    is(&hub, "bob", "BUSY");
    let client = owner(&hub).agent("bob");
    let task = send(&client, 1, None).expect("it waits");
    waits(&task, "usage limit");
    hub.cli_ok(&["fleet", "resume", "ada"]);
    let message = bob.kind("message");
    assert_eq!(message["taskId"], task["id"]);
    answer(&mut bob, &message, "Done");
    reached(&client, id(&task), "TASK_STATE_COMPLETED");
}

#[test]
fn a_message_that_waited_is_not_begun_when_the_budget_is_used_up_by_then() {
    let hub = hub_with("budgets: {day: {tokens: 100}}");
    let _ada = worker(&hub, "ada");
    let mut bob = worker(&hub, "bob");
    drain(&hub, "ada", "drain");
    let client = owner(&hub).agent("ada");
    let task = send(&client, 1, None).expect("it waits");
    waits(&task, "draining");
    let (other, _) = give(&hub, &json!({"to": "bob"}));
    let message = bob.kind("message");
    result(&mut bob, &message, &json!({"status": "done", "usage": {"input_tokens": 150}}));
    reached(&owner(&hub).agent("bob"), &other, "TASK_STATE_COMPLETED");
    drain(&hub, "ada", "undrain");
    let failed = reached(&client, id(&task), "TASK_STATE_FAILED");
    assert!(text(&failed["status"]["message"]).contains("budget"), "{failed}");
}
