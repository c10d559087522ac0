//! What dispatched work uses is booked on the worker that did it, once, and counts against every ceiling.

use super::{give, is, key, owner, result, steps, told, why, worker};
use crate::cast::{hub, hub_with, reached};
use flotilla_testkit::http::{Request, try_stream};
use flotilla_testkit::{Binding, Client, HubProcess, until};
use serde_json::{Value, json};

fn used(client: &Client, by: &str, key: &str) -> Value {
    let report = client.get(&format!("/api/usage?by={by}")).json();
    let sums = report["usage"].as_array().unwrap_or_else(|| panic!("{report}"));
    sums.iter().find(|sum| sum["key"] == key).cloned().unwrap_or_else(|| panic!("no {key} in {report}"))
}

/// Gives work to the only worker there is, which says what it used in its result alone.
fn spend(hub: &HubProcess, socket: &mut flotilla_testkit::socket::Socket, with: &Value, usage: &Value) -> Value {
    let (task, client) = give(hub, with);
    let message = socket.kind("message");
    result(socket, &message, &json!({"status": "done", "task_id": "c-1", "usage": usage}));
    reached(&client, &task, "TASK_STATE_COMPLETED")
}

#[test]
fn usage_that_only_the_result_tells_is_in_the_ledger_and_the_ceiling_sees_it() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let request = owner(&hub).dress(Request::get("/api/events").header("accept", "text/event-stream"));
    let mut events = try_stream(hub.address(), &request).expect("a stream");
    let with = json!({"task": {"task_id": "c-1", "budget": {"max_total_tokens": 1000, "hard": true}}});
    let usage = json!({"input_tokens": 900, "output_tokens": 200, "cost_usd": 0.25});
    let task = spend(&hub, &mut ada, &with, &usage);
    let said = told(&task);
    assert_eq!((&said["tokens_spent"], &said["usage"]["cost_usd"]), (&json!(1_100), &json!(0.25)));
    let meta = &task["artifacts"][0]["metadata"]["urn:flotilla:ext:fleet-handshake:2.0"];
    assert_eq!(meta["standing"], "reported", "done, but not as was agreed: {meta}");
    let check = meta["checks"].as_array().expect("checks").iter().find(|check| check["name"] == "budget").cloned();
    assert_eq!(check.expect("a check")["detail"], "it used 1100 tokens of 1000 tokens");
    let alert = events.through(|event| {
        event.event.as_deref() == Some("alert") && event.json()["text"].as_str().is_some_and(|t| t.contains("100 %"))
    });
    assert_eq!(alert.last().expect("an alert").json()["taskId"], task["id"]);

    let today = owner(&hub).get("/api/usage?by=day").json()["usage"][0]["key"].as_str().expect("a day").to_owned();
    let context = task["contextId"].as_str().expect("a context");
    for (by, key) in
        [("task", task["id"].as_str().expect("an id")), ("agent", "ada"), ("context", context), ("day", &today)]
    {
        let sum = used(&owner(&hub), by, key);
        assert_eq!((&sum["totalTokens"], &sum["costUsd"]), (&json!(1_100), &json!(0.25)), "{by}: {sum}");
    }
    assert_eq!(used(&owner(&hub), "workspace", "default")["totalTokens"], 1_100);
    let adas = hub.stranger(Binding::HttpJson).key(&key(&hub, "ada"));
    assert_eq!(used(&adas, "agent", "ada")["totalTokens"], 1_100, "a worker's owner sees what it used");
}

#[test]
fn a_worker_without_a_budget_is_passed_over_until_the_next_day() {
    let mut hub = hub_with("budgets: {agents: {ada: {tokens: 1000}}}");
    let mut ada = worker(&hub, "ada");
    spend(&hub, &mut ada, &json!({}), &json!({"input_tokens": 999}));
    is(&hub, "ada", "AVAILABLE");
    spend(&hub, &mut ada, &json!({}), &json!({"input_tokens": 1}));
    let seen = is(&hub, "ada", "BUSY");
    assert_eq!(seen["broke"]["reason"], "its budget for today is used up", "{seen}");
    let refused = |hub: &HubProcess| {
        let (task, client) = give(hub, &json!({"on_blocked": []}));
        let told = told(&reached(&client, &task, "TASK_STATE_REJECTED"));
        assert_eq!((&told["blocked_reason"], &told["retryable"]), (&json!("budget_too_small"), &json!(true)), "{told}");
        assert!(told["retry_after"].as_u64().is_some_and(|seconds| (1..=86_400).contains(&seconds)), "{told}");
    };
    refused(&hub);
    let mut bob = worker(&hub, "bob");
    let (task, client) = give(&hub, &json!({}));
    let message = bob.kind("message");
    result(&mut bob, &message, &json!({"status": "done"}));
    reached(&client, &task, "TASK_STATE_COMPLETED");
    assert_eq!(steps(&hub, &task), "assigned bob, judged bob");
    let considered = why(&hub, &task)[0]["considered"]["workers"].clone();
    assert_eq!(considered[1]["obstacles"][0]["reason"], "budget_too_small", "{considered}");
    drop((ada, bob));
    hub.restart();
    let _ada = worker(&hub, "ada");
    until("it is known again", || (super::shown(&hub, "ada")["broke"].is_object()).then_some(()));
}

