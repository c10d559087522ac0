//! Hard ceilings hold also for work that ends at once, is asked for again, waits or is stopped.

use super::{announce, give, is, owner, result, steps, told, worker, worker_saying};
use crate::cast::{hub, hub_with, reached};
use flotilla_testkit::socket::Socket;
use flotilla_testkit::{Binding, HubProcess, until};
use serde_json::{Value, json};

const URI: &str = "urn:flotilla:ext:fleet-handshake:2.0";

/// A worker with eight places.
fn wide(hub: &HubProcess, name: &str) -> Socket {
    let mut told = announce(name, 1);
    told["capabilities"]["max_concurrent"] = json!(8);
    worker_saying(hub, name, &told)
}

/// Gives work to a worker several times, lets all of it end at once, and counts what is accepted.
fn accepted(hub: &HubProcess, worker: &mut Socket, with: &Value) -> usize {
    let given: Vec<_> = (0..4).map(|_| give(hub, with)).collect();
    let messages: Vec<Value> = given.iter().map(|_| worker.kind("message")).collect();
    for message in &messages {
        result(worker, message, &json!({"status": "done", "usage": {"input_tokens": 700}}));
    }
    let ended = given.iter().map(|(task, client)| reached(client, task, "TASK_STATE_COMPLETED"));
    let standing = |task: &Value| task["artifacts"][0]["metadata"][URI]["standing"].clone();
    ended.filter(|task| standing(task) == "accepted").count()
}

fn spent(hub: &HubProcess, task: &str) -> Value {
    owner(hub).get(&format!("/api/usage?by=task&task={task}")).json()["total"]["totalTokens"].clone()
}

#[test]
fn of_several_that_end_at_once_no_more_are_accepted_than_fit() {
    let hub = hub_with("budgets: {agents: {cap: {tokens: 1000}}}");
    let (mut ada, mut bob, mut cap) = (wide(&hub, "ada"), wide(&hub, "bob"), wide(&hub, "cap"));
    let budget = json!({"max_total_tokens": 1000, "hard": true});
    let (parent, client) = give(&hub, &json!({"to": "ada", "task": {"budget": budget}}));
    let message = ada.kind("message");
    let log = owner(&hub).get(&format!("/api/tasks/{parent}/log")).json();
    let chain = json!([{"hub": log["hubId"], "agent": "ada", "task": parent}]);
    let metadata = json!({"urn:flotilla:ext:ancestry:1.0": {"chain": chain}});
    assert_eq!(accepted(&hub, &mut bob, &json!({"to": "bob", "metadata": metadata})), 1, "under a parent's ceiling");
    assert_eq!(accepted(&hub, &mut cap, &json!({"to": "cap"})), 1, "under the day's");
    result(&mut ada, &message, &json!({"status": "done"}));
    let done = reached(&client, &parent, "TASK_STATE_COMPLETED");
    let told = &done["artifacts"][0]["metadata"][URI];
    assert!(told["checks"].to_string().contains("budget of this task is passed"), "its parts are its own: {told}");
}

#[test]
fn a_reply_is_not_asked_for_again_past_the_ceiling() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let terms = json!({"reply_schema": "json", "budget": {"max_total_tokens": 500, "hard": true}});
    let (task, client) = give(&hub, &json!({"to": "ada", "task": terms}));
    let message = ada.kind("message");
    result(&mut ada, &message, &json!({"status": "done", "usage": {"input_tokens": 600}}));
    let failed = reached(&client, &task, "TASK_STATE_FAILED");
    assert_eq!((&told(&failed)["ended_by"], spent(&hub, &task)), (&json!("budget_exhausted"), json!(600)), "{failed}");
    assert_eq!(steps(&hub, &task).matches("assigned").count(), 1, "{}", steps(&hub, &task));
    let (next, _) = give(&hub, &json!({"to": "ada"}));
    assert_eq!(ada.kind("message")["taskId"], json!(next), "nothing was sent in between");
}

