//! What one task may hold: messages and events, with a word to the owner before the end.

use super::{FULL, counted, is_over, over};
use crate::cast::{hub_with, id, reached, state, text};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess};
use serde_json::{Value, json};

/// The kinds of a task's events, as its owner sees them.
fn log(hub: &HubProcess, task: &str) -> Vec<Value> {
    let response = hub.owner(Binding::HttpJson).get(&format!("/api/tasks/{task}/log"));
    response.json()["events"].as_array().unwrap_or_else(|| panic!("{}", response.text())).clone()
}

fn warnings(hub: &HubProcess, task: &str) -> Vec<Value> {
    log(hub, task).iter().filter_map(|event| event["event"].get("near_limit").cloned()).collect()
}

fn to(task: &str, id: &str, text: &str) -> Value {
    let mut params = message(id, text);
    params["message"]["taskId"] = task.into();
    params
}

#[test]
fn a_task_takes_as_many_messages_as_the_limit_and_no_more() {
    let hub = hub_with("limits: {messages_per_task: 5}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let task = owner.say(&format!("{binding:?}-1"), "ask");
        let task = id(&task);
        for turn in 2..=5 {
            let warned = warnings(&hub, task).len();
            assert_eq!(warned, usize::from(turn > 4), "before message {turn}");
            owner.call("SendMessage", &to(task, &format!("{binding:?}-{turn}"), "ask")).expect("one of five");
        }
        assert_eq!(warnings(&hub, task), [json!({"limit": "messages_per_task", "used": 4, "most": 5})]);
        let before = owner.task(task);
        for method in ["SendMessage", "SendStreamingMessage"] {
            let refusal = flotilla_testkit::Refusal::of(&owner.response(method, &to(task, "more", "ask")));
            is_over(binding, &refusal, ("messages_per_task", "5"), FULL);
            assert_eq!(refusal.metadata["taskId"], task);
        }
        assert_eq!(owner.task(task), before, "a refused message leaves nothing behind");
    }
    let bindings = Binding::ALL.len();
    assert_eq!(over(&hub, "messages_per_task"), 2 * bindings as u64);
    assert_eq!(counted(&hub, "flotilla_limit_warnings_total", "messages_per_task"), bindings as u64);
    let told = |line: &&str| line.contains("WARN") && line.contains("messages_per_task");
    assert_eq!(hub.log().lines().filter(told).count(), bindings, "said once for each task");
}

fn chunks_of(task: &Value) -> usize {
    task["artifacts"][0]["parts"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_run_that_fills_the_log_keeps_what_fits_and_fails_with_the_reason() {
    let hub = hub_with("limits: {events_per_task: 50}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let task = owner.say(&format!("{binding:?}"), "chunks 200");
        assert_eq!(state(&task), "TASK_STATE_FAILED");
        let said = "The run was lost: The task's log is full (50 events). Start a new task for what remains.";
        assert_eq!(text(&task["status"]["message"]), said);
        let events = log(&hub, id(&task));
        let lost = events.iter().position(|event| event["event"].get("run_lost").is_some()).expect("the end");
        assert_eq!(lost, 50, "every event that fits is there");
        assert_eq!(events.len(), 52, "and beyond them only what ends the task");
        // Asked, queued, started, opened, working and the warning.
        assert_eq!(chunks_of(&task), 50 - 6);
        assert_eq!(warnings(&hub, id(&task)).len(), 1);
    }
    assert_eq!(over(&hub, "events_per_task"), Binding::ALL.len() as u64);
    assert_eq!(counted(&hub, "flotilla_limit_warnings_total", "events_per_task"), Binding::ALL.len() as u64);
}

#[test]
fn a_run_that_just_fits_completes() {
    let hub = hub_with("limits: {events_per_task: 50}");
    for binding in Binding::ALL {
        // Asked, queued, started, opened, working, the warning and completed.
        let task = hub.owner(binding).say(&format!("{binding:?}"), &format!("chunks {}", 50 - 7));
        assert_eq!((state(&task), chunks_of(&task)), ("TASK_STATE_COMPLETED", 50 - 7));
        assert_eq!(log(&hub, id(&task)).len(), 50);
    }
    assert_eq!(counted(&hub, "flotilla_limit_warnings_total", "events_per_task"), Binding::ALL.len() as u64);
}

fn asked_twice(owner: &Client, name: &str) -> String {
    let task = id(&owner.say(&format!("{name}-1"), "ask")).to_owned();
    owner.call("SendMessage", &to(&task, &format!("{name}-2"), "ask")).expect("the second fits");
    reached(owner, &task, "TASK_STATE_INPUT_REQUIRED");
    task
}

#[test]
fn a_message_that_no_longer_fits_is_refused_and_the_task_can_still_end() {
    // Five events for each turn, and a warning.
    let hub = hub_with("limits: {events_per_task: 12}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let task = asked_twice(&owner, &format!("{binding:?}"));
        let refusal = owner.call("SendMessage", &to(&task, "more", "ask")).expect_err("full");
        is_over(binding, &refusal, ("events_per_task", "12"), FULL);
        let canceled = owner.call("CancelTask", &json!({"id": task})).expect("a full task can be canceled");
        assert_eq!(state(&canceled), "TASK_STATE_CANCELED");
    }
    assert_eq!(over(&hub, "events_per_task"), Binding::ALL.len() as u64);
}
