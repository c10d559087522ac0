//! What an answer to work that waits for one may change of its contract, and what its worker is shown of that.

use super::ceilings::part_of;
use super::{dispatch, give, owner, result, told, worker};
use crate::cast::{hub, reached};
use crate::lineage::in_time;
use flotilla_testkit::socket::Socket;
use flotilla_testkit::{Client, HubProcess};
use serde_json::{Value, json};
use std::time::Duration;

const URI: &str = "urn:flotilla:ext:fleet-handshake:2.0";
const ANCESTRY: &str = "urn:flotilla:ext:ancestry:1.0";

/// Gives work to a worker, which asks back.
fn asked_back(hub: &HubProcess, socket: &mut Socket, with: &Value) -> (String, Client) {
    let (task, client) = give(hub, with);
    let message = socket.kind("message");
    socket.send(&json!({"type": "task_response", "taskId": message["taskId"], "run": message["run"],
        "status": {"state": "input-required", "message": "Which one?"}}));
    reached(&client, &task, "TASK_STATE_INPUT_REQUIRED");
    (task, client)
}

/// Answers with a contract in the message, or something beside it.
fn answer(client: &Client, task: &str, contract: Option<Value>, beside: Value) -> Result<Value, String> {
    let mut message = json!({"messageId": "a", "role": "ROLE_USER", "taskId": task, "parts": [{"text": "This"}]});
    if let Some(contract) = contract {
        message["metadata"] = json!({URI: dispatch(&contract)});
    }
    let configuration = json!({"returnImmediately": true});
    let params = json!({"message": message, "metadata": beside, "configuration": configuration});
    client.call("SendMessage", &params).map_err(|refused| refused.message)
}

fn deadline(hub: &HubProcess, task: &str) -> Value {
    owner(hub).get(&format!("/api/tasks/{task}/log")).json()["deadline"].clone()
}

fn hours(count: u64) -> String {
    in_time(Duration::from_secs(count * 3600))
}

#[test]
fn a_deadline_it_brings_counts_and_is_no_later_than_the_parent_s() {
    let hub = hub();
    let (mut ada, mut bob) = (worker(&hub, "ada"), worker(&hub, "bob"));
    let (soon, sooner, late) = (hours(2), hours(1), hours(9));
    let (parent, _) = give(&hub, &json!({"to": "ada", "deadline": soon}));
    ada.kind("message");
    let part = json!({"to": "bob", "metadata": part_of(&hub, "ada", &parent)});
    let by = |at: &str| json!({"deadline": at});
    for (contract, beside, counts) in [
        (None, json!({ANCESTRY: by(&late)}), &soon),
        (Some(by(&late)), json!({}), &soon),
        (Some(by(&sooner)), json!({ANCESTRY: by(&late)}), &sooner),
    ] {
        let (task, client) = asked_back(&hub, &mut bob, &part);
        answer(&client, &task, contract.clone(), beside).expect("it goes on");
        let message = bob.kind("message");
        assert_eq!(deadline(&hub, &task), json!(counts), "{contract:?}");
        if contract.is_some() {
            assert_eq!(message["payload"]["metadata"][URI]["deadline"], json!(counts), "{message}");
        }
        result(&mut bob, &message, &json!({"status": "done"}));
        reached(&client, &task, "TASK_STATE_COMPLETED");
    }
    // Of work that is part of nothing it may be later than it was.
    let (task, client) = asked_back(&hub, &mut bob, &json!({"to": "bob", "deadline": soon}));
    let refused = answer(&client, &task, Some(by("2020-01-01T00:00:00Z")), json!({})).expect_err("it is too late");
    assert!(refused.contains("deadline passed"), "{refused}");
    answer(&client, &task, Some(by(&late)), json!({})).expect("it goes on");
    let message = bob.kind("message");
    assert_eq!(
        (&deadline(&hub, &task), &message["payload"]["metadata"][URI]["deadline"]),
        (&json!(late), &json!(late))
    );
}

#[test]
fn its_budget_and_form_of_reply_count_and_the_worker_is_shown_what_holds() {
    let hub = hub();
    let (mut ada, mut bob) = (worker(&hub, "ada"), worker(&hub, "bob"));
    let budget = |most: u64| json!({"budget": {"max_total_tokens": most, "hard": true}});
    let (parent, _) = give(&hub, &json!({"to": "ada", "task": budget(1000)}));
    ada.kind("message");
    let mut part = json!({"to": "bob", "metadata": part_of(&hub, "ada", &parent), "task": budget(900)});
    part["task"]["task_id"] = json!("T-1");
    let (task, client) = asked_back(&hub, &mut bob, &part);
    let schema = json!({"type": "object", "required": ["n"]});
    let mut brought = json!({"task": budget(5000), "brief": "This one"});
    (brought["task"]["reply_schema"], brought["task"]["json_schema"]) = (json!("json"), schema.clone());
    answer(&client, &task, Some(brought), json!({})).expect("it goes on");
    let message = bob.kind("message");
    let shown = &message["payload"]["metadata"][URI];
    assert_eq!(shown["task"]["budget"], budget(1000)["budget"], "what is left above it: {shown}");
    assert_eq!((&shown["task"]["task_id"], &shown["brief"]), (&json!("T-1"), &json!("This one")), "{shown}");
    assert_eq!((&shown["task"]["reply_schema"], &shown["task"]["json_schema"]), (&json!("json"), &schema), "{shown}");
    let reply = |socket: &mut Socket, message: &Value, text: &str| {
        socket.send(&json!({"type": "task_response", "taskId": message["taskId"], "run": message["run"],
            "status": {"state": "completed", "message": text}}));
    };
    reply(&mut bob, &message, "no JSON");
    let again = bob.kind("message");
    assert!(again["payload"]["parts"][0]["text"].as_str().expect("a text").contains("Reply again"), "{again}");
    reply(&mut bob, &again, r#"{"n": 1}"#);
    let done = reached(&client, &task, "TASK_STATE_COMPLETED");
    assert_eq!(told(&done)["task_id"], "T-1", "{done}");
}
