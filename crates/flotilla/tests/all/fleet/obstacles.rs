//! What stands in the way: a typed word for each, when it may be over, and the nearest worker's before any other's.

use super::{announce, give, is, key, owner, post, result, shown, told, worker, worker_saying};
use crate::cast::{hub, hub_with, reached};
use crate::socket::dial;
use flotilla_testkit::socket::Socket;
use flotilla_testkit::{Binding, HubProcess};
use serde_json::{Value, json};

fn refused(hub: &HubProcess, with: &Value) -> Value {
    let mut with = with.clone();
    with["on_blocked"] = json!([]);
    let (task, client) = give(hub, &with);
    told(&reached(&client, &task, "TASK_STATE_REJECTED"))
}

fn block(socket: &mut Socket, with: &Value) {
    let message = socket.kind("message");
    let mut told = json!({"status": "blocked"});
    told.as_object_mut().expect("an object").extend(with.as_object().expect("an object").clone());
    result(socket, &message, &told);
}

fn is_word(told: &Value, reason: &str, retryable: bool) {
    assert_eq!((&told["blocked_reason"], &told["retryable"]), (&json!(reason), &json!(retryable)), "{told}");
}

fn detail(told: &Value) -> &str {
    told["detail"].as_str().unwrap_or_else(|| panic!("{told}"))
}

#[test]
fn what_nobody_has_is_missing_and_who_is_away_may_come_back() {
    let hub = hub();
    is_word(&refused(&hub, &json!({})), "over_capacity", true);
    let ada = worker(&hub, "ada");
    for to in ["label:gpu", "skill:paint"] {
        is_word(&refused(&hub, &json!({"to": to})), "missing_capability", false);
    }
    assert_eq!(post(&owner(&hub), "/api/fleet/ada/drain", &json!({})).status, 200);
    is_word(&refused(&hub, &json!({"to": "ada"})), "over_capacity", true);
    drop(ada);
    is(&hub, "ada", "OFFLINE");
    let gone = refused(&hub, &json!({"to": "ada"}));
    is_word(&gone, "over_capacity", true);
    assert_eq!(detail(&gone), "it is not there");
}

#[test]
fn the_nearest_worker_s_obstacle_is_told_first() {
    let hub = hub();
    drop(worker(&hub, "away"));
    let _drains = worker(&hub, "drains");
    let mut sick = announce("sick", 1);
    sick["worker"]["model_tier"] = json!("haiku");
    let _sick = worker_saying(&hub, "sick", &sick);
    is(&hub, "away", "OFFLINE");
    assert_eq!(post(&owner(&hub), "/api/fleet/drains/drain", &json!({})).status, 200);
    let told = refused(&hub, &json!({"requirements": {"model_tier": "sonnet"}}));
    is_word(&told, "over_capacity", true);
    let expected = "drains: it is draining and takes nothing new; away: it is not there; sick: model tier haiku";
    assert!(detail(&told).starts_with(expected), "{told}");
}

#[test]
fn a_broken_worker_s_word_does_not_hold_any_more() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    for _ in 0..3 {
        let (task, client) = give(&hub, &json!({}));
        let message = ada.kind("message");
        ada.send(&json!({"type": "task_response", "taskId": message["taskId"], "run": message["run"],
            "status": {"state": "failed", "message": "crashed"}}));
        reached(&client, &task, "TASK_STATE_FAILED");
    }
    is(&hub, "ada", "BROKEN");
    let told = refused(&hub, &json!({}));
    is_word(&told, "stale_profile", false);
    assert!(detail(&told).contains("3 turns in a row failed; its owner sees why"), "{told}");
    assert!(!told.to_string().contains("crashed"), "what others' work failed with is not told: {told}");
    assert!(shown(&hub, "ada")["reason"].to_string().contains("the last: crashed"), "its owner is told");
}

#[test]
fn a_worker_s_own_words_are_passed_on() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let mut ask = |with: &Value, said: &Value| {
        let mut terms = json!({"on_blocked": []});
        terms.as_object_mut().expect("an object").extend(with.as_object().expect("an object").clone());
        let (task, client) = give(&hub, &terms);
        block(&mut ada, said);
        told(&reached(&client, &task, "TASK_STATE_REJECTED"))
    };
    let said = json!({"blocked_reason": "missing_mcp", "detail": "trek is down", "retryable": true, "retry_after": 20});
    let told = ask(&json!({}), &said);
    is_word(&told, "missing_mcp", true);
    assert!(told["retry_after"].as_u64().is_some_and(|seconds| (15..=20).contains(&seconds)), "{told}");
    assert!(detail(&told).contains("it answered missing_mcp: trek is down"), "{told}");
    let told = ask(&json!({}), &json!({"blocked_reason": "dirty_tree", "retryable": false, "retry_after": 20}));
    is_word(&told, "dirty_tree", false);
    assert_eq!(told["retry_after"], Value::Null);
    // One that gives no reason is one that cannot: the word is typed, and what it sent is told.
    let told = ask(&json!({}), &json!({}));
    is_word(&told, "missing_capability", false);
    assert!(detail(&told).contains("blocked_reason: must say why"), "{told}");
}

#[test]
fn a_paused_account_says_when_it_goes_on() {
    let hub = hub();
    let with = |name: &str| {
        let mut told = announce(name, 1);
        told["worker"]["account"] = json!("team");
        told
    };
    let (mut ada, _bob) = (worker_saying(&hub, "ada", &with("ada")), worker_saying(&hub, "bob", &with("bob")));
    let (first, client) = give(&hub, &json!({"on_blocked": []}));
    block(&mut ada, &json!({"blocked_reason": "usage_limit", "retry_after": 3600}));
    let far = |told: &Value| {
        is_word(told, "usage_limit", true);
        assert!(told["retry_after"].as_u64().is_some_and(|seconds| (3_500..=3_600).contains(&seconds)), "{told}");
    };
    far(&told(&reached(&client, &first, "TASK_STATE_REJECTED")));
    far(&refused(&hub, &json!({"to": "bob"})));
    far(&refused(&hub, &json!({})));
}

#[test]
fn what_a_worker_cannot_mean_is_not_believed() {
    let hub = hub_with("");
    let mut dirty = announce("ada", 1);
    dirty["session"]["repo_state"] = json!({"clean": true, "dirty_files": 3});
    dirty["mcp_health"]["mem"] = json!("degraded");
    let _ada = worker_saying(&hub, "ada", &dirty);
    is_word(&refused(&hub, &json!({"requirements": {"write": true}})), "dirty_tree", false);
    is_word(&refused(&hub, &json!({"requirements": {"required_mcp": ["mem"]}})), "missing_mcp", false);
    let health = shown(&hub, "ada")["announce"]["mcp_health"]["mem"].clone();
    assert_eq!(health, json!({"status": "unknown", "detail": "it says 'degraded'"}), "the word is kept for its owner");
    let mut none = announce("bob", 1);
    none["capabilities"]["max_concurrent"] = json!(0);
    let bobs = key(&hub, "bob");
    let mut bob = dial(&hub, &bobs).open();
    bob.send(&none);
    let error = bob.kind("error");
    assert!(error.to_string().contains("max_concurrent: must be at least 1"), "{error}");
    let refused = post(&hub.stranger(Binding::HttpJson).key(&bobs), "/api/fleet/announce", &none);
    assert_eq!(refused.status, 400, "{}", refused.text());
}
