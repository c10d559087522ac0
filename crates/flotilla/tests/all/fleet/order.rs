//! What becomes of work that its worker refuses or never takes up: the steps of `on_blocked`, one after the other.

use super::blocked::block;
use super::{announce, give, result, steps, told, worker, worker_saying};
use crate::cast::{hub_with, reached};
use flotilla_testkit::until;
use serde_json::{Value, json};

fn labelled(name: &str, label: &str) -> Value {
    let mut told = announce(name, 1);
    told["worker"]["labels"] = json!([label]);
    told
}

#[test]
fn work_that_is_blocked_goes_the_way_its_caller_wrote() {
    let hub = hub_with("fleet: {wait: 1s}");
    for (number, (policy, expected)) in [
        (json!(["reroute", "alert"]), "assigned A, blocked A, assigned B, judged B"),
        (json!(["alert", "reroute"]), "assigned A, blocked A, alerted stale_profile, assigned B, judged B"),
        (json!(["queue", "reroute"]), "assigned A, blocked A, queued, assigned B, judged B"),
        (
            json!(["alert", "queue", "reroute"]),
            "assigned A, blocked A, alerted stale_profile, queued, assigned B, judged B",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (first, second, label) = (format!("a{number}"), format!("b{number}"), format!("group{number}"));
        let mut a = worker_saying(&hub, &first, &labelled(&first, &label));
        let mut b = worker_saying(&hub, &second, &labelled(&second, &label));
        let (task, client) = give(&hub, &json!({"to": format!("label:{label}"), "on_blocked": policy}));
        block(&mut a, &json!({"blocked_reason": "stale_profile"}));
        let message = b.kind("message");
        result(&mut b, &message, &json!({"status": "done"}));
        reached(&client, &task, "TASK_STATE_COMPLETED");
        assert_eq!(steps(&hub, &task), expected.replace('A', &first).replace('B', &second), "{policy}");
    }
}

#[test]
fn an_alert_that_comes_again_in_a_policy_is_given_again() {
    let hub = hub_with("fleet: {wait: 2s}");
    let mut ada = worker(&hub, "ada");
    let (task, client) = give(&hub, &json!({"on_blocked": ["alert", "queue", "alert"]}));
    block(&mut ada, &json!({"blocked_reason": "dirty_tree", "retryable": true, "retry_after": 1}));
    block(&mut ada, &json!({"blocked_reason": "dirty_tree", "retryable": true, "retry_after": 60}));
    reached(&client, &task, "TASK_STATE_REJECTED");
    let expected = "assigned ada, blocked ada, alerted dirty_tree, queued, assigned ada, blocked ada, \
                    alerted dirty_tree, rejected dirty_tree";
    assert_eq!(steps(&hub, &task), expected);
}

#[test]
fn while_it_waits_before_rerouting_its_first_worker_may_have_it_again() {
    let hub = hub_with("");
    let (mut ada, _bob) = (worker(&hub, "ada"), worker(&hub, "bob"));
    let (task, client) = give(&hub, &json!({"on_blocked": ["queue", "reroute"]}));
    block(&mut ada, &json!({"blocked_reason": "over_capacity", "retry_after": 1}));
    let again = ada.kind("message");
    result(&mut ada, &again, &json!({"status": "done"}));
    reached(&client, &task, "TASK_STATE_COMPLETED");
    assert_eq!(steps(&hub, &task), "assigned ada, blocked ada, queued, assigned ada, judged ada");
}

#[test]
fn work_that_a_connected_worker_never_takes_up_is_taken_back() {
    let hub = hub_with("fleet: {take: 1s}");
    let mut eve = worker(&hub, "eve");
    let (kept, keeper) = give(&hub, &json!({"to": "eve"}));
    let message = eve.kind("message");
    eve.send(&json!({"type": "ack", "taskId": message["taskId"], "run": message["run"]}));

    let mut deaf = worker_saying(&hub, "a", &labelled("a", "ly"));
    let mut bob = worker_saying(&hub, "b", &labelled("b", "ly"));
    let (task, client) = give(&hub, &json!({"to": "label:ly"}));
    let sent = deaf.kind("message");
    let passed_on = bob.kind("message");
    assert_eq!((&sent["run"], &passed_on["run"]), (&json!(1), &json!(2)));
    // Too late: it has lost it.
    result(&mut deaf, &sent, &json!({"status": "error", "error": "too late"}));
    result(&mut bob, &passed_on, &json!({"status": "done"}));
    reached(&client, &task, "TASK_STATE_COMPLETED");
    assert_eq!(steps(&hub, &task), "assigned a, blocked a, assigned b, judged b");

    let (task, client) = give(&hub, &json!({"to": "a", "on_blocked": []}));
    let rejected = told(&reached(&client, &task, "TASK_STATE_REJECTED"));
    assert_eq!((&rejected["blocked_reason"], &rejected["retryable"]), (&json!("over_capacity"), &json!(true)));
    assert!(rejected["detail"].to_string().contains("it did not take the work up within 1 s"), "{rejected}");

    assert_eq!(steps(&hub, &kept), "assigned eve", "what was acknowledged stays where it is");
    result(&mut eve, &message, &json!({"status": "done"}));
    until("it is done", || (keeper.task(&kept)["status"]["state"] == "TASK_STATE_COMPLETED").then_some(()));
}
