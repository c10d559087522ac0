//! Both versions of A2A on one hub: who is answered in which, and that a task is the same in either.

mod table;

use serde_json::{Value, json};

/// The parameters of a send of one text, in 0.3.
pub fn old_message(id: &str, text: &str) -> Value {
    let parts = json!([{"kind": "text", "text": text}]);
    json!({"message": {"kind": "message", "messageId": id, "role": "user", "parts": parts}})
}
