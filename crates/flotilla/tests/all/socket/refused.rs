//! Refusals in GopherHole's dialect: with their code and text where its clients read them, under HTTP's 200.

use super::{agent_key, dial};
use crate::cast::setup;
use flotilla_testkit::{Binding, HubProcess, Request, Response, http, until};
use serde_json::{Value, json};

const PATH: &str = "/gopherhole/a2a";

fn post(hub: &HubProcess, key: &str, path: &str, method: &str, params: &Value) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
    let request = Request::post(path, body).header("authorization", &format!("Bearer {key}"));
    let request =
        if method == "SendStreamingMessage" { request.header("accept", "text/event-stream") } else { request };
    http::send(hub.address(), &request.header("content-type", "application/json").header("a2a-version", "1.0"))
}

fn to(agent: &str, said: &str) -> Value {
    json!({"message": {"role": "agent", "parts": [{"kind": "text", "text": said}]}, "configuration": {"agentId": agent}})
}

/// The code of a refusal that a client of the dialect can read.
fn code(answer: &Response) -> i64 {
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = answer.json();
    assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
    body["error"]["code"].as_i64().unwrap_or_else(|| panic!("no code in {body}"))
}

fn plain() -> Value {
    json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}})
}

#[test]
fn a_wrong_key_is_told_in_the_dialect_of_the_path() {
    let hub = setup().start();
    for (method, params) in [
        ("SendMessage", to("echo", "hi")),
        ("message/send", to("echo", "hi")),
        ("x-gopherhole/agents.available", json!({})),
        ("task/respond", json!({})),
    ] {
        assert_eq!(code(&post(&hub, "flk_wrong", PATH, method, &params)), -32010, "{method}");
    }
    let streamed = post(&hub, "flk_wrong", PATH, "SendStreamingMessage", &to("echo", "hi"));
    assert!(streamed.status == 200 && streamed.text().starts_with("data: {"), "{streamed:?}");
    for (path, method, params) in [
        ("/a2a", "SendMessage", plain()),
        ("/a2a", "GetTask", json!({"id": "x"})),
        ("/a2a", "SendMessage", to("echo", "hi")),
        ("/agents/echo", "SendMessage", to("echo", "hi")),
    ] {
        assert_eq!(post(&hub, "flk_wrong", path, method, &params).status, 401, "{path} {method}");
    }
}

#[test]
fn too_many_requests_are_told_in_the_dialect_of_the_path() {
    let hub = setup().config("limits: {requests_per_caller: 3}").start();
    let key = agent_key(&hub, "busy");
    let task = post(&hub, &key, PATH, "SendMessage", &to("echo", "hi")).json()["result"]["id"].clone();
    assert!(task.is_string(), "{task}");
    let mut told = Vec::new();
    for _ in 0..20 {
        let answer = post(&hub, &key, PATH, "GetTask", &json!({ "id": task }));
        assert_eq!(answer.status, 200, "{answer:?}");
        told.extend(answer.json()["error"]["code"].as_i64());
    }
    assert!(!told.is_empty() && told.iter().all(|code| *code == -32013), "{told:?}");
    let sent = (0..20).map(|_| post(&hub, &key, "/a2a", "SendMessage", &plain())).find(|answer| answer.status != 200);
    assert_eq!(sent.map(|answer| answer.status), Some(429), "A2A is told by its status");
}

#[test]
fn what_is_not_allowed_and_queues_that_are_full_have_their_codes() {
    let config = "limits: {queued_per_agent: 1, queued_per_workspace: 2}";
    let hub = setup().config(config).start();
    let key = agent_key(&hub, "caller");
    for name in ["one", "two", "three"] {
        drop(dial(&hub, &agent_key(&hub, name)).open());
        let place = format!("/api/agents/{name}");
        until("it is away", || (hub.owner(Binding::HttpJson).get(&place).json()["state"] == "absent").then_some(()));
    }
    let send = |agent: &str| post(&hub, &key, PATH, "SendMessage", &to(agent, "hi"));
    assert_eq!(send("one").json()["result"]["status"]["state"], "submitted");
    assert_eq!(code(&send("one")), -32012);
    assert_eq!(send("two").json()["result"]["status"]["state"], "submitted");
    assert_eq!(code(&send("three")), -32014);
    let reader = hub.make_key(&["reader", "--scope", "tasks:read"]);
    assert_eq!(code(&post(&hub, &reader, PATH, "SendMessage", &to("echo", "hi"))), -32011);
}
