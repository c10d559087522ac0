//! What callers and owners put an end to: a deleted config leaves its record, a disabled one stays disabled.

use super::{delivery, hub, push};
use crate::cast::id;
use flotilla_testkit::{Binding, Client, HubProcess, Reaction, Receiver, until};
use serde_json::{Value, json};

const CREATE: &str = "CreateTaskPushNotificationConfig";
const LIST: &str = "ListTaskPushNotificationConfigs";
const DELETE: &str = "DeleteTaskPushNotificationConfig";

/// Says something more to a task that asked, with a webhook.
fn go_on(client: &Client, task: &Value, message: &str, config: Value) {
    let mut params = flotilla_testkit::client::message(message, "ask again");
    params["message"]["taskId"] = task["id"].clone();
    params["configuration"] = json!({"returnImmediately": true, "taskPushNotificationConfig": config});
    client.call("SendMessage", &params).expect("sent");
}

/// Tells another webhook of another task, which comes after whatever the first would have been told.
fn others_are_told(hub: &HubProcess, client: &Client, receiver: &Receiver) {
    let other = push(client, "fail", json!({"url": format!("{}?other", receiver.url())}));
    delivery(hub, &other, "done");
}

fn count(receiver: &Receiver) -> usize {
    receiver.received().iter().filter(|one| !one.path.contains("other")).count()
}

#[test]
fn a_dead_letter_is_there_for_the_owner_after_its_caller_deleted_the_config() {
    let hub = hub();
    let receiver = Receiver::doing(|_, _| Reaction::Status(500));
    let caller = hub.caller(Binding::JsonRpc, "anna");
    let url = format!("{}?room=SECRET", receiver.url());
    let task = push(&caller, "complete", json!({"id": "mine", "url": url, "token": "t-1"}));
    let parked = delivery(&hub, &task, "parked");
    caller.call(DELETE, &json!({"taskId": id(&task), "id": "mine"})).expect("deleted");
    let listed = caller.call(LIST, &json!({"taskId": id(&task)})).expect("listed");
    assert_eq!(listed["configs"], json!([]), "its caller is rid of it");
    let deleted = delivery(&hub, &task, "deleted");
    assert_eq!((&deleted["id"], &deleted["attempts"]), (&parked["id"], &parked["attempts"]));
    let reason = deleted["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("HTTP 500") && reason.ends_with("deleted by its caller"), "{deleted}");
    let uid = deleted["id"].as_str().expect("an id");
    assert!(hub.cli_ok(&["push", "show", uid]).contains("State: deleted"));
    assert!(hub.cli_ok(&["push", "list", "--state", "deleted"]).contains("Total: 1"));
    let again = hub.cli(&["push", "redeliver", uid]);
    let told = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(!again.status.success() && told.contains("Only its caller can make it again"), "{told}");
}

#[test]
fn what_the_owner_disabled_stays_so_whatever_its_caller_does() {
    let (hub, receiver) = (hub(), Receiver::start());
    let client = hub.caller(Binding::JsonRpc, "anna");
    let config = json!({"id": "mine", "url": receiver.url()});
    let task = push(&client, "ask", config.clone());
    let active = until("all of it is told", || {
        let active = delivery(&hub, &task, "active");
        (active["cursor"] == 2).then_some(active)
    });
    let uid = active["id"].as_str().expect("an id");
    hub.cli_ok(&["push", "disable", uid]);
    let mut named = config.clone();
    named["taskId"] = task["id"].clone();
    go_on(&client, &task, "m-url", json!({"url": receiver.url()}));
    go_on(&client, &task, "m-id", config);
    client.call(CREATE, &named).expect("made again");
    client.call(DELETE, &json!({"taskId": id(&task), "id": "mine"})).expect("deleted");
    client.call(CREATE, &named).expect("made again");
    client.call(CREATE, &json!({"taskId": id(&task), "id": "other", "url": receiver.url()})).expect("made");
    client.call(DELETE, &json!({"taskId": id(&task), "id": "mine"})).expect("deleted");
    go_on(&client, &task, "m-new", json!({"url": receiver.url()}));
    others_are_told(&hub, &client, &receiver);
    assert_eq!(count(&receiver), 2, "nothing came after it was disabled");
    client.call(CREATE, &named).expect("made again");
    let shown: Value = serde_json::from_str(&hub.cli_ok(&["push", "show", uid, "-o", "json"])).expect("JSON");
    assert_eq!((&shown["state"], &shown["reason"]), (&json!("disabled"), &json!("disabled by owner")));
    hub.cli_ok(&["push", "redeliver", uid, "--from", "1"]);
    until("its owner takes it up again", || (count(&receiver) > 3).then_some(()));
}

#[test]
fn one_whose_receiver_was_gone_comes_back_when_its_caller_names_it_again() {
    let hub = hub();
    let receiver = Receiver::doing(|number, one| match number {
        0 if !one.path.contains("other") => Reaction::Status(410),
        _ => Reaction::Status(200),
    });
    let client = hub.owner(Binding::JsonRpc);
    let task = push(&client, "ask", json!({"url": receiver.url()}));
    let gone = delivery(&hub, &task, "disabled");
    go_on(&client, &task, "m-url", json!({"url": receiver.url()}));
    others_are_told(&hub, &client, &receiver);
    assert_eq!(count(&receiver), 1, "a message that brings the URL again is no order");
    let stays = delivery(&hub, &task, "disabled");
    assert!(stays["reason"].as_str().is_some_and(|reason| reason.contains("410")), "{stays}");
    let named = json!({"taskId": id(&task), "id": gone["configId"], "url": receiver.url()});
    client.call(CREATE, &named).expect("made again");
    until("all of it is told", || (count(&receiver) > 3).then_some(()));
    delivery(&hub, &task, "active");
}
