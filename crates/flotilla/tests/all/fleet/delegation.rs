//! Work that workers hand on: whose part it is, what it may use, until when, and whom it does not come back to.

use super::ceilings::part_of;
use super::{announce, dispatch, give, key, owner, post, result, told, why, worker_saying};
use crate::cast::{hub, reached, state};
use flotilla_testkit::socket::Socket;
use flotilla_testkit::{Binding, Client, HubProcess};
use serde_json::{Value, json};

const URI: &str = "urn:flotilla:ext:fleet-handshake:2.0";

/// A worker of a group, with places enough.
fn member(hub: &HubProcess, name: &str, group: &str) -> Socket {
    let mut told = announce(name, 1);
    told["worker"]["labels"] = json!([group]);
    told["capabilities"]["max_concurrent"] = json!(8);
    worker_saying(hub, name, &told)
}

/// The client of a worker's owner.
fn boss(hub: &HubProcess, name: &str) -> Client {
    hub.stranger(Binding::HttpJson).key(&key(hub, name))
}

/// Gives work for somebody; the task, and the agent it is with.
fn delegate(client: &Client, with: &Value) -> (Value, Client) {
    let given = post(client, "/api/dispatch", &dispatch(with));
    assert_eq!(given.status, 200, "{}", given.text());
    let given = given.json();
    let agent = given["agent"].as_str().expect("an agent").to_owned();
    (given["task"].clone(), client.clone().agent(&agent))
}

fn log(hub: &HubProcess, task: &Value) -> Value {
    owner(hub).get(&format!("/api/tasks/{}/log", task["id"].as_str().expect("an id"))).json()
}

#[test]
fn work_of_the_fleet_is_a_parent_like_any_other() {
    let hub = hub();
    let (mut ada, mut bob) = (member(&hub, "ada", "first"), member(&hub, "bob", "second"));
    let (ada_s, bob_s) = (boss(&hub, "ada"), boss(&hub, "bob"));
    let soon = crate::lineage::in_time(std::time::Duration::from_secs(3600));
    let budget = json!({"max_total_tokens": 1000, "hard": true});
    let (parent, _) = give(&hub, &json!({"to": "label:first", "deadline": soon, "task": {"budget": budget}}));
    ada.kind("message");
    let mut spent = 0;
    for (name, to) in [("fleet", "label:second"), ("ada", "bob"), ("fleet", "bob"), ("ada", "any")] {
        let (child, client) = delegate(&ada_s, &json!({"to": to, "metadata": part_of(&hub, name, &parent)}));
        let message = bob.kind("message");
        let shown = &message["payload"]["metadata"][URI];
        let log = log(&hub, &child);
        let place = json!([{"hub": log["hubId"], "agent": "ada", "task": parent}]);
        assert_eq!((&log["origin"]["provenance"], &log["origin"]["chain"]), (&json!("local"), &place), "{name}, {to}");
        assert_eq!((&log["deadline"], &shown["deadline"]), (&json!(soon), &json!(soon)), "{name}, {to}");
        let left = json!({"max_total_tokens": 1000 - spent, "hard": true});
        assert_eq!(shown["task"]["budget"], left, "what is left is told to whoever works under it");
        result(&mut bob, &message, &json!({"status": "done", "usage": {"input_tokens": 200}}));
        reached(&client, child["id"].as_str().expect("an id"), "TASK_STATE_COMPLETED");
        spent += 200;
    }
    let forged = delegate(&bob_s, &json!({"to": "bob", "metadata": part_of(&hub, "fleet", &parent)})).0;
    assert_eq!(log(&hub, &forged)["origin"]["provenance"], "a2a-external", "it is not its work");
    let tree = owner(&hub).get(&format!("/api/tasks/{parent}/tree")).json();
    assert_eq!(tree["task"]["children"].as_array().map(Vec::len), Some(4), "{tree}");
}

