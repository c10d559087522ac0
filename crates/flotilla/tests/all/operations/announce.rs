//! Two hubs: one announces its agents, the other has them for as long as it hears of them.

use crate::cast::{setup, state};
use crate::cli::program::Place;
use flotilla_testkit::process::OWNER;
use flotilla_testkit::{Binding, HubProcess, Receiver, Request, Response, http, until};
use serde_json::{Value, json};

const HERE: &str = "
hub: {default_agent: mirror, allow_anonymous: true}
agents:
  mirror: {kind: echo, description: Shows what it is shown.}
  hidden: {kind: echo, visibility: private}
";

/// The hub that is told; it may call this machine.
const THERE: &str = "
targets: {allow: ['127.0.0.0/8']}
registry: {check_every: 1s}
agents:
  echo: {kind: echo}
";

fn there() -> HubProcess {
    setup().config(THERE).start()
}

fn here() -> HubProcess {
    setup().config(HERE).start()
}

fn writer(hub: &HubProcess, name: &str) -> String {
    hub.make_key(&[name, "--scope", "agents:read,agents:write,tasks:read,tasks:write"])
}

fn ask(hub: &HubProcess, key: &str, request: Request) -> Response {
    http::send(hub.address(), &request.header("authorization", &format!("Bearer {key}")))
}

fn announce(hub: &HubProcess, key: &str, body: &Value) -> Response {
    let request = Request::post("/api/announce", body.to_string()).header("content-type", "application/json");
    ask(hub, key, request)
}

fn card(hub: &HubProcess, name: &str) -> String {
    format!("{}/agents/{name}/.well-known/agent-card.json", hub.url())
}

/// How each agent that was announced stands.
fn standing(hub: &HubProcess, key: &str) -> Vec<(String, String)> {
    let listed = ask(hub, key, Request::get("/api/announce")).json();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let one = |agent: &Value| (text(&agent["name"]), text(&agent["state"]));
    listed["agents"].as_array().expect("agents").iter().map(one).collect()
}

#[test]
fn an_announced_agent_is_called_through_and_is_gone_when_nobody_speaks_of_it() {
    let (here, mut there) = (here(), there());
    let key = writer(&there, "harbour");
    let body = json!({"agents": [{"name": "mirror", "card": card(&here, "mirror")}], "leaseSeconds": 2});
    let answer = announce(&there, &key, &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["agents"], json!([{"name": "mirror", "leaseSeconds": 2}]));
    let client = there.stranger(Binding::JsonRpc).key(&key).agent("mirror");
    let task = client.say("m", "hello");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED");
    let shown = || ask(&there, &key, Request::get("/agents/mirror/.well-known/agent-card.json")).status;
    assert_eq!(shown(), 200);
    until("it is stale", || standing(&there, &key).contains(&("mirror".into(), "stale".into())).then_some(()));
    until("it is gone", || standing(&there, &key).contains(&("mirror".into(), "gone".into())).then_some(()));
    assert_eq!(shown(), 404, "nobody finds it");
    let again = client.call("SendMessage", &flotilla_testkit::client::message("n", "hello")).expect_err("refused");
    assert_eq!(again.reason, "UNAVAILABLE");
    let mut waits = flotilla_testkit::client::message("w", "hello");
    waits["metadata"] = json!({"x-ttl": 600});
    let waits = client.call("SendMessage", &waits).expect_err("nor may it wait");
    assert_eq!(waits.reason, "UNAVAILABLE");
    assert!(!waits.message.contains("ttl"), "{waits:?}");
    let id = task["id"].as_str().expect("an id").to_owned();
    assert_eq!(state(&client.task(&id)), "TASK_STATE_COMPLETED", "its tasks can be read");
    there.restart();
    assert_eq!(state(&client.task(&id)), "TASK_STATE_COMPLETED", "after a restart too");
    assert_eq!(announce(&there, &key, &body).status, 200, "and it may come back");
    assert_eq!(state(&client.say("o", "hello")), "TASK_STATE_COMPLETED");
}

#[test]
fn an_agent_whose_announcement_is_over_is_shown_to_be_gone() {
    let (here, mut there) = (here(), there());
    let key = writer(&there, "harbour");
    let body = json!({"agents": [{"name": "mirror", "card": card(&here, "mirror")}], "leaseSeconds": 600});
    assert_eq!(announce(&there, &key, &body).status, 200);
    assert_eq!(ask(&there, &key, Request::new("DELETE", "/api/announce/mirror")).status, 204);
    for start in ["before", "after"] {
        let shown = there.cli_ok(&["agents", "show", "mirror"]);
        assert!(shown.contains("State: gone"), "{start}: {shown}");
        let refused = there.cli(&["agents", "check", "mirror"]);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && told.contains("nobody says any more that it is there"), "{start}: {told}");
        assert!(!there.cli_ok(&["agents", "list"]).contains("mirror"), "it is in no list");
        assert!(there.cli_ok(&["agents", "list", "--state", "gone"]).contains("mirror"), "but in that of its kind");
        let metrics = ask(&there, OWNER, Request::get("/metrics")).text().to_owned();
        assert!(metrics.contains("flotilla_agents{state=\"gone\"} 1"), "{start}: {metrics}");
        there.restart();
    }
    assert_eq!(announce(&there, &key, &body).status, 200);
    assert!(!there.cli_ok(&["agents", "show", "mirror"]).contains("State: gone"), "it is back");
}

