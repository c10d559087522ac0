//! Agents elsewhere: another hub, over every binding, and a stand-in for all that goes wrong.

mod bridge;
mod cancel;
mod crash;
mod extensions;
mod faults;
mod garbage;
mod mistakes;
mod peers;
mod redirects;
mod refused;
mod replies;
mod settings;
mod stumbles;
mod travels;
mod waits;

use crate::cast::{self, setup};
use flotilla_testkit::{Act, HubProcess, StandIn};
use serde_json::{Value, json};

/// A hub that has the stand-in as its agent `far`, with more of that agent's settings.
fn before(stand_in: &StandIn, settings: &str) -> HubProcess {
    setup().config(&config(&stand_in.url(), settings)).start()
}

fn config(url: &str, settings: &str) -> String {
    let more = if settings.is_empty() { String::new() } else { format!(", {settings}") };
    format!("hub: {{default_agent: far}}\nagents:\n  far: {{kind: a2a, url: '{url}'{more}}}\n")
}

/// A hub whose agent `far` is an agent of another hub.
fn chained(far: &HubProcess, agent: &str, settings: &str) -> HubProcess {
    let url = format!("{}/agents/{agent}", far.url());
    let settings = format!("auth: {{bearer: 'env:FAR_KEY'}}{settings}");
    setup().config(&config(&url, &settings)).env("FAR_KEY", far.owner_key()).start()
}

/// A task of the stand-in's.
fn task(id: &str, state: &str) -> Value {
    json!({"id": id, "contextId": "their-context", "status": {"state": format!("TASK_STATE_{state}")}})
}

fn status(id: &str, state: &str) -> Value {
    json!({"statusUpdate": {"taskId": id, "contextId": "their-context",
        "status": {"state": format!("TASK_STATE_{state}")}}})
}

fn chunk(id: &str, text: &str, append: bool) -> Value {
    json!({"artifactUpdate": {"taskId": id, "contextId": "their-context", "append": append,
        "artifact": {"artifactId": "out", "parts": [{"text": text}]}}})
}

fn texts(artifact: &Value) -> Vec<&str> {
    artifact["parts"].as_array().expect("parts").iter().filter_map(|part| part["text"].as_str()).collect()
}

/// The words a failed task was given.
fn reason(task: &Value) -> &str {
    cast::text(&task["status"]["message"])
}

/// The answer of a stand-in that does its work at once.
fn done(id: &str) -> Vec<Act> {
    vec![Act::Answer(json!({"task": task(id, "COMPLETED")}))]
}
