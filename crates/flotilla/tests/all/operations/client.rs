//! `flotilla send` and `flotilla task`: the first client.

use crate::cast::{hub, id, reached, state, text};
use flotilla_testkit::{Binding, HubProcess};
use serde_json::Value;

fn json(hub: &HubProcess, args: &[&str]) -> Value {
    let said = hub.cli_ok(args);
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn lines(hub: &HubProcess, args: &[&str]) -> Vec<Value> {
    let said = hub.cli_ok(args);
    said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn a_text_is_sent_and_its_task_printed() {
    let hub = hub();
    let sent = json(&hub, &["send", "complete this"]);
    assert_eq!(text(&sent["task"]["artifacts"][0]), "You said complete this");
    let again = json(&hub, &["send", "complete this"]);
    assert_ne!(again["task"]["id"], sent["task"]["id"], "each send is a message of its own");
    let echoed = json(&hub, &["send", "hello", "--agent", "echo"]);
    assert_eq!(text(&echoed["task"]["artifacts"][0]), "hello");
    assert_eq!(text(&json(&hub, &["send", "direct"])["message"]), "Hello yourself");
}

#[test]
fn a_stream_is_printed_line_by_line() {
    let hub = hub();
    let frames = lines(&hub, &["send", "--stream", "complete"]);
    let kinds: Vec<&str> =
        frames.iter().filter_map(|frame| frame.as_object()?.keys().next().map(String::as_str)).collect();
    assert_eq!(kinds, ["task", "statusUpdate", "artifactUpdate", "statusUpdate"]);
}

#[test]
fn a_conversation_goes_on_from_the_command_line() {
    let hub = hub();
    let asked = json(&hub, &["send", "ask"]);
    let task = id(&asked["task"]).to_owned();
    let context = asked["task"]["contextId"].as_str().expect("a context").to_owned();
    let ended = json(&hub, &["send", "large", "--task-id", &task, "--context-id", &context]);
    assert_eq!((&ended["task"]["id"], state(&ended["task"])), (&asked["task"]["id"], "TASK_STATE_COMPLETED"));
}

#[test]
fn tasks_are_read_listed_and_canceled() {
    let hub = hub();
    let started = json(&hub, &["send", "--async", "hold"]);
    let task = id(&started["task"]).to_owned();
    reached(&hub.owner(Binding::HttpJson), &task, "TASK_STATE_WORKING");
    json(&hub, &["send", "complete"]);
    assert_eq!(id(&json(&hub, &["task", "get", &task])), task);
    assert!(json(&hub, &["task", "get", &task, "--history", "0"]).get("history").is_none());
    assert_eq!(json(&hub, &["task", "list"])["totalSize"], 2);
    let working = json(&hub, &["task", "list", "--status", "TASK_STATE_WORKING", "--page-size", "1"]);
    assert_eq!((working["totalSize"].as_u64(), id(&working["tasks"][0])), (Some(1), task.as_str()));
    assert_eq!(state(&json(&hub, &["task", "cancel", &task])), "TASK_STATE_CANCELED");
    let output = hub.cli(&["task", "cancel", &task]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("TASK_NOT_CANCELABLE"));
}

#[test]
fn a_task_is_followed_to_its_end() {
    let hub = hub();
    let started = json(&hub, &["send", "--async", "work 300ms"]);
    let frames = lines(&hub, &["task", "subscribe", id(&started["task"])]);
    assert_eq!(frames[0]["task"]["id"], started["task"]["id"]);
    assert_eq!(state(&frames.last().expect("the end")["statusUpdate"]), "TASK_STATE_COMPLETED");
    let output = hub.cli(&["task", "subscribe", id(&started["task"])]);
    assert!(!output.status.success(), "an ended task cannot be subscribed to");
}

#[test]
fn a_tasks_log_is_shown_to_its_owner_and_to_nobody_else() {
    let hub = hub();
    let sent = json(&hub, &["send", "complete"]);
    let log = json(&hub, &["task", "log", id(&sent["task"])]);
    assert!(log["events"].as_array().is_some_and(|events| events.len() >= 6), "{log}");
    let key = hub.key("alice", &[]);
    assert!(!hub.cli(&["task", "log", id(&sent["task"]), "--key", &key]).status.success());
}

#[test]
fn mistakes_are_told_in_words() {
    let hub = hub();
    for (args, word) in [
        (&["task", "get", "none"][..], "TASK_NOT_FOUND"),
        (&["send", "x", "--agent", "nobody"], "nobody"),
        (&["send", "x", "--key", "flk_wrong"], "401"),
        (&["send", "x", "--url", "http://127.0.0.1:1"], "cannot reach"),
        (&["send", "x", "--url", "ftp://x"], "http://"),
    ] {
        let output = hub.cli(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(word), "{args:?}: {said}");
    }
}