#[test]
fn a_worker_hands_on_what_it_was_told_and_the_part_has_its_parent() {
    let hub = hub();
    let (mut ada, mut bob) = (member(&hub, "ada", "first"), member(&hub, "bob", "second"));
    let soon = crate::lineage::in_time(std::time::Duration::from_secs(3600));
    let budget = json!({"max_total_tokens": 1000, "hard": true});
    let (parent, _) = give(&hub, &json!({"to": "label:first", "deadline": soon, "task": {"budget": budget}}));
    let given = ada.kind("message");
    let own = given["payload"]["metadata"].as_object().expect("metadata");
    assert_eq!(own.keys().collect::<Vec<_>>(), [URI], "the message's own is as it was");
    let of_parent = log(&hub, &json!({"id": parent}));
    assert_eq!((&of_parent["provenance"], &of_parent["parentTaskId"]), (&json!("local"), &Value::Null));
    ada.send(&json!({"type": "message", "id": "f-1", "to": "bob", "metadata": given["metadata"],
        "traceparent": given["traceparent"], "payload": {"parts": [{"kind": "text", "text": "A part of it"}]}}));
    let by_frame = bob.kind("message");
    let metadata = given["metadata"].clone();
    let (by_http, _) = delegate(&boss(&hub, "ada"), &json!({"to": "bob", "metadata": metadata}));
    let dispatched = bob.kind("message");
    let left = &dispatched["payload"]["metadata"][URI]["task"]["budget"]["max_total_tokens"];
    assert_eq!((&dispatched["taskId"], left), (&by_http["id"], &json!(1000)), "under the budget of the whole");
    for part in [&by_frame, &dispatched] {
        let log = log(&hub, &json!({"id": part["taskId"]}));
        let told = (&log["parentTaskId"], &log["provenance"], &log["deadline"], &log["origin"]["hops"]);
        assert_eq!(told, (&json!(parent), &json!("local"), &json!(soon), &json!(1)), "{log}");
        let chain = part["metadata"]["urn:flotilla:ext:ancestry:1.0"]["chain"].as_array().expect("a chain").clone();
        let ends = |place: usize, task: &Value| {
            chain[place].as_str().expect("a text").ends_with(&format!("/{}", task.as_str().expect("an id")))
        };
        assert!(chain.len() == 2 && ends(0, &json!(parent)) && ends(1, &part["taskId"]), "{part}");
    }
    assert_eq!(log(&hub, &json!({"id": by_frame["taskId"]}))["traceId"], of_parent["traceId"], "one trace");
}

#[test]
fn what_a_part_is_part_of_counts_whether_it_is_told_or_not() {
    let hub = hub();
    let (mut ada, mut bob, mut eve) =
        (member(&hub, "ada", "first"), member(&hub, "bob", "second"), member(&hub, "eve", "third"));
    let budget = json!({"max_total_tokens": 500, "hard": true});
    let (root, client) = give(&hub, &json!({"to": "label:first", "task": {"budget": budget}}));
    ada.kind("message");
    let (child, _) = delegate(&boss(&hub, "ada"), &json!({"to": "bob", "metadata": part_of(&hub, "ada", &root)}));
    bob.kind("message");
    let child = child["id"].as_str().expect("an id");
    let with = json!({"to": "eve", "metadata": part_of(&hub, "bob", child)});
    let (grandchild, _) = delegate(&boss(&hub, "bob"), &with);
    let message = eve.kind("message");
    assert_eq!(message["payload"]["metadata"][URI]["task"]["budget"]["max_total_tokens"], 500, "{message}");
    assert_eq!(log(&hub, &grandchild)["origin"]["hops"], 2);
    result(&mut eve, &message, &json!({"status": "done", "usage": {"input_tokens": 600}}));
    reached(&client, &root, "TASK_STATE_FAILED");
    let (late, _) = delegate(&boss(&hub, "bob"), &with);
    assert_eq!(state(&late), "TASK_STATE_REJECTED", "nothing is left of it: {late}");
    let round = json!({"to": "ada", "metadata": part_of(&hub, "bob", child)});
    let (round, _) = delegate(&boss(&hub, "bob"), &round);
    assert_eq!(told(&round)["blocked_reason"], "ring", "{round}");
}

#[test]
fn work_does_not_come_back_to_the_worker_it_comes_from() {
    let hub = hub();
    let (mut ada, mut bob) = (member(&hub, "ada", "both"), member(&hub, "bob", "both"));
    let (parent, _) = give(&hub, &json!({"to": "ada"}));
    ada.kind("message");
    let ada_s = boss(&hub, "ada");
    for to in ["any", "label:both"] {
        let (task, client) = delegate(&ada_s, &json!({"to": to, "metadata": part_of(&hub, "ada", &parent)}));
        let message = bob.kind("message");
        let id = task["id"].as_str().expect("an id");
        assert_eq!(message["taskId"], task["id"]);
        let considered = why(&hub, id)[0]["considered"]["workers"].clone();
        let own = considered.as_array().expect("workers").iter().find(|one| one["worker"] == "ada");
        assert_eq!(own.expect("it was looked at")["obstacles"][0]["reason"], "ring", "{considered}");
        result(&mut bob, &message, &json!({"status": "done"}));
        reached(&client, id, "TASK_STATE_COMPLETED");
    }
    assert_eq!(post(&owner(&hub), "/api/fleet/bob/drain", &json!({})).status, 200);
    let alone = json!({"to": "label:both", "on_blocked": [], "metadata": part_of(&hub, "ada", &parent)});
    let (task, client) = delegate(&ada_s, &alone);
    let rejected = reached(&client, task["id"].as_str().expect("an id"), "TASK_STATE_REJECTED");
    assert!(told(&rejected)["detail"].to_string().contains("ring of calls"), "{rejected}");
    // A dispatch that names it, sent to the fleet.
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}],
        "metadata": {URI: dispatch(&json!({"to": "ada"}))}});
    let params = json!({"message": message, "metadata": part_of(&hub, "ada", &parent)});
    let task = ada_s.agent("fleet").call("SendMessage", &params).expect("a task")["task"].clone();
    assert_eq!((state(&task), &told(&task)["blocked_reason"]), ("TASK_STATE_REJECTED", &json!("ring")), "{task}");
}
