//! Whose an agent is and who it is there for: its name, its card, its tasks' logs.

use super::isolation::{NOWHERE, bare};
use crate::cast::{id, setup};
use flotilla_testkit::{Binding, Client, HubProcess, Refusal, Request};
use serde_json::json;

const AGENTS: &str = "
hub: {default_agent: open, allow_anonymous: true}
agents:
  open: {kind: echo, owner: team/olga}
  shared: {kind: echo, owner: team/olga, visibility: workspace}
  closed: {kind: echo, owner: team/olga, visibility: private}
";

fn start() -> HubProcess {
    setup().config(AGENTS).start()
}

fn card(client: &Client, agent: &str) -> u16 {
    client.get(&format!("/agents/{agent}/.well-known/agent-card.json")).status
}

/// The agents a caller is told of.
fn told_of(client: &Client) -> String {
    client.clone().agent("nope").call("ListTasks", &json!({})).expect_err("there is none").message
}

#[test]
fn agents_and_their_cards_are_there_for_those_who_may_see_them() {
    let hub = start();
    let key = |args: &[&str]| hub.stranger(Binding::HttpJson).key(&hub.make_key(args));
    let (olga, sam, other) = (key(&["team/olga"]), key(&["team/sam"]), key(&["other/olga"]));
    let blind = key(&["team/blind", "--scope", "tasks:read"]);
    let limited = key(&["team/limited", "--principal", "olga", "--agent", "shared"]);
    let (admin, stranger) = (hub.owner(Binding::HttpJson), hub.stranger(Binding::HttpJson));
    let wrong = stranger.clone().key("flk_nonsense");
    for (client, open, shared, closed, names) in [
        (&olga, 200, 200, 200, "closed, open, shared"),
        (&sam, 200, 200, 404, "open, shared"),
        (&other, 200, 404, 404, "open"),
        (&blind, 200, 404, 404, "open, shared"),
        (&limited, 200, 200, 404, "shared"),
        (&admin, 200, 200, 200, "closed, open, shared"),
        (&stranger, 200, 404, 404, "open"),
    ] {
        assert_eq!((card(client, "open"), card(client, "shared"), card(client, "closed")), (open, shared, closed));
        assert!(told_of(client).ends_with(&format!("Agents you can call: {names}.")), "{}", told_of(client));
    }
    assert_eq!((card(&wrong, "open"), card(&wrong, "shared")), (200, 404), "a public card is for all");
    let shared = olga.get("/agents/shared/.well-known/agent-card.json");
    assert_eq!(shared.header("cache-control"), Some("private, max-age=60"));
    assert!(shared.json()["securityRequirements"].as_array().is_some_and(|needed| !needed.is_empty()));
    let unseen = stranger.get("/agents/shared/.well-known/agent-card.json");
    let nowhere = stranger.get("/agents/nobody/.well-known/agent-card.json");
    assert_eq!(bare(&unseen, "shared"), bare(&nowhere, "nobody"), "not yours is not there");
}

#[test]
fn a_default_agent_that_is_not_public_has_no_card_for_strangers() {
    let hub = setup().config("agents: {closed: {kind: echo, visibility: private}}").start();
    let target = "/.well-known/agent-card.json";
    assert_eq!(hub.stranger(Binding::HttpJson).get(target).status, 404);
    assert_eq!(hub.owner(Binding::HttpJson).get(target).status, 200);
}

#[test]
fn an_agents_owner_sees_its_tasks_logs_and_nobody_elses() {
    let hub = start();
    let key = |args: &[&str]| hub.stranger(Binding::HttpJson).key(&hub.make_key(args));
    let (olga, sam) = (key(&["team/olga"]), key(&["team/sam"]));
    let task = sam.clone().agent("shared").say("m", "hello");
    let log = |client: &Client, task: &str| client.get(&format!("/api/tasks/{task}/log"));
    let follow = |client: &Client, task: &str| {
        client.send(Request::get(&format!("/api/tasks/{task}/log")).header("accept", "text/event-stream"))
    };
    assert_eq!(log(&olga, id(&task)).status, 200, "her agent");
    assert_eq!(log(&hub.owner(Binding::HttpJson), id(&task)).status, 200, "whoever administers the hub");
    assert!(follow(&olga, id(&task)).text().contains("run_started"));
    let limited = key(&["team/limited", "--principal", "olga", "--agent", "open"]);
    for client in [&sam, &key(&["other/olga"]), &limited, &hub.stranger(Binding::HttpJson)] {
        for ask in [&log as &dyn Fn(&Client, &str) -> flotilla_testkit::Response, &follow] {
            assert_eq!(ask(client, id(&task)).status, 404);
            assert_eq!(bare(&ask(client, id(&task)), id(&task)), bare(&ask(client, NOWHERE), NOWHERE));
        }
    }
    let writer = key(&["team/writer", "--principal", "olga", "--scope", "tasks:write"]);
    assert_eq!(Refusal::of(&log(&writer, id(&task))).reason, "PERMISSION_DENIED");
}

#[test]
fn a_message_with_a_push_config_needs_its_scope_too() {
    let hub = start();
    let key = hub.make_key(&["alice", "--scope", "tasks:read,tasks:write"]);
    for binding in Binding::ALL {
        let alice = hub.stranger(binding).key(&key);
        let mut params = flotilla_testkit::client::message("m", "hello");
        params["configuration"] = json!({"taskPushNotificationConfig": {"url": "https://example.com"}});
        let refusal = alice.call("SendMessage", &params).expect_err("refused");
        assert_eq!(
            (refusal.reason.as_str(), &refusal.metadata["requiredScope"]),
            ("PERMISSION_DENIED", &json!("push:write"))
        );
    }
}

#[test]
fn an_owner_that_is_none_is_refused() {
    for (owner, word) in [("a b", "letters, digits"), ("anonymous", "anonymous"), ("a/b/c", "letters, digits")] {
        let said = setup().config(&format!("agents: {{echo: {{kind: echo, owner: {owner}}}}}")).refused();
        assert!(said.contains("agents.echo") && said.contains(word), "{said}");
    }
}
