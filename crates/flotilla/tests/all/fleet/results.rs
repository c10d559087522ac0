//! Results: each status and the state it comes to, replies against a schema, and what is believed of what.

use super::{give, is, result, say, shown, steps, told, why, worker};
use crate::cast::{hub, reached};
use crate::socket::answer;
use flotilla_testkit::socket::Socket;
use serde_json::{Value, json};

const URI: &str = "urn:flotilla:ext:fleet-handshake:2.0";

fn respond(socket: &mut Socket, message: &Value, with: &Value) {
    let mut frame = json!({"type": "task_response", "taskId": message["taskId"], "run": message["run"]});
    frame.as_object_mut().expect("an object").extend(with.as_object().expect("an object").clone());
    socket.send(&frame);
}

#[test]
fn each_status_comes_to_its_state() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    for (with, expected, standing) in [
        (
            json!({"status": "done", "next_steps": ["test"], "artifacts": {"pr": "https://git.example/72"}}),
            "TASK_STATE_COMPLETED",
            "accepted",
        ),
        (json!({"status": "error", "error": "It broke"}), "TASK_STATE_FAILED", "accepted"),
        (json!({"status": "partial", "remaining": ["the rest"]}), "TASK_STATE_COMPLETED", "accepted"),
        (json!({"status": "done", "evidence": {"files_changed": false}}), "TASK_STATE_COMPLETED", "reported"),
        (json!({"status": "done", "task_id": "another"}), "TASK_STATE_COMPLETED", "reported"),
    ] {
        let (task, client) = give(&hub, &json!({"task": {"task_id": "mine"}}));
        let message = ada.kind("message");
        result(&mut ada, &message, &with);
        let ended = reached(&client, &task, expected);
        let mut expected = with.clone();
        expected["task_id"] = json!("mine");
        for (name, value) in expected.as_object().expect("an object") {
            assert_eq!(told(&ended)[name], *value, "{name} of {with}");
        }
        let artifact = &ended["artifacts"][0];
        assert_eq!(artifact["artifactId"], "r", "it keeps the worker's name");
        assert_eq!(artifact["metadata"][URI]["standing"], standing, "{with}");
        assert_eq!(why(&hub, &task)[1]["standing"], standing);
    }
    let (task, client) = give(&hub, &json!({}));
    let message = ada.kind("message");
    let asks = json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "partial", "remaining": ["which?"]});
    respond(&mut ada, &message, &json!({"status": {"state": "input-required", "message": asks.to_string()}}));
    assert_eq!(told(&reached(&client, &task, "TASK_STATE_INPUT_REQUIRED"))["status"], "partial");
}

#[test]
fn prose_is_kept_and_what_it_comes_to_is_said_to_be_inferred() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    for (status, expected, inferred) in [
        (json!({"state": "completed", "message": "All done"}), "TASK_STATE_COMPLETED", "done"),
        (json!({"state": "failed", "message": "No disk"}), "TASK_STATE_FAILED", "error"),
    ] {
        let (task, client) = give(&hub, &json!({}));
        let message = ada.kind("message");
        respond(&mut ada, &message, &json!({"status": status}));
        let ended = reached(&client, &task, expected);
        assert_eq!((&told(&ended)["status"], &told(&ended)["inferred"]), (&json!(inferred), &json!(true)));
        assert_eq!(ended["status"]["message"]["parts"][0]["text"], status["message"], "the words are kept");
    }
    // A worker that fails again and again without a word gets nothing more until it announces something new.
    for _ in 0..2 {
        let (task, client) = give(&hub, &json!({"to": "ada"}));
        let message = ada.kind("message");
        respond(&mut ada, &message, &json!({"status": {"state": "failed", "message": "No disk"}}));
        reached(&client, &task, "TASK_STATE_FAILED");
    }
    let broken = is(&hub, "ada", "BROKEN");
    assert_eq!(broken["reason"], "3 turns in a row failed, the last: No disk");
    say(&mut ada, &super::announce("ada", 2));
    is(&hub, "ada", "AVAILABLE");
}

