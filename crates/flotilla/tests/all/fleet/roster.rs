//! The roster: who announced what, by which way, who may see it, and what becomes of it when somebody goes.

use super::{announce, give, is, key, owner, post, result, say, shown, worker};
use crate::cast::{hub, hub_with, id, reached};
use crate::cli::program::{Place, finish};
use crate::socket::{connected, dial};
use flotilla_testkit::{Binding, Request, http, until};
use serde_json::json;
use std::io::{BufRead as _, BufReader};
use std::time::{Duration, Instant};

#[test]
fn an_announcement_is_visible_at_once_and_outlives_the_hub() {
    let mut hub = hub();
    let mut ada = dial(&hub, &key(&hub, "ada")).open();
    let begun = Instant::now();
    let taken = say(&mut ada, &announce("ada", 7));
    let seen = shown(&hub, "ada");
    let visible = begun.elapsed();
    println!("from announcement to visible: {visible:?}");
    assert!(visible < Duration::from_millis(100), "{visible:?}");
    assert_eq!((&taken["taken"], &taken["epoch"]), (&json!(true), &json!(7)));
    assert_eq!(
        (&seen["health"], &seen["epoch"], &seen["modelTier"]),
        (&json!("AVAILABLE"), &json!(7), &json!("sonnet"))
    );
    assert_eq!(seen["announce"]["mcp_health"]["trek"], "timeout", "it is kept as it was said");
    ada.cut();
    is(&hub, "ada", "OFFLINE");
    hub.restart();
    let again = shown(&hub, "ada");
    assert_eq!((&again["health"], &again["epoch"], &again["via"]), (&json!("OFFLINE"), &json!(7), &json!("kept")));
    let _back = worker(&hub, "ada");
    is(&hub, "ada", "AVAILABLE");
}

#[test]
fn the_newest_epoch_counts_whatever_order_they_come_in() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let with = |epoch: u64, model: &str| {
        let mut told = announce("ada", epoch);
        told["worker"]["model"] = json!(model);
        json!({"type": "announce", "announce": told})
    };
    assert_eq!(say(&mut ada, &with(9, "new"))["taken"], true);
    assert_eq!(say(&mut ada, &with(8, "old"))["taken"], false);
    assert_eq!(shown(&hub, "ada")["model"], "new");
    // The same race from many sides at once: one who has said more is not undone by one who says less.
    let bobs = key(&hub, "bob");
    let _bob = dial(&hub, &bobs).open();
    let racers: Vec<_> = (1..=16u64)
        .map(|epoch| {
            let client = hub.stranger(Binding::HttpJson).key(&bobs);
            std::thread::spawn(move || post(&client, "/api/fleet/announce", &announce("bob", epoch)).status)
        })
        .collect();
    assert!(racers.into_iter().all(|racer| racer.join().expect("an answer") == 200));
    assert_eq!(shown(&hub, "bob")["epoch"], 16);
}

#[test]
fn an_announcement_over_http_is_a_lease() {
    let hub = hub_with("fleet: {lease: 1s}");
    let owner_key = hub.make_key(&["desk", "--principal", "owner", "--scope", "agents:read,agents:connect"]);
    let client = hub.stranger(Binding::HttpJson).key(&owner_key);
    let taken = post(&client, "/api/fleet/announce?agent=mock", &announce("whoever", 1));
    assert_eq!(taken.status, 200, "{}", taken.text());
    assert_eq!(taken.json()["worker"], "mock");
    assert_eq!(shown(&hub, "mock")["health"], "AVAILABLE");
    is(&hub, "mock", "OFFLINE");
    let again = post(&client, "/api/fleet/announce?agent=mock", &announce("whoever", 1));
    assert_eq!((again.status, shown(&hub, "mock")["health"].as_str()), (200, Some("AVAILABLE")));
}

#[test]
fn an_agent_announces_itself_in_any_reply() {
    let hub = hub();
    let mut silent = connected(&hub, "silent");
    let client = hub.owner(Binding::HttpJson).agent("silent");
    let task = client.start("m1", "Hello");
    let message = silent.kind("message");
    let part = json!({"kind": "data", "data": announce("silent", 3),
        "mimeType": "application/vnd.flotilla.session-announce+json"});
    silent.send(&json!({"type": "task_response", "taskId": message["taskId"], "run": message["run"],
        "status": {"state": "completed"}, "artifact": {"artifactId": "a", "parts": [part]}, "lastChunk": true}));
    reached(&client, id(&task), "TASK_STATE_COMPLETED");
    let seen = is(&hub, "silent", "AVAILABLE");
    assert_eq!((&seen["epoch"], &seen["via"]), (&json!(3), &json!("reply")));
}

#[test]
fn what_is_wrong_with_an_announcement_is_said() {
    let hub = hub();
    let client = hub.stranger(Binding::HttpJson).key(&key(&hub, "ada"));
    let refused = |body: &serde_json::Value| {
        let response = post(&client, "/api/fleet/announce", body);
        (response.status, response.text().to_owned())
    };
    let mut nameless = announce("ada", 1);
    nameless["worker"]["agent_id"] = json!("");
    for (body, status, told) in [
        (json!({}), 400, "must be a SESSION_ANNOUNCE"),
        (nameless, 400, "worker.agent_id: must name the worker"),
        (announce("nobody", 1), 404, "There is no agent 'nobody' of yours"),
        (announce("echo", 1), 404, "There is no agent 'echo' of yours"),
    ] {
        let (got, text) = refused(&body);
        assert!(got == status && text.contains(told), "{got} {text}");
    }
    let caller = hub.caller(Binding::HttpJson, "caller");
    assert_eq!(post(&caller, "/api/fleet/announce", &announce("ada", 1)).status, 403);
    assert_eq!(client.send(Request::new("PUT", "/api/fleet/announce")).status, 405);
    assert_eq!(owner(&hub).get("/api/fleet/nobody").status, 404);
}

