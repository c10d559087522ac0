//! Agents that do not do what their card says, and gateways before them that answer in their place.

use super::{before, done, reason, task};
use crate::cast::{id, reached, state};
use flotilla_testkit::{Act, Asked, Binding, StandIn};
use serde_json::json;

#[test]
fn an_agent_that_does_not_stream_after_all_is_called_plainly_and_remembered() {
    let unsupported = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"no streams"}}"#;
    let refusals = [
        Act::Refuse(-32601, "no such method"),
        Act::Refuse(-32004, "no streams"),
        Act::Body(404, "nothing".into()),
        Act::Body(405, "nothing".into()),
        Act::Body(501, "{}".into()),
        Act::Line(unsupported.into()),
    ];
    for refusal in refusals {
        let told = format!("{refusal:?}");
        let agent = StandIn::start(true, move |asked: &Asked| match asked.method.as_str() {
            "SendStreamingMessage" | "message/stream" => vec![refusal.clone()],
            "SendMessage" => vec![Act::Answer(json!({"task": task("t-1", "WORKING")}))],
            "GetTask" => vec![Act::Answer(task("t-1", "COMPLETED"))],
            _ => vec![Act::Refuse(-32601, "no such method")],
        });
        let near = before(&agent, "poll: {first: 10ms}, card_refresh: 50ms");
        let client = near.owner(Binding::JsonRpc);
        for number in 0..2 {
            let task = client.start(&format!("m-{number}"), "go");
            reached(&client, id(&task), "TASK_STATE_COMPLETED");
        }
        assert_eq!(agent.asked("SendStreamingMessage").len(), 1, "{told}: it is not asked twice");
        let sends = agent.asked("SendMessage");
        assert_eq!(sends.len(), 2, "{told}");
        assert_eq!(sends[0].params["configuration"]["returnImmediately"], true, "{told}: somebody looks on");
    }
}

#[test]
fn what_a_gateway_says_of_a_send_is_not_the_agent_s_word() {
    for status in [502, 503, 504] {
        let agent = StandIn::start(false, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
            ("SendMessage", _) => vec![Act::Body(status, "<html>upstream</html>".into())],
            ("ListTasks", 0) => vec![Act::Body(500, "<html>oops</html>".into())],
            ("ListTasks", 1) => vec![Act::Body(status, "<html>upstream</html>".into())],
            ("ListTasks", 2) => vec![Act::Refuse(-32603, "a moment")],
            ("ListTasks", _) => {
                let mut task = task("t-1", "COMPLETED");
                task["history"] = json!([{"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "go"}]}]);
                vec![Act::Answer(json!({"tasks": [task], "nextPageToken": "", "pageSize": 50, "totalSize": 1}))]
            }
            (other, _) => panic!("nobody asks for {other}"),
        });
        let near = before(&agent, "retries: {first: 5ms, longest: 10ms}");
        let task = near.owner(Binding::JsonRpc).say("m-1", "go");
        assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{status}: {}", reason(&task));
        assert_eq!(agent.asked("SendMessage").len(), 1, "it is looked for, not sent again");
    }
}

#[test]
fn a_search_that_only_stumbles_ends_as_unknown() {
    let agent = StandIn::start(false, |asked: &Asked| match asked.method.as_str() {
        "SendMessage" => vec![Act::HangUp],
        _ => vec![Act::Body(500, "{}".into())],
    });
    let near = before(&agent, "retries: {most: 2, first: 5ms}");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    assert!(reason(&task).contains("outcome unknown"), "{}", reason(&task));
    assert_eq!(agent.asked("ListTasks").len(), 3);
}

#[test]
fn a_server_that_says_when_to_come_back_has_taken_nothing_up() {
    let agent = StandIn::start(false, |asked: &Asked| match asked.nth {
        0 => vec![Act::Later(503, "0")],
        1 => vec![Act::Later(429, "0")],
        _ => done("t-1"),
    });
    let near = before(&agent, "retries: {first: 5ms}");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{}", reason(&task));
    assert_eq!((agent.asked("SendMessage").len(), agent.asked("ListTasks").len()), (3, 0));
}
