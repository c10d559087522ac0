//! What is not A2A ends the task with words that name what is wrong. Nothing hangs.

use super::{before, chunk, reason, status, task};
use crate::cast::{id, reached, state};
use flotilla_testkit::{Act, Asked, Binding, StandIn, stand_in};
use serde_json::{Value, json};

/// A card of HTTP+JSON, of either version.
fn rest(version: &'static str, streaming: bool) -> impl Fn(&str) -> Value {
    move |url| {
        let mut card = stand_in::card(url, streaming);
        if version == "0.3" {
            card.as_object_mut().expect("a card").remove("supportedInterfaces");
            (card["url"], card["preferredTransport"]) = (json!(url), json!("HTTP+JSON"));
            card["protocolVersion"] = json!("0.3.0");
        } else {
            card["supportedInterfaces"][0]["protocolBinding"] = json!("HTTP+JSON");
        }
        card
    }
}

fn with_artifact(artifact: &Value) -> Act {
    let status = json!({"state": "TASK_STATE_COMPLETED"});
    Act::Answer(json!({"task": {"id": "t", "contextId": "c", "status": status, "artifacts": [artifact]}}))
}

/// With a part of something that was said on the way.
fn with_said(part: &Value) -> Act {
    let mut said = task("t", "COMPLETED");
    said["history"] = json!([{"messageId": "h", "role": "ROLE_AGENT", "parts": [part]}]);
    Act::Answer(json!({"task": said}))
}

