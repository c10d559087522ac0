//! A reply whose answer is lost or late: it is sent once, and its answer is not taken for what was there before.

use super::{before, reason, task};
use crate::cast::{id, reached, state};
use flotilla_testkit::client::message;
use flotilla_testkit::{Act, Asked, Binding, StandIn, http};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PACE: &str = "poll: {first: 10ms, longest: 20ms}, retries: {first: 10ms, longest: 20ms}";

/// How an agent shows its task while it works at a reply and has nothing to say yet.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shows {
    /// Without the reply, as servers on the official SDK of 1.0 do.
    NoReply,
    /// With the reply, the question moved into the history, and the state of before: those of 0.3.
    ReplyAndOldState,
    /// The same from one that tells no times.
    NoTimes,
}

fn said(id: &str, role: &str) -> Value {
    json!({"messageId": id, "role": role, "parts": [{"text": id}]})
}

/// The task with its question.
fn asking(shows: Shows) -> Value {
    let mut asking = task("t-1", "INPUT_REQUIRED");
    asking["history"] = json!([said("m-1", "ROLE_USER")]);
    if shows != Shows::NoTimes {
        asking["status"]["timestamp"] = json!("2026-01-31T12:00:00.123Z");
        asking["status"]["message"] = said("q-1", "ROLE_AGENT");
    }
    asking
}

/// The task once the reply was sent.
fn replied(shows: Shows, ended: bool) -> Value {
    let mut now = asking(shows);
    if shows != Shows::NoReply || ended {
        now["history"] = json!([said("m-1", "ROLE_USER"), said("q-1", "ROLE_AGENT"), said("m-2", "ROLE_USER")]);
        now["status"].as_object_mut().expect("a status").remove("message");
    }
    if ended {
        now["status"] = json!({"state": "TASK_STATE_COMPLETED", "timestamp": "2026-01-31T12:00:09Z"});
        now["artifacts"] = json!([{"artifactId": "out", "parts": [{"text": "the answer"}]}]);
    }
    now
}

fn reply(task: &Value) -> Value {
    let mut params = message("m-2", "m-2");
    params["message"]["taskId"] = task["id"].clone();
    params
}

/// Asks with the first message, does `lost` with the second, and is done when it was asked for the task a few times.
fn thinking(streaming: bool, shows: Shows, lost: Vec<Act>) -> StandIn {
    StandIn::start(streaming, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
        ("SendMessage", 0) => vec![Act::Answer(json!({"task": asking(shows)}))],
        ("SendStreamingMessage", 0) => vec![Act::Event(json!({"task": asking(shows)}))],
        ("SendMessage" | "SendStreamingMessage", 1) => lost.clone(),
        ("GetTask", nth) => vec![Act::Answer(replied(shows, nth >= 4))],
        ("SubscribeToTask", _) => vec![Act::Refuse(-32601, "no such method")],
        (other, nth) => panic!("nobody asks for {other} ({nth})"),
    })
}

fn check_answer(shows: Shows, task: &Value) {
    assert_eq!(state(task), "TASK_STATE_COMPLETED", "{shows:?}: {task}");
    assert_eq!(super::texts(&task["artifacts"][0]), ["the answer"], "{shows:?}");
}

#[test]
fn a_reply_whose_connection_broke_is_asked_for_until_the_task_moves() {
    for shows in [Shows::NoReply, Shows::ReplyAndOldState, Shows::NoTimes] {
        let agent = thinking(false, shows, vec![Act::HangUp]);
        let near = before(&agent, PACE);
        let client = near.owner(Binding::JsonRpc);
        let task = client.say("m-1", "m-1");
        assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED");
        let answered = client.call("SendMessage", &reply(&task)).expect("an answer");
        check_answer(shows, &answered["task"]);
        assert_eq!(agent.asked("SendMessage").len(), 2, "{shows:?}: each message once");
    }
}

#[test]
fn a_reply_of_a_hub_that_was_killed_is_asked_for_until_the_task_moves() {
    for shows in [Shows::NoReply, Shows::ReplyAndOldState, Shows::NoTimes] {
        let done = Arc::new(AtomicBool::new(false));
        let is_done = Arc::clone(&done);
        let agent = StandIn::start(false, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
            ("SendMessage", 0) => vec![Act::Answer(json!({"task": asking(shows)}))],
            ("SendMessage", _) => vec![Act::Hold],
            _ => vec![Act::Answer(replied(shows, is_done.load(Ordering::SeqCst)))],
        });
        let mut near = before(&agent, PACE);
        let client = near.owner(Binding::JsonRpc);
        let task = client.say("m-1", "m-1");
        let call = http::shout(near.address(), &client.request("SendMessage", &reply(&task)));
        agent.wait("SendMessage", 2);
        near.restart();
        drop(call);
        agent.wait("GetTask", agent.asked("GetTask").len() + 3);
        done.store(true, Ordering::SeqCst);
        check_answer(shows, &reached(&near.owner(Binding::JsonRpc), id(&task), "TASK_STATE_COMPLETED"));
        assert_eq!(agent.asked("SendMessage").len(), 2, "{shows:?}: each message once");
    }
}