#[test]
fn workers_are_their_owners_own() {
    let hub = hub();
    let _ada = worker(&hub, "ada");
    let names = |client: &flotilla_testkit::Client| {
        let listed = client.get("/api/fleet").json();
        let names = listed["workers"].as_array().expect("workers").iter().map(|worker| worker["name"].to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&owner(&hub)), "\"ada\"", "who administers the hub sees all");
    assert_eq!(names(&hub.caller(Binding::HttpJson, "caller")), "", "a caller of agents sees none");
    assert_eq!(hub.caller(Binding::HttpJson, "other").get("/api/fleet/ada").status, 404);
    assert_eq!(hub.stranger(Binding::HttpJson).get("/api/fleet").status, 401);
}

#[test]
fn a_drained_worker_says_so_also_after_a_restart() {
    let mut hub = hub();
    let _ada = worker(&hub, "ada");
    let place = Place::at(&hub);
    assert_eq!(place.run(&["fleet", "drain", "ada"]).ok().field("Health"), "DRAINING");
    drop(_ada);
    hub.restart();
    let _ada = worker(&hub, "ada");
    is(&hub, "ada", "DRAINING");
    let place = Place::at(&hub);
    assert_eq!(place.json(&["fleet", "undrain", "ada"])["health"], "AVAILABLE");
    assert!(place.run(&["fleet", "show", "ada"]).ok().field("MCP server").starts_with("mem ok"));
    assert!(place.run(&["fleet"]).ok().out.starts_with("ada                  AVAILABLE  0/1"));
    let gone = place.run(&["fleet", "drain", "nobody"]);
    assert!(gone.code != 0 && gone.err.contains("no worker 'nobody'"), "{gone:?}");
}

#[test]
fn changes_of_the_roster_are_followed() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let request = owner(&hub).dress(Request::get("/api/fleet/stream").header("accept", "text/event-stream"));
    let mut stream = http::try_stream(hub.address(), &request).expect("a stream");
    assert_eq!(stream.expect().json()["health"], "AVAILABLE", "all there are, first");
    say(&mut ada, &announce("ada", 2));
    assert_eq!(stream.expect().json()["epoch"], 2);
    ada.cut();
    assert_eq!(stream.expect().json()["health"], "OFFLINE");

    let mut watching = Place::at(&hub).start(&["fleet", "--watch"]);
    let lines = BufReader::new(watching.stdout.take().expect("output")).lines();
    let mut lines = lines.map(|line| line.expect("a line"));
    assert!(lines.next().expect("a worker").contains("OFFLINE"));
    let _ada = worker(&hub, "ada");
    assert!(lines.next().expect("a change").contains("AVAILABLE"));
    let ended = std::process::Command::new("kill").args(["-TERM", &watching.id().to_string()]).status();
    assert!(ended.expect("a signal").success());
    let ran = finish(watching);
    assert!(ran.code == 130 && ran.err.contains("not watched any more") && !ran.err.contains("task"), "{ran:?}");
    let metrics = until("it is counted", || {
        let metrics = hub.owner(Binding::HttpJson).get("/metrics").text().to_owned();
        metrics.contains(r#"flotilla_workers{health="AVAILABLE"} 1"#).then_some(metrics)
    });
    assert!(metrics.contains(r#"flotilla_workers{health="BROKEN"} 0"#), "{metrics}");
}

#[test]
fn a_skill_that_a_worker_puts_on_its_card_is_one_it_has() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let (task, client) = give(&hub, &json!({"to": "skill:rust-dev"}));
    let skill = json!({"id": "rust-dev", "name": "Rust", "description": "Writes it", "tags": []});
    ada.send(&json!({"type": "update_card", "agentCard": {"name": "ada", "skills": [skill]}}));
    let message = ada.kind("message");
    assert_eq!(message["taskId"], task, "{message}");
    result(&mut ada, &message, &json!({"status": "done"}));
    reached(&client, &task, "TASK_STATE_COMPLETED");
}

#[test]
fn an_error_that_a_worker_tells_is_no_successful_turn() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let (task, client) = give(&hub, &json!({"to": "ada"}));
    let message = ada.kind("message");
    result(&mut ada, &message, &json!({"status": "error", "error": "the tests fail"}));
    reached(&client, &task, "TASK_STATE_FAILED");
    let seen = until("the turn is counted", || Some(shown(&hub, "ada")).filter(|seen| seen["successRate"].is_number()));
    assert_eq!((&seen["successRate"], &seen["lastSuccess"]), (&json!(0.0), &json!(null)), "{seen}");
    assert_eq!((&seen["failures"], &seen["health"]), (&json!(0), &json!("AVAILABLE")), "nothing against it: {seen}");
}
