//! The hub is killed again and again while workers work: no dispatch is lost, and none is done twice without a word.

use super::{announce, give, key, owner, result, steps};
use crate::cast::{hub_with, state};
use crate::socket::dial;
use flotilla_testkit::until;
use serde_json::json;

const KILLS: usize = 50;

#[test]
fn fifty_kills_lose_no_dispatch_and_repeat_none_in_silence() {
    let mut hub = hub_with("sockets: {grace: 1s}");
    let key = key(&hub, "ada");
    let mut tasks = Vec::new();
    for round in 0..KILLS {
        // One that is given and answered or not, and one that waits for its turn.
        let mut ada = dial(&hub, &key).open();
        // What it had is sent again at once, so nothing may be read past while it announces itself.
        ada.send(&announce("ada", 1));
        tasks.push(give(&hub, &json!({"to": "any"})).0);
        tasks.push(give(&hub, &json!({"to": "any"})).0);
        let message = ada.kind("message");
        if round % 2 == 0 {
            ada.send(&json!({"type": "ack", "taskId": message["taskId"], "run": message["run"]}));
            result(&mut ada, &message, &json!({"status": "done"}));
        }
        hub.restart();
    }
    let mut ada = dial(&hub, &key).open();
    ada.send(&announce("ada", 1));
    let client = owner(&hub).agent("fleet");
    let is_over = |task: &String| {
        let state = state(&client.task(task)).to_owned();
        ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED"].contains(&state.as_str())
    };
    let working = std::thread::spawn(move || {
        while let Ok(message) = ada.try_read() {
            if message["type"] == "message" {
                result(&mut ada, &message, &json!({"status": "done"}));
            }
        }
    });
    until("all work is over", || tasks.iter().all(is_over).then_some(()));
    for task in &tasks {
        let told = steps(&hub, task);
        let given = told.matches("assigned").count();
        let log = owner(&hub).get(&format!("/api/tasks/{task}/log")).json();
        let lost =
            log["events"].as_array().expect("a log").iter().filter(|e| !e["event"]["run_lost"].is_null()).count();
        assert!(given <= 1 + lost + told.matches("blocked").count(), "{told}: {log}");
    }
    println!("{KILLS} kills, {} dispatches: none lost, none repeated without a word", tasks.len());
    drop(hub);
    working.join().expect("the worker is content");
}
