//! GopherHole's dialect: chosen by the request, kept with the task, and gone as soon as A2A is spoken.

use super::{agent_key, asked, connected, dial};
use crate::cast::{hub, setup};
use flotilla_testkit::{Binding, HubProcess, Request, Response, http, until};
use serde_json::{Value, json};

/// A request as its clients make them over HTTP.
fn post(hub: &HubProcess, key: &str, method: &str, params: &Value) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let request = Request::post("/a2a", body)
        .header("authorization", &format!("Bearer {key}"))
        .header("content-type", "application/json")
        .header("a2a-version", "1.0");
    http::send(hub.address(), &request)
}

fn result(hub: &HubProcess, key: &str, method: &str, params: &Value) -> Value {
    let answer = post(hub, key, method, params);
    assert_eq!(answer.status, 200);
    let body = answer.json();
    assert!(body.get("error").is_none(), "{body}");
    body["result"].clone()
}

fn to(agent: &str, said: &str) -> Value {
    json!({"message": {"role": "agent", "parts": [{"kind": "text", "text": said}]}, "configuration": {"agentId": agent}})
}

#[test]
fn a_task_is_bare_and_stays_in_its_dialect() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    let task = result(&hub, &key, "SendMessage", &to("mock", "complete"));
    assert!(task.get("task").is_none() && task["contextId"].is_string(), "{task}");
    let done = until("it is done", || {
        let task = result(&hub, &key, "GetTask", &json!({"id": task["id"]}));
        (task["status"]["state"] == "completed").then_some(task)
    });
    assert_eq!(done["status"]["message"], "All done");
    assert_eq!(done["artifacts"][0]["parts"], json!([{"kind": "text", "text": "You said complete"}]));
    let page = result(&hub, &key, "ListTasks", &json!({}));
    assert_eq!((&page["totalSize"], &page["tasks"][0]["id"]), (&json!(1), &task["id"]));
    // The same task as A2A, where the agent is named.
    let plain = hub.stranger(Binding::JsonRpc).key(&key).agent("mock").task(task["id"].as_str().expect("an id"));
    assert_eq!(plain["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn whoever_speaks_a2a_is_answered_in_it() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    result(&hub, &key, "SendMessage", &to("mock", "complete"));
    let said = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}});
    let task = result(&hub, &key, "SendMessage", &said)["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(result(&hub, &key, "GetTask", &json!({"id": task["id"]})), task);
    let page = result(&hub, &key, "ListTasks", &json!({}));
    assert_eq!(page["tasks"][0]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn an_agent_answers_in_a_frame_over_http_or_by_context() {
    let hub = hub();
    let key = agent_key(&hub, "weather");
    let mut agent = dial(&hub, &key).open();
    let caller = agent_key(&hub, "caller");
    for way in ["respond", "reply"] {
        let task = result(&hub, &caller, "SendMessage", &to("weather", way));
        assert_eq!(task["status"]["state"], "working", "it is connected");
        let message = agent.kind("message");
        assert_eq!(
            (asked(&message), &message["from"], &message["payload"]["role"]),
            (way, &json!("caller"), &json!("user"))
        );
        if way == "respond" {
            let said = json!({"taskId": task["id"], "status": {"state": "completed"},
                "artifact": {"artifactId": "r", "parts": [{"kind": "text", "text": "Sunny"}]}, "lastChunk": true});
            assert_eq!(result(&hub, &key, "task/respond", &said)["status"]["state"], "completed");
        } else {
            let seen = result(&hub, &key, "GetTask", &json!({"id": task["id"]}));
            let said = json!({"message": {"role": "agent", "parts": [{"kind": "text", "text": "Sunny"}]},
                "configuration": {"contextId": seen["contextId"]}});
            assert_eq!(result(&hub, &key, "SendMessage", &said)["id"], task["id"]);
        }
        let done = result(&hub, &caller, "GetTask", &json!({"id": task["id"]}));
        assert_eq!(
            (&done["status"]["state"], &done["artifacts"][0]["parts"][0]["text"]),
            (&json!("completed"), &json!("Sunny"))
        );
        let other = agent_key(&hub, &format!("other-{way}"));
        assert_eq!(post(&hub, &other, "GetTask", &json!({"id": task["id"]})).json()["error"]["code"], -32001);
    }
}

#[test]
fn a_caller_that_is_connected_hears_of_its_tasks() {
    let hub = hub();
    let mut agent = connected(&hub, "weather");
    let key = agent_key(&hub, "caller");
    let mut socket = dial(&hub, &key).query("role", "caller").open();
    socket.send(&json!({"type": "message", "id": "m-1", "to": "weather", "payload": {"parts": [{"kind": "text", "text": "hi"}]}}));
    let ack = socket.kind("ack");
    assert_eq!(ack["id"], "m-1");
    let message = agent.kind("message");
    assert_eq!(message["taskId"], ack["taskId"]);
    super::answer(&mut agent, &message, "Sunny");
    let update = socket.wait_for("the end", |frame| frame["task"]["status"]["state"] == "completed");
    assert_eq!((&update["type"], &update["task"]["id"]), (&json!("task_update"), &ack["taskId"]));
    socket.send(&json!({"type": "message", "id": "m-2", "to": "nobody", "payload": {"parts": [{"text": "hi"}]}}));
    let refused = socket.kind("error");
    assert_eq!((&refused["id"], &refused["error"]), (&json!("m-2"), &json!("AGENT_NOT_FOUND")));
}

#[test]
fn refusals_have_their_codes_and_the_status_of_success() {
    let hub = setup().config("limits: {queued_per_agent: 1}").start();
    let key = agent_key(&hub, "caller");
    connected(&hub, "weather").close();
    let first = result(&hub, &key, "SendMessage", &to("weather", "wait"));
    assert_eq!(first["status"]["state"], "submitted", "it is not connected");
    assert!(first["status"]["message"].as_str().is_some_and(|text| text.contains("not connected")));
    let code = |params: &Value, method: &str| {
        let answer = post(&hub, &key, method, params);
        (answer.status, answer.json()["error"]["code"].as_i64())
    };
    assert_eq!(code(&to("weather", "more"), "SendMessage"), (200, Some(-32012)));
    let mut now = to("weather", "now");
    now["configuration"]["x-ttl"] = json!(0);
    assert_eq!(code(&now, "SendMessage"), (200, Some(-32603)));
    assert_eq!(code(&json!({}), "x-gopherhole/workspace.list"), (200, Some(-32601)));
    let reader = hub.make_key(&["reader", "--scope", "tasks:read"]);
    let refused = post(&hub, &reader, "SendMessage", &to("weather", "hi"));
    assert_eq!((refused.status, refused.json()["error"]["code"].as_i64()), (200, Some(-32011)));
}

#[test]
fn agents_are_found_by_those_who_see_them() {
    let hub = hub();
    let mut agent = connected(&hub, "weather");
    let card = json!({"description": "Knows the sky.", "skills": [{"id": "now", "name": "Now", "tags": ["forecast"]}]});
    agent.send(&json!({"type": "update_card", "agentCard": card}));
    agent.kind("card_updated");
    let key = agent_key(&hub, "caller");
    let names = |found: &Value| -> Vec<String> {
        let agents = found["agents"].as_array().expect("agents");
        agents.iter().map(|agent| agent["id"].as_str().expect("an id").to_owned()).collect()
    };
    let found = result(&hub, &key, "x-gopherhole/agents.available", &json!({"query": "sky"}));
    assert_eq!(names(&found), ["weather"]);
    assert_eq!(
        (&found["agents"][0]["accessType"], &found["agents"][0]["connected"]),
        (&json!("same-tenant"), &json!(true))
    );
    let found = result(&hub, &key, "x-gopherhole/agents.discover", &json!({"tag": "forecast", "limit": 5}));
    assert_eq!((names(&found), &found["count"]), (vec!["weather".to_owned()], &json!(1)));
    let stranger = hub.make_key(&["elsewhere/caller"]);
    assert!(names(&result(&hub, &stranger, "x-gopherhole/agents.available", &json!({"query": "sky"}))).is_empty());
}

#[test]
fn its_typescript_client_uses_the_names_of_0_3() {
    let hub = hub();
    let (caller, key) = (agent_key(&hub, "caller"), agent_key(&hub, "weather"));
    let mut agent = dial(&hub, &key).open();
    let task = result(&hub, &caller, "message/send", &to("weather", "Will it rain?"));
    let message = agent.kind("message");
    assert_eq!(asked(&message), "Will it rain?");
    let seen = result(&hub, &key, "tasks/get", &json!({"id": message["taskId"]}));
    let reply = json!({"message": {"role": "agent", "parts": [{"kind": "text", "text": "No"}]},
                       "configuration": {"contextId": seen["contextId"]}});
    result(&hub, &key, "message/send", &reply);
    let done = until("it is done", || {
        let task = result(&hub, &caller, "tasks/get", &json!({"id": task["id"], "historyLength": 5}));
        (task["status"]["state"] == "completed").then_some(task)
    });
    assert_eq!(done["artifacts"][0]["parts"], json!([{"kind": "text", "text": "No"}]));
    assert_eq!(result(&hub, &caller, "tasks/list", &json!({}))["totalSize"], 1);
    let held = result(&hub, &caller, "message/send", &to("mock", "hold"));
    let canceled = result(&hub, &caller, "tasks/cancel", &json!({"id": held["id"]}));
    assert_eq!(canceled["status"]["state"], "canceled");
}

#[test]
fn agents_are_found_over_plain_http() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    let _agent = connected(&hub, "weather");
    let get = |target: &str, key: Option<&str>| {
        let request = Request::get(target);
        let request = match key {
            Some(key) => request.header("authorization", &format!("Bearer {key}")),
            None => request,
        };
        http::send(hub.address(), &request)
    };
    let found = get("/api/discover/agents?q=weather&limit=5", Some(&key)).json();
    assert_eq!((&found["agents"][0]["id"], &found["count"]), (&json!("weather"), &json!(1)));
    let all = get("/api/discover/agents?scope=tenant", Some(&key)).json();
    assert!(all["agents"].as_array().is_some_and(|agents| agents.len() > 1), "{all}");
    assert_eq!(get("/api/discover/agents", None).status, 401);
    let echo = get("/api/discover/agents/echo", None).json();
    assert_eq!((&echo["agent"]["name"], &echo["agent"]["agentCard"]["name"]), (&json!("echo"), &json!("echo")));
    assert_eq!(get("/api/discover/agents/weather", None).status, 404, "it is no public agent");
    assert_eq!(get("/api/discover/agents?limit=many", Some(&key)).status, 400);
}
