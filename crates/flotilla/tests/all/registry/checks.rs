//! Liveness: agents elsewhere are looked at now and again, and what that came to is told.

use super::{add, ask, local, names, owner};
use crate::cast::state;
use flotilla_testkit::stand_in::card;
use flotilla_testkit::{Act, Asked, Client, Page, Pages, StandIn, until};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn done(_: &Asked) -> Vec<Act> {
    vec![Act::Answer(json!({"task": {"id": "t-1", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}}))]
}

fn in_state(client: &Client, name: &str, wanted: &str) -> Value {
    until(&format!("{name} is {wanted}"), || {
        let agent = client.get(&format!("/api/agents/{name}")).json();
        (agent["state"] == wanted).then_some(agent)
    })
}

#[test]
fn an_agent_goes_and_comes_back() {
    let well = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&well);
    let site = Pages::start(move |_, url| match seen.load(Ordering::Acquire) {
        true => Page::json(card(url, false)),
        false => Page::status(503),
    });
    let hub = local("registry: {check_every: 200ms}").start();
    let client = owner(&hub);
    add(&client, &json!({"name": "far", "url": site.url()}));
    let live = in_state(&client, "far", "live");
    assert!(live["checks"]["lastSuccessAt"].is_string() && live["checks"]["latencyMs"].is_number(), "{live}");
    assert_eq!(live["checks"].get("lastError"), None, "{live}");
    assert_eq!(live["protocolVersions"], json!(["1.0"]), "{live}");
    well.store(false, Ordering::Release);
    let gone = in_state(&client, "far", "unreachable");
    assert!(gone["checks"]["lastError"].as_str().is_some_and(|text| text.contains("HTTP 503")), "{gone}");
    assert!(gone["checks"]["lastSuccessAt"].is_string(), "{gone}");
    assert_eq!(names(&client.get("/api/agents?state=unreachable")), ["far"]);
    assert_eq!(names(&client.get("/api/agents?state=live")), ["echo"]);
    let listed = hub.cli_ok(&["agents", "list", "--state", "unreachable"]);
    assert!(listed.contains("State: unreachable") && listed.contains("HTTP 503"), "{listed}");
    well.store(true, Ordering::Release);
    in_state(&client, "far", "live");
    let metrics = client.get("/metrics").text().to_owned();
    for line in ["flotilla_agents{state=\"live\"} 2", "flotilla_agents{state=\"stale\"} 0", "result=\"failed\""] {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
    assert!(metrics.contains("flotilla_agent_check_seconds"), "{metrics}");
}

#[test]
fn whoever_calls_an_agent_that_is_known_to_be_away_is_told_at_once() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // A call of its own would try for a long time.
    let settings = json!({"name": "far", "url": format!("http://{port}"),
        "retries": {"most": 1000, "first": "1s"}, "breaker": {"failures": 1000, "pause": "1h"}});
    let hub = local("registry: {check_every: 200ms}").start();
    let client = owner(&hub);
    assert_eq!(add(&client, &settings).status, 201);
    until("the checks have opened the breaker", || {
        (client.get("/api/agents/far").json()["remote"]["breaker"] == "open").then_some(())
    });
    let task = client.clone().agent("far").say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_FAILED");
    assert!(task["status"]["message"].to_string().contains("left alone"), "{task}");
    let _agent = StandIn::at(&port.to_string(), |url| card(url, false), done);
    in_state(&client, "far", "live");
    assert_eq!(state(&client.clone().agent("far").say("m-2", "go")), "TASK_STATE_COMPLETED", "a check closed it again");
}

#[test]
fn an_agent_whose_card_is_gone_is_stale_and_called_while_it_answers() {
    let well = Arc::new(AtomicBool::new(true));
    let agent = StandIn::start(false, done);
    let (seen, place) = (Arc::clone(&well), agent.url());
    let site = Pages::start(move |_, _| match seen.load(Ordering::Acquire) {
        true => Page::json(card(&place, false)),
        false => Page::status(500),
    });
    let hub = local("registry: {check_every: 200ms}").start();
    let client = owner(&hub);
    let settings = json!({"name": "far", "url": site.url(), "retries": {"most": 1000, "first": "1s"}});
    assert_eq!(add(&client, &settings).status, 201);
    in_state(&client, "far", "live");
    well.store(false, Ordering::Release);
    let stale = until("three checks have failed", || {
        let agent = client.get("/api/agents/far").json();
        agent["checks"]["failures"].as_u64().is_some_and(|failures| failures > 3).then_some(agent)
    });
    assert_eq!((&stale["state"], &stale["remote"]["breaker"]), (&json!("stale"), &json!("closed")), "{stale}");
    assert_eq!(names(&client.get("/api/agents?state=live")), ["echo"]);
    let task = client.clone().agent("far").say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "it answers where it was last said to be");
    let log = hub.cli_ok(&["task", "log", task["id"].as_str().expect("an id")]);
    assert!(log.contains("The agent is stale") && log.contains("HTTP 500"), "{log}");
    agent.leave();
    let gone = in_state(&client, "far", "unreachable");
    assert_eq!(gone["remote"]["breaker"], "open", "{gone}");
    let told = client.clone().agent("far").say("m-2", "go")["status"]["message"].to_string();
    assert!(told.contains("cannot be reached") && told.contains("tried again in"), "{told}");
}

