//! What an agent does not offer or cannot do for the moment is no reason to give up what it works at.

use super::{before, reason, status, task};
use crate::cast::{id, reached, state};
use flotilla_testkit::{Act, Asked, Binding, StandIn};
use serde_json::json;

#[test]
fn a_method_the_agent_does_not_offer_is_no_reason_to_speak_otherwise() {
    let agent = StandIn::start(true, |asked: &Asked| match (asked.method.as_str(), asked.nth) {
        ("SendStreamingMessage", _) => vec![Act::Event(json!({"task": task("t-1", "WORKING")})), Act::HangUp],
        ("GetTask", _) => vec![Act::Answer(task("t-1", "WORKING"))],
        // Of all the names of 0.3 it knows none either.
        _ => vec![Act::Refuse(-32601, "no such method")],
    });
    let near = before(&agent, "poll: {first: 10ms, longest: 10ms}");
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    let before = agent.asked("GetTask").len();
    agent.wait("GetTask", before + 3);
    let refusal = client.call("CancelTask", &json!({"id": id(&task)})).expect_err("a refusal");
    assert_eq!(refusal.reason, "TASK_NOT_CANCELABLE");
    let before = agent.asked("GetTask").len();
    agent.wait("GetTask", before + 3);
    assert_eq!(state(&client.task(id(&task))), "TASK_STATE_WORKING", "it goes on");
    for old in ["tasks/resubscribe", "tasks/cancel", "tasks/get", "message/stream"] {
        assert_eq!(agent.asked(old).len(), 0, "{old}");
    }
}

#[test]
fn a_send_that_is_not_understood_is_said_in_the_other_version_and_the_next_at_once() {
    let agent = StandIn::start(false, |asked: &Asked| match asked.method.as_str() {
        "message/send" => {
            vec![Act::Answer(json!({"kind": "task", "id": "t-1", "contextId": "c", "status": {"state": "completed"}}))]
        }
        _ => vec![Act::Refuse(-32601, "no such method")],
    });
    let near = before(&agent, "card_refresh: 1h");
    let client = near.owner(Binding::JsonRpc);
    for number in 0..2 {
        assert_eq!(state(&client.say(&format!("m-{number}"), "go")), "TASK_STATE_COMPLETED");
    }
    assert_eq!((agent.asked("SendMessage").len(), agent.asked("message/send").len()), (1, 2));
}

/// All that may come of asking while the agent is well and something before it is not.
fn troubles() -> Vec<Act> {
    vec![
        Act::Body(502, "<html>Bad Gateway</html>".into()),
        Act::Body(504, String::new()),
        Act::Body(500, "{}".into()),
        Act::Body(404, "nothing here".into()),
        Act::Body(401, "{}".into()),
        Act::Body(200, "<html>we are upgrading</html>".into()),
        Act::Refuse(-32001, "no such task"),
        Act::Refuse(-32603, "a moment"),
        Act::HangUp,
    ]
}

#[test]
fn whatever_goes_wrong_while_a_task_is_asked_for_is_asked_again() {
    let count = troubles().len();
    let agent = StandIn::start(false, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
        ("SendMessage", _) => vec![Act::Answer(json!({"task": task("t-1", "WORKING")}))],
        ("GetTask", nth) if nth < count => vec![troubles()[nth].clone()],
        ("GetTask", _) => vec![Act::Answer(task("t-1", "COMPLETED"))],
        (other, _) => panic!("nobody asks for {other}"),
    });
    let near = before(&agent, "poll: {first: 10ms}, retries: {first: 5ms, longest: 10ms}");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    assert_eq!(agent.asked("GetTask").len(), count + 1);
}

#[test]
fn an_agent_that_cannot_be_asked_for_too_long_is_given_up_and_not_told_to_stop() {
    for (act, told) in [
        (Act::Body(500, "<html>".into()), "cannot be asked about it any more"),
        (Act::Refuse(-32001, "no such task"), "does not know the task any more"),
    ] {
        let agent = StandIn::start(false, move |asked: &Asked| match asked.method.as_str() {
            "SendMessage" => vec![Act::Answer(json!({"task": task("t-1", "WORKING")}))],
            _ => vec![act.clone()],
        });
        let near = before(&agent, "timeouts: {lost: 200ms}, retries: {first: 10ms, longest: 50ms}");
        let client = near.owner(Binding::JsonRpc);
        let given_up = client.say("m-1", "go");
        assert_eq!(state(&given_up), "TASK_STATE_FAILED");
        assert!(reason(&given_up).contains(told), "{}", reason(&given_up));
        // The second takes as long as the first, so a word about the first would have come by now.
        let last = client.start("m-2", "go");
        reached(&client, id(&last), "TASK_STATE_FAILED");
        assert_eq!(agent.asked("CancelTask").len(), 0);
    }
}

#[test]
fn an_error_within_a_stream_is_a_reason_to_ask() {
    let failed = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the stream broke"}}"#;
    let agent = StandIn::start(true, move |asked: &Asked| match asked.method.as_str() {
        "SendStreamingMessage" => {
            vec![Act::Event(json!({"task": task("t-1", "WORKING")})), Act::Line(failed.into())]
        }
        "GetTask" => vec![Act::Answer(task("t-1", "COMPLETED"))],
        _ => vec![Act::Refuse(-32004, "not here")],
    });
    let near = before(&agent, "retries: {first: 10ms}");
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    reached(&client, id(&task), "TASK_STATE_COMPLETED");
}

#[test]
fn a_task_of_1_0_whose_state_is_not_known_is_followed_too() {
    let agent = StandIn::start(true, |asked: &Asked| match (asked.method.as_str(), asked.nth) {
        ("SendMessage", _) => vec![Act::Answer(json!({"task": task("t-1", "UNSPECIFIED")}))],
        ("SendStreamingMessage", _) => {
            vec![Act::Event(json!({"task": task("t-1", "UNSPECIFIED")})), Act::Event(status("t-1", "UNSPECIFIED"))]
        }
        ("GetTask", 0) => vec![Act::Answer(task("t-1", "UNSPECIFIED"))],
        ("GetTask", _) => vec![Act::Answer(task("t-1", "COMPLETED"))],
        _ => vec![Act::Refuse(-32004, "not here")],
    });
    let near = before(&agent, "poll: {first: 10ms}");
    let client = near.owner(Binding::JsonRpc);
    let task = client.say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{}", reason(&task));
    let watched = client.start("m-2", "go");
    reached(&client, id(&watched), "TASK_STATE_COMPLETED");
}
