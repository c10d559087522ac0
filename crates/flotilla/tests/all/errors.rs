//! Refusals in each binding's own form, and malformed input on every path: never a task, never a fault, never a crash.

mod bodies;
mod envelope;
mod fields;
mod table;
mod verbatim;
mod verbs;

use flotilla_testkit::Client;
use serde_json::json;

/// Nothing that was refused may have left a task.
fn no_task(client: &Client) {
    let list = client.call("ListTasks", &json!({})).expect("a list");
    assert_eq!(list["totalSize"], 0, "a refused request made a task");
}