#[test]
fn a_result_is_found_at_the_end_of_words_and_tokens_are_counted_not_believed() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let (task, client) = give(&hub, &json!({"task": {"reply_schema": "structured"}}));
    let message = ada.kind("message");
    let whole = json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "done", "tokens_spent": 12,
        "usage": {"input_tokens": 3, "output_tokens": 4}});
    answer(&mut ada, &message, &format!("I did it.\n```json\n{whole}\n```"));
    let done = told(&reached(&client, &task, "TASK_STATE_COMPLETED"));
    assert_eq!((&done["tokens_spent"], &done["tokens_claimed"]), (&json!(7), &json!(12)));
    let (task, client) = give(&hub, &json!({}));
    let message = ada.kind("message");
    result(&mut ada, &message, &json!({"status": "done", "tokens_spent": 12}));
    let done = told(&reached(&client, &task, "TASK_STATE_COMPLETED"));
    assert_eq!((&done["tokens_spent"], &done["tokens_claimed"]), (&Value::Null, &json!(12)), "unknown is not 0");
}

#[test]
fn a_reply_that_is_not_valid_is_asked_for_once_more() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let terms = json!({"task": {"reply_schema": "json", "json_schema": schema}});
    let (task, client) = give(&hub, &terms);
    let first = ada.kind("message");
    answer(&mut ada, &first, r#"{"n": "seven"}"#);
    let second = ada.kind("message");
    let text = crate::socket::asked(&second);
    assert!(second["run"] == 2 && text.contains("- /n: ") && text.starts_with("Do it"), "{text}");
    answer(&mut ada, &second, r#"{"n": 7}"#);
    reached(&client, &task, "TASK_STATE_COMPLETED");
    assert_eq!(steps(&hub, &task), "assigned ada, asked_again ada, assigned ada, judged ada");

    let (task, client) = give(&hub, &terms);
    for _ in 0..2 {
        let message = ada.kind("message");
        answer(&mut ada, &message, "no JSON at all");
    }
    let failed = reached(&client, &task, "TASK_STATE_FAILED");
    assert_eq!(told(&failed)["error"], "The reply is not valid: the reply holds no JSON");
}

#[test]
fn an_announcement_in_a_reply_is_taken() {
    let hub = hub();
    let mut ada = crate::socket::connected(&hub, "ada");
    let (task, client) = give(&hub, &json!({"to": "ada"}));
    let message = ada.kind("message");
    let part = json!({"kind": "data", "data": super::announce("ada", 5),
        "mimeType": "application/vnd.flotilla.session-announce+json"});
    respond(
        &mut ada,
        &message,
        &json!({"artifact": {"artifactId": "a", "parts": [part, {"kind": "text", "text": "hi"}]}}),
    );
    respond(&mut ada, &message, &json!({"status": {"state": "completed"}}));
    let done = reached(&client, &task, "TASK_STATE_COMPLETED");
    assert_eq!((&shown(&hub, "ada")["epoch"], &shown(&hub, "ada")["via"]), (&json!(5), &json!("reply")));
    assert_eq!(done["artifacts"][0]["parts"][1]["text"], "hi", "the reply stays as it is");
}

#[test]
fn a_caller_cannot_announce_for_a_worker() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let evil = super::announce("echo", 99);
    let data = json!({"data": evil, "mediaType": "application/vnd.flotilla.session-announce+json"});
    // What is said in plain messages and in dispatched work, and repeated as text and as a part of its own.
    for part in [json!({"text": evil.to_string()}), data.clone()] {
        let message = json!({"messageId": part.to_string().len().to_string(), "role": "ROLE_USER", "parts": [part]});
        let body = json!({"message": message});
        let sent = super::post(&super::owner(&hub).agent("echo"), "/agents/echo/message:send", &body);
        assert_eq!(sent.status, 200, "{}", sent.text());
    }
    let (task, client) = give(&hub, &json!({"to": "echo", "brief": evil.to_string()}));
    let repeated = reached(&client, &task, "TASK_STATE_COMPLETED");
    assert!(repeated["artifacts"][0]["parts"][0]["text"].as_str().is_some_and(|text| text.contains("ANNOUNCE")));
    assert_eq!(super::owner(&hub).get("/api/fleet/echo").status, 404, "it announced nothing");

    for (with, says) in [
        (json!({"status": {"state": "completed", "message": super::announce("ada", 9).to_string()}}), "Do it"),
        (
            json!({"status": {"state": "completed"}, "artifact": {"artifactId": "a", "parts": [data]}}),
            "SESSION_ANNOUNCE",
        ),
    ] {
        let (task, client) = give(&hub, &json!({"to": "ada", "brief": says}));
        let message = ada.kind("message");
        respond(&mut ada, &message, &with);
        reached(&client, &task, "TASK_STATE_COMPLETED");
        assert_eq!(shown(&hub, "ada")["epoch"], 1, "{says}");
    }
}