/// Nothing is wrong: the agent thinks longer than `timeouts.idle` before it says anything.
#[test]
fn a_reply_that_takes_its_time_is_not_answered_with_the_question() {
    for shows in [Shows::NoReply, Shows::ReplyAndOldState, Shows::NoTimes] {
        // An empty event, as some keep a connection alive with.
        let agent = thinking(true, shows, vec![Act::Line(" ".into()), Act::Hold]);
        let near = before(&agent, &format!("{PACE}, timeouts: {{idle: 100ms, lost: 1ms}}"));
        let client = near.owner(Binding::JsonRpc);
        let task = client.start("m-1", "m-1");
        reached(&client, id(&task), "TASK_STATE_INPUT_REQUIRED");
        let mut params = reply(&task);
        params["configuration"] = json!({"returnImmediately": true});
        client.call("SendMessage", &params).expect("a receipt");
        check_answer(shows, &reached(&client, id(&task), "TASK_STATE_COMPLETED"));
        assert_eq!(agent.asked("SendStreamingMessage").len(), 2, "{shows:?}: each message once");
    }
}

#[test]
fn a_receipt_that_shows_the_question_again_is_no_answer() {
    let shows = Shows::ReplyAndOldState;
    let agent = thinking(false, shows, vec![Act::Answer(json!({"task": replied(shows, false)}))]);
    let near = before(&agent, PACE);
    let client = near.owner(Binding::JsonRpc);
    let task = client.say("m-1", "m-1");
    let mut params = reply(&task);
    params["configuration"] = json!({"returnImmediately": true});
    client.call("SendMessage", &params).expect("a receipt");
    check_answer(shows, &reached(&client, id(&task), "TASK_STATE_COMPLETED"));
}

