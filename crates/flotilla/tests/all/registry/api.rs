//! The API as a whole: its description, the search for agents, who is connected, and the command line.

use super::{add, ask, hub, local, names, owner};
use crate::socket::{agent_key, dial};
use flotilla_testkit::client::escape;
use flotilla_testkit::{Binding, Request, until};
use serde_json::{Value, json};

#[test]
fn everything_that_is_described_is_there() {
    let hub = hub();
    let client = owner(&hub);
    let description = hub.stranger(Binding::HttpJson).get("/api/openapi.json");
    assert_eq!((description.status, description.header("content-type")), (200, Some("application/json")));
    let description = description.json();
    assert!(description["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
    let paths = description["paths"].as_object().expect("paths");
    assert!(paths.len() > 12, "{}", paths.len());
    for (path, item) in paths {
        let target = path.replace("{name}", "nobody").replace("{id}", "none").replace("{workspace}", "w");
        for verb in ["get", "post", "put", "patch", "delete"] {
            let streams = item[verb]["responses"]["200"]["content"].get("text/event-stream").is_some();
            // What does not end is read by tests of its own.
            if streams && item[verb]["responses"]["200"]["content"].get("application/json").is_none() {
                continue;
            }
            let mut request = Request::post(&target, "{}").header("content-type", "application/json");
            request.verb = verb.to_uppercase();
            let response = client.send(request);
            let reason = response.text().to_owned();
            if ["/api/agents/discover", "/api/fleet/announce"].contains(&path.as_str()) && verb != "post" {
                // An agent or a worker may have that name.
                continue;
            }
            let is_there = response.status != 405 && !reason.contains("METHOD_NOT_FOUND");
            assert_eq!(is_there, item.get(verb).is_some(), "{verb} {path}: {} {reason}", response.status);
        }
    }
    for nowhere in ["/api", "/api/agents/a/b/c", "/api/tasks", "/api/keys/a/b/c", "/api/deliveries/a/b"] {
        assert!(client.get(nowhere).text().contains("METHOD_NOT_FOUND"), "{nowhere}");
    }
}

#[test]
fn agents_are_found_by_what_they_are_and_can_do() {
    let hub = local(
        r#"  painter:
    kind: echo
    description: Paints pictures.
    output_modes: [image/png]
    skills: [{id: draw, name: Drawing, description: Draws what you say, tags: [art, pictures]}]
  writer:
    kind: echo
    description: Writes stories.
    streaming: false
    input_modes: [text/plain]
    output_modes: [text/plain]
    extensions: [{uri: "urn:test:ext"}]
    skills: [{id: story, name: Story, description: Tells a story, tags: [art]}]"#,
    )
    .start();
    let client = owner(&hub);
    for (query, expected) in [
        ("", vec!["echo", "painter", "writer"]),
        ("q=PICTURES", vec!["painter"]),
        ("q=stories+writes", vec!["writer"]),
        ("q=stories+pictures", vec![]),
        ("skill=draw", vec!["painter"]),
        ("skill=story", vec!["writer"]),
        ("tag=art", vec!["painter", "writer"]),
        ("mode=image/png", vec!["echo", "painter"]),
        ("mode=text/html", vec!["echo", "painter"]),
        ("capability=streaming", vec!["echo", "painter"]),
        ("capability=urn:test:ext", vec!["writer"]),
        ("version=0.3", vec!["echo", "painter", "writer"]),
        ("version=0.2", vec![]),
        ("state=live&tag=art", vec!["painter", "writer"]),
        ("state=stale", vec![]),
    ] {
        assert_eq!(names(&client.get(&format!("/api/agents?{query}"))), expected, "{query}");
    }
    let first = client.get("/api/agents?pageSize=2");
    let token = first.json()["nextPageToken"].as_str().expect("a token").to_owned();
    assert_eq!((names(&first), &first.json()["totalSize"]), (vec!["echo".into(), "painter".into()], &json!(3)));
    let last = client.get(&format!("/api/agents?pageSize=2&pageToken={}", escape(&token)));
    assert_eq!(names(&last), ["writer"]);
    assert!(last.json().get("nextPageToken").is_none());
    for wrong in ["colour=red", "state=tired", "pageSize=0", "pageSize=1000", "q=a&q=b"] {
        assert_eq!(client.get(&format!("/api/agents?{wrong}")).status, 400, "{wrong}");
    }
    let said = hub.cli_ok(&["agents", "list", "--tag", "art", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&said).expect("JSON")["agents"].as_array().map(Vec::len), Some(2));
}

#[test]
fn who_is_connected_is_told_to_the_owner() {
    let hub = hub();
    let key = agent_key(&hub, "weather");
    let socket = dial(&hub, &key).open();
    let client = owner(&hub);
    let here = client.get("/api/agents/weather").json();
    assert_eq!((&here["state"], &here["kind"], &here["source"]), (&json!("live"), &json!("socket"), &json!("socket")));
    assert_eq!(here["presence"]["connections"], 1, "{here}");
    assert!(here["presence"]["connectedSince"].is_string() && here["presence"]["lastSeen"].is_string(), "{here}");
    let refused = ask(&client, "DELETE", "/api/agents/weather", &json!({}));
    assert!(refused.status == 400 && super::told(&refused).contains("connected"), "{refused:?}");
    drop(socket);
    let gone = until("it is gone", || {
        let agent = client.get("/api/agents/weather").json();
        (agent["state"] == "absent").then_some(agent)
    });
    assert!(gone["presence"]["lastSeen"].is_string(), "{gone}");
    client.clone().agent("weather").start("m-1", "hello");
    until("it waits", || (client.get("/api/agents/weather").json()["presence"]["waiting"] == 1).then_some(()));
    assert!(hub.cli_ok(&["agents", "show", "weather"]).contains("Waiting: 1"));
    let other = hub.caller(Binding::HttpJson, "somebody").get("/api/agents/weather").json();
    assert!(other.get("presence").is_none() && other["state"] == "absent", "{other}");
    assert_eq!(ask(&client, "DELETE", "/api/agents/weather?force=true", &json!({})).status, 204);
    assert_eq!(names(&client.get("/api/agents")), ["echo"]);
}

#[test]
fn the_command_line_does_all_of_it() {
    let hub = hub();
    let added = hub.cli_ok(&["agents", "add", "far", "http://127.0.0.1:1", "--description", "Mine"]);
    assert!(added.contains("Agent: far") && added.contains("Description: Mine"), "{added}");
    assert!(hub.cli_ok(&["agents", "list"]).contains("Total: 2"));
    let shown = hub.cli_ok(&["agents", "show", "far"]);
    assert!(shown.contains("Address: http://127.0.0.1:1") && shown.contains("From: api"), "{shown}");
    let shown = hub.cli_ok(&["agents", "show", "echo"]);
    assert!(shown.contains("Configured in: ") && shown.contains("line 3"), "{shown}");
    let literal = hub.cli(&["agents", "add", "x", "https://h.example", "--auth", "bearer=hunter2"]);
    let said = String::from_utf8_lossy(&literal.stderr).into_owned();
    assert!(literal.status.code() == Some(2) && said.contains("is not taken"), "{said}");
    let missing = hub.cli(&["agents", "show", "nobody"]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("agents list shows"), "{missing:?}");
    assert!(hub.cli_ok(&["agents", "remove", "far"]).contains("is removed"));
    assert_eq!(names(&owner(&hub).get("/api/agents")), ["echo"]);
    assert_eq!(add(&owner(&hub), &json!({"name": "far", "url": "http://127.0.0.1:1"})).status, 201);
}
