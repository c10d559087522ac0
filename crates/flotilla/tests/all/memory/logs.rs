//! Tasks of many small events, read by many at once.

use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess};
use serde_json::json;

pub fn reads_of_many_events(hub: &HubProcess, key: &str) {
    let client = Client::new(hub.address(), Binding::JsonRpc).agent("chatty").key(key);
    // A debug build takes its time.
    let events = if std::env::var("FLOTILLA_MEMORY_TEST_PROGRAM").is_ok() { "1000000" } else { "60000" };
    // Where other attacks use the share of this key, it is refused.
    let Ok(task) = client.call("SendMessage", &message("m", events)) else { return };
    let id = task["task"]["id"].as_str().expect("an id");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let _ = client.call("GetTask", &json!({"id": id, "historyLength": 0}));
                let _ = client.call("ListTasks", &json!({"includeArtifacts": true}));
            });
        }
    });
}
