//! Workers that announce themselves over real sockets, and the work the hub gives them.

mod roster;

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

/// Announces, and waits until that is taken.
pub fn say(socket: &mut Socket, announce: &Value) -> Value {
    socket.send(announce);
    socket.kind("announced")
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
