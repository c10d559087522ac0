//! The ledger: what was used, by everything it can be added up by, and null where it is not known.

use super::{hub_with, owner};
use crate::cast::id;
use flotilla_testkit::{Binding, until};
use serde_json::{Value, json};

fn sum<'a>(answer: &'a Value, key: &str) -> &'a Value {
    let sums = answer["usage"].as_array().expect("sums");
    sums.iter().find(|sum| sum["key"] == key).unwrap_or_else(|| panic!("no {key} in {answer}"))
}

#[test]
fn what_is_used_is_added_up_and_the_unknown_is_null() {
    let hub = hub_with("");
    let client = hub.owner(Binding::HttpJson).agent("spender");
    let whole = client.say("m1", "spend");
    let vague = client.say("m2", "vague");
    let free = client.say("m3", "free");
    let get = |query: &str| owner(&hub).get(&format!("/api/usage?{query}")).json();

    let tasks = get("by=task");
    let one = sum(&tasks, id(&whole));
    assert_eq!((&one["inputTokens"], &one["outputTokens"], &one["costUsd"]), (&json!(100), &json!(20), &json!(0.0125)));
    assert_eq!(
        (&one["cacheReadTokens"], &one["cacheWriteTokens"], &one["totalTokens"]),
        (&json!(7), &json!(5), &json!(125))
    );
    assert_eq!(one["incomplete"], json!([]));
    let two = sum(&tasks, id(&vague));
    assert_eq!((&two["inputTokens"], &two["outputTokens"], &two["costUsd"]), (&Value::Null, &json!(5), &Value::Null));
    assert!(tasks["usage"].as_array().unwrap().iter().all(|sum| sum["key"] != free["id"]), "nothing was told");
    assert_eq!(get(&format!("task={}", id(&free)))["total"]["inputTokens"], Value::Null, "unknown, not zero");

    let agents = get("by=agent");
    let all = sum(&agents, "spender");
    assert_eq!((&all["tasks"], &all["outputTokens"], &all["inputTokens"]), (&json!(2), &json!(25), &json!(100)));
    assert_eq!(
        all["incomplete"],
        json!(["inputTokens", "cacheReadTokens", "cacheWriteTokens", "costUsd", "totalTokens"])
    );
    assert_eq!(sum(&get("by=workspace"), "default")["outputTokens"], 25);
    assert_eq!(sum(&get("by=context"), whole["contextId"].as_str().unwrap())["outputTokens"], 20);
    let today = get("by=day")["usage"][0]["key"].as_str().unwrap().to_owned();
    assert_eq!(get(&format!("since={today}&until={today}"))["total"]["outputTokens"], 25);
    assert_eq!(get("since=2199-01-01")["usage"], json!([]));
    for (query, told) in [("by=week", "workspace"), ("since=soon", "2026-01-31"), ("for=me", "is not known here")] {
        let refused = owner(&hub).get(&format!("/api/usage?{query}"));
        assert!(refused.status == 400 && refused.text().contains(told), "{}", refused.text());
    }
    let shown = hub.cli_ok(&["usage", "--by", "task", "--task", id(&vague)]);
    assert!(shown.contains("Input: unknown") && shown.contains("Output: 5"), "{shown}");
    let peer = hub.caller(Binding::HttpJson, "peer").get("/api/usage");
    assert_eq!((peer.status, peer.json()["usage"].clone()), (200, json!([])), "it is the owner's");
}

#[test]
fn the_ledger_outlives_its_tasks() {
    let hub = hub_with("retention: {tasks: 1ms, interval: 50ms}\n");
    let client = hub.owner(Binding::HttpJson).agent("spender");
    let task = client.say("m1", "spend");
    until("the task is gone", || client.call("GetTask", &json!({"id": id(&task)})).is_err().then_some(()));
    assert_eq!(sum(&owner(&hub).get("/api/usage?by=task").json(), id(&task))["inputTokens"], 100);
}
