//! What travels with every call to an agent elsewhere: the trace, the hops and where the call comes from.

use super::{before, done, status, task};
use crate::cast::{id, reached, state};
use flotilla_testkit::{Act, Asked, Binding, Client, StandIn};
use serde_json::{Value, json};

const ANCESTRY: &str = "urn:flotilla:ext:ancestry:1.0";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn traced(client: Client) -> Client {
    client.header("traceparent", PARENT).header("tracestate", "vendor=1")
}

/// Whether a call tells the same as the one that sent the message.
fn tells_as(sent: &Asked, asked: &Asked) {
    for name in ["traceparent", "tracestate", "x-fleet-hops", "a2a-extensions"] {
        assert!(sent.header(name).is_some(), "{name}: {:?}", sent.headers);
        assert_eq!(asked.header(name), sent.header(name), "{name} of {}: {:?}", asked.method, asked.headers);
    }
    assert!(sent.header("traceparent").is_some_and(|text| text.contains(&PARENT[3..35])), "{:?}", sent.headers);
}

fn ancestry(asked: &Asked) -> &Value {
    &asked.params["metadata"][ANCESTRY]
}

#[test]
fn what_travels_with_every_call() {
    let agent = StandIn::start(false, |_| done("t-1"));
    let near = before(&agent, "");
    near.owner(Binding::JsonRpc).say("m-1", "go");
    let asked = &agent.asked("SendMessage")[0];
    assert!(asked.header("traceparent").is_some_and(|text| text.starts_with("00-")), "{:?}", asked.headers);
    assert_eq!(asked.header("x-fleet-hops"), Some("1"));
    assert_eq!(asked.header("a2a-version"), Some("1.0"));
    let ancestry = &asked.params["metadata"]["urn:flotilla:ext:ancestry:1.0"];
    let parent = ancestry.as_str().expect("hub/agent/task");
    assert_eq!(parent.split('/').nth(1), Some("far"), "{}", asked.params);
    assert_eq!(asked.params.get("configuration"), None, "where nothing is asked for");
}

#[test]
fn a_cancel_tells_where_it_comes_from_and_so_does_the_question_after_it() {
    let agent = StandIn::start(true, |asked: &Asked| match asked.method.as_str() {
        "SendStreamingMessage" => vec![Act::Event(json!({"task": task("t-1", "WORKING")})), Act::Hold],
        "CancelTask" => vec![Act::Refuse(-32002, "it is over")],
        _ => vec![Act::Answer(task("t-1", "COMPLETED"))],
    });
    let near = before(&agent, "");
    let client = traced(near.owner(Binding::JsonRpc));
    let task = client.start("m-1", "go");
    reached(&client, id(&task), "TASK_STATE_WORKING");
    // The cancel has no trace of its own: it belongs to the task's.
    near.owner(Binding::JsonRpc).call("CancelTask", &json!({"id": id(&task)})).expect_err("it had ended");
    let sent = &agent.asked("SendStreamingMessage")[0];
    let canceled = &agent.asked("CancelTask")[0];
    tells_as(sent, canceled);
    assert_eq!((ancestry(canceled), ancestry(sent).is_string()), (ancestry(sent), true));
    tells_as(sent, &agent.asked("GetTask")[0]);
}

#[test]
fn the_hub_s_own_stop_tells_where_it_comes_from() {
    let agent = StandIn::start(true, |asked: &Asked| match asked.method.as_str() {
        "SendStreamingMessage" => vec![Act::Event(status("t-1", "WORKING")), Act::Hold],
        _ => vec![Act::Answer(task("t-1", "CANCELED"))],
    });
    let near = before(&agent, "timeouts: {whole: 300ms}");
    let client = traced(near.owner(Binding::JsonRpc));
    reached(&client, id(&client.start("m-1", "go")), "TASK_STATE_FAILED");
    let canceled = &agent.wait("CancelTask", 1)[0];
    let sent = &agent.asked("SendStreamingMessage")[0];
    tells_as(sent, canceled);
    assert_eq!((ancestry(canceled), ancestry(sent).is_string()), (ancestry(sent), true));
}

#[test]
fn a_look_at_a_task_that_waits_tells_where_it_comes_from() {
    let agent = StandIn::start(true, |asked: &Asked| match asked.method.as_str() {
        "SendMessage" => vec![Act::Answer(json!({"task": task("t-1", "AUTH_REQUIRED")}))],
        "GetTask" => vec![Act::Answer(task("t-1", "AUTH_REQUIRED"))],
        "CancelTask" => vec![Act::Answer(task("t-1", "CANCELED"))],
        _ => vec![Act::Event(json!({"task": task("t-1", "AUTH_REQUIRED")})), Act::Hold],
    });
    let near = before(&agent, "");
    let client = traced(near.owner(Binding::JsonRpc));
    let asked = client.say("m-1", "go");
    assert_eq!(state(&asked), "TASK_STATE_AUTH_REQUIRED");
    let followed = &agent.wait("SubscribeToTask", 1)[0];
    let sent = &agent.asked("SendMessage")[0];
    tells_as(sent, &agent.asked("GetTask")[0]);
    tells_as(sent, followed);
    client.call("CancelTask", &json!({"id": id(&asked)})).expect("a task");
    tells_as(sent, &agent.asked("CancelTask")[0]);
}
