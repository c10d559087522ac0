//! Connecting: who may, under which name, and that an agent which has is called like any other.

use super::{SCOPES, agent_key, answer, asked, caller, connected, dial};
use crate::cast::{hub, id, reached, setup, state, text};
use flotilla_testkit::socket::Dial;
use flotilla_testkit::{Binding, Request, http, until};
use serde_json::json;

#[test]
fn a_connected_agent_is_called_over_every_binding() {
    let hub = hub();
    let mut agent = connected(&hub, "weather");
    assert_eq!(agent.welcome["agentId"], "weather");
    for binding in Binding::ALL {
        let client = caller(&hub, binding, "weather");
        let asking = std::thread::spawn(move || client.say(&format!("{binding:?}"), "Will it rain?"));
        let message = agent.kind("message");
        assert_eq!(asked(&message), "Will it rain?", "{binding:?}");
        assert_eq!((&message["run"], &message["attempt"], &message["from"]), (&json!(1), &json!(1), &json!("owner")));
        agent.send(&json!({"type": "ack", "taskId": message["taskId"], "run": message["run"]}));
        answer(&mut agent, &message, "No");
        let task = asking.join().expect("the caller is answered");
        assert_eq!((state(&task), text(&task["artifacts"][0])), ("TASK_STATE_COMPLETED", "No"), "{binding:?}");
    }
}

#[test]
fn an_agent_streams_and_asks_back() {
    let hub = hub();
    let mut agent = connected(&hub, "tailor");
    let client = caller(&hub, Binding::JsonRpc, "tailor");
    let task = client.start("m", "A coat");
    let first = agent.kind("message");
    let respond = |parts: serde_json::Value| {
        let mut frame = json!({"type": "task_response", "taskId": first["taskId"]});
        frame.as_object_mut().expect("an object").extend(parts.as_object().expect("an object").clone());
        frame
    };
    agent.send(&respond(json!({"status": {"state": "working", "message": "Measuring"}})));
    let piece = |text: &str, last: bool| {
        respond(json!({"artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": text}]}, "lastChunk": last}))
    };
    agent.send(&piece("one ", false));
    agent.send(&piece("two", true));
    agent.send(&respond(json!({"status": {"state": "input-required", "message": "Which size?"}})));
    let asked_back = reached(&client, id(&task), "TASK_STATE_INPUT_REQUIRED");
    let parts = asked_back["artifacts"][0]["parts"].as_array().expect("parts");
    assert_eq!(parts.len(), 2, "chunks of one artifact are joined: {asked_back}");
    let mut reply = flotilla_testkit::client::message("r", "Large");
    reply["message"]["taskId"] = task["id"].clone();
    reply["configuration"] = json!({"returnImmediately": true});
    client.call("SendMessage", &reply).expect("a reply");
    let second = agent.kind("message");
    assert_eq!((asked(&second), &second["turn"], &second["run"]), ("Large", &json!(2), &json!(2)));
    answer(&mut agent, &second, "Done");
    reached(&client, id(&task), "TASK_STATE_COMPLETED");
}

#[test]
fn what_is_told_twice_is_acknowledged_twice_and_kept_once() {
    let mut hub = hub();
    let key = agent_key(&hub, "weather");
    let mut agent = dial(&hub, &key).open();
    let task = caller(&hub, Binding::HttpJson, "weather").start("m", "go");
    let message = agent.kind("message");
    let chunk = |id: &str, text: &str| {
        json!({"type": "task_response", "id": id, "taskId": message["taskId"], "run": message["run"], "lastChunk": false,
               "artifact": {"artifactId": "a", "parts": [{"text": text}]}})
    };
    for (id, text) in [("c1", "one "), ("c2", "two"), ("c2", "two"), ("c1", "one ")] {
        agent.send(&chunk(id, text));
    }
    let mut acks: Vec<String> = (0..4).map(|_| agent.kind("ack")["id"].as_str().expect("an id").to_owned()).collect();
    acks.sort();
    assert_eq!(acks, ["c1", "c1", "c2", "c2"]);
    // The hub is killed: what it has acknowledged it knows.
    hub.restart();
    let mut agent = dial(&hub, &key).open();
    agent.send(&chunk("c2", "two"));
    assert_eq!(agent.kind("ack")["id"], "c2");
    answer(&mut agent, &message, "done");
    let done = reached(&caller(&hub, Binding::HttpJson, "weather"), id(&task), "TASK_STATE_COMPLETED");
    let parts = done["artifacts"][0]["parts"].as_array().expect("parts");
    let said: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    assert_eq!(said.concat(), "one two", "{done}");
}