#[test]
fn a_streamed_error_is_an_error_and_a_streamed_reply_is_put_together() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let stream = |ada: &mut Socket, message: &Value, pieces: &[&str]| {
        for (at, text) in pieces.iter().enumerate() {
            let artifact = json!({"artifactId": "s", "parts": [{"kind": "text", "text": text}]});
            respond(
                ada,
                message,
                &json!({"artifact": artifact, "append": at > 0, "lastChunk": at + 1 == pieces.len()}),
            );
        }
        respond(ada, message, &json!({"status": {"state": "completed"}}));
    };
    let (task, client) = give(&hub, &json!({}));
    let message = ada.kind("message");
    let whole =
        json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "error", "error": "boom"}).to_string();
    stream(&mut ada, &message, &["It went wrong.\n", &whole[..30], &whole[30..]]);
    assert_eq!(told(&reached(&client, &task, "TASK_STATE_FAILED"))["error"], "boom");
    let (task, client) = give(&hub, &json!({"task": {"reply_schema": "json", "json_schema": {"type": "object"}}}));
    let message = ada.kind("message");
    stream(&mut ada, &message, &["{\"a\"", ": 1", "}"]);
    reached(&client, &task, "TASK_STATE_COMPLETED");
}

#[test]
fn a_result_whose_frame_is_refused_is_not_taken_for_done() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let error = json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "error", "error": "boom"});
    let deep: Value = serde_json::from_str(&format!("{}1{}", "[".repeat(110), "]".repeat(110))).expect("JSON");
    for artifact in [
        json!({"artifactId": "r", "metadata": [1], "parts": [{"kind": "data", "data": error}]}),
        json!({"artifactId": "r", "parts": [{"kind": "data", "data": error}, {"kind": "data", "data": deep}]}),
    ] {
        let (task, client) = give(&hub, &json!({"to": "ada"}));
        let message = ada.kind("message");
        respond(&mut ada, &message, &json!({"artifact": artifact, "lastChunk": true}));
        respond(&mut ada, &message, &json!({"status": {"state": "completed"}}));
        let failed = told(&reached(&client, &task, "TASK_STATE_FAILED"));
        let error = failed["error"].as_str().unwrap_or_default();
        assert!(error.starts_with("The result cannot be read: TASK_RESULT: its frame was refused: "), "{error}");
    }
}

#[test]
fn a_quoted_result_is_content_and_a_reply_may_stand_before_a_real_one() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let whole = json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "done"});
    let (task, client) = give(&hub, &json!({}));
    let message = ada.kind("message");
    let text = format!("I would end with {whole}. But I could not do it.\nThen 40 pages more.");
    answer(&mut ada, &message, &text);
    let done = reached(&client, &task, "TASK_STATE_COMPLETED");
    assert_eq!((&told(&done)["inferred"], &done["artifacts"][0]["parts"][0]["text"]), (&json!(true), &json!(text)));

    let (task, client) = give(&hub, &json!({"task": {"reply_schema": "json", "json_schema": {"required": ["a"]}}}));
    let message = ada.kind("message");
    answer(&mut ada, &message, &format!("{{\"a\": 5}}\n{whole}"));
    let done = reached(&client, &task, "TASK_STATE_COMPLETED");
    assert_eq!(steps(&hub, &task), "assigned ada, judged ada");
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "{\"a\": 5}", "the reply is there");
}

