//! The forms 0.3 is spoken in: each request is answered in the form it came in.

use super::old_message;
use crate::cast::hub;
use flotilla_testkit::{Binding, Client, Request, Response};
use serde_json::{Value, json};

fn proto_message(id: &str, text: &str) -> Value {
    let message = json!({"messageId": id, "role": "ROLE_USER", "content": [{"text": text}]});
    json!({"message": message, "configuration": {"blocking": true}})
}

fn post(client: &Client, path: &str, body: &Value) -> Response {
    client.send(Request::post(path, body.to_string()).header("content-type", "application/json"))
}

#[test]
fn a_request_is_answered_in_its_form_and_those_without_one_in_the_latest() {
    let hub = hub();
    let client = hub.owner(Binding::HttpJson).without("a2a-version");
    let first = post(&client, "/v1/message:send", &proto_message("m-1", "complete"));
    assert_eq!(first.header("content-type"), Some("application/json"));
    let task = first.json()["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(task["status"]["message"]["content"], json!([{"text": "All done"}]));
    let path = format!("/v1/tasks/{}", task["id"].as_str().expect("an id"));
    assert_eq!(client.get(&path).json()["status"]["state"], "TASK_STATE_COMPLETED");

    let second = post(&client, "/v1/message:send", &old_message("m-2", "complete")).json();
    assert_eq!((second["kind"].as_str(), second["status"]["state"].as_str()), (Some("task"), Some("completed")));
    assert_eq!(client.get(&path).json()["status"]["state"], "completed", "as this caller spoke last");
    assert_eq!(client.get("/v1/tasks").json()["tasks"][0]["kind"], "task");
    let other = hub.caller(Binding::HttpJson, "other").without("a2a-version");
    let theirs = post(&other, "/v1/message:send", &proto_message("m-3", "complete")).json()["task"].clone();
    let theirs = format!("/v1/tasks/{}", theirs["id"].as_str().expect("an id"));
    assert_eq!(other.get(&theirs).json()["status"]["state"], "TASK_STATE_COMPLETED", "others are not asked");
}

#[test]
fn programs_that_share_a_key_are_told_apart_and_may_ask_for_a_form() {
    let hub = hub();
    let named = |name: &str| hub.owner(Binding::HttpJson).without("a2a-version").header("user-agent", name);
    let (one, other) = (named("one/1.0"), named("other/1.0"));
    let task = post(&one, "/v1/message:send", &proto_message("m-1", "complete")).json()["task"].clone();
    let path = format!("/v1/tasks/{}", task["id"].as_str().expect("an id"));
    assert_eq!(post(&other, "/v1/message:send", &old_message("m-2", "complete")).json()["kind"], "task");
    assert_eq!(one.get(&path).json()["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(other.get(&path).json()["status"]["state"], "completed");
    assert_eq!(one.get(&format!("{path}?form=kind")).json()["status"]["state"], "completed");
    assert_eq!(other.get(&format!("{path}?form=proto")).json()["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(other.get(&path).json()["status"]["state"], "completed", "which is not remembered");
    let refused = one.get(&format!("{path}?form=xml"));
    assert_eq!((refused.status, refused.json()["code"].as_i64()), (400, Some(-32602)), "{}", refused.text());
    let mixed =
        post(&one, "/v1/message:send", &json!({"message": {"messageId": "m-3", "role": "user", "content": []}}));
    assert_eq!(mixed.status, 400);
    assert!(mixed.text().contains("ROLE_USER"), "{}", mixed.text());
}

#[test]
fn a_query_may_ask_for_no_history() {
    let hub = hub();
    let client = hub.owner(Binding::HttpJson).without("a2a-version");
    let sent = post(&client, "/v1/message:send", &proto_message("m-1", "complete")).json()["task"].clone();
    let path = format!("/v1/tasks/{}", sent["id"].as_str().expect("an id"));
    for form in ["kind", "proto"] {
        let count = |length: &str| {
            let task = client.get(&format!("{path}?form={form}{length}")).json();
            task["history"].as_array().map_or(0, Vec::len)
        };
        assert_eq!((count("&historyLength=0"), count("&historyLength=1"), count("")), (0, 1, 2), "{form}");
    }
}

#[test]
fn the_id_of_a_config_may_stand_in_the_query() {
    let hub = hub();
    let client = hub.owner(Binding::HttpJson).without("a2a-version");
    let task = post(&client, "/v1/message:send", &proto_message("m-1", "ask")).json()["task"]["id"].clone();
    let configs = format!("/v1/tasks/{}/pushNotificationConfigs", task.as_str().expect("an id"));
    let body = json!({"pushNotificationConfig": {"url": "https://example.com/hook"}});
    for (name, id) in [("configId", "c-1"), ("config_id", "c-2")] {
        let made = post(&client, &format!("{configs}?{name}={id}"), &body).json();
        assert_eq!(made["name"], format!("{}/{id}", &configs[4..]), "{made}");
    }
    let other = json!({"pushNotificationConfig": {"id": "d", "url": "https://example.com/hook"}});
    let refused = post(&client, &format!("{configs}?configId=c-1"), &other);
    assert_eq!((refused.status, refused.json()["code"].as_i64()), (400, Some(-32602)), "{}", refused.text());
}

#[test]
fn streams_come_in_the_form_of_their_request() {
    let hub = hub();
    let client = hub.owner(Binding::HttpJson).without("a2a-version");
    let frames = |response: Response| -> Vec<Value> {
        assert_eq!(response.header("content-type"), Some("text/event-stream"), "{}", response.text());
        let data = response.text().lines().filter_map(|line| line.strip_prefix("data: ").map(str::to_owned));
        data.map(|line| serde_json::from_str(&line).expect("JSON")).collect()
    };
    let kind = frames(post(&client, "/agents/mock/v1/message:stream", &old_message("m-1", "complete")));
    let kinds: Vec<&str> = kind.iter().filter_map(|frame| frame["kind"].as_str()).collect();
    assert_eq!(kinds, ["task", "status-update", "artifact-update", "status-update"]);
    assert_eq!(kind[3]["final"], true);
    let proto = frames(post(&client, "/v1/agents/mock/message:stream", &proto_message("m-2", "complete")));
    let names: Vec<String> =
        proto.iter().map(|frame| frame.as_object().expect("an object").keys().next().expect("one").clone()).collect();
    assert_eq!(names, ["task", "statusUpdate", "artifactUpdate", "statusUpdate"]);
    assert_eq!(proto[3]["statusUpdate"]["final"], true);
}

#[test]
fn every_operation_is_below_v1() {
    let hub = hub();
    let client = hub.owner(Binding::HttpJson).without("a2a-version");
    for (message, is_proto) in [(old_message("m-1", "ask"), false), (proto_message("m-2", "ask"), true)] {
        let sent = post(&client, "/v1/message:send", &message).json();
        let id = if is_proto { sent["task"]["id"].clone() } else { sent["id"].clone() };
        let id = id.as_str().expect("an id");
        let config = json!({"id": "c", "url": "https://example.com/hook"});
        let (task, named) = (format!("tasks/{id}"), format!("tasks/{id}/pushNotificationConfigs/c"));
        let set = if is_proto {
            json!({"parent": task, "configId": "c", "config": {"name": named, "pushNotificationConfig": config}})
        } else {
            json!({"taskId": id, "pushNotificationConfig": config})
        };
        let configs = format!("/v1/tasks/{id}/pushNotificationConfigs");
        let made = post(&client, &configs, &set).json();
        assert_eq!(made["pushNotificationConfig"]["url"], "https://example.com/hook", "{made}");
        assert_eq!(client.get(&format!("{configs}/c")).json(), made);
        let listed = client.get(&configs).json();
        assert_eq!(if is_proto { &listed["configs"][0] } else { &listed[0] }, &made, "{listed}");
        assert_eq!(client.send(Request::new("DELETE", &format!("{configs}/c"))).status, 200);
        let gone = client.get(&format!("{configs}/c"));
        assert_eq!((gone.status, gone.json()["code"].as_i64()), (404, Some(-32001)), "{}", gone.text());
        let canceled = client
            .send(Request::post(&format!("/v1/tasks/{id}:cancel"), "").header("content-type", "application/json"));
        // The proto file of 0.3 has two L.
        let expected = if is_proto { "TASK_STATE_CANCELLED" } else { "canceled" };
        assert_eq!(canceled.json()["status"]["state"], expected);
        let listed = client.get(&format!("/v1/tasks?status={expected}")).json();
        assert_eq!(listed["tasks"][0]["id"], id, "a state has the names of both forms: {listed}");
        let again = client.send(Request::post(&format!("/v1/tasks/{id}:cancel"), ""));
        assert_eq!((again.status, again.json()["code"].as_i64()), (409, Some(-32002)), "{}", again.text());
        let followed = client.get(&format!("/v1/tasks/{id}:subscribe"));
        assert_eq!(followed.header("content-type"), Some("text/event-stream"));
        assert!(followed.text().contains(expected), "{}", followed.text());
    }
    assert_eq!(client.send(Request::new("DELETE", "/v1/tasks/x")).status, 405);
    assert_eq!(client.get("/v1/tasks/nowhere").json()["data"]["reason"], "TASK_NOT_FOUND");
}

#[test]
fn what_comes_without_kinds_is_answered_without_kinds() {
    let hub = hub();
    let client = hub.owner(Binding::JsonRpc).agent("echo").without("a2a-version");
    let parts = json!([{"text": "hi"}, {"raw": "aGk=", "filename": "a.txt", "mediaType": "text/plain"}, {"data": [1]}]);
    let send = |id: &str| json!({"message": {"messageId": id, "role": "user", "parts": parts}});
    let call = |id: Value, method: &str, params: &Value| {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        post(&client, "/agents/echo", &body)
    };
    let task = call(json!(1), "message/send", &send("m-1")).json()["result"]["task"].clone();
    assert_eq!((&task["status"]["state"], &task["artifacts"][0]["parts"]), (&json!("completed"), &parts), "{task}");
    assert_eq!((&task["history"][0]["role"], task.get("kind")), (&json!("user"), None));
    let asked = json!({"id": task["id"]});
    let bare = call(Value::Null, "tasks/get", &asked).json();
    assert_eq!((&bare["id"], &bare["result"]), (&Value::Null, &task), "known by the id null");
    assert_eq!(call(json!(2), "tasks/get", &asked).json()["result"]["kind"], "task", "others read what they know");
    let stream = call(json!(3), "message/stream", &send("m-2")).text().to_owned();
    let events = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let results: Vec<Value> = events.filter_map(|data| serde_json::from_str(data).ok()).collect();
    let held = |name: &str| results.iter().find_map(|event| event["result"].get(name)).expect(name).clone();
    assert_eq!(held("artifactUpdate")["artifact"]["parts"], parts);
    assert_eq!(held("statusUpdate")["status"]["state"], "completed");
}

/// Agno's clients send JSON-RPC to the paths of HTTP+JSON, and read JSON-RPC.
#[test]
fn an_envelope_of_json_rpc_is_answered_in_one_wherever_it_is_sent() {
    let hub = hub();
    let client = hub.owner(Binding::HttpJson).without("a2a-version");
    let envelope = |method: &str, id: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": old_message(id, "complete")});
    let sent = post(&client, "/agents/mock/v1/message:send", &envelope("message/send", "m-1")).json();
    assert_eq!((sent["id"].as_str(), sent["result"]["kind"].as_str()), (Some("m-1"), Some("task")), "{sent}");
    let streamed = post(&client, "/agents/mock/v1/message:stream", &envelope("message/stream", "m-2"));
    assert_eq!(streamed.header("content-type"), Some("text/event-stream"));
    let refused = post(&client, "/agents/mock/v1/message:send", &envelope("message/forget", "m-3")).json();
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
}