/// Answers of a send, and what the caller is told of each.
fn answers() -> Vec<(Act, &'static str)> {
    let body = |text: &str| Act::Body(200, text.to_owned());
    vec![
        (body("<html>not JSON</html>"), "begins with '<html>not JSON</html>'"),
        (body(""), "it is empty"),
        (body("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"no\"}"), "expected an object with 'code' and 'message'"),
        (body("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"task\""), "EOF"),
        (body("\u{1}\u{2}"), "expected value"),
        (
            body(r#"{"jsonrpc":"2.0","id":7,"result":{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"}}}}"#),
            "id: it is 7, and that of the request is 1",
        ),
        (
            Act::Answer(json!({"task": task("t", "COMPLETED"),
                "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}})),
            "it holds task and message",
        ),
        (
            Act::Answer(json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}})),
            "message.role is ROLE_USER",
        ),
        (
            body(r#"{"jsonrpc":"2.0","id":1,"result":{"task":{}},"error":{"code":-32000,"message":"x"}}"#),
            "InvalidAgentResponseError): the agent's answer is not A2A: it holds result and error",
        ),
        (body(r#"[{"jsonrpc":"2.0","id":1,"result":{"task":{}}}]"#), "it is a JSON array"),
        (Act::Answer(json!([{"task": task("t", "COMPLETED")}])), "it is a JSON array"),
        (
            Act::Answer(
                json!({"task": {"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}, "history": [{"foo": 1}]}}),
            ),
            "task.history[0] has neither role nor parts",
        ),
        (with_said(&json!({})), "task.history[0].parts[0] must hold one of"),
        (with_said(&json!({"text": "x", "data": 1})), "task.history[0].parts[0] must hold only one of"),
        (Act::Answer(json!(null)), "null"),
        (Act::Answer(json!({"tusk": {}})), "neither task"),
        (Act::Answer(json!(7)), "expected an object with 'task'"),
        (Act::Answer(json!({"task": {"id": 7, "status": {"state": "TASK_STATE_WORKING"}}})), "task.id: "),
        (Act::Answer(json!({"task": {"id": "t", "contextId": "c"}})), "task.status.state is missing"),
        (Act::Answer(json!({"task": {"status": {"state": "TASK_STATE_COMPLETED"}}})), "task.id is missing"),
        (Act::Answer(json!({"task": {"id": "t", "status": {"state": "TASK_STATE_DREAMING"}}})), "task.status.state: "),
        (with_artifact(&json!({"artifactId": "a", "parts": [{"raw": "!!!"}]})), "task.artifacts[0].parts[0].raw"),
        (
            with_artifact(&json!({"artifactId": "a", "parts": [{"text": "x"}, {}]})),
            "task.artifacts[0].parts[1] must hold one of",
        ),
        (with_artifact(&json!({"artifactId": "a", "parts": []})), "task.artifacts[0].parts is empty"),
        (
            with_artifact(
                &json!({"artifactId": "a", "parts": [{"data": (0..100).fold(json!(1), |inner, _| json!([inner]))}]}),
            ),
            "nested deeper than 64 levels",
        ),
        (
            Act::Answer(json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": []}})),
            "message.parts is empty",
        ),
    ]
}

#[test]
fn a_send_answered_with_garbage_fails_and_says_why() {
    for (index, (act, told)) in answers().into_iter().enumerate() {
        let agent = StandIn::start(false, move |_| vec![act.clone()]);
        let near = before(&agent, "");
        let task = near.owner(Binding::JsonRpc).say("m-1", "go");
        assert_eq!(state(&task), "TASK_STATE_FAILED", "case {index}: {task}");
        assert!(reason(&task).contains(told), "case {index}: {}", reason(&task));
    }
}

#[test]
fn a_stream_of_garbage_fails_and_says_why() {
    let first = || Act::Event(json!({"task": task("t-1", "WORKING")}));
    let nameless = json!({"artifactUpdate": {"taskId": "t-1", "artifact": {"parts": [{"text": "x"}]}}});
    let mut moved = status("t-1", "WORKING");
    moved["statusUpdate"]["contextId"] = json!("another");
    let mut ended = status("t-1", "COMPLETED");
    ended["statusUpdate"]["contextId"] = json!("another");
    let foreign = json!({"jsonrpc": "2.0", "id": "theirs", "result": status("t-1", "COMPLETED")}).to_string();
    let cases = [
        (vec![Act::Line("not JSON".into())], "expected"),
        (vec![first(), Act::Event(status("t-2", "COMPLETED"))], "statusUpdate.taskId is 't-2'"),
        (vec![first(), Act::Event(chunk("t-2", "x", false))], "artifactUpdate.taskId is 't-2'"),
        (vec![first(), Act::Event(json!({"task": task("t-2", "COMPLETED")}))], "task.id is 't-2'"),
        (vec![first(), Act::Event(status("t-1", "DREAMING"))], "statusUpdate.status.state: "),
        (vec![first(), Act::Event(moved)], "statusUpdate.contextId is 'another'"),
        (vec![first(), Act::Event(ended)], "statusUpdate.contextId is 'another'"),
        (vec![first(), Act::Line(foreign)], "id: it is \"theirs\""),
        (vec![first(), Act::Event(nameless)], "artifactUpdate.artifact.artifactId is missing"),
        (vec![first(), Act::Garbled(b"{\"a\":\"\xff\xfe\"}".to_vec())], "an event of the stream is not UTF-8 text"),
        (vec![first(), Act::Flood], "larger than"),
    ];
    for (index, (acts, told)) in cases.into_iter().enumerate() {
        let agent = StandIn::start(true, move |asked: &Asked| match asked.method.as_str() {
            "SendStreamingMessage" => acts.clone(),
            _ => vec![Act::Answer(task("t-1", "CANCELED"))],
        });
        let near = before(&agent, "");
        let client = near.owner(Binding::JsonRpc);
        let task = client.start("m-1", "go");
        let task = reached(&client, id(&task), "TASK_STATE_FAILED");
        assert!(reason(&task).contains(told), "case {index}: {}", reason(&task));
        assert!(reason(&task).contains("InvalidAgentResponse"), "case {index}: {}", reason(&task));
    }
}

#[test]
fn refusals_are_told_as_what_they_are() {
    for (act, end, told) in [
        (Act::Refuse(-32005, "no pictures"), "REJECTED", "no pictures"),
        (Act::Refuse(-32602, "parts: too many"), "REJECTED", "parts: too many"),
        (Act::Refuse(-32603, "it broke"), "FAILED", "it broke"),
        (Act::Body(401, "{}".into()), "FAILED", "does not let this hub in"),
        (Act::Body(404, "nothing".into()), "FAILED", "404"),
        (Act::Body(400, "too many words".into()), "REJECTED", "HTTP 400: too many words"),
        (Act::Body(418, "a teapot\n".into()), "FAILED", "HTTP 418: a teapot"),
        (Act::Body(413, "<html>large</html>".into()), "REJECTED", "HTTP 413"),
        (
            Act::Body(413, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"too large"}}"#.into()),
            "REJECTED",
            "too large",
        ),
    ] {
        let agent = StandIn::start(false, move |_| vec![act.clone()]);
        let near = before(&agent, "");
        let task = near.owner(Binding::JsonRpc).say("m-1", "go");
        assert_eq!(state(&task), format!("TASK_STATE_{end}"), "{}", reason(&task));
        assert!(reason(&task).contains(told), "{}", reason(&task));
    }
}

#[test]
fn garbage_of_0_3_is_named_by_its_place() {
    let minimal = |url: &str| json!({"name": "old", "description": "Old.", "url": url, "version": "1"});
    let said = json!({"kind": "message", "messageId": "m", "role": "agent", "parts": [5]});
    let agent = StandIn::with_card(minimal, move |_| vec![Act::Answer(said.clone())]);
    let near = before(&agent, "");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    let told = reason(&task);
    assert!(told.contains("message.parts[0]: ") && told.contains("expected a JSON object"), "{told}");
}

#[test]
fn an_id_that_no_path_can_hold_is_the_agent_s_fault() {
    let answer = json!({"task": task("..", "WORKING")}).to_string();
    let agent = StandIn::with_card(rest("1.0", false), move |_| vec![Act::Body(200, answer.clone())]);
    let near = before(&agent, "");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_FAILED");
    let told = reason(&task);
    assert!(told.contains("InvalidAgentResponse") && told.contains("task.id"), "{told}");
}

#[test]
fn garbage_in_a_stream_is_told_where_the_task_cannot_be_asked_for() {
    let agent = StandIn::start(true, |asked: &Asked| match asked.method.as_str() {
        "SendStreamingMessage" => {
            vec![Act::Event(json!({"task": task("t-1", "WORKING")})), Act::Line("not JSON".into())]
        }
        "SubscribeToTask" => vec![Act::Refuse(-32004, "not here")],
        _ => vec![Act::Refuse(-32001, "no such task")],
    });
    let near = before(&agent, "timeouts: {lost: 100ms}, retries: {first: 10ms}");
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    let task = reached(&client, id(&task), "TASK_STATE_FAILED");
    for told in ["does not know the task any more", "InvalidAgentResponse", "begins with 'not JSON'"] {
        assert!(reason(&task).contains(told), "{}", reason(&task));
    }
}

#[test]
fn what_is_no_json_over_http_json_is_told_with_how_it_begins() {
    let cut = r#"{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"#;
    for version in ["1.0", "0.3"] {
        for (status, body, told) in [
            (200, "<html>x</html>", "it begins with '<html>x</html>'"),
            (200, cut, "is not JSON (EOF"),
            (200, "\u{feff}{}", "it begins with '\\u{feff}{}'"),
            (200, r#"{"task":NaN}"#, r#"it begins with '{\"task\":NaN}'"#),
            (200, "", "it is empty"),
            (204, "", "it is empty"),
        ] {
            let agent = StandIn::with_card(rest(version, false), move |_| vec![Act::Body(status, body.into())]);
            let near = before(&agent, "");
            let task = near.owner(Binding::JsonRpc).say("m-1", "go");
            assert_eq!(state(&task), "TASK_STATE_FAILED", "{version} {body}");
            assert!(reason(&task).contains(told), "{version} {body}: {}", reason(&task));
            assert!(reason(&task).contains("InvalidAgentResponseError"), "{version} {body}: {}", reason(&task));
        }
    }
}

/// As FastAPI says it.
#[test]
fn a_message_that_is_not_understood_is_rejected_with_the_agent_s_words() {
    let detail = r#"{"detail":[{"loc":["body","message"],"msg":"field required","type":"missing"}]}"#;
    let refuses = |_: &Asked| vec![Act::Body(422, detail.into())];
    let agents = [
        StandIn::with_card(rest("1.0", false), refuses),
        StandIn::with_card(rest("0.3", false), refuses),
        StandIn::start(false, refuses),
    ];
    for agent in agents {
        let near = before(&agent, "");
        let task = near.owner(Binding::JsonRpc).say("m-1", "go");
        assert_eq!(state(&task), "TASK_STATE_REJECTED", "{}", reason(&task));
        let told = "refused the message (InvalidParamsError): HTTP 422: body.message: field required";
        assert!(reason(&task).contains(told), "{}", reason(&task));
    }
}

/// As the hub itself says it in 0.3.
const STREAM_ERROR: &str = r#"{"code":-32603,"message":"mid fail"}"#;

#[test]
fn an_error_that_a_stream_begins_with_is_the_agent_s_refusal() {
    for version in ["1.0", "0.3"] {
        let agent = StandIn::with_card(rest(version, true), |_| vec![Act::Line(STREAM_ERROR.into())]);
        let near = before(&agent, "");
        let client = near.owner(Binding::JsonRpc);
        let task = reached(&client, id(&client.start("m-1", "go")), "TASK_STATE_FAILED");
        assert!(reason(&task).contains("refused the message (InternalError): mid fail"), "{}", reason(&task));
    }
}

#[test]
fn an_error_in_mid_stream_is_told_if_the_task_does_not_go_on() {
    let open = json!({"task": {"id": "t-1", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}});
    let bare = r#"{"error":"mid fail"}"#;
    for (version, ends, error) in [
        ("1.0", true, STREAM_ERROR),
        ("1.0", false, STREAM_ERROR),
        ("1.0", false, bare),
        ("0.3", true, STREAM_ERROR),
        ("0.3", false, STREAM_ERROR),
    ] {
        let first = open.to_string();
        let agent = StandIn::with_card(rest(version, true), move |asked: &Asked| {
            let state = if ends { "TASK_STATE_COMPLETED" } else { "TASK_STATE_WORKING" };
            let shown = json!({"id": "t-1", "contextId": "c", "status": {"state": state}}).to_string();
            match asked.path.trim_start_matches("/v1") {
                "/message:stream" => {
                    let failed = format!("event: error\ndata: {error}\n\n");
                    vec![Act::Line(first.clone()), Act::Raw(failed)]
                }
                "/tasks/t-1" | "/tasks/t-1:cancel" => vec![Act::Body(200, shown)],
                _ => vec![Act::Body(404, "{}".into())],
            }
        });
        let near = before(&agent, "timeouts: {lost: 200ms}, poll: {first: 10ms}, retries: {first: 10ms}");
        let client = near.owner(Binding::JsonRpc);
        let began = client.start("m-1", "go");
        let task = reached(&client, id(&began), if ends { "TASK_STATE_COMPLETED" } else { "TASK_STATE_FAILED" });
        let told = "since its stream ended with an error (InternalError): mid fail";
        assert_eq!(!ends, task.to_string().contains(told), "{version}: {task}");
    }
}
