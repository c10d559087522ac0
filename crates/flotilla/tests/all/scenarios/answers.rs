//! What a send answers with: a direct Message or a task, at once or in the end, with as much history as wanted.

use super::on_all;
use crate::cast::{id, reached, state, text};
use flotilla_testkit::Talk;
use serde_json::{Value, json};

#[test]
fn a_direct_message_is_no_task() {
    on_all(|talk| {
        let params = talk.message("direct");
        let answer = talk.ok("SendMessage", params);
        assert!(answer.get("task").is_none());
        assert_eq!(text(&answer["message"]), "Hello yourself");
        assert_eq!(answer["message"]["role"], "ROLE_AGENT");
        assert!(answer["message"]["contextId"].is_string(), "a context that was made must be told");
        assert!(answer["message"].get("taskId").is_none(), "there is no task to name");
        assert_eq!(talk.ok("ListTasks", json!({}))["totalSize"], 0);
    });
}

#[test]
fn a_direct_message_streams_as_exactly_one_frame() {
    on_all(|talk| {
        let params = talk.message("direct");
        let events = talk.stream("SendStreamingMessage", params);
        assert_eq!(events.len(), 1);
        assert_eq!(text(&events[0].frame()["message"]), "Hello yourself");
    });
}

#[test]
fn a_direct_message_cannot_be_reached_as_a_task() {
    on_all(|talk| {
        let params = talk.message("direct");
        let answer = talk.ok("SendMessage", params);
        // The hub numbers an agent's messages after the exchange they belong to.
        let message_id = answer["message"]["messageId"].as_str().expect("an id");
        let exchange = message_id.rsplit_once('-').expect("exchange and number").0;
        for method in ["GetTask", "CancelTask"] {
            assert_eq!(talk.refused(method, json!({"id": exchange})).reason, "TASK_NOT_FOUND", "{method}");
        }
        assert_eq!(talk.refused_stream("SubscribeToTask", json!({"id": exchange})).reason, "TASK_NOT_FOUND");
        let params = talk.reply(&json!({"id": exchange}), "more");
        assert_eq!(talk.refused("SendMessage", params).reason, "TASK_NOT_FOUND");
    });
}

#[test]
fn a_direct_message_keeps_the_callers_context() {
    on_all(|talk| {
        let mut params = talk.message("direct");
        params["message"]["contextId"] = json!("my-context");
        assert_eq!(talk.ok("SendMessage", params)["message"]["contextId"], "my-context");
    });
}

#[test]
fn returning_immediately_makes_even_a_direct_answer_a_task() {
    on_all(|talk| {
        let task = talk.start("direct");
        let ended = reached(&talk.client, id(&task), "TASK_STATE_COMPLETED");
        assert_eq!(text(&ended["status"]["message"]), "Hello yourself");
        assert_eq!(talk.ok("ListTasks", json!({}))["totalSize"], 1);
    });
}

#[test]
fn returning_immediately_does_not_wait_for_the_agent() {
    on_all(|talk| {
        let task = talk.start("silence");
        assert_eq!(state(&task), "TASK_STATE_SUBMITTED");
        assert_eq!(text(&task["history"][0]), "silence");
    });
}

#[test]
fn a_blocking_send_waits_for_the_end() {
    on_all(|talk| {
        let task = talk.say("work 200ms");
        assert_eq!(state(&task), "TASK_STATE_COMPLETED");
        assert_eq!(text(&task["status"]["message"]), "Worked");
    });
}

#[test]
fn returning_immediately_says_nothing_about_a_stream() {
    on_all(|talk| {
        let mut params = talk.message("work 100ms");
        params["configuration"] = json!({"returnImmediately": true});
        let events = talk.stream("SendStreamingMessage", params);
        assert_eq!(state(&events.last().expect("frames").frame()["statusUpdate"]), "TASK_STATE_COMPLETED");
    });
}

fn texts(task: &Value) -> Vec<&str> {
    task["history"].as_array().map(|history| history.iter().map(text).collect()).unwrap_or_default()
}

fn three_turns(talk: &mut Talk) -> Value {
    let asked = talk.say("ask");
    let params = talk.reply(&asked, "ask again");
    talk.ok("SendMessage", params);
    asked
}

