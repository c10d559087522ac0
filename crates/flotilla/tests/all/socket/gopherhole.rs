//! GopherHole's dialect: chosen by the path alone. Whatever comes elsewhere is A2A.

mod conversation;
mod inbox;
mod news;
mod push;
mod repeat;

use super::{agent_key, asked};
use crate::cast::{hub, setup};
use flotilla_testkit::socket::{Dial, Socket};
use flotilla_testkit::{Binding, HubProcess, Request, Response, http, until};
use serde_json::{Value, json};

fn dial(hub: &HubProcess, key: &str) -> Dial {
    super::dial(hub, key).path("/gopherhole/ws")
}

/// An agent that is connected under its key's name.
fn connected(hub: &HubProcess, name: &str) -> Socket {
    dial(hub, &agent_key(hub, name)).open()
}

/// A request as its clients make them over HTTP.
fn post(hub: &HubProcess, key: &str, method: &str, params: &Value) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let request = Request::post("/gopherhole/a2a", body)
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

/// A request at one of the root's paths.
fn at_root(hub: &HubProcess, key: &str, path: &str, version: Option<&str>, method: &str, params: &Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let request = Request::post(path, body)
        .header("authorization", &format!("Bearer {key}"))
        .header("content-type", "application/json");
    let request = version.into_iter().fold(request, |request, version| request.header("a2a-version", version));
    http::send(hub.address(), &request).json()
}

/// What once made a request one of the dialect: none of it does, whoever sent what before.
#[test]
fn a_request_at_the_root_is_a2a_whatever_it_holds() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    result(&hub, &key, "SendMessage", &to("mock", "complete"));
    let mut number = 0;
    let mut said = |part: Value, configuration: Value| {
        number += 1;
        json!({"message": {"messageId": format!("m-{number}"), "role": "ROLE_USER", "parts": [part]},
               "configuration": configuration})
    };
    for path in ["/", "/a2a", "/rpc"] {
        for configuration in [
            json!({}),
            json!({"agentId": "mock"}),
            json!({"contextId": "c"}),
            json!({"x-gopherhole-secrets": {}, "x-ttl": 60}),
        ] {
            for part in [json!({"text": "hi"}), json!({"kind": "text", "text": "hi"})] {
                let message = said(part.clone(), configuration.clone());
                let sent = at_root(&hub, &key, path, Some("1.0"), "SendMessage", &message);
                let task = &sent["result"]["task"];
                assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{path} {part} {configuration}: {sent}");
                assert_eq!(task["history"][0]["messageId"], message["message"]["messageId"], "its own id: {sent}");
                let id = json!({"id": task["id"]});
                let found = at_root(&hub, &key, path, Some("1.0"), "GetTask", &id);
                assert_eq!(found["result"]["status"]["state"], "TASK_STATE_COMPLETED", "{found}");
            }
        }
        let old = json!({"message": {"messageId": "o", "role": "user", "parts": [{"kind": "text", "text": "hi"}]},
                         "configuration": {"agentId": "mock", "contextId": "c"}});
        let sent = at_root(&hub, &key, path, None, "message/send", &old);
        assert_eq!(
            (&sent["result"]["kind"], &sent["result"]["history"][0]["messageId"]),
            (&json!("task"), &json!("o"))
        );
        let page = at_root(&hub, &key, path, Some("1.0"), "ListTasks", &json!({"pageSize": 1}));
        assert_eq!(page["result"]["tasks"][0]["status"]["state"], "TASK_STATE_COMPLETED", "{page}");
        assert!(page["result"]["nextPageToken"].as_str().is_some_and(|token| !token.is_empty()), "{page}");
        let refused = at_root(&hub, &key, path, Some("1.0"), "ListTasks", &json!({"status": "completed"}));
        assert_eq!(refused["error"]["code"], -32602, "a state in words of another dialect is refused: {refused}");
        for method in ["x-gopherhole/agents.available", "task/respond"] {
            let refused = at_root(&hub, &key, path, Some("1.0"), method, &json!({}));
            let told = refused["error"]["message"].as_str().unwrap_or_default();
            assert!(refused["error"]["code"] == -32601 && told.contains("/gopherhole/a2a"), "{refused}");
        }
    }
}

