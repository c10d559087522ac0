//! GopherHole's dialect: chosen by the request, kept with the task, and gone as soon as A2A is spoken.

mod conversation;
mod inbox;
mod news;
mod push;
mod repeat;

use super::{agent_key, asked, connected, dial};
use crate::cast::{hub, setup};
use flotilla_testkit::socket::Socket;
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

/// The state of the newest task in a list that could be of either dialect.
fn listed(hub: &HubProcess, key: &str) -> String {
    let page = result(hub, key, "ListTasks", &json!({}));
    page["tasks"][0]["status"]["state"].as_str().unwrap_or_else(|| panic!("no task in {page}")).to_owned()
}

#[test]
fn whoever_speaks_a2a_is_answered_in_it() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    for binding in Binding::ALL {
        result(&hub, &key, "SendMessage", &to("mock", "complete"));
        until("it is done", || (listed(&hub, &key) == "completed").then_some(()));
        let plain = hub.stranger(binding).key(&key);
        plain.say(&format!("m-{binding:?}"), "complete");
        assert_eq!(listed(&hub, &key), "TASK_STATE_COMPLETED", "after a message over {binding:?}");
    }
    for (number, method) in ["SendMessage", "SendStreamingMessage"].into_iter().enumerate() {
        result(&hub, &key, "SendMessage", &to("mock", "complete"));
        let said =
            json!({"message": {"messageId": format!("s-{number}"), "role": "ROLE_USER", "parts": [{"text": "hi"}]}});
        assert_eq!(post(&hub, &key, method, &said).status, 200);
        assert_eq!(listed(&hub, &key), "TASK_STATE_COMPLETED", "after {method}");
    }
}

#[test]
fn a_list_is_in_the_dialect_of_the_program_that_spoke_it_last() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    let plain = hub.stranger(Binding::JsonRpc).key(&key);
    plain.say("m", "complete");
    assert!(post(&hub, &key, "SendMessage", &to("nobody", "hi")).json().get("error").is_some());
    assert_eq!(listed(&hub, &key), "TASK_STATE_COMPLETED", "a message that is refused changes nothing");
    result(&hub, &key, "SendMessage", &to("mock", "complete"));
    until("it is done", || (listed(&hub, &key) == "completed").then_some(()));
    let ask = |agent: &str, id: &Value, params: &Value| {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "ListTasks", "params": params}).to_string();
        let request = Request::post("/a2a", body).header("authorization", &format!("Bearer {key}"));
        let request = request.header("content-type", "application/json").header("a2a-version", "1.0");
        let request = if agent.is_empty() { request } else { request.header("user-agent", agent) };
        http::send(hub.address(), &request).json()["result"]["tasks"][0]["status"]["state"].clone()
    };
    for (agent, id, params, state) in [
        ("", json!(1), json!({}), "completed"),
        ("another/1.0", json!(1), json!({}), "TASK_STATE_COMPLETED"),
        ("", json!("5f0c"), json!({}), "TASK_STATE_COMPLETED"),
        ("", json!(1), json!({"statusTimestampAfter": "2020-01-01T00:00:00Z"}), "TASK_STATE_COMPLETED"),
        ("", json!(1), json!({"status": "TASK_STATE_COMPLETED"}), "TASK_STATE_COMPLETED"),
        ("another/1.0", json!("5f0c"), json!({"status": "completed"}), "completed"),
    ] {
        assert_eq!(ask(agent, &id, &params), state, "{agent} {id} {params}");
    }
}

#[test]
fn a_socket_that_names_its_version_is_answered_in_it() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    let task = result(&hub, &key, "SendMessage", &to("mock", "complete"));
    until("it is done", || (listed(&hub, &key) == "completed").then_some(()));
    let state = |socket: &mut Socket| {
        let listed = socket.call(1, "ListTasks", &json!({}))["result"]["tasks"][0]["status"]["state"].clone();
        let read = socket.call(2, "GetTask", &json!({"id": task["id"]}))["result"]["status"]["state"].clone();
        (listed, read)
    };
    let frames = &mut dial(&hub, &key).query("role", "caller").open();
    assert_eq!(state(frames), (json!("completed"), json!("completed")), "a client of the dialect");
    let named = json!({"jsonrpc": "2.0", "id": 9, "method": "ListTasks", "params": {"tenant": "mock"},
                       "serviceParams": {"A2A-Version": "1.0"}});
    frames.send(&named);
    let answer = frames.wait_for("an answer", |frame| frame["id"] == 9);
    assert_eq!(answer["result"]["tasks"][0]["status"]["state"], "TASK_STATE_COMPLETED");
    let plain = &mut dial(&hub, &key).query("role", "caller").subprotocol("a2a.v1").open();
    let told = json!("TASK_STATE_COMPLETED");
    assert_eq!(state(plain), (told.clone(), told.clone()));
    assert_eq!(plain.call(3, "x-gopherhole/agents.available", &json!({}))["error"]["code"], -32601);
    let sent = json!({"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "complete"}]}});
    plain.call(4, "SendMessage", &sent);
    assert_eq!(state(frames).0, told, "what was said on one socket counts on the other");
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
        let request = Request::post("/a2a", body).header("authorization", &format!("Bearer {key}"));
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
    let request = Request::post("/a2a", other).header("authorization", &format!("Bearer {stranger}"));
    let answer =
        http::send(hub.address(), &request.header("content-type", "application/json").header("a2a-version", "1.0"));
    assert_eq!(answer.json()["error"]["code"], -32001, "another's task is not there");
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
