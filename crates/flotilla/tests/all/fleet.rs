//! Workers that announce themselves over real sockets, and the work the hub gives them.

mod alerts;
mod anew;
mod answers;
mod away;
mod begun;
mod blocked;
mod ceilings;
mod delegation;
mod dispatch;
mod ends;
mod itself;
mod kills;
mod late;
mod lines;
mod load;
mod obstacles;
mod order;
mod recalled;
mod resting;
mod results;
mod rights;
mod roster;
mod spending;
mod standing;
mod taken_back;
mod versions;

use crate::socket::{SCOPES, dial};
use flotilla_testkit::socket::Socket;
use flotilla_testkit::{Binding, Client, HubProcess, Request, Response, until};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};

/// What a worker says of itself.
pub fn announce(name: &str, epoch: u64) -> Value {
    json!({"type": "SESSION_ANNOUNCE", "protocol_version": "2.0", "epoch": epoch,
        "worker": {"agent_id": name, "model": "claude-sonnet-4", "model_tier": "sonnet", "context_window": 200_000},
        "capabilities": {"tools": ["Bash", "Edit"], "mcp_servers": ["mem", "trek"], "max_concurrent": 1},
        "mcp_health": {"mem": "ok", "trek": "timeout"},
        "session": {"active_tasks": 0, "repo_state": {"branch": "main", "clean": true}}})
}

/// A scripted worker: an agent on a socket that announced itself.
pub fn worker(hub: &HubProcess, name: &str) -> Socket {
    worker_saying(hub, name, &announce(name, 1))
}

pub fn worker_saying(hub: &HubProcess, name: &str, announce: &Value) -> Socket {
    let mut socket = dial(hub, &key(hub, name)).open();
    say(&mut socket, announce);
    socket
}

/// Another key for the agent of this name, which may have some already.
pub fn key(hub: &HubProcess, name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = format!("{name}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    hub.make_key(&[&own, "--principal", name, "--scope", SCOPES])
}

/// Announces, and waits until that is taken. Work that waited for the worker may come before the answer.
pub fn say(socket: &mut Socket, announce: &Value) -> Value {
    socket.send(announce);
    socket.kind_first("announced")
}

pub fn owner(hub: &HubProcess) -> Client {
    hub.owner(Binding::HttpJson)
}

pub fn post(client: &Client, target: &str, body: &Value) -> Response {
    client.send(Request::post(target, body.to_string()).header("content-type", "application/json"))
}

/// A worker in the roster.
pub fn shown(hub: &HubProcess, name: &str) -> Value {
    owner(hub).get(&format!("/api/fleet/{name}")).json()
}

/// Waits until a worker is said to be like this.
pub fn is(hub: &HubProcess, name: &str, health: &str) -> Value {
    until(&format!("{name} is {health}"), || Some(shown(hub, name)).filter(|worker| worker["health"] == health))
}

/// A dispatch with these terms; `with` is laid over it.
pub fn dispatch(with: &Value) -> Value {
    let mut whole = json!({"type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": "Do it"});
    whole.as_object_mut().expect("an object").extend(with.as_object().expect("an object").clone());
    whole
}

/// Gives work; the task and the agent it is with.
pub fn give(hub: &HubProcess, with: &Value) -> (String, Client) {
    let given = post(&owner(hub), "/api/dispatch", &dispatch(with));
    assert_eq!(given.status, 200, "{}", given.text());
    let given = given.json();
    let agent = given["agent"].as_str().expect("an agent");
    (given["task"]["id"].as_str().expect("an id").to_owned(), owner(hub).agent(agent))
}

/// What was decided about a task, one word and a worker or reason each.
pub fn why(hub: &HubProcess, task: &str) -> Vec<Value> {
    let told = owner(hub).get(&format!("/api/tasks/{task}/why")).json();
    told["steps"].as_array().unwrap_or_else(|| panic!("{told}")).clone()
}

pub fn steps(hub: &HubProcess, task: &str) -> String {
    let word = |step: &Value| {
        let what = [&step["worker"], &step["reason"], &step["standing"]].into_iter().find_map(Value::as_str);
        format!("{} {}", step["step"].as_str().expect("a step"), what.unwrap_or_default()).trim_end().to_owned()
    };
    why(hub, task).iter().map(word).collect::<Vec<_>>().join(", ")
}

/// Says that a run is worked on.
pub fn begin(socket: &mut Socket, message: &Value) {
    socket.send(&json!({"type": "task_response", "taskId": message["taskId"], "run": message["run"],
        "status": {"state": "working"}}));
}

/// Answers a run with a TASK_RESULT, as an artifact of its own.
pub fn result(socket: &mut Socket, message: &Value, result: &Value) {
    let mut whole = json!({"type": "TASK_RESULT", "protocol_version": "2.0"});
    whole.as_object_mut().expect("an object").extend(result.as_object().expect("an object").clone());
    let part = json!({"kind": "data", "data": whole, "mimeType": "application/vnd.flotilla.task-result+json"});
    let state = if result["status"] == "blocked" { "rejected" } else { "completed" };
    socket.send(&json!({"type": "task_response", "taskId": message["taskId"], "run": message["run"],
        "status": {"state": state}, "artifact": {"artifactId": "r", "parts": [part]}, "lastChunk": true}));
}

/// The TASK_RESULT of a task.
pub fn told(task: &Value) -> Value {
    let artifacts = task["artifacts"].as_array().unwrap_or_else(|| panic!("no artifacts in {task}"));
    let data = artifacts.iter().map(|artifact| &artifact["parts"][0]["data"]);
    data.into_iter().find(|data| data["type"] == "TASK_RESULT").unwrap_or_else(|| panic!("no result in {task}")).clone()
}
