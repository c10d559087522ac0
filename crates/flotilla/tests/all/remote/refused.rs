//! What an agent does not offer or cannot do for the moment is no reason to give up what it works at.

use super::{before, task};
use crate::cast::{id, state};
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
