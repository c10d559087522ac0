//! JSON-RPC's own rules: version, id, method, parameters, no batches.

use super::no_task;
use crate::cast::hub;
use flotilla_testkit::{Binding, Client, Refusal, Request};
use serde_json::{Value, json};

fn post(owner: &Client, body: &str) -> Value {
    owner.send(Request::post("/a2a", body).header("content-type", "application/json")).json()
}

fn code(owner: &Client, body: &str) -> i64 {
    post(owner, body)["error"]["code"].as_i64().unwrap_or_else(|| panic!("{body} should have been refused"))
}

const SEND: &str = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"complete"}]}}"#;

#[test]
fn a_request_of_another_json_rpc_is_refused() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    for version in [r#""jsonrpc":"1.0","#, r#""jsonrpc":2.0,"#, r#""jsonrpc":null,"#, r#""jsonrpc":"2","#, ""] {
        let body = format!(r#"{{{version}"id":1,"method":"SendMessage","params":{SEND}}}"#);
        assert_eq!(code(&owner, &body), -32600, "{version}");
    }
    no_task(&owner);
}

#[test]
fn an_id_is_a_text_a_number_or_null() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    for id in [r#"{"a":1}"#, "[1]", "true", "false"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"SendMessage","params":{SEND}}}"#);
        let answer = post(&owner, &body);
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &Value::Null), "{id}");
    }
    no_task(&owner);
}

#[test]
fn an_id_comes_back_exactly_as_it_was_sent() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    for id in ["1", "-7", "1.50", "9007199254740993", "\"a\\u0041\"", "\"\"", "null"] {
        for method in ["ListTasks", "NoSuchMethod"] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
            let response = owner.send(Request::post("/a2a", body).header("content-type", "application/json"));
            assert!(response.text().contains(&format!("\"id\":{id},")), "{id}: {}", response.text());
        }
    }
}

#[test]
fn parameters_are_an_object() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    for params in ["[]", "[{}]", "\"x\"", "1", "true"] {
        for method in ["SendMessage", "ListTasks", "GetTask"] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            assert_eq!(code(&owner, &body), -32602, "{method} {params}");
        }
    }
    no_task(&owner);
}

#[test]
fn parameters_may_be_left_out_where_none_are_needed() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    for params in ["", r#","params":{}"#, r#","params":null"#] {
        let list = post(&owner, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ListTasks"{params}}}"#));
        assert_eq!(list["result"]["totalSize"], 0);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage"{params}}}"#);
        assert_eq!(code(&owner, &body), -32602, "a send without a message");
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage"{params}}}"#);
        assert_eq!(code(&owner, &body), -32602, "a stream without a message");
    }
    no_task(&owner);
}

#[test]
fn a_method_is_one_of_the_specifications() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    for method in ["message/sent", "sendMessage", "", "Nonsense", "tasks/fetch"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{SEND}}}"#);
        assert_eq!(code(&owner, &body), -32601, "{method}");
    }
    for method in ["5", "null", "{}", "[]"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":{method},"params":{SEND}}}"#);
        assert_eq!(code(&owner, &body), -32600, "{method}");
    }
    assert_eq!(code(&owner, r#"{"jsonrpc":"2.0","id":1}"#), -32600);
    no_task(&owner);
}

#[test]
fn batches_are_refused() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let one = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{SEND}}}"#);
    for body in ["[]".to_owned(), format!("[{one}]"), format!(" [{one},{one}]")] {
        assert_eq!(code(&owner, &body), -32600);
    }
    for body in ["\"x\"", "1", "null", "true"] {
        assert_eq!(code(&owner, body), -32600, "{body} is JSON, but no request");
    }
    no_task(&owner);
}

#[test]
fn an_array_is_no_http_body_either() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    for body in [format!("[{SEND}]"), "[]".into(), "null".into(), "\"x\"".into(), "1".into()] {
        let response = owner.send(Request::post("/message:send", body).header("content-type", "application/json"));
        assert_eq!(response.status, 400);
        assert!(!Refusal::of(&response).reason.is_empty());
    }
    no_task(&owner);
}