#[test]
fn whoever_adds_an_agent_that_was_announced_before_has_it_for_good() {
    let (here, mut there) = (here(), there());
    let body = json!({"agents": [{"name": "mirror", "card": card(&here, "mirror")}], "leaseSeconds": 600});
    assert_eq!(announce(&there, OWNER, &body).status, 200);
    assert_eq!(ask(&there, OWNER, Request::new("DELETE", "/api/announce/mirror")).status, 204);
    there.cli_ok(&["agents", "change", "mirror", "--description", "Mine"]);
    assert!(there.cli_ok(&["agents", "show", "mirror"]).contains("State: gone"), "a change brings nobody back");
    assert!(!there.cli_ok(&["agents", "list"]).contains("mirror"), "nor into a list");
    let settings = json!({"name": "mirror", "card": card(&here, "mirror")}).to_string();
    let add = |there: &HubProcess| {
        let request = Request::post("/api/agents", settings.clone()).header("content-type", "application/json");
        ask(there, OWNER, request).status
    };
    assert_eq!(add(&there), 201);
    let live = |there: &HubProcess| {
        until("it is live", || there.cli_ok(&["agents", "show", "mirror"]).contains("State: live").then_some(()));
    };
    live(&there);
    there.cli_ok(&["agents", "check", "mirror"]);
    there.signal("HUP");
    until("the configuration is read again", || there.log().contains("configuration read again").then_some(()));
    for when in ["reload", "restart"] {
        live(&there);
        assert_eq!(add(&there), 409, "{when}");
        assert_eq!(standing(&there, OWNER), [], "{when}: nobody has to announce it");
        let task = there.owner(Binding::JsonRpc).agent("mirror").say(when, "hello");
        assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{when}");
        there.restart();
    }
}

#[test]
fn a_configured_agent_is_there_whatever_became_of_one_that_was_announced_under_its_name() {
    let (here, mut there) = (here(), there());
    let body = json!({"agents": [{"name": "mirror", "card": card(&here, "mirror")}], "leaseSeconds": 600});
    assert_eq!(announce(&there, OWNER, &body).status, 200);
    assert_eq!(ask(&there, OWNER, Request::new("DELETE", "/api/announce/mirror")).status, 204);
    there.write_config(&format!("{THERE}  mirror: {{kind: echo}}\n"));
    there.restart();
    let shown = there.cli_ok(&["agents", "show", "mirror"]);
    assert!(shown.contains("State: live") && shown.contains("configuration"), "{shown}");
    assert_eq!(state(&there.owner(Binding::JsonRpc).agent("mirror").say("m", "hello")), "TASK_STATE_COMPLETED");
}

#[test]
fn a_hub_that_is_restarted_forgets_nobody() {
    let (here, mut there) = (here(), there());
    let key = writer(&there, "harbour");
    announce(
        &there,
        &key,
        &json!({"agents": [{"name": "mirror", "card": card(&here, "mirror")}], "leaseSeconds": 600}),
    );
    there.restart();
    assert_eq!(standing(&there, &key), [("mirror".to_owned(), "announced".to_owned())]);
    let task = there.stranger(Binding::JsonRpc).key(&key).agent("mirror").say("m", "hello");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED");
}

#[test]
fn a_hub_announces_its_own_agents_and_says_good_bye() {
    let there = there();
    let key = writer(&there, "harbour");
    let config = format!("{HERE}\nannounce: {{key: env:THERE_KEY, every: 1s, prefix: far-}}");
    let mut here = setup().config(&config).env("A2A_REGISTRY_URL", &there.url()).env("THERE_KEY", &key).start();
    let announced = |name: &str, state: &str| {
        until(state, || standing(&there, &key).contains(&(name.into(), state.into())).then_some(()));
    };
    announced("far-mirror", "announced");
    assert_eq!(standing(&there, &key).len(), 1, "only public agents");
    let client = there.stranger(Binding::JsonRpc).key(&key).agent("far-mirror");
    assert_eq!(state(&client.say("m", "hello")), "TASK_STATE_COMPLETED");
    here.terminate();
    announced("far-mirror", "gone");
    here.restart();
    announced("far-mirror", "announced");
    assert!(!here.log().contains(&key), "the key is told nowhere");
}

