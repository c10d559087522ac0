//! Work that was begun is never said to have been refused: it goes on with another, or has failed and says why.

use super::{announce, give, is, owner, post, steps, told, worker, worker_saying};
use crate::cast::{hub_with, reached};
use crate::socket::{answer, asked};
use flotilla_testkit::HubProcess;
use flotilla_testkit::socket::Socket;
use serde_json::{Value, json};

fn labelled(hub: &HubProcess, name: &str) -> Socket {
    let mut told = announce(name, 1);
    told["worker"]["labels"] = json!(["j"]);
    worker_saying(hub, name, &told)
}

fn drain(hub: &HubProcess, name: &str) {
    let drained = post(&owner(hub), &format!("/api/fleet/{name}/drain"), &json!({}));
    assert_eq!(drained.status, 200, "{}", drained.text());
}

#[test]
fn a_reply_is_asked_of_another_when_its_worker_takes_nothing_more() {
    for (reply, state) in [(r#"{"n": 1}"#, "TASK_STATE_COMPLETED"), ("no JSON again", "TASK_STATE_FAILED")] {
        let hub = hub_with("fleet: {wait: 1s}");
        let (mut ada, mut bob) = (labelled(&hub, "ada"), labelled(&hub, "bob"));
        let (task, client) = give(&hub, &json!({"to": "label:j", "task": {"reply_schema": "json"}}));
        let message = ada.kind("message");
        drain(&hub, "ada");
        answer(&mut ada, &message, "no JSON");
        let second = bob.kind("message");
        let text = asked(&second);
        assert!(text.starts_with("Do it") && !text.contains("Your last reply"), "it has not replied yet: {text}");
        answer(&mut bob, &second, reply);
        reached(&client, &task, state);
        assert_eq!(steps(&hub, &task), "assigned ada, asked_again ada, assigned bob, judged bob", "no third time");
    }
}

#[test]
fn a_reply_that_nobody_corrects_has_failed_with_what_is_wrong_with_it() {
    let hub = hub_with("");
    let mut ada = worker(&hub, "ada");
    let terms = json!({"to": "ada", "on_blocked": [], "task": {"task_id": "c-1", "reply_schema": "json"}});
    let failed = |task: &Value| {
        let told = told(task);
        assert_eq!((&told["status"], &told["ended_by"]), (&json!("error"), &json!("failed")), "{told}");
        assert_eq!((&told["task_id"], &told["blocked_reason"]), (&json!("c-1"), &Value::Null), "{told}");
        let error = told["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.starts_with("The reply is not valid: the reply holds no JSON. It was asked for once more"));
        error
    };
    let (task, client) = give(&hub, &terms);
    let message = ada.kind("message");
    answer(&mut ada, &message, "no JSON");
    super::blocked::block(&mut ada, &json!({"blocked_reason": "over_capacity", "retry_after": 2}));
    let error = failed(&reached(&client, &task, "TASK_STATE_FAILED"));
    assert!(error.contains("over_capacity"), "{error}");

    let (task, client) = give(&hub, &terms);
    let message = ada.kind("message");
    drain(&hub, "ada");
    answer(&mut ada, &message, "no JSON");
    failed(&reached(&client, &task, "TASK_STATE_FAILED"));
}

#[test]
fn a_turn_that_nobody_goes_on_with_has_failed() {
    let hub = hub_with("fleet: {wait: 1s}");
    let mut ada = labelled(&hub, "ada");
    let (task, client) = give(&hub, &json!({"to": "label:j"}));
    let message = ada.kind("message");
    let said = json!({"role": "agent", "parts": [{"kind": "text", "text": "Which?"}],
        "blocks": [{"type": "usage", "input_tokens": 800}]});
    ada.send(&json!({"type": "task_response", "taskId": message["taskId"], "run": message["run"],
        "artifact": {"artifactId": "half", "parts": [{"kind": "text", "text": "Half of it"}]}, "lastChunk": true,
        "status": {"state": "input-required", "message": said}}));
    reached(&client, &task, "TASK_STATE_INPUT_REQUIRED");
    ada.cut();
    is(&hub, "ada", "OFFLINE");
    let reply = json!({"messageId": "m-2", "taskId": task, "role": "ROLE_USER", "parts": [{"text": "This"}]});
    client
        .call("SendMessage", &json!({"message": reply, "configuration": {"returnImmediately": true}}))
        .expect("taken");
    let ended = reached(&client, &task, "TASK_STATE_FAILED");
    let told = told(&ended);
    assert_eq!((&told["status"], &told["tokens_spent"]), (&json!("error"), &json!(800)), "{told}");
    assert!(told["error"].as_str().is_some_and(|error| error.starts_with("The work was begun")), "{told}");
    assert_eq!(ended["artifacts"][0]["artifactId"], "half", "what was made is there");
}

#[test]
fn a_worker_that_has_begun_is_not_blocked_any_more() {
    let half = json!({"artifact": {"artifactId": "half", "parts": [{"kind": "text", "text": "Half of it"}]},
        "lastChunk": true});
    let speaks = json!({"status": {"state": "working", "message": "I am at it"}});
    let uses = json!({"status": {"state": "working"}, "blocks": [{"type": "usage", "input_tokens": 800}]});
    for (with, how) in [(&half, "made something of it"), (&speaks, "spoken of it"), (&uses, "used tokens for it")] {
        let hub = hub_with("");
        let (mut ada, _bob) = (labelled(&hub, "ada"), labelled(&hub, "bob"));
        let (task, client) = give(&hub, &json!({"to": "label:j"}));
        let message = ada.kind("message");
        let mut frame = json!({"type": "task_response", "taskId": message["taskId"], "run": message["run"]});
        frame.as_object_mut().expect("an object").extend(with.as_object().expect("an object").clone());
        ada.send(&frame);
        let blocked = json!({"status": "blocked", "blocked_reason": "missing_mcp", "detail": "no mem"});
        super::result(&mut ada, &message, &blocked);
        let ended = reached(&client, &task, "TASK_STATE_FAILED");
        let told = told(&ended);
        let error = told["error"].as_str().unwrap_or_default();
        assert!(error.contains("blocked (missing_mcp: no mem)") && error.contains(how), "{told}");
        assert_eq!((&told["status"], &told["blocked_reason"]), (&json!("error"), &Value::Null), "{told}");
        assert_eq!(steps(&hub, &task), "assigned ada, judged ada", "it is nobody else's");
    }
    let hub = hub_with("");
    let (mut ada, mut bob) = (labelled(&hub, "ada"), labelled(&hub, "bob"));
    give(&hub, &json!({"to": "label:j"}));
    let message = ada.kind("message");
    super::begin(&mut ada, &message);
    super::result(&mut ada, &message, &json!({"status": "blocked", "blocked_reason": "dirty_tree"}));
    bob.kind("message");
}

#[test]
fn a_usage_limit_in_the_middle_of_work_pauses_the_account_all_the_same() {
    let hub = hub_with("");
    let mut ada = worker(&hub, "ada");
    let (task, client) = give(&hub, &json!({"to": "ada"}));
    let message = ada.kind("message");
    super::result(
        &mut ada,
        &message,
        &json!({"status": "blocked", "blocked_reason": "usage_limit", "retry_after": 3600, "tokens_spent": 9}),
    );
    let told = told(&reached(&client, &task, "TASK_STATE_FAILED"));
    assert_eq!((&told["status"], &told["retry_after"]), (&json!("error"), &json!(3600)), "{told}");
    assert!(is(&hub, "ada", "BUSY")["paused"]["until"].is_string());
}
