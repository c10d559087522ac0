//! Which agent a request is for: by path, by tenant, or the default one.

use super::{on_all, on_paths};
use crate::cast::{hub, id, setup};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Request};
use serde_json::json;

#[test]
fn an_agent_is_named_by_the_tenant_in_every_operation() {
    on_all(|talk| {
        let mut params = talk.message("hello");
        params["tenant"] = json!("echo");
        let task = talk.ok("SendMessage", params)["task"].clone();
        assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "hello"}]), "echo answered, not the default agent");
        talk.ok("GetTask", json!({"tenant": "echo", "id": id(&task)}));
        assert_eq!(talk.refused("GetTask", json!({"id": id(&task)})).reason, "TASK_NOT_FOUND");
        assert_eq!(talk.ok("ListTasks", json!({"tenant": "echo"}))["totalSize"], 1);
        let refusal = talk.refused("CancelTask", json!({"tenant": "echo", "id": id(&task)}));
        assert_eq!(refusal.reason, "TASK_NOT_CANCELABLE");
        let refusal = talk.refused_stream("SubscribeToTask", json!({"id": id(&task)}));
        assert_eq!(refusal.reason, "TASK_NOT_FOUND", "the default agent has no such task");
    });
}

#[test]
fn an_agent_is_named_by_the_path() {
    on_all(|talk| {
        talk.client = talk.client.clone().agent("echo");
        let task = talk.say("hello");
        assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "hello"}]));
        let mut params = talk.message("hello");
        params["tenant"] = json!("echo");
        talk.ok("SendMessage", params);
        assert_eq!(talk.ok("ListTasks", json!({}))["totalSize"], 2);
    });
}

#[test]
fn a_path_and_a_tenant_that_disagree_are_refused() {
    on_paths(|talk| {
        let task = talk.client.clone().agent("echo").say("first", "hello");
        talk.client = talk.client.clone().agent("echo");
        let mut params = talk.message("hello");
        params["tenant"] = json!("mock");
        assert_eq!(talk.refused("SendMessage", params.clone()).fields(), ["tenant"]);
        assert_eq!(talk.refused_stream("SendStreamingMessage", params).fields(), ["tenant"]);
        for method in ["GetTask", "CancelTask"] {
            let refusal = talk.refused(method, json!({"tenant": "mock", "id": id(&task)}));
            assert_eq!(refusal.fields(), ["tenant"], "{method}");
        }
        assert_eq!(talk.refused("ListTasks", json!({"tenant": "mock"})).fields(), ["tenant"]);
        assert_eq!(talk.ok("ListTasks", json!({}))["totalSize"], 1);
    });
}

#[test]
fn an_unknown_agent_is_refused_with_those_there_are() {
    on_all(|talk| {
        let mut params = talk.message("hello");
        params["tenant"] = json!("nobody");
        let refusal = talk.refused("SendMessage", params);
        assert_eq!(refusal.reason, "AGENT_NOT_FOUND");
        assert!(refusal.message.contains("echo") && refusal.message.contains("mock"), "{}", refusal.message);
        talk.client = talk.client.clone().agent("nobody");
        assert_eq!(talk.refused("ListTasks", json!({})).reason, "AGENT_NOT_FOUND");
    });
}

#[test]
fn without_a_default_agent_the_refusal_lists_the_agents() {
    let hub = setup().config("agents: {one: {kind: echo}, two: {kind: echo}}").start();
    for binding in Binding::ALL {
        let refusal = hub.owner(binding).call("SendMessage", &message("m", "hello")).expect_err("no default agent");
        assert_eq!(refusal.reason, "AGENT_NOT_FOUND");
        assert!(refusal.message.contains("one, two"), "{}", refusal.message);
        assert_eq!(
            hub.owner(binding).agent("one").say(&format!("m-{binding:?}"), "hello")["status"]["state"],
            "TASK_STATE_COMPLETED"
        );
    }
}

#[test]
fn the_tenant_may_be_the_first_segment_of_an_http_path() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let post = |target: &str, params: &serde_json::Value| {
        owner.send(Request::post(target, params.to_string()).header("content-type", "application/json"))
    };
    let sent = post("/echo/message:send", &message("m", "hello"));
    assert_eq!(sent.status, 200, "{}", sent.text());
    let task = sent.json()["task"].clone();
    assert_eq!(owner.get(&format!("/echo/tasks/{}", id(&task))).json(), task);
    assert_eq!(owner.get("/echo/tasks").json()["totalSize"], 1);
    assert_eq!(owner.get("/tasks?tenant=echo").json()["totalSize"], 1);
    assert_eq!(post(&format!("/echo/tasks/{}:cancel", id(&task)), &json!({})).status, 400);
    assert_eq!(post(&format!("/echo/tasks/{}:cancel?tenant=mock", id(&task)), &json!({})).status, 400);
    let mut params = message("m2", "hello");
    params["tenant"] = json!("mock");
    assert_eq!(post("/echo/message:send", &params).status, 400);
    assert_eq!(post("/nobody/message:send", &message("m3", "hello")).status, 404);
}

#[test]
fn the_tenant_may_be_a_query_parameter_of_every_http_operation() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson).query("tenant", "echo");
    let task = owner.say("m", "hello");
    assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "hello"}]), "echo answered, not the default agent");
    assert_eq!(owner.task(id(&task)), task);
    assert_eq!(owner.call("ListTasks", &json!({})).expect("a list")["totalSize"], 1);
    let refusal = owner.call("CancelTask", &json!({"id": id(&task)})).expect_err("ended");
    assert_eq!(refusal.reason, "TASK_NOT_CANCELABLE");
    let refusal = owner.stream("SubscribeToTask", &json!({"id": id(&task)})).err().expect("ended");
    assert_eq!(refusal.reason, "UNSUPPORTED_OPERATION");
}

#[test]
fn every_json_rpc_address_leads_to_the_same_agent() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}).to_string();
    for target in ["/", "/a2a", "/a2a/", "/rpc", "/rpc/", "/agents/mock", "/agents/mock/", "/agents/mock/a2a"] {
        let response = owner.send(Request::post(target, body.clone()).header("content-type", "application/json"));
        assert_eq!(response.json()["result"]["totalSize"], 0, "{target}");
    }
}
