//! Retention: ended tasks go by age or number, and what goes is really gone.

use crate::cast::{hub_with, id, state};
use flotilla_testkit::{Binding, Client, until};
use serde_json::json;

fn total(client: &Client) -> u64 {
    client.call("ListTasks", &json!({})).expect("a list")["totalSize"].as_u64().expect("a number")
}

#[test]
fn ended_tasks_are_removed_after_their_time_and_others_are_not() {
    let hub = hub_with("retention: {tasks: 50ms, interval: 20ms}");
    let owner = hub.owner(Binding::HttpJson);
    let asked = owner.say("q", "ask");
    let ended = owner.say("m", "complete");
    until("the ended task is removed", || owner.call("GetTask", &json!({"id": id(&ended)})).err());
    assert_eq!(total(&owner), 1);
    assert_eq!(state(&owner.task(id(&asked))), "TASK_STATE_INPUT_REQUIRED");
    let replay = owner.clone().header("last-event-id", "x.1").stream("SubscribeToTask", &json!({"id": id(&ended)}));
    assert_eq!(replay.err().expect("refused").reason, "TASK_NOT_FOUND");
}

#[test]
fn only_so_many_ended_tasks_are_kept_and_the_oldest_go_first() {
    let hub = hub_with("retention: {tasks_max: 3, interval: 20ms}");
    let owner = hub.owner(Binding::JsonRpc);
    let made: Vec<String> = (0..8).map(|n| id(&owner.say(&format!("m-{n}"), "complete")).to_owned()).collect();
    until("five are removed", || (total(&owner) == 3).then_some(()));
    for (index, task) in made.iter().enumerate() {
        assert_eq!(owner.call("GetTask", &json!({"id": task})).is_ok(), index >= 5, "{index}");
    }
}
