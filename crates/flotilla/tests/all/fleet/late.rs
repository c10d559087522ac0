//! What is told of usage while a run is being stopped, and after that: it was used, and is booked.

use super::ceilings::{is_stopped, part_of, spent, uses};
use super::{announce, begin, give, worker, worker_saying};
use crate::cast::{hub, reached};
use flotilla_testkit::socket::Socket;
use flotilla_testkit::until;
use serde_json::{Value, json};

const FRAMES: u64 = 30;

/// What was used, in a frame with an id or without.
fn frame(message: &Value, id: Option<String>, tokens: u64) -> Value {
    let mut frame = json!({"type": "task_response", "taskId": message["taskId"], "run": message["run"],
        "status": {"state": "working"}, "blocks": [{"type": "usage", "input_tokens": tokens}]});
    if let Some(id) = id {
        frame["id"] = json!(id);
    }
    frame
}

fn says_all(ada: &mut Socket, message: &Value) {
    for number in 0..FRAMES {
        ada.send(&frame(message, Some(format!("f-{number}")), 10));
    }
    for _ in 0..FRAMES {
        ada.wait_for("a frame is kept, or over", |frame| frame["type"] == "ack" && frame["id"].is_string());
    }
}

#[test]
fn what_is_told_at_once_is_all_booked_though_its_beginning_reaches_the_ceiling() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let with = json!({"to": "ada", "task": {"budget": {"max_total_tokens": 60, "hard": true}}});
    for _ in 0..3 {
        let (task, client) = give(&hub, &with);
        let message = ada.kind("message");
        begin(&mut ada, &message);
        says_all(&mut ada, &message);
        is_stopped(&client, &task, "budget of this task");
        assert_eq!(spent(&hub, &task), FRAMES * 10);
        says_all(&mut ada, &message);
        assert_eq!(spent(&hub, &task), FRAMES * 10, "the same ids are the same reports");
    }
}

#[test]
fn so_are_a_worker_program_s_numbered_reports() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let with = json!({"to": "ada", "task": {"budget": {"max_total_tokens": 60, "hard": true}}});
    let (task, client) = give(&hub, &with);
    let message = ada.kind("message");
    for number in 1..=FRAMES {
        ada.send(&json!({"type": "report", "taskId": task, "run": message["run"], "number": number,
            "reports": [{"note": {"blocks": [{"type": "usage", "input_tokens": 10}]}}]}));
    }
    is_stopped(&client, &task, "budget of this task");
    until("all is booked", || (spent(&hub, &task) == FRAMES * 10).then_some(()));
}

#[test]
fn what_a_result_tells_is_booked_though_the_run_is_stopped_before_its_last_word() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let mut bob = worker_saying(&hub, "bob", &announce("bob", 1));
    let budget = json!({"max_total_tokens": 1000, "hard": true});
    let (parent, _) = give(&hub, &json!({"to": "ada", "task": {"budget": budget}}));
    let parents = ada.kind("message");
    let (child, client) = give(&hub, &json!({"to": "bob", "metadata": part_of(&hub, "ada", &parent)}));
    let message = bob.kind("message");
    begin(&mut bob, &message);
    let done =
        json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "done", "usage": {"input_tokens": 70}});
    let part = json!({"kind": "data", "data": done, "mimeType": "application/vnd.flotilla.task-result+json"});
    bob.send(&json!({"type": "task_response", "taskId": child, "run": message["run"], "id": "done",
        "artifact": {"artifactId": "r", "parts": [part]}, "lastChunk": true}));
    bob.wait_for("it is kept", |frame| frame["type"] == "ack" && frame["id"] == "done");
    uses(&mut ada, &parents, 1000);
    is_stopped(&client, &child, "budget of the task this is part of");
    until("it is booked", || (spent(&hub, &child) == 70).then_some(()));
    bob.send(
        &json!({"type": "task_response", "taskId": child, "run": message["run"], "status": {"state": "completed"}}),
    );
    bob.wait_for("that it is over", |frame| frame["over"] == true);
    assert_eq!(spent(&hub, &child), 70);
}

#[test]
fn without_an_id_each_frame_after_the_stop_counts() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let soon = crate::lineage::in_time(std::time::Duration::from_secs(1));
    let (task, client) = give(&hub, &json!({"to": "ada", "deadline": soon}));
    let message = ada.kind("message");
    begin(&mut ada, &message);
    reached(&client, &task, "TASK_STATE_FAILED");
    ada.kind("cancel");
    let said = [(None, 11), (None, 11), (Some("q"), 100), (Some("q"), 100), (None, 1000)];
    for (id, tokens) in said {
        ada.send(&frame(&message, id.map(str::to_owned), tokens));
        ada.wait_for("that it is over", |frame| frame["over"] == true);
    }
    assert_eq!(spent(&hub, &task), 1122);
}
