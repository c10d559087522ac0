//! Refusals as 0.3 tells them: the same codes, with an object instead of a list of details.

use crate::a2a::error::{Reason, Refusal, Violation};
use crate::time::Millis;
use serde_json::{Map, Value, json};

/// Fields whose place is another one in 0.3.
const MOVED: [(&str, &str); 1] = [("configuration.taskPushNotificationConfig", "configuration.pushNotificationConfig")];

/// The words 0.3 has for an error, which clients look for in its text.
pub fn words(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::TaskNotFound => "Task not found",
        Reason::TaskNotCancelable => "Task cannot be canceled",
        Reason::PushNotificationNotSupported => "Push Notification is not supported",
        Reason::UnsupportedOperation => "This operation is not supported",
        Reason::ContentTypeNotSupported | Reason::MediaTypeNotSupported => "Incompatible content types",
        Reason::InvalidAgentResponse => "Invalid agent response",
        Reason::ExtendedAgentCardNotConfigured => "Authenticated Extended Card is not configured",
        other => return words_of_code(other.row().rpc),
    })
}

/// Those of JSON-RPC's own codes, which several errors share.
fn words_of_code(code: i32) -> Option<&'static str> {
    match code {
        -32700 => Some("Invalid JSON payload"),
        -32600 => Some("Request payload validation error"),
        -32601 => Some("Method not found"),
        _ => None,
    }
}

/// What stands under `data`: the reason, what machines may need to know, and the fields at fault.
pub fn data(refusal: &Refusal, now: Millis) -> Value {
    let row = refusal.reason.row();
    let mut data: Map<String, Value> =
        refusal.facts.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    data.insert("reason".into(), json!(row.reason));
    data.insert("domain".into(), json!(Refusal::domain(row)));
    data.insert("timestamp".into(), json!(now.to_string()));
    if !refusal.violations.is_empty() {
        let fields = refusal.violations.iter();
        let fields: Vec<Value> =
            fields.map(|fault| json!({"field": field(&fault.field), "description": fault.description})).collect();
        data.insert("fieldViolations".into(), fields.into());
    }
    Value::Object(data)
}

/// The HTTP status over HTTP+JSON, which the text of 0.3 leaves open: what its SDKs answer with, where 1.0 has another.
pub fn http(reason: Reason) -> u16 {
    match reason {
        Reason::TaskNotCancelable => 409,
        Reason::PushNotificationNotSupported | Reason::UnsupportedOperation => 501,
        Reason::ContentTypeNotSupported => 415,
        Reason::InvalidAgentResponse => 502,
        Reason::ExtendedAgentCardNotConfigured => 404,
        other => other.row().http,
    }
}

/// The error object of JSON-RPC, which over HTTP+JSON is the whole body.
pub fn object(refusal: &Refusal, now: Millis) -> Value {
    json!({"code": refusal.reason.row().rpc, "message": message(refusal), "data": data(refusal, now)})
}

/// The error of a JSON-RPC request, under its id.
pub fn json_rpc(id: &str, refusal: &Refusal, now: Millis) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{}}}", object(refusal, now)).into_bytes()
}

fn field(name: &str) -> String {
    let moved = MOVED.iter().find_map(|(new, old)| name.strip_prefix(new).map(|rest| format!("{old}{rest}")));
    moved.unwrap_or_else(|| name.to_owned())
}

fn message(refusal: &Refusal) -> String {
    if refusal.violations.is_empty() {
        let text = &refusal.message;
        return words(refusal.reason).map_or_else(|| text.clone(), |words| format!("{words}. {text}"));
    }
    let moved = refusal.violations.iter();
    let moved = moved.map(|fault| Violation { field: field(&fault.field), ..fault.clone() }).collect();
    Refusal::violations(moved).message
}