#[test]
fn a_stale_agent_stays_what_its_last_good_card_said_whatever_else_is_changed() {
    let well = Arc::new(AtomicBool::new(true));
    let agent = StandIn::start(false, done);
    let (seen, place) = (Arc::clone(&well), agent.url());
    let site = Pages::start(move |_, _| match seen.load(Ordering::Acquire) {
        true => Page::json(card(&place, false)),
        false => Page::status(503),
    });
    let hub = local(&format!("  set: {{kind: a2a, url: '{}'}}\nregistry: {{check_every: 200ms}}", site.url())).start();
    let client = owner(&hub);
    assert_eq!(add(&client, &json!({"name": "far", "url": site.url()})).status, 201);
    let skills = ["set", "far"].map(|name| {
        until("its card was read", || {
            let skills = in_state(&client, name, "live")["skills"].clone();
            (skills[0]["id"] == "s").then_some(skills)
        })
    });
    well.store(false, Ordering::Release);
    for name in ["set", "far"] {
        in_state(&client, name, "stale");
    }
    let holds = |name: &str, when: &str, description: &str| {
        let shown = client.get(&format!("/api/agents/{name}")).json();
        assert_eq!((&shown["state"], &shown["description"]), (&json!("stale"), &json!(description)), "{when}: {shown}");
        assert_eq!(shown["skills"], skills[0], "{when}");
        let task = client.clone().agent(name).say(&format!("m-{name}-{when}"), "go");
        assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{name} {when}: {task}");
    };
    hub.signal("HUP");
    until("the configuration is read again", || hub.log().contains("configuration read again").then_some(()));
    holds("set", "reload", "Stands in.");
    holds("far", "reload", "Stands in.");
    let changed =
        ask(&client, "PATCH", "/api/agents/far", &json!({"description": "Mine", "visibility": "public"})).json();
    assert_eq!((&changed["description"], &changed["skills"]), (&json!("Mine"), &skills[1]), "{changed}");
    holds("far", "change", "Mine");
    let changed = ask(&client, "PATCH", "/api/agents/far", &json!({"description": null})).json();
    assert_eq!(changed["description"], "Stands in.", "{changed}");
    well.store(true, Ordering::Release);
    in_state(&client, "far", "live");
}

#[test]
fn an_agent_is_checked_when_its_owner_asks() {
    let hub = local("registry: {check_every: 0s}").start();
    let client = owner(&hub);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    add(&client, &json!({"name": "far", "url": format!("http://{port}"), "cardRefresh": "1h"}));
    in_state(&client, "far", "unreachable");
    let _agent = StandIn::at(&port.to_string(), |url| card(url, false), done);
    let checked = ask(&client, "POST", "/api/agents/far/check", &json!({})).json();
    assert_eq!((&checked["state"], &checked["description"]), (&json!("live"), &json!("Stands in.")), "{checked}");
    assert!(hub.cli_ok(&["agents", "check", "far"]).contains("State: live"));
    let refused = ask(&client, "POST", "/api/agents/echo/check", &json!({}));
    assert!(refused.status == 400 && super::told(&refused).contains("in the hub itself"), "{refused:?}");
}

#[test]
fn configured_agents_are_looked_after_too() {
    let agent = StandIn::start(false, done);
    let config = format!("  far: {{kind: a2a, url: '{}'}}\nregistry: {{check_every: 200ms}}", agent.url());
    let hub = local(&config).start();
    let live = in_state(&owner(&hub), "far", "live");
    assert_eq!((&live["source"], &live["signature"]["word"]), (&json!("configuration"), &json!("absent")));
    assert!(live["configuredIn"].as_str().is_some_and(|place| place.contains("line 4 (agents.far)")), "{live}");
}
