//! What owners decide and see of their agents' work: approvals, usage, events, and whose work a task is part of.

mod approvals;
pub mod budgets;
mod events;
mod opacity;
mod restart;
mod schemas;
mod tree;
mod usage;

use flotilla_testkit::http::Request;
use flotilla_testkit::{Binding, Client, HubProcess, until};
use serde_json::{Value, json};

/// Agents that ask for leave, and agents that use something.
pub const CONFIG: &str = r#"
hub: {default_agent: careful}
agents:
  careful:
    kind: script
    script:
      rules:
        - when: {text: twice}
          do:
            - approval: {tool: Bash, input: {command: first}}
            - approval: {tool: Bash, input: {command: second}}
            - completed: Done twice
        - when: {text: run}
          do:
            - approval: {tool: Bash, input: {command: "{text}"}, text: "May I?"}
            - completed: Done
  spender:
    kind: script
    script:
      rules:
        - when: {text: vague}
          do: [{blocks: [{type: usage, output_tokens: 5}]}, completed]
        - when: {text: free}
          do: [completed]
        - when: {text: many}
          do:
            - working
            - repeat: {times: "{2}", do: [{blocks: [{type: usage, input_tokens: 3, output_tokens: 1, cost_usd: 0.001}]}]}
            - completed
        - when: {text: spend}
          do:
            - blocks: [{type: usage, input_tokens: 100, output_tokens: 20, cache_read_input_tokens: 7, cache_creation_input_tokens: 5, cost_usd: 0.0125}]
            - completed
"#;

pub fn hub_with(more: &str) -> HubProcess {
    crate::cast::setup().config(&format!("{CONFIG}{more}")).start()
}

pub fn owner(hub: &HubProcess) -> Client {
    hub.owner(Binding::HttpJson)
}

/// The only approval in a state, once there is one.
pub fn approval(hub: &HubProcess, state: &str) -> Value {
    let client = owner(hub);
    until(&format!("an approval is {state}"), || {
        let list = client.get(&format!("/api/approvals?state={state}")).json();
        list["approvals"].as_array().expect("a list").first().cloned()
    })
}

/// Answers an approval; the response as it came.
pub fn answer(client: &Client, approval: &Value, said: &Value) -> flotilla_testkit::http::Response {
    let id = approval["id"].as_str().expect("an id");
    let request = Request::post(&format!("/api/approvals/{id}"), said.to_string());
    client.send(client.dress(request.header("content-type", "application/json")))
}

pub fn allow(hub: &HubProcess, approval: &Value) -> Value {
    let response = answer(&owner(hub), approval, &json!({"decision": "allow"}));
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}
