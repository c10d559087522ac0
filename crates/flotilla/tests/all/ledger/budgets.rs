//! Budgets: told at levels, stopped at hard ceilings, and refused before anything is begun.

use super::{hub_with, owner};
use crate::cast::{id, reached, state, text};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess, until};
use serde_json::{Value, json};

const HANDSHAKE: &str = "urn:flotilla:ext:fleet-handshake:2.0";

/// Spends 4 tokens and a tenth of a cent again and again.
pub const STEADY: &str = r#"
  steady:
    kind: script
    script:
      otherwise:
        - working
        - repeat: {times: 400, do: [{blocks: [{type: usage, input_tokens: 3, output_tokens: 1, cost_usd: 0.001}]}, {delay: 20ms}]}
        - completed
"#;

fn dispatched(client: &Client, name: &str, budget: &Value, chain: &Value) -> Value {
    let mut params = message(name, "go");
    let dispatch =
        json!({"type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": "go", "task": {"budget": budget}});
    params["message"]["metadata"] = json!({HANDSHAKE: dispatch});
    params["metadata"] = json!({"urn:flotilla:ext:ancestry:1.0": {"chain": chain}});
    params["configuration"] = json!({"returnImmediately": true});
    client.call("SendMessage", &params).unwrap_or_else(|refusal| panic!("{refusal:?}"))["task"].clone()
}

fn log(hub: &HubProcess, task: &Value) -> Vec<Value> {
    let log = owner(hub).get(&format!("/api/tasks/{}/log", id(task))).json();
    log["events"].as_array().expect("events").clone()
}

fn warnings(hub: &HubProcess, task: &Value) -> Vec<u64> {
    let near = |entry: Value| {
        let near = &entry["event"]["near_limit"];
        Some(near["used"].as_u64()? * 100 / near["most"].as_u64()?)
    };
    log(hub, task).into_iter().filter_map(near).collect()
}

#[test]
fn a_hard_contract_stops_the_run_and_a_soft_one_tells_of_it() {
    let hub = hub_with(STEADY);
    let client = hub.owner(Binding::HttpJson).agent("steady");
    let task = dispatched(&client, "m1", &json!({"max_total_tokens": 40, "hard": true}), &json!([]));
    let failed = reached(&client, id(&task), "TASK_STATE_FAILED");
    assert!(text(&failed["status"]["message"]).contains("budget of this task is used up"), "{failed}");
    assert_eq!(failed["status"]["message"]["metadata"][HANDSHAKE]["blocked_reason"], "budget_exhausted");
    let told = warnings(&hub, &task);
    assert!(told.len() == 3 && told[0] >= 50 && told[1] >= 80 && told[2] >= 100, "{told:?}");
    let soft = dispatched(&client, "m2", &json!({"max_cost_usd": 0.01}), &json!([]));
    until("it is told of all levels", || (warnings(&hub, &soft).len() == 3).then_some(()));
    assert_eq!(state(&client.task(id(&soft))), "TASK_STATE_WORKING");
}

#[test]
fn the_day_s_ceiling_of_an_agent_stops_it_and_begins_nothing_more() {
    let hub = hub_with(&format!("{STEADY}\nbudgets: {{agents: {{steady: {{tokens: 20}}}}}}\n"));
    let caller = hub.caller(Binding::JsonRpc, "peer").agent("steady");
    let task = caller.start("m1", "go");
    let failed = reached(&caller, id(&task), "TASK_STATE_FAILED");
    let told = text(&failed["status"]["message"]);
    assert!(told.contains("for today") && !told.contains("20"), "a caller is told no figures: {told}");
    let next = caller.say("m2", "go");
    assert_eq!(state(&next), "TASK_STATE_REJECTED");
    assert_eq!(next["status"]["message"]["metadata"][HANDSHAKE]["blocked_reason"], "budget_too_small");
    assert!(log(&hub, &next).iter().all(|entry| entry["event"]["run_queued"].is_null()), "nothing was run");
    assert_eq!(state(&hub.owner(Binding::HttpJson).agent("spender").say("m3", "free")), "TASK_STATE_COMPLETED");
    let mut hub = hub;
    hub.restart();
    assert_eq!(state(&caller.say("m4", "go")), "TASK_STATE_REJECTED", "also after a restart");
}

#[test]
fn the_day_s_ceilings_of_a_workspace_and_of_the_hub_count_all_agents() {
    for budgets in ["workspaces: {default: {cost_usd: 0.01}}", "day: {tokens: 100}"] {
        let hub = hub_with(&format!("budgets: {{{budgets}}}\n"));
        let client = hub.owner(Binding::HttpJson);
        client.clone().agent("spender").say("m1", "spend");
        let next = client.clone().agent("careful").say("m2", "run it");
        assert_eq!(state(&next), "TASK_STATE_REJECTED", "{budgets}");
    }
}

#[test]
fn delegated_work_draws_on_its_parent_s_budget() {
    let hub = hub_with(STEADY);
    let client = hub.owner(Binding::HttpJson);
    let root = dispatched(&client, "m1", &json!({"max_total_tokens": 40, "hard": true}), &json!([]));
    let log = owner(&hub).get(&format!("/api/tasks/{}/log", id(&root))).json();
    let chain = json!([{"hub": log["hubId"], "agent": "careful", "task": root["id"]}]);
    let steady = client.clone().agent("steady");
    let child = dispatched(&steady, "m2", &json!({"max_total_tokens": 4000}), &chain);
    reached(&steady, id(&child), "TASK_STATE_FAILED");
    let late = dispatched(&steady, "m3", &json!({"max_total_tokens": 4000}), &chain);
    assert_eq!(state(&late), "TASK_STATE_REJECTED", "nothing is left of it");
}
