//! Extensions of an agent elsewhere: declared here, asked for there, and in force only where the agent says so.

use super::{chained, done, task};
use crate::cast::{id, reached, setup, state};
use flotilla_testkit::client::message;
use flotilla_testkit::stand_in::card;
use flotilla_testkit::{Act, Asked, Binding, HubProcess, StandIn, until};
use serde_json::{Value, json};

const OPTIONAL: &str = "https://example.com/ext/tone";
const REQUIRED: &str = "https://example.com/ext/seal";
/// The agent knows it, and its card does not say so.
const UNDECLARED: &str = "https://example.com/ext/hidden";

fn declared(required: bool) -> Value {
    json!([
        {"uri": OPTIONAL, "description": "Says how to say it.", "params": {"tones": ["dry"]}},
        {"uri": REQUIRED, "required": required},
        {"uri": "urn:flotilla:ext:stream-resume:1.0"},
    ])
}

fn agent(required: bool, streaming: bool) -> StandIn {
    let card = move |url: &str| {
        let mut card = card(url, streaming);
        card["capabilities"]["extensions"] = declared(required);
        card
    };
    StandIn::with_card(card, |asked: &Asked| match asked.method.as_str() {
        "SendMessage" => {
            let asks = |uri: &str| asked.header("a2a-extensions").is_some_and(|named| named.contains(uri));
            let active = if asks(UNDECLARED) { UNDECLARED } else { OPTIONAL };
            vec![Act::Activate(active), done("t-1").remove(0)]
        }
        "SendStreamingMessage" => vec![Act::Event(json!({"task": task("t-1", "COMPLETED")}))],
        _ => vec![Act::Answer(task("t-1", "COMPLETED"))],
    })
}

/// Once the agent's card has been read.
fn before(agent: &StandIn) -> HubProcess {
    let hub = super::before(agent, "");
    until("the agent's card is read", || extensions(&hub).iter().any(|one| one["uri"] == OPTIONAL).then_some(()));
    hub
}

fn extensions(hub: &HubProcess) -> Vec<Value> {
    let card = hub.owner(Binding::HttpJson).get("/agents/far/.well-known/agent-card.json").json();
    card["capabilities"]["extensions"].as_array().cloned().unwrap_or_default()
}

#[test]
fn the_hub_s_card_declares_what_the_agent_s_does() {
    let agent = agent(false, false);
    let hub = before(&agent);
    let listed = extensions(&hub);
    let tone = listed.iter().find(|one| one["uri"] == OPTIONAL).expect("it is declared");
    assert_eq!((&tone["description"], &tone["params"]["tones"][0]), (&json!("Says how to say it."), &json!("dry")));
    let resume = listed.iter().filter(|one| one["uri"] == "urn:flotilla:ext:stream-resume:1.0").count();
    assert_eq!(resume, 0, "what a hub implements is its own to declare");
}

#[test]
fn what_is_asked_for_travels_and_what_is_activated_is_told() {
    let agent = agent(false, false);
    let hub = before(&agent);
    for (number, binding) in Binding::ALL.into_iter().enumerate() {
        let asked = format!("{OPTIONAL},{REQUIRED},urn:flotilla:ext:stream-resume:1.0");
        let client = hub.owner(binding).header("a2a-extensions", &asked);
        let answer = client.response("SendMessage", &message(&format!("m-{number}"), "go"));
        assert_eq!(answer.header("a2a-extensions"), Some(OPTIONAL), "{binding:?}: the agent did not say the other");
    }
    for asked in agent.asked("SendMessage") {
        let ancestry = "urn:flotilla:ext:ancestry:1.0";
        assert_eq!(asked.header("a2a-extensions"), Some(format!("{ancestry}, {OPTIONAL}, {REQUIRED}").as_str()));
    }
    let client = hub.owner(Binding::JsonRpc).header("a2a-extensions", &format!("{UNDECLARED}, urn:unknown"));
    let answer = client.response("SendMessage", &message("undeclared", "go"));
    assert_eq!(answer.header("a2a-extensions"), Some(UNDECLARED), "its word counts, not its card's");
    let plain = hub.owner(Binding::JsonRpc).response("SendMessage", &message("plain", "go"));
    assert_eq!(plain.header("a2a-extensions"), None);
    let task = plain.json()["result"]["task"].clone();
    let log = hub.owner(Binding::JsonRpc).get(&format!("/api/tasks/{}/log", id(&task))).text().to_owned();
    assert!(!log.contains("activated"), "{log}");
}

