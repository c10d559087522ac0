//! The registry as its owners change it: over the API, from the command line, and by agents that come and go.

mod add;
mod api;
mod checks;
mod discover;
mod proven;
mod rights;

use crate::cast::setup;
use flotilla_testkit::{Binding, Client, HubProcess, Request, Response, Setup};
use serde_json::Value;

/// A hub that may call this machine.
fn local(more: &str) -> Setup {
    setup().config(&format!("targets: {{allow: [127.0.0.0/8]}}\nagents:\n  echo: {{kind: echo}}\n{more}\n"))
}

fn hub() -> HubProcess {
    local("").start()
}

fn owner(hub: &HubProcess) -> Client {
    hub.owner(Binding::HttpJson)
}

/// A request with a body of JSON.
fn ask(client: &Client, verb: &str, target: &str, body: &Value) -> Response {
    let mut request = Request::post(target, body.to_string()).header("content-type", "application/json");
    request.verb = verb.into();
    client.send(request)
}

fn add(client: &Client, body: &Value) -> Response {
    ask(client, "POST", "/api/agents", body)
}

/// What a refusal says.
fn told(response: &Response) -> String {
    response.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
}

fn names(response: &Response) -> Vec<String> {
    let page = response.json();
    let agents = page["agents"].as_array().unwrap_or_else(|| panic!("no agents in {page}"));
    agents.iter().filter_map(|agent| agent["name"].as_str().map(str::to_owned)).collect()
}
