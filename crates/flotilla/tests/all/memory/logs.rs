//! Tasks of many small events, read by many at once.

use super::{attack, hub};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client};
use serde_json::json;

#[test]
fn reads_of_a_task_of_many_small_events_are_bounded() {
    let hub = hub();
    attack("reads of a task of many small events", &hub, |key| {
        let client = Client::new(hub.address(), Binding::JsonRpc).agent("chatty").key(key);
        let task = client.call("SendMessage", &message("m", "400000")).expect("a task");
        let id = task["task"]["id"].as_str().expect("an id").to_owned();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let (client, id) = (client.clone(), id.clone());
                scope.spawn(move || {
                    let _ = client.call("GetTask", &json!({"id": id, "historyLength": 0}));
                    let _ = client.call("ListTasks", &json!({"includeArtifacts": true}));
                });
            }
        });
    });
}
