//! Push: configs on every binding, and webhooks that come whole, in order and signed, whatever happens in between.

mod configs;
mod delivery;
mod ends;
mod faults;
mod owners;
mod restart;
mod targets;

use flotilla_testkit::{Client, HubProcess, Receiver, until};
use serde_json::{Value, json};

/// The agents of the cast on a hub that may call this machine and does not wait long.
const QUICK: &str = "targets: {allow: [127.0.0.1]}\npush: {schedule: [50ms, 50ms, 50ms, 50ms], timeout: 1s}";

fn hub() -> HubProcess {
    crate::cast::hub_with(QUICK)
}

/// Sends a text with a webhook for what comes of it; the task.
fn push(client: &Client, text: &str, config: Value) -> Value {
    let mut params = flotilla_testkit::client::message(&format!("{text}-{}", config["url"]), text);
    params["configuration"] = json!({"returnImmediately": true, "taskPushNotificationConfig": config});
    client.call("SendMessage", &params).unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"))["task"].clone()
}

/// What was told, in the order it came.
fn told(receiver: &Receiver) -> Vec<String> {
    receiver.received().iter().map(flotilla_testkit::Received::told).collect()
}

/// The delivery of a task's only webhook, as its owner sees it, once it is in a state.
fn delivery(hub: &HubProcess, task: &Value, state: &str) -> Value {
    let client = hub.owner(flotilla_testkit::Binding::HttpJson);
    let task = task["id"].as_str().expect("an id");
    let id = until(&format!("a delivery of {task} is {state}"), || {
        let list = client.get(&format!("/api/deliveries?task={task}")).json();
        let one = list["deliveries"].as_array().expect("a list").first().cloned()?;
        (one["state"] == state).then(|| one["id"].as_str().expect("an id").to_owned())
    });
    client.get(&format!("/api/deliveries/{id}")).json()
}