#[test]
fn the_command_line_announces_too() {
    let (here, there) = (here(), there());
    let key = writer(&there, "harbour");
    let place = Place::new().env("FLOTILLA_URL", &here.url()).env("A2A_REGISTRY_AUTH_TOKEN", &key);
    let ran = place.run(&["announce", "--to", &there.url(), "--once", "--every", "20s"]).ok();
    assert!(ran.out.contains("announced: mirror") && !ran.out.contains("hidden"), "{ran:?}");
    let ran = place.run(&["announce", "--to", &there.url(), "--once", "--agent", "hidden"]);
    assert!(ran.code != 0 && ran.err.contains("no public agent 'hidden'"), "{ran:?}");
    let taken = place.run(&["announce", "--to", &there.url(), "--once", "--agent", "mirror", "--key", OWNER]).ok();
    assert!(taken.out.contains("announced"), "the hub's owner may: {taken:?}");
    let place = Place::new().env("FLOTILLA_URL", &here.url());
    let ran = place.run(&["announce", "--to", &there.url(), "--once", "--key", "flk_wrong"]);
    assert!(ran.code != 0 && ran.err.contains("agents:write") && !ran.err.contains("flk_wrong"), "{ran:?}");
    let ran = place.run(&["announce", "--once"]);
    assert!(ran.code == 2 && ran.err.contains("--to"), "{ran:?}");
}

#[test]
fn names_are_not_taken_from_others() {
    let (here, there) = (here(), there());
    let (one, two) = (writer(&there, "one"), writer(&there, "two"));
    let body = |name: &str| json!({"agents": [{"name": name, "card": card(&here, "mirror")}]});
    assert_eq!(announce(&there, &one, &body("mirror")).status, 200);
    for (key, name, status) in [(&two, "mirror", 409), (&one, "echo", 409), (&one, "tasks", 400), (&one, "a b", 400)] {
        let refused = announce(&there, key, &body(name));
        assert_eq!(refused.status, status, "{name}: {}", refused.text());
    }
    let reader = there.make_key(&["reader"]);
    assert_eq!(announce(&there, &reader, &body("x")).status, 403, "the scope is needed");
    assert_eq!(http::send(there.address(), &Request::post("/api/announce", "{}")).status, 401);
    let away = json!({"agents": [{"name": "x", "card": "http://192.0.2.1/card.json"}]});
    assert_eq!(announce(&there, &one, &away).status, 400, "the guard is asked");
    assert_eq!(ask(&there, &two, Request::new("DELETE", "/api/announce/mirror")).status, 404);
    assert_eq!(ask(&there, &one, Request::new("DELETE", "/api/announce/mirror")).status, 204);
    let both = json!({"agents": [{"name": "echo", "card": card(&here, "mirror")}, {"name": "mirror", "card": card(&here, "mirror")}]});
    let answer = announce(&there, &one, &both);
    assert_eq!((answer.status, &answer.json()["refused"][0]["name"]), (200, &json!("echo")), "what can be is taken");
}

#[test]
fn one_that_cannot_be_taken_stands_in_nobodys_way() {
    let (here, there) = (here(), there());
    let key = writer(&there, "harbour");
    let place = card(&here, "mirror");
    let whole = http::send(here.address(), &Request::get("/agents/mirror/.well-known/agent-card.json")).json();
    let body = json!({"agents": [
        {"name": "@system", "card": place}, {"name": "echo", "card": place}, {"name": "api", "card": place}, {"card": place},
        {"name": "odd", "kind": "echo"}, {"name": "nowhere", "card": {"name": "x"}}, 7, {"name": "whole", "card": whole},
        {"name": "mirror", "card": place}]});
    let answer = announce(&there, &key, &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let names = |list: &str| -> Vec<String> {
        let told = answer.json()[list].clone();
        told.as_array().expect("a list").iter().map(|one| one["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names("agents"), ["whole", "mirror"]);
    assert_eq!(names("refused"), ["@system", "echo", "api", "", "odd", "nowhere", ""]);
    let client = there.stranger(Binding::JsonRpc).key(&key).agent("whole");
    assert_eq!(state(&client.say("m", "hello")), "TASK_STATE_COMPLETED", "a card itself leads to its agent");
}

#[test]
fn a_card_is_taken_as_hermes_posts_it() {
    let (here, there) = (here(), there());
    let key = writer(&there, "hermes");
    let card = json!({"name": "Mirror", "agentId": "mirror", "description": "d", "url": format!("{}/agents/mirror", here.url()),
                      "version": "1", "protocol": "a2a", "capabilities": {"push_notifications": true}, "skills": []});
    let answer = announce(&there, &key, &card);
    assert_eq!(answer.json()["agents"][0]["name"], "mirror", "{}", answer.text());
    let task = there.stranger(Binding::JsonRpc).key(&key).agent("mirror").say("m", "hello");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED");
}

#[test]
fn a_registry_that_takes_cards_is_posted_them() {
    let registry = Receiver::start();
    let here = here();
    let place = Place::new().env("FLOTILLA_URL", &here.url()).env("A2A_REGISTRY_AUTH_TOKEN", "t0ken-of-theirs");
    place.run(&["announce", "--to", &registry.url(), "--once"]).ok();
    let got = registry.wait(1).remove(0);
    let posted: Value = serde_json::from_slice(&got.body).expect("a card");
    assert_eq!(posted["name"], "mirror");
    assert_eq!(got.header("authorization"), Some("Bearer t0ken-of-theirs"));
}