#[test]
fn a_tasks_history_is_as_long_as_asked_for() {
    on_all(|talk| {
        let task = three_turns(talk);
        let task_id = id(&task).to_owned();
        let mut read = |length: Value| talk.ok("GetTask", json!({"id": task_id, "historyLength": length}));
        assert_eq!(texts(&read(json!(2))), ["Which size?", "ask again"]);
        assert_eq!(texts(&read(json!(1))), ["ask again"]);
        assert_eq!(texts(&read(json!(100))), ["ask", "Which size?", "ask again"]);
        assert!(read(json!(0)).get("history").is_none(), "no history is no field");
        let all = talk.ok("GetTask", json!({"id": task_id}));
        assert_eq!(texts(&all), ["ask", "Which size?", "ask again"]);
    });
}

#[test]
fn a_sends_answer_has_as_much_history_as_asked_for() {
    on_all(|talk| {
        for (length, expected) in [(0, 0), (1, 1), (5, 2)] {
            let mut params = talk.message("complete");
            params["configuration"] = json!({"historyLength": length});
            let task = talk.ok("SendMessage", params)["task"].clone();
            assert_eq!(texts(&task).len(), expected, "historyLength {length}");
            assert_eq!(task.get("history").is_some(), expected > 0);
        }
    });
}

#[test]
fn a_streams_task_has_as_much_history_as_asked_for() {
    on_all(|talk| {
        for (length, expected) in [(Some(0), 0), (Some(1), 1), (None, 1)] {
            let mut params = talk.message("complete");
            params["configuration"] = json!({"historyLength": length});
            let task = talk.stream("SendStreamingMessage", params)[0].frame()["task"].clone();
            assert_eq!(texts(&task).len(), expected, "historyLength {length:?}: {task}");
        }
    });
}

#[test]
fn a_listed_tasks_history_is_as_long_as_asked_for() {
    on_all(|talk| {
        three_turns(talk);
        let list = talk.ok("ListTasks", json!({"historyLength": 1}));
        assert_eq!(texts(&list["tasks"][0]), ["ask again"]);
        let list = talk.ok("ListTasks", json!({"historyLength": 0}));
        assert!(list["tasks"][0].get("history").is_none());
    });
}

#[test]
fn a_negative_history_length_is_refused() {
    on_all(|talk| {
        let task = talk.say("complete");
        let refusal = talk.refused("GetTask", json!({"id": id(&task), "historyLength": -1}));
        assert_eq!(refusal.fields(), ["historyLength"]);
        assert_eq!(talk.refused("ListTasks", json!({"historyLength": -1})).fields(), ["historyLength"]);
        let mut params = talk.message("complete");
        params["configuration"] = json!({"historyLength": -1});
        assert_eq!(talk.refused("SendMessage", params.clone()).fields(), ["configuration.historyLength"]);
        let refusal = talk.refused_stream("SendStreamingMessage", params);
        assert_eq!(refusal.fields(), ["configuration.historyLength"]);
        assert_eq!(talk.ok("ListTasks", json!({}))["totalSize"], 1);
    });
}

#[test]
fn echo_returns_every_kind_of_part_unchanged() {
    on_all(|talk| {
        let parts = json!([
            {"text": "hello", "metadata": {"a": [1, 2]}},
            {"raw": "aGVsbG8=", "filename": "hello.txt", "mediaType": "text/plain"},
            {"url": "https://example.com/x.png", "mediaType": "image/png"},
            {"data": {"deep": [{"er": null}], "n": 9_007_199_254_740_991_u64}},
        ]);
        let message_id = talk.fresh();
        let message = json!({"messageId": message_id, "role": "ROLE_USER", "parts": parts});
        let answer = talk.ok("SendMessage", json!({"tenant": "echo", "message": message}));
        assert_eq!(state(&answer["task"]), "TASK_STATE_COMPLETED");
        assert_eq!(answer["task"]["artifacts"][0]["parts"], parts);
        assert_eq!(answer["task"]["artifacts"].as_array().expect("artifacts").len(), 1);
    });
}
