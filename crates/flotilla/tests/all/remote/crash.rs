//! A hub killed in the middle of a call: nothing is lost, nothing is done twice.

use super::{before, chained, chunk, done, reason, status, task, texts};
use crate::cast::{id, reached, setup, state};
use flotilla_testkit::client::message;
use flotilla_testkit::{Act, Asked, Binding, StandIn, http, until};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_task_that_was_taken_up_is_taken_up_again() {
    let over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&over);
    let agent = StandIn::start(true, move |asked: &Asked| {
        let now = if ended.load(Ordering::SeqCst) { "COMPLETED" } else { "WORKING" };
        let mut whole = task("t-1", now);
        whole["artifacts"] = json!([{"artifactId": "out", "parts": [{"text": "1"}, {"text": "2"}]}]);
        match asked.method.as_str() {
            "SendStreamingMessage" => vec![
                Act::Event(json!({"task": task("t-1", "WORKING")})),
                Act::Event(chunk("t-1", "1", false)),
                Act::Hold,
            ],
            "SubscribeToTask" => vec![Act::Event(json!({"task": whole})), Act::Event(status("t-1", now)), Act::HangUp],
            _ => vec![Act::Answer(whole)],
        }
    });
    let mut near = before(&agent, "retries: {first: 10ms, longest: 50ms}, poll: {first: 10ms, longest: 50ms}");
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    until("the first piece is there", || client.task(id(&task))["artifacts"][0].is_object().then_some(()));
    near.kill();
    over.store(true, Ordering::SeqCst);
    near.restart();
    let task = reached(&near.owner(Binding::JsonRpc), id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(texts(&task["artifacts"][0]), ["1", "2"], "what was told before is not told again");
    assert_eq!(agent.asked("SendStreamingMessage").len(), 1, "sent once");
}

#[test]
fn a_hub_that_stops_leaves_the_work_to_the_agent() {
    let agent = StandIn::start(true, |asked: &Asked| match asked.method.as_str() {
        "SendStreamingMessage" => vec![Act::Event(json!({"task": task("t-1", "WORKING")})), Act::Hold],
        "CancelTask" => panic!("nobody wants it canceled"),
        _ => vec![Act::Answer(task("t-1", "COMPLETED"))],
    });
    let config = super::config(&agent.url(), "").replace("hub: {", "hub: {drain: 200ms, ");
    let mut near = setup().config(&config).start();
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    reached(&client, id(&task), "TASK_STATE_WORKING");
    assert!(near.terminate().success());
    near.restart();
    reached(&near.owner(Binding::JsonRpc), id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(agent.asked("SendStreamingMessage").len(), 1);
}

#[test]
fn a_send_whose_answer_was_never_heard_is_found_there() {
    let agent = StandIn::start(false, |asked: &Asked| match asked.method.as_str() {
        "SendMessage" => vec![Act::Hold],
        "ListTasks" => {
            let mut task = task("t-1", "COMPLETED");
            task["history"] = json!([{"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "go"}]}]);
            vec![Act::Answer(json!({"tasks": [task]}))]
        }
        other => panic!("nobody asks for {other}"),
    });
    let mut near = before(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    agent.wait("SendMessage", 1);
    near.restart();
    reached(&near.owner(Binding::JsonRpc), id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(agent.asked("SendMessage").len(), 1);
}

#[test]
fn a_send_that_nobody_knows_of_is_said_to_be_unknown_or_sent_again_where_that_is_wanted() {
    for (settings, end, sends) in [("", "FAILED", 1), ("on_lost: retry", "COMPLETED", 2)] {
        let agent = StandIn::start(false, |asked: &Asked| match (asked.method.as_str(), asked.nth) {
            ("SendMessage", 0) => vec![Act::Hold],
            ("SendMessage", _) => done("t-1"),
            ("ListTasks", _) => vec![Act::Answer(json!({"tasks": []}))],
            (other, _) => panic!("nobody asks for {other}"),
        });
        let mut near = before(&agent, settings);
        // A blocking caller whose call is cut off with the hub.
        let client = near.owner(Binding::JsonRpc);
        let call = http::shout(near.address(), &client.request("SendMessage", &message("m-1", "go")));
        agent.wait("SendMessage", 1);
        near.restart();
        drop(call);
        let client = near.owner(Binding::JsonRpc);
        let task = until("the task has ended", || {
            let listed = client.call("ListTasks", &json!({})).expect("a list");
            let task = listed["tasks"].get(0)?.clone();
            (state(&task) == format!("TASK_STATE_{end}")).then_some(task)
        });
        if end == "FAILED" {
            assert!(reason(&task).contains("outcome unknown"), "{}", reason(&task));
        }
        assert_eq!(agent.asked("SendMessage").len(), sends);
    }
}

#[test]
fn the_conversation_there_outlives_the_hub() {
    let agent = StandIn::start(false, |_| done("t-1"));
    let mut near = before(&agent, "");
    let first = near.owner(Binding::JsonRpc).say("m-1", "go");
    near.restart();
    let mut params = message("m-2", "go on");
    params["message"]["contextId"] = first["contextId"].clone();
    params["message"]["referenceTaskIds"] = json!([first["id"], "of somebody else"]);
    near.owner(Binding::JsonRpc).call("SendMessage", &params).expect("an answer");
    let asked = agent.asked("SendMessage");
    assert_eq!(asked[0].params["message"]["contextId"], json!(null), "the agent names its conversations");
    assert_eq!(asked[1].params["message"]["contextId"], "their-context");
    assert_eq!(asked[1].params["message"]["taskId"], json!(null));
    assert_eq!(asked[1].params["message"]["referenceTaskIds"], json!(["t-1", "of somebody else"]));
}

/// Either hub is killed at any moment: each message is worked at once, and every task ends.
#[test]
fn two_hubs_killed_in_turn_do_each_message_once() {
    const CONFIG: &str = "
agents:
  slow:
    kind: script
    on_lost: retry
    script:
      otherwise:
        - working
        - artifact: {id: out, chunks: {count: 6, text: \"{message_id}/{n}\", every: 10ms}}
        - completed
";
    let far = setup().config(CONFIG).start();
    let mut near = chained(&far, "slow", ", retries: {first: 10ms, longest: 100ms}, timeouts: {lost: 30s}");
    let mut tasks = Vec::new();
    for round in 0..6 {
        let client = near.owner(Binding::JsonRpc);
        for number in 0..4 {
            tasks.push((client.start(&format!("{round}-{number}"), "go"), format!("{round}-{number}")));
        }
        near.restart();
    }
    let client = near.owner(Binding::JsonRpc);
    for (task, message_id) in &tasks {
        let task = until("the task ends", || {
            let task = client.task(id(task));
            ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED"].contains(&state(&task)).then_some(task)
        });
        if state(&task) == "TASK_STATE_COMPLETED" {
            let expected: Vec<String> = (1..=6).map(|n| format!("{message_id}/{n}")).collect();
            assert_eq!(texts(&task["artifacts"][0]), expected);
        } else {
            assert!(reason(&task).contains("outcome unknown"), "{task}");
        }
    }
    let theirs = far.owner(Binding::JsonRpc).call("ListTasks", &json!({"historyLength": 1, "pageSize": 100}));
    let theirs = theirs.expect("a list");
    let mut heard: Vec<&str> = theirs["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|task| task["history"][0]["messageId"].as_str())
        .collect();
    heard.sort_unstable();
    let all = heard.len();
    heard.dedup();
    assert_eq!(heard.len(), all, "no message came twice");
}
