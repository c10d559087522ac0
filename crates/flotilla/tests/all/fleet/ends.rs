//! Every end of dispatched work comes with a TASK_RESULT: lost, canceled, too late, out of budget, refused as it came.

use super::{dispatch, give, owner, post, told, worker};
use crate::cast::{hub_with, id, reached};
use crate::cli::program::Place;
use crate::ledger::budgets::STEADY;
use crate::lineage::in_time;
use flotilla_testkit::HubProcess;
use flotilla_testkit::socket::Socket;
use serde_json::{Value, json};
use std::time::Duration;

/// Agents of the hub's own: one that spends again and again, and one that says nothing for long.
fn doers() -> String {
    format!("{STEADY}  slow: {{kind: script, script: {{otherwise: [working, {{delay: 60s}}, completed]}}}}\n")
}

fn named() -> Value {
    json!({"task": {"task_id": "c-1"}})
}

/// Takes the work up, and says no more.
fn take(socket: &mut Socket) {
    let message = socket.kind("message");
    socket.send(&json!({"type": "ack", "taskId": message["taskId"], "run": message["run"]}));
    socket.send(&json!({"type": "task_response", "taskId": message["taskId"], "run": message["run"],
        "status": {"state": "working"}}));
}

fn is_end(task: &Value, by: &str) -> Value {
    let told = told(task);
    assert_eq!((&told["task_id"], &told["status"]), (&json!("c-1"), &json!("error")), "{told}");
    assert_eq!(told["ended_by"], by, "{told}");
    assert!(told["error"].as_str().is_some_and(|error| !error.is_empty()), "{told}");
    told
}

fn send(hub: &HubProcess, with: &Value) -> (Value, flotilla_testkit::Client) {
    let given = post(&owner(hub), "/api/dispatch", &dispatch(with)).json();
    let agent = given["agent"].as_str().unwrap_or_else(|| panic!("{given}"));
    (given["task"].clone(), owner(hub).agent(agent))
}

#[test]
fn a_run_that_is_lost_says_so() {
    let hub = hub_with("sockets: {grace: 1s}");
    let mut ada = worker(&hub, "ada");
    let (task, client) = give(&hub, &named());
    take(&mut ada);
    reached(&client, &task, "TASK_STATE_WORKING");
    ada.cut();
    let told = is_end(&reached(&client, &task, "TASK_STATE_FAILED"), "lost");
    assert_eq!((&told["retryable"], &told["tokens_spent"]), (&json!(true), &Value::Null), "what is not known is null");
    assert_eq!(super::steps(&hub, &task), "assigned ada, lost");
    let why = Place::at(&hub).run(&["task", "why", &task]).ok().out;
    assert!(why.contains("\nContext: "), "{why}");
    assert!(why.contains("lost: the agent went away and did not come back within 1 s"), "{why}");
}

#[test]
fn a_run_that_is_lost_and_done_again_says_why_there_are_two() {
    let hub = hub_with("sockets: {grace: 1s, on_lost: retry}");
    let mut ada = worker(&hub, "ada");
    let (task, client) = give(&hub, &named());
    take(&mut ada);
    reached(&client, &task, "TASK_STATE_WORKING");
    ada.cut();
    flotilla_testkit::until("the run is lost", || super::steps(&hub, &task).contains("lost").then_some(()));
    let mut ada = worker(&hub, "ada");
    let message = ada.kind("message");
    assert_eq!(message["run"], 2, "{message}");
    super::result(&mut ada, &message, &json!({"status": "done"}));
    reached(&client, &task, "TASK_STATE_COMPLETED");
    let told = super::steps(&hub, &task);
    assert!(told.starts_with("assigned ada, lost, ") && told.contains("assigned ada, judged"), "{told}");
}

#[test]
fn what_is_canceled_says_so_whether_it_was_begun_or_not() {
    let hub = hub_with("");
    let mut ada = worker(&hub, "ada");
    let (task, client) = give(&hub, &named());
    take(&mut ada);
    reached(&client, &task, "TASK_STATE_WORKING");
    client.call("CancelTask", &json!({"id": task})).expect("canceled");
    is_end(&client.task(&task), "canceled");
    let (waits, client) = give(&hub, &json!({"task": {"task_id": "c-1"}, "requirements": {"model_tier": "opus"}}));
    client.call("CancelTask", &json!({"id": waits})).expect("canceled");
    is_end(&client.task(&waits), "canceled");
}

#[test]
fn a_deadline_that_passes_during_the_run_says_so() {
    let hub = hub_with("");
    let mut ada = worker(&hub, "ada");
    let deadline = in_time(Duration::from_millis(900));
    let (task, client) = give(&hub, &json!({"task": {"task_id": "c-1"}, "deadline": deadline}));
    take(&mut ada);
    let told = is_end(&reached(&client, &task, "TASK_STATE_FAILED"), "deadline_passed");
    assert_eq!(told["retryable"], false);
}

#[test]
fn a_hard_budget_says_so_with_what_was_spent() {
    let hub = hub_with(&doers());
    let with = json!({"to": "steady", "task": {"task_id": "c-1", "budget": {"max_total_tokens": 40, "hard": true}}});
    let (task, client) = send(&hub, &with);
    let told = is_end(&reached(&client, id(&task), "TASK_STATE_FAILED"), "budget_exhausted");
    assert!(told["tokens_spent"].as_u64().is_some_and(|spent| spent >= 40), "{told}");
    assert!(told["usage"]["cost_usd"].as_f64().is_some_and(|cost| cost >= 0.01), "{told}");
    assert_eq!(told["retryable"], false, "{told}");
}

#[test]
fn work_that_is_refused_as_it_comes_says_so() {
    let hub = hub_with(&format!("{}\nbudgets: {{agents: {{steady: {{tokens: 20}}}}}}", doers()));
    let with = json!({"to": "steady", "task": {"task_id": "c-1"}});
    let (task, client) = send(&hub, &with);
    let told = is_end(&reached(&client, id(&task), "TASK_STATE_FAILED"), "budget_exhausted");
    assert!(told["retry_after"].as_u64().is_some_and(|seconds| (1..=86_400).contains(&seconds)), "{told}");
    let (next, client) = send(&hub, &with);
    let told = super::told(&reached(&client, id(&next), "TASK_STATE_REJECTED"));
    assert_eq!((&told["status"], &told["blocked_reason"]), (&json!("blocked"), &json!("budget_too_small")));
    assert_eq!((&told["task_id"], &told["retryable"]), (&json!("c-1"), &json!(true)), "tomorrow there is another");
    assert!(told["retry_after"].as_u64().is_some_and(|seconds| (1..=86_400).contains(&seconds)), "{told}");
}

#[test]
fn what_a_restart_of_the_hub_ends_says_so() {
    let mut hub = hub_with(&doers());
    let (task, client) = send(&hub, &json!({"to": "slow", "task": {"task_id": "c-1"}}));
    reached(&client, id(&task), "TASK_STATE_WORKING");
    hub.restart();
    let client = owner(&hub).agent("slow");
    let told = is_end(&reached(&client, id(&task), "TASK_STATE_FAILED"), "lost");
    assert!(told["error"].as_str().is_some_and(|error| error.contains("the hub stopped")), "{told}");
}
