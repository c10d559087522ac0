//! The agent `fleet`: it is there once somebody has dispatched, whatever happens to the hub.

use super::{give, owner};
use crate::cast::{hub, id, state};
use crate::cli::program::Place;
use serde_json::json;

#[test]
fn the_fleet_is_there_after_a_restart_for_whoever_dispatched_before_any_worker_came() {
    let mut hub = hub();
    let missing = owner(&hub).agent("fleet").call("ListTasks", &json!({})).unwrap_err();
    assert_eq!(missing.reason, "AGENT_NOT_FOUND", "nobody has dispatched");
    let (task, _) = give(&hub, &json!({"to": "any"}));
    hub.restart();
    let fleet = owner(&hub).agent("fleet");
    assert_eq!(state(&fleet.task(&task)), "TASK_STATE_SUBMITTED");
    assert_eq!(fleet.call("ListTasks", &json!({})).expect("a list")["tasks"][0]["id"], json!(task));
    let other = fleet.start("m1", "Do something else");
    assert_eq!(Place::at(&hub).json(&["task", "get", "--agent", "fleet", id(&other)])["id"], id(&other));
    let canceled = fleet.call("CancelTask", &json!({"id": task})).expect("a task");
    assert_eq!(state(&canceled), "TASK_STATE_CANCELED");
}
