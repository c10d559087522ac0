//! Which binding, which version, which tenant: as the card says, unless the caller has a preference.

use super::agent::{Agent, Says, card, task};
use super::program::{Place, finish, streams};
use crate::cast::hub;
use serde_json::{Value, json};

fn two(first: &str, second: &str) -> Value {
    let interface = |binding: &str, path: &str| json!({"url": format!("${{URL}}{path}"), "protocolBinding": binding, "protocolVersion": "1.0"});
    let path = |binding: &str| if binding == "JSONRPC" { "/rpc" } else { "/rest" };
    json!({"supportedInterfaces": [interface("PIGEON", "/x"), interface(first, path(first)), interface(second, path(second))]})
}

fn answer(asked: &super::agent::Asked) -> Says {
    if asked.path.starts_with("/rpc") { Says::Result(task("COMPLETED")) } else { Says::Json(task("COMPLETED")) }
}

/// The path that was called.
fn called(interfaces: Value, args: &[&str]) -> String {
    let agent = Agent::start(card(interfaces), |asked, _| answer(asked));
    Place::new().run(&[&["task", "get", "t-1", "-a", &agent.url], args].concat()).ok();
    agent.asked()[0].path.clone()
}

#[test]
fn the_card_s_first_spoken_interface_is_used() {
    assert_eq!(called(two("JSONRPC", "HTTP+JSON"), &[]), "/rpc");
    assert_eq!(called(two("HTTP+JSON", "JSONRPC"), &[]), "/rest/tasks/t-1");
}

#[test]
fn a_preference_overrides_the_card_and_falls_back_to_it() {
    let both = || two("JSONRPC", "HTTP+JSON");
    assert_eq!(called(both(), &["--transport", "HTTP+JSON"]), "/rest/tasks/t-1");
    assert_eq!(called(both(), &["--transport", "GRPC", "--transport", "HTTP+JSON"]), "/rest/tasks/t-1");
    assert_eq!(called(both(), &["--transport", "GRPC"]), "/rpc");
    assert_eq!(called(two("HTTP+JSON", "HTTP+JSON"), &["--transport", "jsonrpc"]), "/rest/tasks/t-1");
}

#[test]
fn a_tenant_is_sent_exactly_as_declared_or_not_at_all() {
    let mut interfaces = two("JSONRPC", "HTTP+JSON");
    interfaces["supportedInterfaces"][1]["tenant"] = json!("acme/1");
    interfaces["supportedInterfaces"][2]["tenant"] = json!("acme/1");
    let agent = Agent::start(card(interfaces), |asked, _| answer(asked));
    let place = Place::new();
    for args in [&["task", "get", "t-1"][..], &["task", "cancel", "t-1"], &["task", "list"], &["send", "x", "--async"]]
    {
        place.run(&[args, &["-a", &agent.url]].concat());
        let asked = agent.asked().pop().expect("a request");
        assert_eq!(asked.json()["params"]["tenant"], "acme/1", "{args:?}");
    }
    place.run(&["task", "get", "t-1", "-a", &agent.url, "--transport", "HTTP+JSON"]).ok();
    assert_eq!(agent.asked().pop().expect("a request").path, "/rest/acme%2F1/tasks/t-1");
    let plain = Agent::start(card(json!({})), |asked, _| {
        assert!(asked.json()["params"].get("tenant").is_none());
        Says::Result(task("COMPLETED"))
    });
    place.run(&["task", "get", "t-1", "-a", &plain.url]).ok();
    assert!(plain.asked()[0].json()["params"].get("tenant").is_none());
}

#[test]
fn every_request_says_its_version() {
    let agent = Agent::start(card(json!({})), |asked, _| answer(asked));
    let place = Place::new();
    place.run(&["task", "get", "t-1", "-a", &agent.url]).ok();
    place.run(&["task", "get", "t-1", "-a", &agent.url, "--a2a-version", "1.1"]).ok();
    place.run(&["task", "cancel", "t-1", "-a", &agent.url]).ok();
    let versions: Vec<Option<String>> =
        agent.asked().iter().map(|asked| asked.header("a2a-version").map(str::to_owned)).collect();
    assert_eq!(versions, [Some("1.0".into()), Some("1.1".into()), Some("1.0".into())]);
}

#[test]
fn an_old_agent_is_not_spoken_to_unless_its_version_is_named() {
    let mut old = card(json!({}));
    old["supportedInterfaces"][0]["protocolVersion"] = json!("0.3");
    let agent = Agent::start(old, |asked, _| answer(asked));
    let ran = Place::new().run(&["task", "get", "t-1", "-a", &agent.url, "-o", "json"]);
    assert_eq!((ran.code, ran.error().as_str()), (1, "VersionNotSupportedError"));
    assert!(ran.out.contains("--a2a-version 0.3"), "{ran:?}");
    let mut newer = card(json!({}));
    newer["supportedInterfaces"][0]["protocolVersion"] = json!("1.7");
    let newer = Agent::start(newer, |asked, _| answer(asked));
    Place::new().run(&["task", "get", "t-1", "-a", &newer.url]).ok();
    assert_eq!(newer.asked()[0].header("a2a-version"), Some("1.0"), "the highest both speak");
    assert_eq!(agent.asked().len(), 0);
}

#[test]
fn all_bindings_give_the_same_results() {
    let hub = hub();
    let place = Place::at(&hub);
    let sent = place.json(&["send", "complete"]);
    let id = crate::cast::id(&sent["task"]);
    for args in [&["task", "get", id][..], &["task", "list"], &["task", "get", "nope"]] {
        let over = |binding| {
            let ran = place.run(&[args, &["--transport", binding]].concat());
            // The command to go on with says how the agent was called.
            let [out, err] = [ran.out, ran.err].map(|text| text.replace(&format!(" --transport {binding}"), ""));
            (ran.code, out, err)
        };
        assert_eq!(over("JSONRPC"), over("HTTP+JSON"), "{args:?}");
        assert_eq!(over("JSONRPC"), over("GRPC"), "{args:?}");
    }
}

#[test]
fn a_binding_is_chosen_among_three_and_does_every_operation() {
    let hub = hub();
    let place = Place::at(&hub);
    for transport in ["JSONRPC", "HTTP+JSON", "GRPC"] {
        let run =
            |args: &[&str]| place.run(&[args, &["--transport", transport, "--agent", "mock", "--debug"]].concat());
        let asked = run(&["send", "ask"]).ok();
        assert!(asked.err.contains(&format!("* {transport} at ")), "{asked:?}");
        let task = asked.field("Task");
        assert_eq!(run(&["task", "get", task]).ok().field("State"), "TASK_STATE_INPUT_REQUIRED");
        assert_eq!(run(&["task", "list"]).ok().field("Task"), task);
        let turn = run(&["send", "--stream", "large", "--task-id", task]).ok();
        assert!(turn.out.contains("  large, turn 2"), "{turn:?}");
        let held = run(&["send", "--async", "hold"]).ok();
        let following =
            place.start(&["task", "subscribe", held.field("Task"), "--transport", transport, "--agent", "mock"]);
        streams(&hub, 1);
        assert_eq!(run(&["task", "cancel", held.field("Task")]).ok().field("State"), "TASK_STATE_CANCELED");
        assert_eq!(finish(following).ok().field("State"), "TASK_STATE_CANCELED");
        streams(&hub, 0);
    }
}
