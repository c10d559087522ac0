//! docs/dialects.md, row by row: every request there is made, and must be answered as the document says.

use super::{bare_message, old_message};
use crate::cast::{hub, hub_set};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, HubProcess, Request, Response};
use serde_json::{Value, json};

const DOCUMENT: &str = include_str!("../../../../../docs/dialects.md");

/// The rows of the table below a heading, each as its cells.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let section = DOCUMENT.split("\n## ").find(|section| section.starts_with(heading)).expect("the section is there");
    let table = section.lines().filter(|line| line.starts_with("| "));
    let cells = |line: &str| {
        let inner = line.trim_matches(['|', ' ']);
        inner.split(" | ").map(|cell| cell.trim().trim_matches('`').to_owned()).collect::<Vec<_>>()
    };
    table.skip(1).map(cells).collect()
}

fn send(hub: &HubProcess, version: &str, request: Request) -> Response {
    let client = hub.owner(Binding::HttpJson).without("a2a-version");
    let client = if version == "none" { client } else { client.header("a2a-version", version) };
    client.send(request.header("content-type", "application/json"))
}

/// `in 0.3`, or `REASON, in 0.3`.
fn check(row: &[String], response: &Response, answer: &str) {
    let (refusal, version) = match answer.split_once(", in ") {
        Some((reason, version)) => (Some(reason), version),
        None => (None, answer.strip_prefix("in ").expect("what it is answered in")),
    };
    let body = response.json();
    let named = version.trim_end_matches(" without kinds");
    assert_eq!(response.header("a2a-version"), Some(named), "{row:?}: {body}");
    assert_eq!(shape(&body), Some(version), "{row:?}: {body}");
    match refusal {
        Some(reason) => assert!(body.to_string().contains(&format!("\"{reason}\"")), "{row:?}: {body}"),
        None => assert!(!body.to_string().contains("\"error\"") && response.status == 200, "{row:?}: {body}"),
    }
}

/// The version an answer looks like, whatever its header says.
fn shape(body: &Value) -> Option<&'static str> {
    if let Some(error) = body.get("error") {
        let details = error.get("data").or_else(|| error.get("details"));
        return Some(if details.is_some_and(Value::is_array) { "1.0" } else { "0.3" });
    }
    let result = body.get("result").unwrap_or(body);
    let state = result.pointer("/task/status/state").or_else(|| result.pointer("/status/state"));
    if result.get("kind").is_none() && state.and_then(Value::as_str).is_some_and(|state| state == "completed") {
        return Some("0.3 without kinds");
    }
    if result.get("kind").is_some() || result.get("code").is_some() || result.get("protocolVersion").is_some() {
        return Some("0.3");
    }
    let task = result.get("task").or_else(|| result.get("tasks").and_then(|tasks| tasks.get(0)))?;
    let is_old = task.get("kind").is_some() || task.to_string().contains("\"content\":");
    Some(if is_old { "0.3" } else { "1.0" })
}

#[test]
fn json_rpc_is_answered_as_the_table_says() {
    let hub = hub();
    let table = rows("JSON-RPC");
    assert!(table.len() > 10, "{table:?}");
    hub.owner(Binding::JsonRpc).say("before", "complete");
    for (number, row) in table.iter().enumerate() {
        let [path, version, method, answer] = row.as_slice() else { panic!("not a row: {row:?}") };
        let params = match method.as_str() {
            "message/send" => old_message(&format!("row-{number}"), "complete"),
            "message/send` without kinds" => bare_message(&format!("row-{number}"), "complete"),
            "SendMessage" => message(&format!("row-{number}"), "complete"),
            _ => json!({}),
        };
        let method = method.trim_end_matches("` without kinds");
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let response = send(&hub, version, Request::post(path, body.to_string()));
        assert_eq!(response.json()["id"], 7, "{row:?}");
        check(row, &response, answer);
    }
}

#[test]
fn http_json_is_answered_as_the_table_says() {
    let hub = hub();
    hub.owner(Binding::JsonRpc).say("before", "complete");
    let table = rows("HTTP+JSON");
    assert!(table.len() > 10, "{table:?}");
    for (number, row) in table.iter().enumerate() {
        let [path, version, verb, answer] = row.as_slice() else { panic!("not a row: {row:?}") };
        let id = format!("row-{number}");
        let request = match (verb.as_str(), path.contains("/v1/")) {
            ("GET", _) => Request::get(path),
            (_, true) => Request::post(path, old_message(&id, "complete").to_string()),
            (_, false) => Request::post(path, message(&id, "complete").to_string()),
        };
        let response = send(&hub, version, request);
        if path.ends_with("/card") {
            assert_eq!(form_of(&response.json()), "0.3", "{row:?}");
        } else {
            check(row, &response, answer);
        }
    }
}

fn form_of(card: &Value) -> &'static str {
    match (card.get("supportedInterfaces").is_some(), card.get("url").is_some()) {
        (true, true) => "hybrid",
        (true, false) => "1.0",
        (false, true) => "0.3",
        (false, false) => panic!("no card: {card}"),
    }
}

#[test]
fn cards_have_the_form_the_table_says() {
    let table = rows("Cards");
    assert!(table.len() > 10, "{table:?}");
    for setting in ["none", "hybrid", "1.0", "0.3"] {
        let hub = if setting == "none" { hub() } else { hub_set(&format!("card_form: \"{setting}\"")) };
        for row in table.iter().filter(|row| row[2] == setting) {
            let [path, version, _, form] = row.as_slice() else { panic!("not a row: {row:?}") };
            let response = send(&hub, version, Request::get(path));
            assert_eq!(form_of(&response.json()), form, "{row:?}");
            assert!(response.header("vary").is_some_and(|vary| vary.starts_with("a2a-version")), "{row:?}");
        }
    }
}
