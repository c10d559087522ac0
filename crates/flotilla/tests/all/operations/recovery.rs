//! After SIGKILL: what was at work is failed or run again, with the reason said; nothing is left WORKING.

use crate::cast::{CONFIG, hub, id, reached, setup, state, text};
use flotilla_testkit::{Binding, HubProcess};
use serde_json::{Value, json};

fn log(hub: &HubProcess, task: &str) -> Vec<Value> {
    let log = hub.owner(Binding::HttpJson).get(&format!("/api/tasks/{task}/log")).json();
    log["events"]
        .as_array()
        .unwrap_or_else(|| panic!("no events in {log}"))
        .iter()
        .map(|event| event["event"].clone())
        .collect()
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event.get(kind).is_some()).count()
}

#[test]
fn a_run_that_had_started_is_failed_with_the_reason() {
    let mut hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let task = owner.start("m", "hold");
    reached(&owner, id(&task), "TASK_STATE_WORKING");
    hub.restart();
    let after = hub.owner(Binding::HttpJson).task(id(&task));
    assert_eq!(state(&after), "TASK_STATE_FAILED");
    assert!(text(&after["status"]["message"]).contains("the hub stopped"), "{after}");
    let events = log(&hub, id(&task));
    assert_eq!((count(&events, "run_queued"), count(&events, "run_lost")), (1, 1));
    let working = hub.owner(Binding::HttpJson).call("ListTasks", &json!({"status": "TASK_STATE_WORKING"}));
    assert_eq!(working.expect("a list")["totalSize"], 0, "counters follow");
}

#[test]
fn a_run_is_tried_again_where_its_agent_may_be_run_twice() {
    let config = CONFIG.replace("    description: Does what it is told.", "    on_lost: retry");
    let mut hub = setup().config(&config).start();
    let owner = hub.owner(Binding::HttpJson);
    let task = owner.start("m", "work 400ms");
    reached(&owner, id(&task), "TASK_STATE_WORKING");
    hub.restart();
    let owner = hub.owner(Binding::HttpJson);
    let after = reached(&owner, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(text(&after["status"]["message"]), "Worked");
    let events = log(&hub, id(&task));
    assert_eq!((count(&events, "run_queued"), count(&events, "run_lost")), (2, 1), "said in the log");
    let reason = events.iter().find_map(|event| event["run_lost"]["reason"].as_str()).expect("a reason");
    assert!(reason.contains("the hub stopped"), "{reason}");
}

#[test]
fn a_run_nothing_was_heard_of_is_run_again() {
    let mut hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let task = owner.start("m", "pause 300ms");
    hub.restart();
    let owner = hub.owner(Binding::HttpJson);
    assert_eq!(text(&reached(&owner, id(&task), "TASK_STATE_COMPLETED")["status"]["message"]), "Rested");
    let events = log(&hub, id(&task));
    assert_eq!((count(&events, "run_queued"), count(&events, "run_lost")), (2, 1));
    let reason = events.iter().find_map(|event| event["run_lost"]["reason"].as_str()).expect("a reason");
    assert!(reason.contains("had said anything"), "it may not have begun: {reason}");
}

#[test]
fn a_task_that_brings_its_hub_down_each_time_is_failed_in_the_end() {
    let config = CONFIG.replace("    description: Does what it is told.", "    on_lost: retry");
    let mut hub = setup().config(&config).start();
    let task = hub.owner(Binding::HttpJson).start("m", "hold");
    for _ in 0..20 {
        let owner = hub.owner(Binding::HttpJson);
        if state(&owner.task(id(&task))) == "TASK_STATE_FAILED" {
            return;
        }
        reached(&owner, id(&task), "TASK_STATE_WORKING");
        hub.restart();
    }
    panic!("the task is tried for ever");
}

#[test]
fn what_waits_for_its_caller_goes_on_waiting() {
    let mut hub = hub();
    let asked = hub.owner(Binding::JsonRpc).say("m", "ask");
    hub.restart();
    let owner = hub.owner(Binding::JsonRpc);
    assert_eq!(owner.task(id(&asked)), asked);
    let mut reply = flotilla_testkit::client::message("r", "small");
    reply["message"]["taskId"] = asked["id"].clone();
    let task = owner.call("SendMessage", &reply).expect("a reply")["task"].clone();
    assert_eq!(text(&task["artifacts"][0]), "small, turn 2");
}

#[test]
fn what_has_ended_is_as_it_was() {
    let mut hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let ended: Vec<Value> =
        ["complete", "fail", "reject", "give up", "chunks 100"].iter().map(|said| owner.say(said, said)).collect();
    let list = owner.call("ListTasks", &json!({"includeArtifacts": true})).expect("a list");
    hub.restart();
    let owner = hub.owner(Binding::JsonRpc);
    for task in ended {
        assert_eq!(owner.task(id(&task)), task);
    }
    assert_eq!(owner.call("ListTasks", &json!({"includeArtifacts": true})).expect("a list"), list);
}