#[test]
fn what_waited_is_not_begun_when_its_worker_s_day_or_its_parent_is_spent() {
    let hub = hub_with("budgets: {agents: {ada: {tokens: 500}}}");
    let (mut ada, mut bob, mut eve) = (worker(&hub, "ada"), worker(&hub, "bob"), worker(&hub, "eve"));
    let (first, client) = give(&hub, &json!({"to": "ada"}));
    let message = ada.kind("message");
    let soon = crate::lineage::in_time(std::time::Duration::from_secs(2));
    let (second, second_client) = give(&hub, &json!({"to": "ada", "on_blocked": ["queue"], "deadline": soon}));
    until("it waits", || steps(&hub, &second).starts_with("queued").then_some(()));
    result(&mut ada, &message, &json!({"status": "done", "usage": {"input_tokens": 600}}));
    reached(&client, &first, "TASK_STATE_COMPLETED");
    reached(&second_client, &second, "TASK_STATE_REJECTED");
    assert!(!steps(&hub, &second).contains("assigned"), "{}", steps(&hub, &second));

    let budget = json!({"max_total_tokens": 100, "hard": true});
    let (parent, parent_client) = give(&hub, &json!({"to": "bob", "task": {"budget": budget}}));
    let message = bob.kind("message");
    let (other, other_client) = give(&hub, &json!({"to": "eve"}));
    let others = eve.kind("message");
    let log = owner(&hub).get(&format!("/api/tasks/{parent}/log")).json();
    let chain = json!([{"hub": log["hubId"], "agent": "bob", "task": parent}]);
    let metadata = json!({"urn:flotilla:ext:ancestry:1.0": {"chain": chain}});
    let (child, child_client) = give(&hub, &json!({"to": "eve", "metadata": metadata}));
    until("it waits", || steps(&hub, &child).starts_with("queued").then_some(()));
    result(&mut bob, &message, &json!({"status": "done", "usage": {"input_tokens": 100}}));
    reached(&parent_client, &parent, "TASK_STATE_COMPLETED");
    result(&mut eve, &others, &json!({"status": "done"}));
    reached(&other_client, &other, "TASK_STATE_COMPLETED");
    let rejected = reached(&child_client, &child, "TASK_STATE_REJECTED");
    let said = told(&rejected);
    assert_eq!((&said["blocked_reason"], &said["retryable"]), (&json!("budget_too_small"), &json!(false)), "{said}");
}

#[test]
fn what_a_run_says_it_used_after_it_was_stopped_is_booked_once() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let soon = crate::lineage::in_time(std::time::Duration::from_secs(1));
    let (task, client) = give(&hub, &json!({"to": "ada", "deadline": soon}));
    let message = ada.kind("message");
    ada.send(&json!({"type": "ack", "taskId": message["taskId"], "run": message["run"]}));
    reached(&client, &task, "TASK_STATE_FAILED");
    ada.kind("cancel");
    for _ in 0..2 {
        result(&mut ada, &message, &json!({"status": "partial", "remaining": ["all"], "usage": {"input_tokens": 70}}));
        ada.wait_for("that it is over", |frame| frame["over"] == true);
    }
    assert_eq!(spent(&hub, &task), 70);
    let mut eve = worker(&hub, "eve");
    result(&mut eve, &message, &json!({"status": "done", "usage": {"input_tokens": 9}}));
    eve.kind("error");
    assert_eq!(spent(&hub, &task), 70, "another's word changes nothing");
}

#[test]
fn a_budget_that_is_used_up_is_nothing_against_the_worker() {
    let hub = crate::ledger::hub_with(crate::ledger::budgets::STEADY);
    let told = super::post(&owner(&hub), "/api/fleet/announce?agent=steady", &announce("steady", 1));
    assert_eq!(told.status, 200, "{}", told.text());
    for _ in 0..3 {
        let terms = json!({"budget": {"max_total_tokens": 4, "hard": true}});
        let (task, client) = give(&hub, &json!({"to": "steady", "task": terms}));
        reached(&client, &task, "TASK_STATE_FAILED");
        until("its place is free", || (super::shown(&hub, "steady")["active"] == 0).then_some(()));
    }
    let seen = super::shown(&hub, "steady");
    assert_eq!((&seen["failures"], &seen["health"]), (&json!(0), &json!("AVAILABLE")), "{seen}");
}

#[test]
fn what_the_hub_refuses_and_what_budgets_tell_is_counted() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let (task, client) = give(&hub, &json!({"to": "label:moon", "on_blocked": []}));
    reached(&client, &task, "TASK_STATE_REJECTED");
    let (task, client) = give(&hub, &json!({"to": "ada", "task": {"token_budget": 100}}));
    let message = ada.kind("message");
    result(&mut ada, &message, &json!({"status": "done", "usage": {"input_tokens": 60}}));
    reached(&client, &task, "TASK_STATE_COMPLETED");
    until("both are counted", || {
        let metrics = hub.stranger(Binding::HttpJson).get("/metrics").text().to_owned();
        let blocked = metrics.contains(r#"flotilla_blocked_total{reason="missing_capability"} 1"#);
        (blocked && metrics.contains(r#"flotilla_alerts_total{reason="budget"} 1"#)).then_some(())
    });
    is(&hub, "ada", "AVAILABLE");
}
