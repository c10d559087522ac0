//! Approvals and the ledger over crashes: what was asked stays asked, what was used is counted once.

use super::{answer, approval, hub_with, owner};
use crate::cast::{id, reached, state};
use crate::socket::{agent_key, answer as reply, dial};
use flotilla_testkit::{Binding, HubProcess, until};
use serde_json::{Value, json};

#[test]
fn an_answer_given_after_a_crash_reaches_the_agent_that_asks_again() {
    let mut hub = hub_with("");
    let key = agent_key(&hub, "far");
    let mut socket = dial(&hub, &key).open();
    let task = hub.owner(Binding::JsonRpc).agent("far").start("m1", "work");
    let work = socket.kind("message");
    let ask =
        json!({"type": "approval_request", "id": "q1", "taskId": work["taskId"], "run": work["run"], "tool": "Edit"});
    socket.send(&ask);
    let open = approval(&hub, "open");
    hub.restart();
    drop(socket);
    let still = approval(&hub, "open");
    assert_eq!(still["id"], open["id"], "it is open still");
    let mut socket = dial(&hub, &key).open();
    assert_eq!(answer(&owner(&hub), &open, &json!({"decision": "deny", "note": "no"})).status, 200);
    // It has the run still, so it is not sent again; the question is.
    socket.send(&ask);
    let decision = socket.kind("approval_decision");
    assert_eq!((&decision["decision"], &decision["note"]), (&json!("deny"), &json!("no")));
    reply(&mut socket, &work, "done without");
    reached(&hub.owner(Binding::JsonRpc).agent("far"), id(&task), "TASK_STATE_COMPLETED");
}

#[test]
fn a_question_of_a_run_that_a_crash_took_is_withdrawn() {
    let mut hub = hub_with("");
    let caller = hub.owner(Binding::HttpJson);
    let task = caller.start("m1", "run it");
    let open = approval(&hub, "open");
    hub.restart();
    assert_eq!(approval(&hub, "withdrawn")["id"], open["id"]);
    assert_eq!(state(&caller.task(id(&task))), "TASK_STATE_FAILED");
}

#[test]
fn what_falls_due_while_the_hub_is_down_is_denied_at_the_next_start() {
    let mut hub = hub_with("approvals: {expire_after: 1s}\n");
    let mut socket = dial(&hub, &agent_key(&hub, "far")).open();
    hub.owner(Binding::JsonRpc).agent("far").start("m1", "work");
    let work = socket.kind("message");
    socket.send(&json!({"type": "approval_request", "id": "q1", "taskId": work["taskId"], "tool": "Edit"}));
    let open = approval(&hub, "open");
    hub.restart();
    let expired = approval(&hub, "expired");
    assert_eq!((&expired["id"], &expired["answer"]["by"]), (&open["id"], &json!("expiry")));
}

/// Sums of the usage blocks in the log of a task.
fn logged(hub: &HubProcess, task: &str) -> (u64, u64) {
    let log = owner(hub).get(&format!("/api/tasks/{task}/log")).json();
    let events = log["events"].as_array().expect("events").iter();
    let blocks = events.filter_map(|entry| entry["event"]["noted"]["blocks"].as_array()).flatten();
    let used: Vec<&Value> = blocks.filter(|block| block["type"] == "usage").collect();
    (used.iter().map(|block| block["input_tokens"].as_u64().expect("a number")).sum(), used.len() as u64)
}

#[test]
fn the_ledger_is_the_sum_of_the_log_after_twenty_crashes() {
    let mut hub = hub_with("");
    let mut tasks = Vec::new();
    for round in 0..20 {
        let client = hub.owner(Binding::HttpJson).agent("spender");
        let task = client.start(&format!("m{round}"), "many 40");
        tasks.push(id(&task).to_owned());
        let seen = usize::from(round % 4 == 0) + round % 7;
        until("some of it is used", || (logged(&hub, id(&task)).1 as usize >= seen).then_some(()));
        hub.restart();
    }
    let answer = owner(&hub).get("/api/usage?by=task").json();
    let sums = answer["usage"].as_array().expect("sums");
    let mut all = (0, 0);
    for task in &tasks {
        let (input, reports) = logged(&hub, task);
        all = (all.0 + input, all.1 + reports);
        let sum = sums.iter().find(|sum| sum["key"] == **task);
        let told = sum.map_or((0, 0), |sum| (sum["inputTokens"].as_u64().unwrap(), sum["reports"].as_u64().unwrap()));
        assert_eq!(told, (input, reports), "task {task}");
    }
    assert_eq!(
        (answer["total"]["inputTokens"].as_u64(), answer["total"]["reports"].as_u64()),
        (Some(all.0), Some(all.1))
    );
    assert!(all.1 > 20, "some of it was used: {all:?}");
}