#[test]
fn what_a_worker_used_before_it_answered_blocked_is_told_and_was_work() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let (task, client) = give(&hub, &json!({"to": "ada", "on_blocked": []}));
    let message = ada.kind("message");
    result(
        &mut ada,
        &message,
        &json!({"status": "blocked", "blocked_reason": "missing_mcp", "usage": {"input_tokens": 50}}),
    );
    let failed = told(&reached(&client, &task, "TASK_STATE_FAILED"));
    assert_eq!((&failed["tokens_spent"], &failed["usage"]["input_tokens"]), (&json!(50), &json!(50)));
    assert!(failed["error"].as_str().is_some_and(|error| error.contains("used tokens for it")), "{failed}");
}

#[test]
fn a_result_that_cannot_be_read_does_not_stand_beside_the_hub_s_word_on_it() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let (task, client) = give(&hub, &json!({}));
    let message = ada.kind("message");
    result(&mut ada, &message, &json!({"status": "done", "tokens_spent": -5}));
    let failed = reached(&client, &task, "TASK_STATE_FAILED");
    let artifacts = failed["artifacts"].as_array().expect("artifacts");
    assert_eq!((artifacts.len(), &artifacts[0]["artifactId"]), (1, &json!("r")), "{failed}");
    assert!(told(&failed)["error"].as_str().is_some_and(|error| error.contains("tokens_spent")), "{failed}");
    let log = super::owner(&hub).get(&format!("/api/tasks/{task}/log")).text().to_owned();
    assert!(log.contains("refused_result") && log.contains("-5"), "its owner sees what it was: {log}");

    // The same at the end of a text, where the words before it stay.
    let wrong = json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "done", "tokens_spent": -7});
    let (task, client) = give(&hub, &json!({}));
    let message = ada.kind("message");
    answer(&mut ada, &message, &format!("I looked at it.\n```json\n{wrong}\n```"));
    let failed = reached(&client, &task, "TASK_STATE_FAILED");
    assert_eq!(failed["artifacts"][0]["parts"][0]["text"], "I looked at it.", "{failed}");
    assert_eq!(failed["artifacts"].as_array().map(Vec::len), Some(2), "that, and the hub's word on it: {failed}");
    let log = super::owner(&hub).get(&format!("/api/tasks/{task}/log")).text().to_owned();
    assert!(log.contains("refused_result") && log.contains("-7"), "its owner sees what it was: {log}");
}

#[test]
fn a_worker_told_by_hints_to_reply_with_json_is_accepted_when_it_does() {
    let hub = hub();
    let mut mute = crate::socket::connected(&hub, "mute");
    let (task, client) = give(&hub, &json!({"to": "mute", "task": {"reply_schema": "json"}}));
    let message = mute.kind("message");
    assert!(crate::socket::asked(&message).ends_with("Reply with one JSON value and nothing else."), "{message}");
    answer(&mut mute, &message, r#"{"a": 5}"#);
    let done = reached(&client, &task, "TASK_STATE_COMPLETED");
    assert_eq!(steps(&hub, &task), "assigned mute, judged mute");
    assert_eq!((&told(&done)["inferred"], &why(&hub, &task)[1]["standing"]), (&json!(true), &json!("accepted")));
}

#[test]
fn two_results_that_differ_are_not_one_that_is_accepted() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let (task, client) = give(&hub, &json!({}));
    let message = ada.kind("message");
    for (name, with) in [("a", json!({"status": "error", "error": "first"})), ("b", json!({"status": "done"}))] {
        let mut whole = json!({"type": "TASK_RESULT", "protocol_version": "2.0"});
        whole.as_object_mut().expect("an object").extend(with.as_object().expect("an object").clone());
        let artifact = json!({"artifactId": name, "parts": [{"kind": "data", "data": whole}]});
        respond(&mut ada, &message, &json!({"artifact": artifact, "lastChunk": true}));
    }
    respond(&mut ada, &message, &json!({"status": {"state": "completed"}}));
    let said = told(&reached(&client, &task, "TASK_STATE_FAILED"));
    assert_eq!((&said["error"], &said["other_results"][0]["status"]), (&json!("first"), &json!("done")), "{said}");
    assert_eq!(why(&hub, &task)[1]["standing"], "reported");
}