#[test]
fn a_stream_names_what_is_asked_for_and_declared() {
    let agent = agent(false, true);
    let hub = before(&agent);
    let client = hub.owner(Binding::JsonRpc).header("a2a-extensions", &format!("{OPTIONAL}, urn:unknown"));
    let answer = client.response("SendStreamingMessage", &message("m-1", "go"));
    assert_eq!(answer.header("a2a-extensions"), Some(OPTIONAL));
    let asked = agent.wait("SendStreamingMessage", 1);
    assert!(asked[0].header("a2a-extensions").is_some_and(|named| named.contains(OPTIONAL)));
}

#[test]
fn what_the_agent_demands_is_demanded() {
    let agent = agent(true, false);
    let hub = before(&agent);
    let client = hub.owner(Binding::JsonRpc);
    let refusal = client.call("SendMessage", &message("m-1", "go")).expect_err("it is demanded");
    assert_eq!(refusal.reason, "EXTENSION_SUPPORT_REQUIRED");
    assert!(refusal.message.contains(REQUIRED), "{}", refusal.message);
    let named = hub.owner(Binding::JsonRpc).header("a2a-extensions", REQUIRED);
    assert_eq!(state(&named.say("m-2", "go")), "TASK_STATE_COMPLETED");
}

#[test]
fn extensions_pass_through_two_hubs_in_every_way() {
    for (transport, version) in [
        ("JSONRPC", "1.0"),
        ("HTTP+JSON", "1.0"),
        ("GRPC", "1.0"),
        ("JSONRPC", "0.3"),
        ("HTTP+JSON", "0.3"),
        ("GRPC", "0.3"),
    ] {
        let agent = agent(false, false);
        let second = before(&agent);
        let first = chained(
            &second,
            "far",
            &format!(", transports: ['{transport}'], protocol_version: '{version}', card_refresh: 100ms"),
        );
        until("the card is read through", || extensions(&first).iter().any(|one| one["uri"] == OPTIONAL).then_some(()));
        let client = first.owner(Binding::JsonRpc).header("a2a-extensions", OPTIONAL);
        let answer = client.response("SendMessage", &message("m-1", "go"));
        assert_eq!(answer.header("a2a-extensions"), Some(OPTIONAL), "{transport} {version}");
        let asked = agent.wait("SendMessage", 1);
        assert!(asked[0].header("a2a-extensions").is_some_and(|named| named.contains(OPTIONAL)));
    }
}

#[test]
fn a_stream_that_ends_with_nothing_to_show_is_a_reason_to_ask() {
    let mut whole = task("t-1", "COMPLETED");
    whole["artifacts"] = json!([{"artifactId": "out", "parts": [{"text": "the result"}]}]);
    let agent = StandIn::start(true, move |asked: &Asked| match asked.method.as_str() {
        "SendStreamingMessage" => {
            vec![Act::Event(json!({"task": task("t-1", "SUBMITTED")})), Act::Event(super::status("t-1", "COMPLETED"))]
        }
        _ => vec![Act::Answer(whole.clone())],
    });
    let hub = setup().config(&super::config(&agent.url(), "")).start();
    let client = hub.owner(Binding::JsonRpc);
    let started = client.start("m-1", "go");
    let ended = reached(&client, id(&started), "TASK_STATE_COMPLETED");
    assert_eq!(super::texts(&ended["artifacts"][0]), ["the result"]);
    assert_eq!(agent.asked("GetTask").len(), 1);
}
