//! News of tasks that a caller began before it connected.

use super::{dial, result, to};
use crate::cast::{hub, setup};
use crate::socket::{agent_key, answer, asked};
use flotilla_testkit::Binding;
use serde_json::json;
use std::collections::HashMap;
use std::time::Instant;

#[test]
fn whoever_connects_later_hears_of_what_it_began_before() {
    let hub = hub();
    let mut agent = dial(&hub, &agent_key(&hub, "weather")).open();
    let (key, other) = (agent_key(&hub, "caller"), agent_key(&hub, "other"));
    let plain = hub.stranger(Binding::JsonRpc).key(&key).agent("weather");
    let said = json!({"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "plain"}]},
                      "configuration": {"returnImmediately": true}});
    let not_told = plain.call("SendMessage", &said).expect("a task")["task"]["id"].clone();
    let others = result(&hub, &other, "SendMessage", &to("weather", "others"))["id"].clone();
    let own = result(&hub, &key, "SendMessage", &to("weather", "own"))["id"].clone();
    let messages = [agent.kind("message"), agent.kind("message"), agent.kind("message")];
    let mut socket = dial(&hub, &key).query("role", "caller").open();
    // The last one is the caller's own.
    let (mine, rest): (Vec<_>, Vec<_>) = messages.iter().partition(|message| asked(message) == "own");
    for message in rest.into_iter().chain(mine) {
        answer(&mut agent, message, "Sunny");
    }
    let mut told = Vec::new();
    while !told.iter().any(|(id, state)| *id == own && *state == "completed") {
        let update = socket.kind("task_update");
        told.push((update["task"]["id"].clone(), update["task"]["status"]["state"].clone()));
    }
    assert!(told.iter().all(|(id, _)| *id != not_told && *id != others), "{told:?}");
}

/// A client that hears of the end of a task before it knows the task would wait for the end for ever.
#[test]
fn news_of_a_task_come_after_the_answer_that_began_it() {
    const TASKS: usize = 80;
    let hub = hub();
    let key = agent_key(&hub, "caller");
    let mut socket = dial(&hub, &key).query("role", "caller").open();
    let mut began = HashMap::new();
    let told = std::thread::spawn(move || {
        let mut told = HashMap::new();
        // A task of its own says that these were all.
        while !told.contains_key("last") {
            let update = socket.kind("task_update")["task"].clone();
            let is_last = update["history"][0]["parts"][0]["text"] == "work 300ms";
            let ended = is_last && update["status"]["state"] == "completed";
            let name = if ended { "last" } else { update["id"].as_str().expect("an id") };
            told.entry(name.to_owned()).or_insert_with(Instant::now);
        }
        told
    });
    for _ in 0..TASKS {
        let task = result(&hub, &key, "SendMessage", &to("echo", "hi"));
        if task["status"]["state"] == "working" {
            began.insert(task["id"].as_str().expect("an id").to_owned(), Instant::now());
        } else {
            // Some look for the reply there alone.
            let last = task["history"].as_array().and_then(|history| history.last()).cloned();
            assert_eq!(last.expect("a message")["role"], "agent", "{task}");
        }
    }
    result(&hub, &key, "SendMessage", &to("mock", "work 300ms"));
    let told = told.join().expect("it is told of all");
    for (task, answered) in &began {
        let told = told.get(task).unwrap_or_else(|| panic!("nothing was told of {task}"));
        assert!(told > answered, "the end came {:?} before its task was known", *answered - *told);
    }
}

#[test]
fn a_message_that_waited_is_worked_on_once_the_agent_has_it() {
    let hub = hub();
    let (agent_key, key) = (agent_key(&hub, "weather"), agent_key(&hub, "caller"));
    dial(&hub, &agent_key).open().close();
    let mut socket = dial(&hub, &key).query("role", "caller").open();
    let task = result(&hub, &key, "SendMessage", &to("weather", "hi"));
    assert_eq!(task["status"]["state"], "submitted", "nobody is there: {task}");
    let mut agent = dial(&hub, &agent_key).open();
    agent.kind("message");
    let update = socket.wait_for("its news", |frame| frame["task"]["id"] == task["id"]);
    let status = &update["task"]["status"];
    assert_eq!((&status["state"], status.get("message")), (&json!("working"), None), "{update}");
}

#[test]
fn a_caller_hears_of_its_tasks_after_the_hub_has_started_again() {
    let mut hub = setup().start();
    let (agent_key, key) = (agent_key(&hub, "weather"), agent_key(&hub, "caller"));
    let mut agent = dial(&hub, &agent_key).open();
    let _before = dial(&hub, &key).query("role", "caller").open();
    let task = result(&hub, &key, "SendMessage", &to("weather", "hi"))["id"].clone();
    agent.kind("message");
    hub.kill();
    hub.restart();
    let mut socket = dial(&hub, &key).query("role", "caller").open();
    let mut agent = dial(&hub, &agent_key).open();
    let message = agent.kind("message");
    answer(&mut agent, &message, "Sunny");
    let update = socket.wait_for("the end", |frame| frame["task"]["status"]["state"] == "completed");
    assert_eq!((&update["type"], &update["task"]["id"]), (&json!("task_update"), &task));
}
