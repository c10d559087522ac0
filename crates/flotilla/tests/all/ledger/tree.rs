//! Delegation: whose work a task is part of, who is believed when they say so, and what goes down with it.

use super::{hub_with, owner};
use crate::cast::id;
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess};
use serde_json::{Value, json};

const ANCESTRY: &str = "urn:flotilla:ext:ancestry:1.0";

fn hub_id(hub: &HubProcess, task: &Value) -> String {
    let log = owner(hub).get(&format!("/api/tasks/{}/log", id(task))).json();
    log["hubId"].as_str().expect("an id").to_owned()
}

/// Sends for a task that is the parent.
fn below(client: &Client, name: &str, text: &str, chain: &Value) -> Value {
    let mut params = message(name, text);
    params["metadata"] = json!({ANCESTRY: {"chain": chain}});
    client.call("SendMessage", &params).unwrap_or_else(|refusal| panic!("{refusal:?}"))["task"].clone()
}

fn tree(hub: &HubProcess, task: &Value) -> Value {
    owner(hub).get(&format!("/api/tasks/{}/tree", id(task))).json()
}

#[test]
fn a_tree_shows_all_that_a_task_has_led_to() {
    let hub = hub_with("  echo: {kind: echo}\n  third: {kind: echo}\n");
    let client = |agent: &str| hub.owner(Binding::HttpJson).agent(agent);
    let root = client("spender").say("m1", "free");
    let here = hub_id(&hub, &root);
    let link = |agent: &str, task: &Value| json!({"hub": here, "agent": agent, "task": task["id"]});
    let first = json!([link("spender", &root)]);
    let child = below(&client("echo"), "m2", "one", &first);
    let other = below(&client("third"), "m3", "two", &first);
    let grandchild = below(&client("third"), "m4", "three", &json!([link("spender", &root), link("echo", &child)]));
    let shown = tree(&hub, &root);
    let top = &shown["task"];
    assert_eq!((&top["taskId"], &top["agent"], &top["provenance"]), (&root["id"], &json!("spender"), &json!("local")));
    let ids = |node: &Value| -> Vec<Value> {
        node["children"].as_array().expect("children").iter().map(|child| child["taskId"].clone()).collect()
    };
    assert_eq!(ids(top), [child["id"].clone(), other["id"].clone()], "the oldest first: {shown}");
    assert_eq!(ids(&top["children"][0]), [grandchild["id"].clone()]);
    assert_eq!(top["children"][0]["parentTaskId"], root["id"]);
    assert_eq!(tree(&hub, &grandchild)["ancestors"].as_array().unwrap().len(), 2);
    let text = hub.cli_ok(&["task", "tree", id(&root)]);
    assert!(text.contains(&format!("\n    Task: {}\n", id(&grandchild))), "{text}");
    let leaf = hub.cli_ok(&["task", "tree", id(&grandchild)]);
    let line = |level: usize, task: &Value, agent: &str| {
        let context = (level == 2).then(|| format!("Context: {}", task["contextId"].as_str().unwrap_or_default()));
        let fields = [format!("Task: {}", id(task)), format!("Agent: {agent}"), "State: TASK_STATE_COMPLETED".into()];
        let mut fields = [&fields[..], &["Provenance: local".into()]].concat();
        fields.splice(1..1, context);
        fields.into_iter().map(|field| format!("{}{field}", "  ".repeat(level))).collect::<Vec<_>>()
    };
    let whole = [line(0, &root, "spender"), line(1, &child, "echo"), line(2, &grandchild, "third")].concat();
    assert_eq!(leaf.lines().collect::<Vec<_>>(), whole, "what it is part of stands above it");
    assert_eq!(hub.caller(Binding::HttpJson, "peer").get(&format!("/api/tasks/{}/tree", id(&root))).status, 404);
}

#[test]
fn only_whose_task_it_is_may_say_that_it_is_the_parent() {
    let hub = hub_with("  echo: {kind: echo}\n");
    let root = hub.owner(Binding::HttpJson).agent("spender").say("m1", "free");
    let chain = json!([{"hub": hub_id(&hub, &root), "agent": "spender", "task": root["id"]}]);
    let stranger = hub.caller(Binding::JsonRpc, "stranger").agent("echo");
    let claimed = below(&stranger, "m2", "mine?", &chain);
    assert_eq!(tree(&hub, &root)["task"]["children"], json!([]), "it is not believed");
    let shown = tree(&hub, &claimed);
    assert_eq!((&shown["task"]["provenance"], &shown["task"]["parentTaskId"]), (&json!("a2a-external"), &Value::Null));
    let wrong = json!([{"hub": hub_id(&hub, &root), "agent": "echo2", "task": root["id"]}]);
    below(&hub.owner(Binding::HttpJson).agent("echo"), "m3", "another agent's", &wrong);
    assert_eq!(tree(&hub, &root)["task"]["children"], json!([]));
    let peer = hub.caller(Binding::HttpJson, "peer");
    let own = peer.clone().agent("spender").say("m4", "free");
    let chain = json!([{"hub": hub_id(&hub, &root), "agent": "spender", "task": own["id"]}]);
    let child = below(&peer.clone().agent("echo"), "m5", "its own", &chain);
    let seen = peer.get(&format!("/api/tasks/{}/tree", id(&own))).json();
    assert_eq!(seen["task"]["children"][0]["taskId"], child["id"], "a caller sees what is theirs");
}

#[test]
fn a_deadline_goes_down_with_the_work() {
    let hub = hub_with("  echo: {kind: echo}\n");
    let client = hub.owner(Binding::HttpJson);
    let mut params = message("m1", "run it");
    let soon = "2199-01-01T00:00:00.000Z";
    params["metadata"] = json!({ANCESTRY: {"deadline": soon}});
    params["configuration"] = json!({"returnImmediately": true});
    let root = client.call("SendMessage", &params).unwrap()["task"].clone();
    let chain = json!([{"hub": hub_id(&hub, &root), "agent": "careful", "task": root["id"]}]);
    let child = below(&client.clone().agent("echo"), "m2", "below", &chain);
    assert_eq!(tree(&hub, &child)["task"]["deadline"], soon);
}
