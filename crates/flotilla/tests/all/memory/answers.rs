//! Answers that are never read, with and without a key.

use super::{attack, hub};
use flotilla_testkit::client::message;
use flotilla_testkit::hostile::RawHttp2;
use flotilla_testkit::{Binding, Client};
use serde_json::json;
use std::time::Duration;

/// A task of about seven megabytes.
fn large_task(hub: &flotilla_testkit::HubProcess, key: &str) -> String {
    let client = Client::new(hub.address(), Binding::JsonRpc).agent("echo").key(key);
    let task = client.call("SendMessage", &message("large", &"x".repeat(3_500_000))).expect("a task");
    task["task"]["id"].as_str().expect("an id").to_owned()
}

#[test]
fn unread_answers_of_one_key_are_bounded() {
    let hub = hub();
    attack("unread answers over HTTP/2", &hub, |key| {
        let (task, bearer) = (large_task(&hub, key), format!("Bearer {key}"));
        let headers = [("authorization", bearer.as_str()), ("a2a-version", "1.0")];
        let mut connections: Vec<RawHttp2> = (0..4).map(|_| RawHttp2::connect(hub.address())).collect();
        for connection in &mut connections {
            for _ in 0..200 {
                connection.ask("GET", &format!("/agents/echo/tasks/{task}"), &headers, true);
            }
        }
        std::thread::sleep(Duration::from_secs(6)); // polling
    });
}

#[test]
fn unread_lists_of_one_key_are_bounded() {
    let hub = hub();
    attack("unread lists over HTTP/2", &hub, |key| {
        let client = Client::new(hub.address(), Binding::JsonRpc).agent("echo").key(key);
        for index in 0..40 {
            client.call("SendMessage", &message(&format!("m{index}"), &"x".repeat(500_000))).expect("a task");
        }
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str()), ("a2a-version", "1.0")];
        let mut connections: Vec<RawHttp2> = (0..4).map(|_| RawHttp2::connect(hub.address())).collect();
        for connection in &mut connections {
            for _ in 0..200 {
                connection.ask("GET", "/agents/echo/tasks?includeArtifacts=true", &headers, true);
            }
        }
        std::thread::sleep(Duration::from_secs(6)); // polling
    });
}

#[test]
fn unread_answers_without_a_key_are_bounded() {
    let hub = hub();
    attack("unread answers without a key", &hub, |_| {
        let paths = ["/metrics", "/.well-known/agent-card.json", "/.well-known/ai-catalog.json", "/api/openapi.json"];
        let mut connections: Vec<RawHttp2> = (0..60).map(|_| RawHttp2::connect(hub.address())).collect();
        for connection in &mut connections {
            for index in 0..200 {
                connection.ask("GET", paths[index % paths.len()], &[], true);
            }
        }
        std::thread::sleep(Duration::from_secs(4)); // polling
    });
    let health = hub.stranger(Binding::HttpJson).get("/healthz");
    assert_eq!((health.status, health.json()), (200, json!({"status": "ok"})), "health is answered all the while");
}
