//! What a run used that was taken from its worker counts, and is booked on that worker.

use super::ceilings::{is_stopped, spent, uses};
use super::{announce, begin, give, owner, result, told, worker, worker_saying};
use crate::cast::{hub_with, reached};
use flotilla_testkit::socket::Socket;
use flotilla_testkit::{Client, HubProcess, until};
use serde_json::{Value, json};

/// Work that its first worker does not take up in time, and another has then: the task, and what each was sent.
fn taken_back(hub: &HubProcess, slow: &mut Socket, bob: &mut Socket, task: &Value) -> (String, Client, [Value; 2]) {
    let (task, client) = give(hub, &json!({"to": "label:ly", "task": task}));
    let sent = slow.kind("message");
    let passed_on = bob.kind("message");
    assert_eq!((&sent["run"], &passed_on["run"]), (&json!(1), &json!(2)));
    (task, client, [sent, passed_on])
}

fn workers(hub: &HubProcess) -> (Socket, Socket) {
    let labelled = |name: &str| {
        let mut told = announce(name, 1);
        told["worker"]["labels"] = json!(["ly"]);
        worker_saying(hub, name, &told)
    };
    (labelled("a"), labelled("b"))
}

fn used(hub: &HubProcess, worker: &str) -> Value {
    owner(hub).get(&format!("/api/usage?by=agent&agent={worker}")).json()["total"]["totalTokens"].clone()
}

#[test]
fn what_it_used_is_booked_once_on_the_worker_that_used_it() {
    let hub = hub_with("fleet: {take: 1s}");
    let (mut slow, mut bob) = workers(&hub);
    let (task, client, [sent, passed_on]) = taken_back(&hub, &mut slow, &mut bob, &json!({}));
    for _ in 0..2 {
        uses(&mut slow, &sent, 70);
        slow.wait_for("that it is over", |frame| frame["over"] == true);
    }
    assert_eq!((spent(&hub, &task), used(&hub, "a")), (json!(70), json!(70)));
    result(&mut bob, &passed_on, &json!({"status": "done", "usage": {"input_tokens": 30}}));
    let said = told(&reached(&client, &task, "TASK_STATE_COMPLETED"));
    assert_eq!((&said["tokens_spent"], spent(&hub, &task)), (&json!(100), json!(100)), "{said}");
    assert_eq!((used(&hub, "a"), used(&hub, "b")), (json!(70), json!(30)));
    let mut eve = worker(&hub, "eve");
    uses(&mut eve, &sent, 9);
    eve.wait_for("that it is over", |frame| frame["over"] == true);
    assert_eq!(spent(&hub, &task), 100, "another's word changes nothing");
}

#[test]
fn what_it_used_counts_against_the_ceilings_of_the_work_and_of_its_own_day() {
    let hub = hub_with("fleet: {take: 1s}\nbudgets: {agents: {a: {tokens: 500}}}");
    let (mut slow, mut bob) = workers(&hub);
    let budget = json!({"budget": {"max_total_tokens": 100, "hard": true}});
    let (task, client, [sent, passed_on]) = taken_back(&hub, &mut slow, &mut bob, &budget);
    begin(&mut bob, &passed_on);
    reached(&client, &task, "TASK_STATE_WORKING");
    uses(&mut slow, &sent, 100);
    is_stopped(&client, &task, "budget of this task");
    assert_eq!(bob.kind("cancel")["taskId"], json!(task));

    let (task, client, [sent, passed_on]) = taken_back(&hub, &mut slow, &mut bob, &json!({}));
    begin(&mut bob, &passed_on);
    reached(&client, &task, "TASK_STATE_WORKING");
    uses(&mut slow, &sent, 400);
    until("its day is over", || super::shown(&hub, "a")["broke"].is_object().then_some(()));
    result(&mut bob, &passed_on, &json!({"status": "done"}));
    let said = told(&reached(&client, &task, "TASK_STATE_COMPLETED"));
    assert_eq!(said["tokens_spent"], 400, "another's day does not stop it: {said}");
    let unsaid = said["usage"]["incomplete"].as_array().expect("names");
    assert!(unsaid.contains(&json!("tokens_spent")), "what the second used is not known: {said}");
}
