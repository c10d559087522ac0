//! What travels down a chain of agents: who is believed, what is refused, when it ends, and what is kept of it.

mod chains;
mod deadlines;
mod kept;
mod rejected;
mod trust;

use flotilla_protocol::time::Millis;
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

const ANCESTRY: &str = "urn:flotilla:ext:ancestry:1.0";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The owner through every door, by name: each binding, and those of 0.3 that are JSON.
fn owners(hub: &HubProcess) -> Vec<(String, Client)> {
    let current = Binding::ALL.map(|binding| (format!("{binding:?}"), hub.owner(binding)));
    let old = Binding::JSON.map(|binding| (format!("{binding:?} of 0.3"), hub.owner(binding).in_03()));
    current.into_iter().chain(old).collect()
}

/// The parameters of a send that tells an ancestry beside the message.
fn descending(id: &str, text: &str, ancestry: &Value) -> Value {
    let mut params = message(id, text);
    params["metadata"] = json!({ANCESTRY: ancestry, "other": {"n": 1}});
    params
}

/// A chain through hubs that are not this one.
fn through(hubs: &[&str]) -> Value {
    json!(hubs.iter().map(|hub| json!({"hub": hub, "agent": "agent", "task": "task"})).collect::<Vec<_>>())
}

/// Sends and takes the task, whatever it has come to.
fn sent(client: &Client, params: &Value) -> Value {
    client.call("SendMessage", params).unwrap_or_else(|refusal| panic!("{params}: {refusal:?}"))["task"].clone()
}

/// The owner's view of a task.
fn owners_view(hub: &HubProcess, task: &Value) -> Value {
    let id = task["id"].as_str().expect("an id");
    hub.owner(Binding::HttpJson).get(&format!("/api/tasks/{id}/log")).json()
}

/// The kinds of a task's events.
fn kinds(view: &Value) -> Vec<String> {
    let events = view["events"].as_array().unwrap_or_else(|| panic!("no events in {view}"));
    let kind = |entry: &Value| entry["event"].as_object().and_then(|event| event.keys().next().cloned());
    events.iter().filter_map(kind).collect()
}

/// The name of a hub among others.
fn hub_id(hub: &HubProcess) -> String {
    let task = hub.owner(Binding::HttpJson).say("who are you", "complete");
    owners_view(hub, &task)["hubId"].as_str().expect("an id").to_owned()
}

/// So long from now, as it is written.
pub fn in_time(left: Duration) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock that is set");
    Millis(i64::try_from((now + left).as_millis()).expect("not that far")).to_string()
}
