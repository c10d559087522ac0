//! Every state a task can be in, and the ways that lead there.

use super::on_all;
use crate::cast::{id, reached, state, text};
use flotilla_testkit::Talk;
use serde_json::{Value, json};

fn ends(talk: &mut Talk, said: &str, wanted: &str, words: &str) {
    let task = talk.say(said);
    assert_eq!(state(&task), wanted);
    assert_eq!(text(&task["status"]["message"]), words);
    assert_eq!(task["status"]["message"]["role"], "ROLE_AGENT");
    let read = talk.ok("GetTask", json!({"id": id(&task)}));
    assert_eq!(read, task, "what is read later is what was answered");
}

#[test]
fn a_task_completes_with_its_artifact() {
    on_all(|talk| {
        ends(talk, "complete this", "TASK_STATE_COMPLETED", "All done");
        let task = talk.say("complete that");
        let artifacts = task["artifacts"].as_array().expect("artifacts");
        assert_eq!(artifacts.len(), 1);
        assert_eq!(artifacts[0]["name"], "result");
        assert_eq!(text(&artifacts[0]), "You said complete that");
    });
}

#[test]
fn a_task_fails_with_the_agents_words() {
    on_all(|talk| ends(talk, "fail", "TASK_STATE_FAILED", "It broke"));
}

#[test]
fn a_task_is_rejected_with_the_agents_words() {
    on_all(|talk| ends(talk, "reject", "TASK_STATE_REJECTED", "Not my job"));
}

#[test]
fn an_agent_may_cancel_its_own_task() {
    on_all(|talk| ends(talk, "give up", "TASK_STATE_CANCELED", "I gave up"));
}

#[test]
fn a_blocking_send_returns_when_input_is_required() {
    on_all(|talk| ends(talk, "ask", "TASK_STATE_INPUT_REQUIRED", "Which size?"));
}

#[test]
fn a_blocking_send_returns_when_authorization_is_required() {
    on_all(|talk| ends(talk, "sign in", "TASK_STATE_AUTH_REQUIRED", "Please sign in"));
}

#[test]
fn a_task_is_submitted_until_its_agent_speaks() {
    on_all(|talk| {
        let task = talk.start("silence");
        assert_eq!(state(&task), "TASK_STATE_SUBMITTED");
        let read = talk.ok("GetTask", json!({"id": id(&task)}));
        assert_eq!(state(&read), "TASK_STATE_SUBMITTED");
    });
}

#[test]
fn a_task_is_working_while_its_agent_works() {
    on_all(|talk| {
        let task = talk.start("hold");
        reached(&talk.client, id(&task), "TASK_STATE_WORKING");
        let read = talk.ok("GetTask", json!({"id": id(&task)}));
        assert_eq!(text(&read["status"]["message"]), "Holding");
    });
}

#[test]
fn a_stream_shows_the_task_and_then_each_step_in_order() {
    on_all(|talk| {
        let params = talk.message("complete this");
        let events = talk.stream("SendStreamingMessage", params);
        let frames: Vec<Value> = events.iter().map(flotilla_testkit::Event::frame).collect();
        assert_eq!(frames.len(), 4);
        assert_eq!(state(&frames[0]["task"]), "TASK_STATE_SUBMITTED");
        assert_eq!(state(&frames[1]["statusUpdate"]), "TASK_STATE_WORKING");
        assert_eq!(text(&frames[2]["artifactUpdate"]["artifact"]), "You said complete this");
        assert_eq!(frames[2]["artifactUpdate"]["lastChunk"], true);
        assert_eq!(state(&frames[3]["statusUpdate"]), "TASK_STATE_COMPLETED");
        let task = &frames[0]["task"];
        for frame in frames[1..].iter().filter_map(|frame| frame.as_object()?.values().next()) {
            assert_eq!((&frame["taskId"], &frame["contextId"]), (&task["id"], &task["contextId"]));
        }
    });
}

#[test]
fn a_stream_closes_when_the_agent_waits_for_its_caller() {
    on_all(|talk| {
        for (said, wanted) in [("ask", "TASK_STATE_INPUT_REQUIRED"), ("sign in", "TASK_STATE_AUTH_REQUIRED")] {
            let params = talk.message(said);
            let events = talk.stream("SendStreamingMessage", params);
            assert_eq!(state(&events.last().expect("frames").frame()["statusUpdate"]), wanted);
        }
    });
}

#[test]
fn a_status_carries_a_utc_time_in_milliseconds() {
    on_all(|talk| {
        let task = talk.say("complete");
        let time = task["status"]["timestamp"].as_str().expect("a time");
        let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(shape, "0000-00-00T00:00:00.000Z");
    });
}
