//! What Claude Code uses: counted as it comes, held against budgets within a turn, and booked however the turn ends.

use super::{alive, coder, config, hub, log};
use crate::cast::{id, reached, setup, state};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, HubProcess, until};
use serde_json::{Value, json};

const HANDSHAKE: &str = "urn:flotilla:ext:fleet-handshake:2.0";
/// More calls than a hub could miss: the stand-in needs 20 s for them.
const MANY: u64 = 2000;

fn used(hub: &HubProcess, task: &Value) -> Value {
    hub.owner(Binding::HttpJson).get(&format!("/api/usage?by=task&task={}", id(task))).json()["total"].clone()
}

/// Work under a contract with these terms, once the hub knows that the agent reads contracts.
fn dispatched(hub: &HubProcess, words: &str, terms: &Value) -> Value {
    let shown = || hub.owner(Binding::HttpJson).get("/api/fleet/coder").json();
    until("it is announced", || shown()["epoch"].is_u64().then_some(()));
    let mut params = message(words, words);
    let dispatch = json!({"type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": words, "task": terms});
    params["message"]["metadata"] = json!({HANDSHAKE: dispatch});
    params["configuration"] = json!({"returnImmediately": true});
    coder(hub).call("SendMessage", &params).unwrap_or_else(|refusal| panic!("{refusal:?}"))["task"].clone()
}

fn is_stopped_in_time(hub: &HubProcess, task: &Value) {
    let failed = reached(&coder(hub), id(task), "TASK_STATE_FAILED");
    let why = &failed["status"]["message"]["metadata"][HANDSHAKE]["blocked_reason"];
    assert_eq!(why, "budget_exhausted", "{failed}");
    until("nothing of it is left", || (alive(id(task)) == 0).then_some(()));
    let used = used(hub, task);
    let input = used["inputTokens"].as_u64().expect("tokens");
    assert!((600..MANY * 50).contains(&input), "{used}");
}

#[test]
fn a_hard_budget_stops_a_turn_between_two_calls_of_the_model() {
    let words = format!("spend {MANY}");
    for terms in [
        json!({"budget": {"max_total_tokens": 1000, "hard": true}}),
        json!({"token_budget": 1000, "budget": {"hard": true}}),
    ] {
        let hub = hub("");
        let task = dispatched(&hub, &words, &terms);
        is_stopped_in_time(&hub, &task);
        let used = used(&hub, &task);
        assert_eq!(used["costUsd"], Value::Null, "nobody told it: {used}");
    }
    let hub = setup().config(&(config("") + "budgets: {agents: {coder: {tokens: 1000}}}\n")).start();
    is_stopped_in_time(&hub, &coder(&hub).start("m", &words));
}

#[test]
fn what_was_told_as_it_came_is_not_told_again_at_the_end() {
    let hub = hub("");
    let task = coder(&hub).say("m", "spend 3");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    let used = used(&hub, &task);
    let figures = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "costUsd", "incomplete"];
    let expected = [json!(300), json!(150), json!(21), json!(9), json!(0.5), json!([])];
    assert_eq!(figures.map(|name| used[name].clone()), expected, "{used}");
}

#[test]
fn what_was_seen_of_a_run_that_is_canceled_or_killed_is_booked_and_said_to_be_part_of_it() {
    let canceled = hub("");
    let task = coder(&canceled).start("m", "spend 2 stall");
    until("its calls", || (used(&canceled, &task)["inputTokens"] == 200).then_some(()));
    until("half of one more", || (log(&canceled, &task).matches(r#""tool_use""#).count() > 2).then_some(()));
    coder(&canceled).call("CancelTask", &json!({"id": id(&task)})).expect("it can be canceled");
    let late = hub("      timeout: 2s\n");
    let failed = coder(&late).say("m", "spend 2 stall");
    assert_eq!(state(&failed), "TASK_STATE_FAILED");
    for (hub, task) in [(&canceled, &task), (&late, &failed)] {
        let used = until("all of it", || Some(used(hub, task)).filter(|used| used["inputTokens"] == 300));
        assert_eq!((&used["outputTokens"], &used["costUsd"]), (&json!(101), &Value::Null), "{used}");
        assert_eq!(used["incomplete"].as_array().map(Vec::len), Some(6), "{used}");
    }
}

#[test]
fn a_turn_that_ends_by_its_own_budget_is_booked_by_what_its_models_used() {
    let hub = hub("");
    let task = dispatched(&hub, "broke", &json!({"task_id": "x"}));
    let failed = reached(&coder(&hub), id(&task), "TASK_STATE_FAILED");
    let used = used(&hub, &task);
    assert_eq!((&used["totalTokens"], &used["costUsd"]), (&json!(153), &json!(0.5)), "{used}");
    assert!(failed["artifacts"].to_string().contains(r#""tokens_spent":153"#), "{failed}");
}

#[test]
fn the_program_is_told_what_its_run_may_cost_where_it_has_an_option_for_it() {
    let most = |hub: &HubProcess, task: &Value| {
        let done = reached(&coder(hub), id(task), "TASK_STATE_COMPLETED").to_string();
        let (_, rest) = done.split_once("--max-budget-usd=")?;
        Some(rest.chars().take_while(|char| char.is_ascii_digit() || *char == '.').collect::<String>())
    };
    let hard = json!({"budget": {"max_cost_usd": 0.5, "hard": true}});
    for (more, terms, expected) in [
        ("", hard.clone(), Some("0.5")),
        ("      max_budget_usd: 0.3\n", hard.clone(), Some("0.3")),
        ("      max_budget_usd: 7\n", hard, Some("0.5")),
        ("", json!({"budget": {"max_cost_usd": 0.5}}), None),
    ] {
        let hub = hub(more);
        let task = dispatched(&hub, "told", &terms);
        assert_eq!(most(&hub, &task).as_deref(), expected, "{more} {terms}");
    }
    let hub = setup().config(&(config("") + "budgets: {agents: {coder: {cost_usd: 1}}}\n")).start();
    for (number, expected) in ["1", "0.75", "0.5"].into_iter().enumerate() {
        let task = coder(&hub).say(&format!("m{number}"), "told");
        assert_eq!(most(&hub, &task).as_deref(), Some(expected), "what is left of the day's");
    }
}