#[test]
fn a_canceled_run_is_called_off() {
    let hub = setup().config("sockets: {cancel: 50ms}").start();
    let mut agent = connected(&hub, "slow");
    let client = caller(&hub, Binding::HttpJson, "slow");
    let task = client.start("m", "Take your time");
    let message = agent.kind("message");
    agent.send(&json!({"type": "ack", "taskId": message["taskId"], "run": 1}));
    let canceled = client.call("CancelTask", &json!({"id": id(&task)})).expect("canceled");
    assert!(text(&canceled["status"]["message"]).contains("has not said that it has"), "{canceled}");
    let stop = agent.kind("cancel");
    assert_eq!((&stop["taskId"], &stop["run"]), (&message["taskId"], &json!(1)));
    answer(&mut agent, &message, "Too late");
    agent.send(&json!({"type": "ping"}));
    agent.kind("pong");
    assert_eq!(state(&client.task(id(&task))), "TASK_STATE_CANCELED");
}

#[test]
fn a_card_is_the_agents_own_and_is_kept() {
    let mut hub = hub();
    let mut agent = connected(&hub, "weather");
    let card = json!({"name": "Weather", "description": "Knows the sky.", "skills": [{"id": "now", "name": "Now"}]});
    agent.send(&json!({"type": "update_card", "agentCard": card}));
    agent.kind("card_updated");
    let path = "/agents/weather/.well-known/agent-card.json";
    let read = |hub: &flotilla_testkit::HubProcess| hub.owner(Binding::HttpJson).get(path).json();
    assert_eq!(read(&hub)["description"], "Knows the sky.");
    assert_eq!(read(&hub)["skills"][0]["id"], "now");
    agent.cut();
    hub.restart();
    assert_eq!(read(&hub)["description"], "Knows the sky.", "also while it is away");
    assert_eq!(hub.stranger(Binding::HttpJson).get(path).status, 404, "it is for its workspace");
}

#[test]
fn a_wrong_key_is_refused_at_the_door() {
    let hub = hub();
    let refused = dial(&hub, "flk_nonsense").refused();
    assert_eq!(refused.status, 401);
    assert!(refused.body.contains("The key is not valid here"), "{}", refused.body);
    assert_eq!(Dial::new(hub.address()).refused().status, 401);
    let plain = hub.make_key(&["plain"]);
    let refused = dial(&hub, &plain).query("agent", "me").refused();
    assert!(refused.status == 403 && refused.body.contains("agents:connect"), "{refused:?}");
    let mut socket = dial(&hub, &plain).open();
    assert_eq!(socket.welcome["agentId"], "plain", "a caller, and no agent");
    socket.send(&json!({"type": "update_card", "agentCard": {}}));
    assert_eq!(socket.kind("error")["error"], "ACCESS_DENIED");
}

#[test]
fn names_are_nobody_elses() {
    let hub = hub();
    let one = agent_key(&hub, "one");
    let two = agent_key(&hub, "two");
    let _kept = dial(&hub, &one).query("agent", "shared").open();
    for name in ["shared", "echo"] {
        let refused = dial(&hub, &two).query("agent", name).refused();
        assert!(refused.status == 409 && refused.body.contains("belongs to another"), "{name}: {refused:?}");
    }
    for name in ["@system", "%40system", "agents", "a%2Fb", ""] {
        let refused = dial(&hub, &two).query("agent", name).refused();
        assert!(refused.status == 400 || refused.status == 409, "{name}: {refused:?}");
    }
    let limited = hub.make_key(&["limited", "--scope", SCOPES, "--agent", "mine"]);
    assert_eq!(dial(&hub, &limited).query("agent", "other").refused().status, 403);
    assert_eq!(dial(&hub, &limited).open().welcome["agentId"], "mine");
}

#[test]
fn the_name_of_an_agent_that_was_removed_stays_its_owners() {
    let hub = hub();
    let (one, two) = (agent_key(&hub, "one"), agent_key(&hub, "two"));
    dial(&hub, &one).query("agent", "shared").open().close();
    until("it is gone", || {
        let shown = hub.owner(Binding::HttpJson).get("/api/agents/shared").json();
        (shown["state"] == "absent").then_some(())
    });
    hub.cli_ok(&["agents", "remove", "shared"]);
    let refused = dial(&hub, &two).query("agent", "shared").refused();
    assert!(refused.status == 409 && refused.body.contains("was another owner's"), "{refused:?}");
    dial(&hub, &one).query("agent", "shared").open().close();
    // The hub's owner may give it to others.
    let given = hub.make_key(&["three", "--scope", SCOPES, "--agent", "shared"]);
    hub.cli_ok(&["agents", "list"]);
    assert_eq!(dial(&hub, &given).open().welcome["agentId"], "shared");
}

