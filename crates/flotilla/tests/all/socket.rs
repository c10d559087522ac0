//! Agents that dial in, and callers on the same socket.

mod absence;
mod acknowledged;
mod answers;
mod cancel;
mod channel;
mod connect;
mod gopherhole;
mod proxy;
mod refused;
mod resume;
mod storm;
mod window;

use flotilla_testkit::socket::{Dial, Socket};
use flotilla_testkit::{Binding, Client, HubProcess};
use serde_json::{Value, json};

/// A key that may be an agent and call others.
pub const SCOPES: &str = "agents:read,tasks:read,tasks:write,push:write,agents:connect";

pub fn agent_key(hub: &HubProcess, name: &str) -> String {
    hub.make_key(&[name, "--scope", SCOPES])
}

pub fn dial(hub: &HubProcess, key: &str) -> Dial {
    Dial::new(hub.address()).key(key)
}

/// An agent that is connected under its key's name.
pub fn connected(hub: &HubProcess, name: &str) -> Socket {
    dial(hub, &agent_key(hub, name)).open()
}

/// A caller of one agent.
pub fn caller(hub: &HubProcess, binding: Binding, agent: &str) -> Client {
    hub.owner(binding).agent(agent)
}

/// Answers a run with a text.
pub fn answer(socket: &mut Socket, message: &Value, text: &str) {
    socket.send(&json!({
        "type": "task_response",
        "taskId": message["taskId"],
        "run": message["run"],
        "status": {"state": "completed"},
        "artifact": {"artifactId": "answer", "parts": [{"kind": "text", "text": text}]},
        "lastChunk": true,
    }));
}

/// The text of a message frame.
pub fn asked(message: &Value) -> &str {
    message["payload"]["parts"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {message}"))
}
