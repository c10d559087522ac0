//! Answers that are never read, with and without a key.

use flotilla_testkit::client::message;
use flotilla_testkit::hostile::{RawHttp2, until_memory_rests};
use flotilla_testkit::{Binding, Client, HubProcess};
use serde_json::json;

/// Four connections, each with as many requests as it may have at once.
fn ask_and_read_nothing(hub: &HubProcess, key: &str, path: &str) {
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("a2a-version", "1.0")];
    let mut connections: Vec<RawHttp2> = (0..4).map(|_| RawHttp2::connect(hub.address())).collect();
    for connection in &mut connections {
        for _ in 0..200 {
            connection.ask("GET", path, &headers, true);
        }
    }
    until_memory_rests(hub.process());
}

/// Reads of a task of about seven megabytes.
pub fn unread_tasks(hub: &HubProcess, key: &str) {
    let client = Client::new(hub.address(), Binding::JsonRpc).agent("echo").key(key);
    let task = client.call("SendMessage", &message("large", &"x".repeat(3_500_000))).expect("a task");
    let id = task["task"]["id"].as_str().expect("an id");
    ask_and_read_nothing(hub, key, &format!("/agents/echo/tasks/{id}"));
}

/// Streams that begin with a task of about seven megabytes.
pub fn unread_streams(hub: &HubProcess, key: &str) {
    let client = Client::new(hub.address(), Binding::JsonRpc).agent("hold").key(key);
    let mut request = message("stream", &"x".repeat(7_000_000));
    request["configuration"] = json!({"returnImmediately": true});
    let Ok(task) = client.call("SendMessage", &request) else { return };
    let id = task["task"]["id"].as_str().expect("an id");
    ask_and_read_nothing(hub, key, &format!("/agents/hold/tasks/{id}:subscribe"));
}

pub fn unread_lists(hub: &HubProcess, key: &str) {
    let client = Client::new(hub.address(), Binding::JsonRpc).agent("echo").key(key);
    for index in 0..40 {
        // Beyond its share, which other attacks may have used, the key is refused.
        let _ = client.call("SendMessage", &message(&format!("l{index}"), &"x".repeat(500_000)));
    }
    ask_and_read_nothing(hub, key, "/agents/echo/tasks?includeArtifacts=true");
}

/// Whatever is answered without a key.
pub fn unread_without_a_key(hub: &HubProcess, _key: &str) {
    let paths = ["/metrics", "/.well-known/agent-card.json", "/.well-known/ai-catalog.json", "/api/openapi.json"];
    let mut connections: Vec<RawHttp2> = (0..60).map(|_| RawHttp2::connect(hub.address())).collect();
    for connection in &mut connections {
        for index in 0..200 {
            connection.ask("GET", paths[index % paths.len()], &[], true);
        }
    }
    until_memory_rests(hub.process());
}
