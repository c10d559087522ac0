//! Both versions of A2A on one hub: who is answered in which, and that a task is the same in either.

mod forms;
mod limits;
mod push;
mod table;
mod tasks;

use flotilla_testkit::{Client, Request};
use serde_json::{Value, json};

/// The parameters of a send of one text, in 0.3.
pub fn old_message(id: &str, text: &str) -> Value {
    let parts = json!([{"kind": "text", "text": text}]);
    json!({"message": {"kind": "message", "messageId": id, "role": "user", "parts": parts}})
}

/// The same without kinds, as FastA2A sends it.
pub fn bare_message(id: &str, text: &str) -> Value {
    json!({"message": {"messageId": id, "role": "user", "parts": [{"text": text}]}})
}

/// A JSON-RPC call of 0.3 by a caller who names no version; the whole answer.
pub fn call(client: &Client, method: &str, params: Value) -> Value {
    client.send(request(method, params)).json()
}

pub fn request(method: &str, params: Value) -> Request {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    Request::post("/", body.to_string()).header("content-type", "application/json")
}
