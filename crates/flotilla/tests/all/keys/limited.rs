//! Keys of one principal that are good for less: limited to one agent, or without a scope. Every method of every dialect,
//! and every frame.

use super::isolation::{NOWHERE, bare};
use crate::cast::{id, setup};
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::{gopherhole, v03};
use flotilla_testkit::client::message;
use flotilla_testkit::socket::{Dial, Socket};
use flotilla_testkit::{Binding, Client, HubProcess, Refusal, Request, http};
use serde_json::{Value, json};

/// Tasks of both agents wait for an answer, and the second turn completes them.
const AGENTS: &str = r#"
agents:
  echo: {kind: echo}
  allowed: {kind: script, script: {otherwise: [{input_required: "More?"}]}}
  other: {kind: script, script: {otherwise: [{input_required: "Secret?"}]}}
"#;
/// The same, each after a while: what changes then is told in a frame.
const SLOW: &str = r#"
agents:
  echo: {kind: echo}
  allowed: {kind: script, script: {otherwise: [working, {delay: 100ms}, {input_required: "More?"}]}}
  other: {kind: script, script: {otherwise: [working, {delay: 100ms}, {input_required: "Secret?"}]}}
"#;
const SCOPES: [&str; 5] = ["agents:read", "tasks:read", "tasks:write", "push:write", "agents:connect"];

struct Cast {
    hub: HubProcess,
    whole: String,
    limited: String,
    /// One for each scope it lacks.
    without: Vec<(&'static str, String)>,
}

impl Cast {
    fn new(agents: &str) -> Self {
        let hub = setup().config(agents).start();
        let all = SCOPES[..4].join(",");
        let whole = hub.make_key(&["whole", "--principal", "pat", "--scope", &all]);
        let limited = hub.make_key(&["limited", "--principal", "pat", "--scope", &all, "--agent", "allowed"]);
        let without = SCOPES[..4].iter().map(|lacked| {
            let scopes: Vec<&str> = SCOPES[..4].iter().filter(|scope| *scope != lacked).copied().collect();
            let name = format!("without-{}", lacked.replace(':', "-"));
            (*lacked, hub.make_key(&[&name, "--principal", "pat", "--scope", &scopes.join(",")]))
        });
        let without = without.collect();
        Self { hub, whole, limited, without }
    }

    fn client(&self, binding: Binding, key: &str) -> Client {
        self.hub.stranger(binding).key(key)
    }

    /// A task of the whole key with an agent, with a webhook.
    fn task_with(&self, agent: &str, name: &str) -> Value {
        let client = self.client(Binding::JsonRpc, &self.whole).agent(agent);
        let task = client.say(name, "hello");
        let config = json!({"taskId": id(&task), "id": "c", "url": "https://webhooks.invalid"});
        client.call("CreateTaskPushNotificationConfig", &config).expect("a webhook");
        task
    }