#[test]
fn a_list_in_the_dialect_goes_on_after_a_page_whatever_state_it_names() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    for _ in 0..3 {
        let task = result(&hub, &key, "SendMessage", &to("mock", "complete"));
        until("it is done", || {
            let task = result(&hub, &key, "GetTask", &json!({"id": task["id"]}));
            (task["status"]["state"] == "completed").then_some(())
        });
    }
    let (mut params, mut seen) = (json!({"status": "completed", "pageSize": 1}), 0);
    loop {
        let page = result(&hub, &key, "ListTasks", &params);
        seen += page["tasks"].as_array().expect("tasks").len();
        assert!(seen <= 3, "{page}");
        let Some(token) = page.get("nextPageToken") else { break };
        params["pageToken"] = token.clone();
    }
    assert_eq!(seen, 3);
}

#[test]
fn a_socket_is_in_the_dialect_of_its_path() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    let task = result(&hub, &key, "SendMessage", &to("mock", "complete"));
    let (listing, reading) = (json!({}), json!({"id": task["id"]}));
    let state = |socket: &mut Socket, tenant: &str| {
        let (mut list, mut get) = (listing.clone(), reading.clone());
        for params in [&mut list, &mut get] {
            params["tenant"] = json!(tenant);
        }
        let listed = socket.call(1, "ListTasks", &list)["result"]["tasks"][0]["status"]["state"].clone();
        (listed, socket.call(2, "GetTask", &get)["result"]["status"]["state"].clone())
    };
    until("it is done", || (result(&hub, &key, "GetTask", &reading)["status"]["state"] == "completed").then_some(()));
    let told = (json!("TASK_STATE_COMPLETED"), json!("TASK_STATE_COMPLETED"));
    for _ in 0..2 {
        let own = &mut dial(&hub, &key).query("role", "caller").open();
        assert_eq!(state(own, ""), (json!("completed"), json!("completed")), "at its own path");
        let plain = &mut super::dial(&hub, &key).query("role", "caller").open();
        assert_eq!(state(plain, "mock"), told, "at /ws");
        let sent = plain.call(3, "SendMessage", &to("mock", "complete"));
        assert!(sent.get("error").is_some(), "without a role of A2A, and an id, it is no message of A2A: {sent}");
        assert_eq!(plain.call(4, "x-gopherhole/agents.available", &json!({}))["error"]["code"], -32601);
        let modern = &mut dial(&hub, &key).query("role", "caller").subprotocol("a2a.v1").open();
        assert_eq!(state(modern, "mock"), told, "with the subprotocol of A2A");
    }
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
    // However soon a task ends, its end is told.
    for number in 0..40 {
        let payload = json!({"parts": [{"kind": "text", "text": "hi"}]});
        socket.send(&json!({"type": "message", "id": format!("e-{number}"), "to": "echo", "payload": payload}));
        let ack = socket.kind("ack");
        socket.wait_for("the end of each", |frame| {
            frame["task"]["id"] == ack["taskId"] && frame["task"]["status"]["state"] == "completed"
        });
    }
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
    let request = Request::get("/api/discover/categories").header("authorization", &format!("Bearer {key}"));
    let categories = http::send(hub.address(), &request).json()["categories"].clone();
    assert!(
        categories.as_array().is_some_and(|all| all.contains(&json!({"name": "forecast", "count": 1}))),
        "{categories}"
    );
    let public = http::send(hub.address(), &Request::get("/api/discover/categories")).json()["categories"].clone();
    let public: Vec<&str> = public.as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(!public.contains(&"forecast"), "without a key, those of public agents: {public:?}");
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
fn its_typescript_client_streams() {
    let hub = hub();
    let (key, stranger) = (agent_key(&hub, "caller"), agent_key(&hub, "stranger"));
    let stream = |key: &str, method: &str, params: &Value| -> Vec<Value> {
        let body =
            json!({"jsonrpc": "2.0", "id": 1_700_000_000_000_u64, "method": method, "params": params}).to_string();
        let request = Request::post("/gopherhole/a2a", body).header("authorization", &format!("Bearer {key}"));
        let request = request.header("content-type", "application/json").header("accept", "text/event-stream");
        let answer = http::send(hub.address(), &request.header("a2a-version", "1.0"));
        assert_eq!(answer.status, 200);
        let events = answer.text().lines().filter_map(|line| line.strip_prefix("data: "));
        events.map(|event| serde_json::from_str(event).expect("JSON")).collect()
    };
    let events = stream(&key, "SendStreamingMessage", &to("mock", "chunks 3"));
    let task = &events[0]["result"]["task"];
    assert!(task["id"].is_string() && task["status"]["state"] != "TASK_STATE_WORKING", "{task}");
    let chunks = events.iter().filter(|event| event["result"].get("artifactUpdate").is_some());
    assert!(chunks.count() >= 3, "{events:?}");
    assert_eq!(events.last().expect("events")["result"]["statusUpdate"]["status"]["state"], "completed");
    assert_eq!(result(&hub, &key, "GetTask", &json!({"id": task["id"]}))["status"]["state"], "completed");
    let held = result(&hub, &key, "SendMessage", &to("mock", "work 300ms"));
    let events = stream(&key, "SubscribeToTask", &json!({"id": held["id"]}));
    assert_eq!(events[0]["result"]["task"]["id"], held["id"]);
    assert_eq!(events.last().expect("events")["result"]["statusUpdate"]["status"]["state"], "completed");
    let refused = stream(&key, "SendStreamingMessage", &to("nobody", "hi"));
    assert!(refused[0]["error"]["message"].as_str().is_some_and(|text| text.contains("nobody")), "{refused:?}");
    let other =
        json!({"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": held["id"]}}).to_string();
    let request = Request::post("/gopherhole/a2a", other).header("authorization", &format!("Bearer {stranger}"));
    let answer =
        http::send(hub.address(), &request.header("content-type", "application/json").header("a2a-version", "1.0"));
    let told: Value = serde_json::from_str(answer.text().trim_start_matches("data: ")).expect("a refusal in a stream");
    assert_eq!(told["error"]["code"], -32001, "another's task is not there");
}