#[test]
fn a_configured_agent_has_the_configurations_card() {
    let config = "agents: {worker: {kind: socket, description: From the file, owner: ci}, echo: {kind: echo}}";
    let hub = setup().config(config).start();
    let mut agent = dial(&hub, &agent_key(&hub, "ci")).query("agent", "worker").open();
    agent.send(&json!({"type": "update_card", "agentCard": {"description": "From the agent"}}));
    assert!(agent.kind("error")["message"].as_str().is_some_and(|text| text.contains("configuration")));
    let card = hub.owner(Binding::HttpJson).get("/agents/worker/.well-known/agent-card.json").json();
    assert_eq!(card["description"], "From the file");
    let other = dial(&hub, &agent_key(&hub, "other")).query("agent", "worker").refused();
    assert_eq!(other.status, 409);
}

#[test]
fn registering_can_be_turned_off() {
    let hub = setup().config("sockets: {register: false}").start();
    let refused = dial(&hub, &agent_key(&hub, "new")).refused();
    assert!(refused.status == 404 && refused.body.contains("kind: socket"), "{refused:?}");
}

#[test]
fn what_is_no_websocket_is_told_so() {
    let hub = hub();
    let plain = http::send(hub.address(), &Request::get("/ws"));
    assert_eq!((plain.status, plain.header("upgrade")), (426, Some("websocket")));
    assert_eq!(plain.header("sec-websocket-version"), Some("13"));
    assert!(plain.text().contains("Upgrade: websocket"), "{}", plain.text());
    let foreign = Dial::new(hub.address()).key(hub.owner_key()).header("origin", "https://evil.example").refused();
    assert_eq!(foreign.status, 403);
}

#[test]
fn a_number_of_places_that_is_none_is_refused() {
    let hub = hub();
    let key = agent_key(&hub, "worker");
    for wrong in ["-1", "0", "many", ""] {
        let refused = dial(&hub, &key).subprotocol("flotilla.worker.v1").query("places", wrong).refused();
        assert!(refused.status == 400 && refused.body.contains("from 1 on"), "{wrong}: {refused:?}");
    }
}

#[test]
fn a_browser_connects_with_a_ticket_once() {
    let hub = hub();
    let key = agent_key(&hub, "page");
    let fetch = |key: &str| {
        let request = Request::post("/api/ws-ticket", "").header("authorization", &format!("Bearer {key}"));
        http::send(hub.address(), &request)
    };
    assert_eq!(fetch("flk_nonsense").status, 401);
    let given = fetch(&key);
    assert_eq!((given.status, given.header("cache-control")), (201, Some("no-store")));
    let ticket = given.json()["ticket"].as_str().expect("a ticket").to_owned();
    let with = |ticket: &str| Dial::new(hub.address()).query("ticket", ticket);
    assert_eq!(with(&ticket).open().welcome["agentId"], "page");
    for wrong in [ticket.as_str(), "guess", ""] {
        assert_eq!(with(wrong).refused().status, 401, "{wrong}");
    }
    let late = fetch(&key).json()["ticket"].as_str().expect("a ticket").to_owned();
    let mut there = dial(&hub, &key).open();
    hub.cli_ok(&["keys", "revoke", "page"]);
    assert_eq!(there.kind("error")["error"], "AUTH_FAILED");
    assert_eq!(with(&late).refused().status, 401, "a ticket is as good as its key");
}

#[test]
fn a_good_bye_is_answered() {
    let hub = hub();
    let agent = connected(&hub, "polite");
    assert_eq!(agent.close(), Some(1000));
}

#[test]
fn a_revoked_key_ends_its_connection() {
    let hub = hub();
    let mut agent = connected(&hub, "gone");
    hub.cli_ok(&["keys", "revoke", "gone"]);
    assert_eq!(agent.kind("error")["error"], "AUTH_FAILED");
    assert!(agent.try_read().expect_err("closed").contains("not valid any more"));
}

#[test]
fn an_upgrade_that_announces_a_body_is_refused() {
    let hub = hub();
    let key = agent_key(&hub, "wordy");
    for (name, value) in [("content-length", "5"), ("transfer-encoding", "chunked")] {
        // The body is not waited for: a length is given and nothing follows.
        let refused = dial(&hub, &key).header(name, value).refused();
        assert_eq!(refused.status, 400, "{name}: {refused:?}");
        assert!(refused.body.contains("no body"), "{refused:?}");
    }
}