#[test]
fn a_result_that_passes_the_day_s_ceiling_is_not_accepted() {
    let hub = hub_with("budgets: {agents: {ada: {tokens: 1000}}}");
    let mut ada = worker(&hub, "ada");
    let standing = |task: &Value| task["artifacts"][0]["metadata"]["urn:flotilla:ext:fleet-handshake:2.0"].clone();
    let within = spend(&hub, &mut ada, &json!({"task": {"task_id": "c-1"}}), &json!({"input_tokens": 900}));
    assert_eq!(standing(&within)["standing"], "accepted", "{within}");
    let beyond = spend(&hub, &mut ada, &json!({"task": {"task_id": "c-1"}}), &json!({"input_tokens": 101}));
    let told = standing(&beyond);
    assert_eq!(told["standing"], "reported", "{told}");
    let checks = told["checks"].to_string();
    assert!(checks.contains("budget of this agent for today is passed") && !checks.contains("1000"), "{checks}");
}

#[test]
fn a_result_that_passes_its_parent_s_ceiling_is_not_accepted_and_its_deadline_is_the_parent_s() {
    let hub = hub();
    let (mut ada, mut bob) = (worker(&hub, "ada"), worker(&hub, "bob"));
    let soon = crate::lineage::in_time(std::time::Duration::from_secs(3600));
    let budget = json!({"max_total_tokens": 1000, "hard": true});
    let (parent, _) = give(&hub, &json!({"to": "ada", "deadline": soon, "task": {"budget": budget}}));
    ada.kind("message");
    let log = owner(&hub).get(&format!("/api/tasks/{parent}/log")).json();
    let chain = json!([{"hub": log["hubId"], "agent": "ada", "task": parent}]);
    let metadata = json!({"urn:flotilla:ext:ancestry:1.0": {"chain": chain}});
    let with = json!({"to": "bob", "deadline": "2199-01-01T00:00:00.000Z", "metadata": metadata});
    let (task, client) = give(&hub, &with);
    let message = bob.kind("message");
    let shown = &message["payload"]["metadata"]["urn:flotilla:ext:fleet-handshake:2.0"];
    assert_eq!(shown["deadline"], json!(soon), "{message}");
    result(&mut bob, &message, &json!({"status": "done", "usage": {"input_tokens": 1001}}));
    let done = reached(&client, &task, "TASK_STATE_COMPLETED");
    let told = &done["artifacts"][0]["metadata"]["urn:flotilla:ext:fleet-handshake:2.0"];
    assert!(told["standing"] == "reported" && told["checks"].to_string().contains("task this is part of"), "{told}");

    let refused = super::post(&owner(&hub), "/api/dispatch", &super::dispatch(&json!({"parentTaskId": parent})));
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("urn:flotilla:ext:ancestry:1.0"), "{}", refused.text());
}

#[test]
fn figures_nobody_can_have_used_leave_the_ledger_readable_and_stop_at_ceilings() {
    let mut hub = hub_with("budgets: {agents: {ada: {tokens: 1000}}}");
    let (mut ada, mut bob) = (worker(&hub, "ada"), worker(&hub, "bob"));
    let huge = json!({"input_tokens": i64::MAX, "output_tokens": i64::MAX, "cost_usd": 1e300});
    spend(&hub, &mut bob, &json!({"to": "bob"}), &huge);
    spend(&hub, &mut bob, &json!({"to": "bob"}), &json!({"input_tokens": 1, "cost_usd": 9.3e9}));
    spend(&hub, &mut ada, &json!({"to": "ada"}), &huge);
    is(&hub, "ada", "BUSY");
    for _ in ["running", "restarted"] {
        let sum = used(&owner(&hub), "agent", "bob");
        assert_eq!(sum["inputTokens"], 1_000_000_000_001_u64, "counted up to a bound: {sum}");
        assert_eq!((&sum["costUsd"], sum["incomplete"].to_string().contains("costUsd")), (&json!(2e6), true), "{sum}");
        assert_eq!(owner(&hub).get("/api/usage?by=day").status, 200);
        hub.restart();
    }
}

#[test]
fn while_the_ledger_cannot_be_read_nothing_is_given_under_a_ceiling() {
    let hub = hub_with("budgets: {agents: {ada: {tokens: 1000}}}");
    let (mut ada, mut bob) = (worker(&hub, "ada"), worker(&hub, "bob"));
    let store = rusqlite::Connection::open(hub.data().join("flotilla.db")).expect("the store");
    store.execute_batch("ALTER TABLE usage RENAME TO mislaid").expect("a ledger that is not there");
    let (task, client) = give(&hub, &json!({"to": "ada", "on_blocked": []}));
    let rejected = reached(&client, &task, "TASK_STATE_REJECTED");
    assert!(rejected.to_string().contains("cannot be read"), "{rejected}");
    super::say(&mut ada, &super::announce("ada", 2));
    assert!(is(&hub, "ada", "BUSY")["broke"]["reason"].to_string().contains("cannot be read"));
    let (task, client) = give(&hub, &json!({}));
    let message = bob.kind("message");
    result(&mut bob, &message, &json!({"status": "done"}));
    reached(&client, &task, "TASK_STATE_COMPLETED");
    store.execute_batch("ALTER TABLE mislaid RENAME TO usage").expect("it is found");
    super::say(&mut ada, &super::announce("ada", 3));
    is(&hub, "ada", "AVAILABLE");
}