    fn assert_untouched(&self, agent: &str, task: &Value, cell: &str) {
        let client = self.client(Binding::JsonRpc, &self.whole).agent(agent);
        assert_eq!(client.task(id(task)), *task, "{cell}: the task is as it was");
        let configs = client.call("ListTaskPushNotificationConfigs", &json!({"taskId": id(task)})).expect("webhooks");
        assert_eq!(configs["configs"].as_array().map(Vec::len), Some(1), "{cell}: its webhooks are as they were");
    }
}

/// A2A's parameters of a method that is about a task.
fn params(method: Method, task: &str) -> Value {
    match method {
        Method::SendMessage | Method::SendStreamingMessage => {
            let mut answer = message("answer", "hello");
            answer["message"]["taskId"] = json!(task);
            answer
        }
        Method::GetTask | Method::CancelTask | Method::SubscribeToTask => json!({"id": task}),
        Method::ListTasks | Method::GetExtendedAgentCard => json!({}),
        Method::CreatePushConfig => json!({"taskId": task, "id": "d", "url": "https://webhooks.invalid"}),
        Method::ListPushConfigs => json!({"taskId": task}),
        Method::GetPushConfig | Method::DeletePushConfig => json!({"taskId": task, "id": "c"}),
    }
}

#[test]
fn a_key_limited_to_agents_finds_no_task_with_another_in_a2a() {
    let cast = Cast::new(AGENTS);
    let limited = |binding| cast.client(binding, &cast.limited);
    let doors = Binding::ALL.map(limited).into_iter().chain(Binding::JSON.map(|binding| limited(binding).in_03()));
    for client in doors.chain([limited(Binding::JsonRpc).over_socket()]) {
        let task = cast.task_with("other", "m");
        for method in Method::ALL {
            if client.old && client.binding == Binding::HttpJson && method == Method::GetExtendedAgentCard {
                continue;
            }
            let cell = format!("{method:?} {:?} old {} socket {}", client.binding, client.old, client.socket);
            let params = params(method, id(&task));
            let refused = client.clone().agent("other").call(method.name(), &params).expect_err(&cell);
            assert_eq!(refused.reason, "AGENT_NOT_FOUND", "{cell}");
            let refused = client.call(method.name(), &params).expect_err(&cell);
            assert_eq!(refused.reason, "AGENT_NOT_FOUND", "{cell}: the default agent");
            if method == Method::ListTasks || method == Method::GetExtendedAgentCard {
                continue;
            }
            let of_allowed = client.clone().agent("allowed");
            let nowhere = self::params(method, NOWHERE);
            if client.socket {
                let told = |params: &Value| {
                    let refused = of_allowed.call(method.name(), params).expect_err(&cell);
                    (refused.reason, refused.message.replace(id(&task), "ID").replace(NOWHERE, "ID"))
                };
                assert_eq!(told(&params), told(&nowhere), "{cell}");
            } else {
                let real = of_allowed.response(method.name(), &params);
                assert_eq!(Refusal::of(&real).reason, "TASK_NOT_FOUND", "{cell}");
                let unreal = of_allowed.response(method.name(), &nowhere);
                assert_eq!(bare(&real, id(&task)), bare(&unreal, NOWHERE), "{cell}");
            }
            cast.assert_untouched("other", &task, &cell);
        }
        let list = client.clone().agent("allowed").call("ListTasks", &json!({})).expect("a list");
        assert_eq!(list["totalSize"], 0, "{list}");
    }
}

/// A request in GopherHole's dialect, over HTTP or on a socket; a stream's first event.
fn in_gopherhole(hub: &HubProcess, key: &str, over_socket: bool, method: &str, params: &Value) -> Value {
    if over_socket {
        let dial = Dial::new(hub.address()).path("/gopherhole/ws").key(key).query("role", "caller");
        return dial.open().call(1, method, params);
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let request = Request::post("/gopherhole/a2a", body).header("authorization", &format!("Bearer {key}"));
    let request = request.header("content-type", "application/json").header("a2a-version", "1.0");
    let answer = http::send(hub.address(), &request);
    let text = answer.text();
    let first = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(text);
    serde_json::from_str(first).unwrap_or_else(|_| panic!("{method}: {text}"))
}

/// Every method of the dialect, under all its names, with the scope it needs.
fn methods_of_gopherhole() -> Vec<(String, Option<Method>, &'static str)> {
    let mut all = Vec::new();
    for method in Method::ALL {
        let scope = match method {
            Method::SendMessage | Method::SendStreamingMessage | Method::CancelTask => "tasks:write",
            Method::GetTask | Method::SubscribeToTask | Method::ListTasks => "tasks:read",
            Method::GetExtendedAgentCard => "agents:read",
            _ => "push:write",
        };
        all.push((method.name().to_owned(), Some(method), scope));
        // The old names of streams and of the card are none of the dialect's.
        let is_old =
            !matches!(method, Method::SendStreamingMessage | Method::SubscribeToTask | Method::GetExtendedAgentCard);
        all.extend(is_old.then(|| (v03::method::name(method).to_owned(), Some(method), scope)));
    }
    all.extend(gopherhole::OWN_METHODS.map(|name| (name.to_owned(), None, "agents:read")));
    all
}

fn is_of_streams(method: Option<Method>) -> bool {
    matches!(method, Some(Method::SendStreamingMessage | Method::SubscribeToTask))
}

/// The parameters of a method of the dialect that name a task, as far as they can.
fn about(name: &str, method: Option<Method>, task: &str) -> Value {
    match method {
        Some(Method::SendMessage | Method::SendStreamingMessage) => {
            json!({"message": {"role": "agent", "parts": [{"kind": "text", "text": "hello"}]},
                   "configuration": {"agentId": "other", "taskId": task}})
        }
        Some(Method::CreatePushConfig) => json!({"taskId": task, "config": {"url": "https://webhooks.invalid"}}),
        Some(method) => params(method, task),
        None if name == "task/respond" => json!({"taskId": task, "status": {"state": "completed"}}),
        None => json!({}),
    }
}

#[test]
fn a_key_limited_to_agents_finds_no_task_with_another_in_gopherholes_dialect() {
    let cast = Cast::new(AGENTS);
    let shared = cast.task_with("allowed", "shared");
    for over_socket in [false, true] {
        let task = cast.task_with("other", "m");
        for (name, method, _) in methods_of_gopherhole() {
            if over_socket && is_of_streams(method) {
                continue;
            }
            let cell = format!("{name} over a socket: {over_socket}");
            let ask = |params: &Value| in_gopherhole(&cast.hub, &cast.limited, over_socket, &name, params);
            let answer = ask(&about(&name, method, id(&task)));
            let text = answer.to_string();
            assert!(!text.contains("Secret?") && !text.contains("other\""), "{cell}: {answer}");
            match method {
                Some(Method::ListTasks) => {
                    let tasks = answer["result"]["tasks"].as_array().unwrap_or_else(|| panic!("{cell}: {answer}"));
                    let ids: Vec<&Value> = tasks.iter().map(|task| &task["id"]).collect();
                    assert_eq!(ids, [&shared["id"]], "{cell}: {answer}");
                    assert_eq!(answer["result"]["totalSize"], 1, "{cell}");
                }
                None if name != "task/respond" => assert!(answer.get("error").is_none(), "{cell}: {answer}"),
                _ => {
                    let unreal = ask(&about(&name, method, NOWHERE));
                    let told = |answer: &Value, task: &str| {
                        answer["error"]["message"]
                            .as_str()
                            .unwrap_or_else(|| panic!("{cell}: {answer}"))
                            .replace(task, "ID")
                    };
                    assert_eq!(told(&answer, id(&task)), told(&unreal, NOWHERE), "{cell}");
                }
            }
            cast.assert_untouched("other", &task, &cell);
            // What needs no agent to be named goes to the one that waits in a context.
            if matches!(method, Some(Method::SendMessage)) {
                for configuration in [json!({"taskId": id(&task)}), json!({"contextId": task["contextId"]})] {
                    let said = json!({"message": {"role": "agent", "parts": [{"kind": "text", "text": "hello"}]},
                                      "configuration": configuration});
                    let answer = ask(&said);
                    assert_ne!(answer["result"]["serverAgentId"], "other", "{cell}: {answer}");
                    cast.assert_untouched("other", &task, &cell);
                }
            }
            let found = in_gopherhole(&cast.hub, &cast.limited, over_socket, "GetTask", &json!({"id": shared["id"]}));
            assert_eq!(found["result"]["id"], shared["id"], "{cell}: what the key is good for");
        }
    }
}

#[test]
fn a_key_without_a_scope_is_refused_in_gopherholes_dialect() {
    let cast = Cast::new(AGENTS);
    for over_socket in [false, true] {
        for (name, method, scope) in methods_of_gopherhole() {
            // Whether a caller is an agent with such a run is what decides on an agent's answer.
            if over_socket && is_of_streams(method) || name == "task/respond" {
                continue;
            }
            let cell = format!("{name} over a socket: {over_socket}");
            let task = cast.task_with("other", &cell);
            let key = &cast.without.iter().find(|(lacked, _)| *lacked == scope).expect("a key without it").1;
            let answer = in_gopherhole(&cast.hub, key, over_socket, &name, &about(&name, method, id(&task)));
            assert_eq!(answer["error"]["code"], -32011, "{cell}: {answer}");
            assert!(answer.to_string().contains(scope), "{cell}: {answer}");
            cast.assert_untouched("other", &task, &cell);
        }
    }
}

fn text_frame(id: &str, to: &str) -> Value {
    json!({"type": "message", "id": id, "to": to, "payload": {"parts": [{"kind": "text", "text": "hi"}]}})
}

/// Everything that was said until the hub answers a ping.
fn heard(socket: &mut Socket) -> Vec<Value> {
    socket.send(&json!({"type": "ping"}));
    let mut frames = Vec::new();
    loop {
        let frame = socket.read();
        if frame["type"] == "pong" {
            return frames;
        }
        frames.push(frame);
    }
}

#[test]
fn frames_reach_only_connections_whose_keys_may_read_the_task() {
    let cast = Cast::new(SLOW);
    let hub = &cast.hub;
    let worker = hub.make_key(&["worker", "--principal", "pat", "--scope", "agents:connect,push:write"]);
    let without_read = cast.without.iter().find(|(lacked, _)| *lacked == "tasks:read").expect("a key").1.clone();
    for path in ["/ws", "/gopherhole/ws"] {
        let dial = |key: &str| Dial::new(hub.address()).path(path).key(key);
        let mut limited = dial(&cast.limited).query("role", "caller").open();
        let mut deaf = [dial(&worker).query("agent", "w").open(), dial(&without_read).query("role", "caller").open()];
        // The last to connect is told last: what it has heard, the others have heard if they ever do.
        let mut whole = dial(&cast.whole).query("role", "caller").open();
        for agent in ["other", "allowed"] {
            whole.send(&text_frame(&format!("{path} {agent}"), agent));
            let task = whole.kind("ack")["taskId"].clone();
            let update = whole.wait_for("its news", |frame| frame["task"]["id"] == task);
            assert_eq!(update["task"]["serverAgentId"], agent, "{update}");
        }
        let told = limited.kind("task_update");
        assert_eq!(told["task"]["serverAgentId"], "allowed", "{path}: of what the key is good for: {told}");
        assert!(heard(&mut limited).iter().all(|frame| frame["task"]["serverAgentId"] == "allowed"), "{path}");
        for socket in &mut deaf {
            assert_eq!(heard(socket), [] as [Value; 0], "{path}");
        }
        // Who connects later is told of what goes on: again only of what the key is good for.
        let mut later = dial(&cast.limited).query("role", "caller").open();
        whole.send(&text_frame(&format!("{path} later"), "allowed"));
        whole.kind("ack");
        let first = later.kind("task_update");
        assert_eq!(first["task"]["serverAgentId"], "allowed", "{path}: {first}");
    }
}

#[test]
fn no_frame_of_a_limited_key_reaches_a_task_with_another_agent() {
    let cast = Cast::new(AGENTS);
    let hub = &cast.hub;
    let task = cast.task_with("other", "m");
    let scopes = SCOPES.join(",");
    let key = hub.make_key(&["agent-key", "--principal", "pat", "--scope", &scopes, "--agent", "weather"]);
    for (path, subprotocol) in [("/ws", None), ("/gopherhole/ws", None), ("/ws", Some("flotilla.worker.v1"))] {
        let mut dial = Dial::new(hub.address()).path(path).key(&key);
        if let Some(name) = subprotocol {
            dial = dial.subprotocol(name);
        }
        let mut socket = dial.open();
        let (task_id, context) = (&task["id"], &task["contextId"]);
        let payload = json!({"parts": [{"kind": "text", "text": "hi"}]});
        for (number, frame) in [
            json!({"type": "message", "to": "other", "payload": payload}),
            json!({"type": "message", "to": "other", "taskId": task_id, "payload": payload}),
            json!({"type": "message", "to": "weather", "taskId": task_id, "payload": payload}),
            json!({"type": "task_response", "taskId": task_id, "run": 1, "status": {"state": "completed"}}),
            json!({"type": "task_response", "taskId": task_id, "status": {"state": "completed"}}),
            json!({"type": "ack", "taskId": task_id, "run": 1}),
            json!({"type": "approval_request", "taskId": task_id, "run": 1, "tool": "t", "text": "May I?"}),
            json!({"type": "report", "taskId": task_id, "run": 1, "number": 1, "reports": []}),
            json!({"type": "gone", "taskId": task_id, "run": 1}),
            json!({"type": "message", "to": "weather", "contextId": context, "payload": payload}),
        ]
        .into_iter()
        .enumerate()
        {
            let mut frame = frame;
            frame["id"] = json!(format!("{path}-{number}"));
            socket.send(&frame);
            let said = heard(&mut socket);
            let told = serde_json::to_string(&said).expect("JSON");
            assert!(!told.contains("Secret?") && !told.contains("other\""), "{frame}: {told}");
            cast.assert_untouched("other", &task, &frame.to_string());
        }
    }
}