#[test]
fn agents_are_found_over_plain_http() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    let _agent = connected(&hub, "weather");
    let get = |target: &str, key: Option<&str>| {
        let request = Request::get(&format!("/gopherhole{target}"));
        let request = match key {
            Some(key) => request.header("authorization", &format!("Bearer {key}")),
            None => request,
        };
        http::send(hub.address(), &request)
    };
    let found = get("/api/discover/agents?q=weather&limit=5", Some(&key)).json();
    let weather = &found["agents"][0];
    assert_eq!((&weather["id"], &found["count"]), (&json!("weather"), &json!(1)));
    assert_eq!((&weather["avgRating"], &weather["ratingCount"]), (&json!(0), &json!(0)), "its clients count with them");
    assert_eq!((&weather["pricing"], weather.get("category")), (&json!("free"), Some(&json!(null))));
    let nearby = get("/api/discover/agents/nearby?lat=1&lng=2", Some(&key));
    assert_eq!((nearby.status, &nearby.json()["agents"], &nearby.json()["count"]), (404, &json!([]), &json!(0)));
    assert!(nearby.json()["error"].as_str().is_some_and(|text| text.contains("finds none nearby")));
    let all = get("/api/discover/agents?scope=tenant", Some(&key)).json();
    assert!(all["agents"].as_array().is_some_and(|agents| agents.len() > 1), "{all}");
    assert_eq!(get("/api/discover/agents", None).status, 401);
    let echo = get("/api/discover/agents/echo", None).json();
    assert_eq!((&echo["agent"]["name"], &echo["agentCard"]["name"]), (&json!("echo"), &json!("echo")));
    assert_eq!((&echo["agentCard"], &echo["stats"]), (&echo["agent"]["agentCard"], &echo["agent"]["stats"]));
    assert_eq!((&echo["stats"]["totalMessages"], &echo["reviews"]), (&json!(0), &json!([])));
    let count = |query: &str| get(&format!("/api/discover/agents?{query}"), Some(&key)).json()["count"].clone();
    assert_eq!(
        (count("category=nothing"), count("verified=true"), count("owner=others")),
        (json!(0), json!(0), json!(0))
    );
    assert_eq!(count("sort=rating&contentMode=text/plain"), count(""), "they all take text");
    for key in [None, Some(key.as_str())] {
        assert_eq!(get("/api/discover/featured", key).json(), json!({"featured": []}), "its clients show no key here");
    }
    assert_eq!(get("/api/discover/categories", Some("flk_wrong")).status, 401);
    assert_eq!(get("/api/discover/agents/weather", None).status, 404, "it is no public agent");
    assert_eq!(
        get("/api/discover/agents/weather", Some(&key)).json()["agent"]["id"],
        "weather",
        "what is listed is shown"
    );
    assert_eq!(get("/api/discover/agents/weather", Some("flk_wrong")).status, 401);
    let who = get("/api/auth/whoami", Some(&key)).json();
    assert_eq!((&who["type"], &who["apiKey"]["agentId"]), (&json!("api_key"), &json!(null)), "{who}");
    assert!(who["apiKey"]["scopes"].as_array().is_some_and(|scopes| scopes.contains(&json!("tasks:read"))), "{who}");
    assert_eq!(get("/api/auth/whoami", None).status, 401);
    assert_eq!(get("/api/discover/agents?limit=many", Some(&key)).status, 400);
    for (target, told) in [
        ("discover/agents/echo/rate", "no ratings"),
        ("discover/agents/echo/request-access", "the hub's owner"),
        ("access/request", "the hub's owner"),
    ] {
        let request = Request::post(&format!("/api/{target}"), "{}").header("authorization", &format!("Bearer {key}"));
        let refused = http::send(hub.address(), &request);
        assert_eq!(refused.status, 404);
        let body = refused.json();
        assert!(
            body["error"].as_str().is_some_and(|text| text.contains(told)),
            "its clients show this as it is: {body}"
        );
    }
}

#[test]
fn a_list_of_several_agents_leaves_nothing_out_where_a_page_is_full() {
    let hub = crate::cast::hub_with("limits: {page_bytes: 100000}");
    let key = agent_key(&hub, "caller");
    // Newest first, the large ones fill a page before the small one of another agent.
    let small = ("mock", "complete".to_owned());
    for (agent, said) in std::iter::once(small).chain((0..3).map(|_| ("echo", "x".repeat(30_000)))) {
        let task = result(&hub, &key, "SendMessage", &to(agent, &said));
        until("it is done", || {
            let task = result(&hub, &key, "GetTask", &json!({"id": task["id"]}));
            (task["status"]["state"] == "completed").then_some(())
        });
    }
    let (mut sizes, mut params) = (Vec::new(), json!({}));
    loop {
        let page = result(&hub, &key, "ListTasks", &params);
        sizes.push(page["tasks"].as_array().expect("tasks").len());
        assert!(page.to_string().len() < 100_000 && page["totalSize"] == 4, "{sizes:?}");
        match page.get("nextPageToken") {
            Some(token) => params = json!({"pageToken": token}),
            None => break,
        }
    }
    assert_eq!(sizes.iter().sum::<usize>(), 4, "{sizes:?}");
}