#[test]
fn a_question_that_is_asked_again_is_an_answer() {
    let agent = StandIn::start(false, |asked: &Asked| {
        let mut again = asking(Shows::NoReply);
        again["history"] = json!([said("m-1", "ROLE_USER"), said("m-2", "ROLE_USER")]);
        again["status"] = json!({"state": "TASK_STATE_INPUT_REQUIRED", "timestamp": "2026-01-31T12:00:01Z"});
        match (asked.method.as_str(), asked.nth) {
            ("SendMessage", 0) => vec![Act::Answer(json!({"task": asking(Shows::NoReply)}))],
            ("SendMessage", _) => vec![Act::HangUp],
            _ => vec![Act::Answer(again)],
        }
    });
    let near = before(&agent, PACE);
    let client = near.owner(Binding::JsonRpc);
    let task = client.say("m-1", "m-1");
    let answered = client.call("SendMessage", &reply(&task)).expect("an answer");
    assert_eq!(state(&answered["task"]), "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(agent.asked("GetTask").len(), 1, "the time says that it is another");
}

#[test]
fn a_reply_that_nothing_shows_of_is_unknown_or_sent_again_where_that_is_wanted() {
    for (settings, end, sends) in [("", "FAILED", 2), (", on_lost: retry", "COMPLETED", 3)] {
        let agent = StandIn::start(false, |asked: &Asked| match (asked.method.as_str(), asked.nth) {
            ("SendMessage", 0) => vec![Act::Answer(json!({"task": asking(Shows::NoReply)}))],
            ("SendMessage", 1) => vec![Act::HangUp],
            ("SendMessage", _) => vec![Act::Answer(json!({"task": replied(Shows::NoReply, true)}))],
            _ => vec![Act::Answer(asking(Shows::NoReply))],
        });
        let near = before(&agent, &format!("{PACE}, timeouts: {{lost: 200ms}}{settings}"));
        let client = near.owner(Binding::JsonRpc);
        let task = client.say("m-1", "m-1");
        let answered = client.call("SendMessage", &reply(&task)).expect("an answer")["task"].clone();
        assert_eq!(state(&answered), format!("TASK_STATE_{end}"), "{answered}");
        if end == "FAILED" {
            assert!(reason(&answered).contains("outcome unknown"), "{}", reason(&answered));
            assert!(reason(&answered).contains("neither the message nor a change"), "{}", reason(&answered));
        }
        assert_eq!(agent.asked("SendMessage").len(), sends);
        assert!(agent.asked("GetTask").len() > 2, "it was asked for more than once");
    }
}

/// Some state a wait again, as when an artifact is given meanwhile: that is no sign of the reply.
#[test]
fn the_same_question_at_a_later_time_is_no_answer_to_a_lost_reply() {
    for has_question in [true, false] {
        let agent = StandIn::start(false, move |asked: &Asked| {
            let mut again = asking(Shows::NoReply);
            again["status"]["timestamp"] = json!("2026-01-31T12:00:09Z");
            again["artifacts"] = json!([{"artifactId": "meanwhile", "parts": [{"text": "given"}]}]);
            if !has_question {
                again["status"].as_object_mut().expect("a status").remove("message");
            }
            match (asked.method.as_str(), asked.nth) {
                ("SendMessage", 0) => vec![Act::Answer(json!({"task": asking(Shows::NoReply)}))],
                ("SendMessage", _) => vec![Act::HangUp],
                _ => vec![Act::Answer(again)],
            }
        });
        let near = before(&agent, &format!("{PACE}, timeouts: {{lost: 200ms}}"));
        let client = near.owner(Binding::JsonRpc);
        let task = client.say("m-1", "m-1");
        let answered = client.call("SendMessage", &reply(&task)).expect("an answer")["task"].clone();
        assert_eq!(state(&answered), "TASK_STATE_FAILED", "{answered}");
        assert!(reason(&answered).contains("outcome unknown"), "{}", reason(&answered));
    }
}

#[test]
fn another_question_without_the_reply_is_told_all_the_same() {
    let agent = StandIn::start(false, |asked: &Asked| {
        let mut other = asking(Shows::NoReply);
        other["status"]["message"] = said("q-2", "ROLE_AGENT");
        match (asked.method.as_str(), asked.nth) {
            ("SendMessage", 0) => vec![Act::Answer(json!({"task": asking(Shows::NoReply)}))],
            ("SendMessage", _) => vec![Act::HangUp],
            _ => vec![Act::Answer(other)],
        }
    });
    let near = before(&agent, PACE);
    let client = near.owner(Binding::JsonRpc);
    let task = client.say("m-1", "m-1");
    let answered = client.call("SendMessage", &reply(&task)).expect("an answer")["task"].clone();
    assert_eq!((state(&answered), reason(&answered)), ("TASK_STATE_INPUT_REQUIRED", "q-2"), "{answered}");
}

#[test]
fn a_reply_that_was_not_sent_leaves_the_task_waiting() {
    let agent = StandIn::start(false, |asked: &Asked| match (asked.method.as_str(), asked.nth) {
        ("SendMessage", 0 | 2) => vec![Act::Answer(json!({"task": asking(Shows::NoReply)}))],
        ("SendMessage", 1) => vec![Act::Later(429, "0")],
        ("SendMessage", _) => panic!("nobody is there"),
        _ => vec![Act::Answer(asking(Shows::NoReply))],
    });
    let mut near = before(&agent, "poll: {first: 10ms, longest: 20ms}, retries: {most: 0}");
    let client = near.owner(Binding::JsonRpc);
    let task = client.say("m-1", "m-1");
    let say = |client: &flotilla_testkit::Client, id: &str| {
        let mut params = message(id, id);
        params["message"]["taskId"] = task["id"].clone();
        let told = client.call("SendMessage", &params).expect("an answer")["task"].clone();
        assert_eq!(state(&told), "TASK_STATE_INPUT_REQUIRED", "{told}");
        reason(&told).to_owned()
    };
    assert!(say(&client, "m-2").contains("was not sent"));
    assert_eq!(say(&client, "m-3"), "q-1", "the next goes to the same task");
    assert_eq!(agent.asked("SendMessage")[2].params["message"]["taskId"], "t-1");
    agent.leave();
    near.restart();
    let told = say(&near.owner(Binding::JsonRpc), "m-4");
    assert!(told.contains("cannot be reached") && told.contains("was not sent"), "{told}");
}

/// What was said on the way and is said again with the status is the question: it stays with the status.
#[test]
fn a_question_told_before_stays_with_the_status_that_asks_it() {
    let status = |state: &str, message: &Value| {
        json!({"statusUpdate": {"taskId": "t-1", "contextId": "their-context",
            "status": {"state": format!("TASK_STATE_{state}"), "message": message}}})
    };
    for end in ["INPUT_REQUIRED", "AUTH_REQUIRED", "COMPLETED"] {
        let question = said("q-1", "ROLE_AGENT");
        let mut first = task("t-1", "WORKING");
        first["history"] = json!([said("m-1", "ROLE_USER"), question]);
        for acts in [
            vec![json!({"task": task("t-1", "WORKING")}), status("WORKING", &question), status(end, &question)],
            vec![json!({"task": first}), status(end, &question)],
        ] {
            let agent = StandIn::start(true, move |_| acts.iter().cloned().map(Act::Event).collect());
            let near = before(&agent, "");
            let client = near.owner(Binding::JsonRpc);
            let task = client.start("m-1", "m-1");
            let task = reached(&client, id(&task), &format!("TASK_STATE_{end}"));
            assert_eq!(task["status"]["message"]["messageId"], "q-1", "{task}");
            let kept = task["history"].as_array().expect("a history").iter();
            assert_eq!(kept.filter(|message| message["messageId"] == "q-1").count(), 0, "and there alone: {task}");
        }
    }
}
