//! Cuts at random under load: no task is lost, and none is run twice without a word.

use super::{agent_key, caller, dial};
use crate::cast::{hub, id, reached};
use flotilla_testkit::Binding;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// The full number is cut by `bench/src/sockets`.
const CUTS: u64 = 25;
const TASKS: usize = 60;

/// An agent that keeps what is not acknowledged, and whose connection is cut again and again.
fn work(address: std::net::SocketAddr, key: &str, done: &mut HashSet<(String, u64)>, doubled: &mut usize) {
    let (mut token, mut unsent): (Option<String>, HashMap<String, Value>) = (None, HashMap::new());
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut cuts = 0;
    while done.len() < TASKS || !unsent.is_empty() {
        let mut dialing = flotilla_testkit::socket::Dial::new(address).key(key);
        if let Some(token) = &token {
            dialing = dialing.query("resume", token);
        }
        let mut socket = dialing.open();
        token = socket.welcome["resumeToken"].as_str().map(str::to_owned);
        for frame in unsent.values() {
            socket.send(frame);
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let frames = if cuts < CUTS { random % 9 } else { u64::MAX };
        cuts += 1;
        for _ in 0..frames {
            if done.len() == TASKS && unsent.is_empty() {
                return;
            }
            let frame = socket.read();
            match frame["type"].as_str() {
                Some("message") => {
                    let (task, run) =
                        (frame["taskId"].as_str().expect("an id").to_owned(), frame["run"].as_u64().expect("a run"));
                    let answer = json!({"type": "task_response", "taskId": task, "run": run, "id": format!("{task}.{run}"),
                        "status": {"state": "completed"}, "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "done"}]}});
                    if !done.insert((task.clone(), run)) {
                        *doubled += 1;
                        assert!(frame["attempt"].as_u64() > Some(1), "a duplicate says so: {frame}");
                        continue;
                    }
                    socket.send(&answer);
                    unsent.insert(task, answer);
                }
                Some("ack") => drop(unsent.remove(frame["taskId"].as_str().expect("an id"))),
                _ => {}
            }
        }
        socket.cut();
    }
}

#[test]
fn no_task_is_lost_and_no_duplicate_goes_unsaid() {
    let hub = hub();
    let key = agent_key(&hub, "worker");
    dial(&hub, &key).open().close();
    let client = caller(&hub, Binding::JsonRpc, "worker");
    let sender = client.clone();
    let sending = std::thread::spawn(move || {
        let mut tasks = Vec::new();
        for number in 0..TASKS {
            tasks.push(id(&sender.start(&format!("m{number}"), "work")).to_owned());
        }
        tasks
    });
    let (mut done, mut doubled) = (HashSet::new(), 0);
    work(hub.address(), &key, &mut done, &mut doubled);
    let tasks = sending.join().expect("all are sent");
    for task in &tasks {
        let ended = reached(&client, task, "TASK_STATE_COMPLETED");
        assert_eq!(ended["artifacts"].as_array().map(Vec::len), Some(1), "once: {ended}");
    }
    assert_eq!(done.len(), TASKS, "no run but the first of each ({doubled} were sent twice)");
}
