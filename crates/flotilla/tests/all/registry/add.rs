//! Agents that are added: there at once, after SIGHUP and after a restart, until they are removed.

use super::{add, ask, hub, local, names, owner, told};
use crate::cast::{id, setup, state};
use flotilla_testkit::{Act, Asked, Binding, Request, StandIn, until};
use serde_json::json;

fn done(_: &Asked) -> Vec<Act> {
    vec![Act::Answer(json!({"task": {"id": "t-1", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}}))]
}

#[test]
fn an_agent_is_added_called_changed_and_removed_without_a_restart() {
    let (hub, agent) = (hub(), StandIn::start(false, done));
    let client = owner(&hub);
    let added = add(&client, &json!({"name": "far", "url": agent.url(), "visibility": "public"}));
    assert_eq!(added.status, 201, "{added:?}");
    let shown = added.json();
    assert_eq!((&shown["kind"], &shown["source"], &shown["own"]), (&json!("a2a"), &json!("api"), &json!(true)));
    assert_eq!(shown["settings"]["url"], agent.url());
    let task = client.clone().agent("far").say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED");
    until("its card is taken over", || {
        let card = client.get("/agents/far/.well-known/agent-card.json").json();
        (card["description"] == "Stands in.").then_some(())
    });

    let changed = ask(&client, "PATCH", "/api/agents/far", &json!({"description": "Mine", "onLost": "retry"}));
    assert_eq!(changed.status, 200, "{changed:?}");
    let changed = changed.json();
    assert_eq!((&changed["description"], &changed["settings"]["onLost"]), (&json!("Mine"), &json!("retry")));
    assert_eq!(changed["settings"]["url"], agent.url(), "the rest stays");
    for (kind, status) in [("application/merge-patch+json", 200), ("application/json-patch+json", 415)] {
        let mut request = Request::post("/api/agents/far", "{\"onLost\": null}").header("content-type", kind);
        request.verb = "PATCH".into();
        assert_eq!(client.send(request).status, status, "{kind}");
    }
    let whole = ask(&client, "PUT", "/api/agents/far", &json!({"url": agent.url()})).json();
    assert_eq!((&whole["settings"]["onLost"], &whole["visibility"]), (&json!("fail"), &json!("workspace")));

    assert_eq!(ask(&client, "DELETE", "/api/agents/far", &json!({})).status, 204);
    assert_eq!(client.get("/api/agents/far").status, 404);
    assert_eq!(client.clone().agent("far").call("ListTasks", &json!({})).expect_err("gone").reason, "AGENT_NOT_FOUND");
    assert_eq!(client.get(&format!("/api/tasks/{}/log", id(&task))).status, 200, "its tasks stay in the log");
    add(&client, &json!({"name": "far", "url": agent.url()}));
    assert_eq!(state(&client.agent("far").task(id(&task))), "TASK_STATE_COMPLETED", "and are there with it again");
}

#[test]
fn an_agent_is_changed_from_the_command_line() {
    let (one, two) = (StandIn::start(false, done), StandIn::start(false, done));
    let hub = hub();
    hub.cli_ok(&["agents", "add", "far", &one.url(), "--description", "The first"]);
    let shown = hub.cli_ok(&["agents", "change", "far", &two.url(), "--visibility", "public"]);
    assert!(shown.contains("Visibility: public") && shown.contains("Description: The first"), "{shown}");
    assert_eq!(state(&owner(&hub).agent("far").say("m-1", "go")), "TASK_STATE_COMPLETED");
    assert_eq!(
        (one.asked("SendMessage").len(), two.asked("SendMessage").len()),
        (0, 1),
        "it is called where it is now"
    );
    let card = format!("{}/.well-known/agent-card.json", one.url());
    hub.cli_ok(&["agents", "change", "far", "--card", &card, "--unset", "description", "--unset", "visibility"]);
    let settings = owner(&hub).get("/api/agents/far").json()["settings"].clone();
    assert_eq!((&settings["card"], settings.get("url")), (&json!(card), None), "{settings}");
    until("its own card says what it is", || {
        hub.cli_ok(&["agents", "show", "far"]).contains("Stands in.").then_some(())
    });
    for (args, word) in [(vec!["far"], "nothing is to be changed"), (vec!["echo", "--description", "x"], "SIGHUP")] {
        let ran = hub.cli(&[&["agents", "change"], &args[..]].concat());
        let told = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(!ran.status.success() && told.contains(word), "{told}");
    }
}

#[test]
fn it_outlives_a_restart_and_a_reload() {
    let agent = StandIn::start(false, done);
    let mut hub = hub();
    let client = owner(&hub);
    add(&client, &json!({"name": "far", "url": agent.url(), "description": "Mine"}));
    hub.write_config("targets: {allow: [127.0.0.0/8]}\nagents:\n  other: {kind: echo}\n");
    hub.signal("HUP");
    until("the new configuration counts", || (names(&client.get("/api/agents")) == ["far", "other"]).then_some(()));
    hub.restart();
    let client = owner(&hub);
    assert_eq!(names(&client.get("/api/agents")), ["far", "other"]);
    assert_eq!(client.get("/api/agents/far").json()["description"], "Mine");
    assert_eq!(state(&client.agent("far").say("m-2", "go")), "TASK_STATE_COMPLETED");
}

#[test]
fn what_is_configured_is_changed_where_it_is() {
    let hub = hub();
    let client = owner(&hub);
    for (verb, target, body) in [
        ("PUT", "/api/agents/echo", json!({"url": "https://example.com"})),
        ("PATCH", "/api/agents/echo", json!({"description": "x"})),
        ("DELETE", "/api/agents/echo", json!({})),
        ("POST", "/api/agents", json!({"name": "echo", "url": "https://example.com"})),
    ] {
        let refused = ask(&client, verb, target, &body);
        assert_eq!(refused.status, 409, "{verb} {refused:?}");
        let told = told(&refused);
        assert!(told.contains("hub.yaml, line 3 (agents.echo)") && told.contains("SIGHUP"), "{told}");
    }
    let key = hub.make_key(&["somebody", "--scope", "agents:read,agents:write"]);
    let refused = ask(&hub.stranger(Binding::HttpJson).key(&key), "DELETE", "/api/agents/echo", &json!({}));
    let told = told(&refused);
    assert!(refused.status == 409 && !told.contains("hub.yaml"), "files are for those who administer the hub: {told}");
}

#[test]
fn an_address_that_is_not_public_is_not_called_unless_it_is_admitted() {
    let agent = StandIn::start(false, done);
    let hub = setup().config("agents: {echo: {kind: echo}}").start();
    let client = owner(&hub);
    for url in [agent.url(), "http://169.254.169.254/latest".into(), "http://localhost:1".into()] {
        for (target, body) in
            [("/api/agents", json!({"name": "far", "url": url})), ("/api/agents/discover", json!({"url": url}))]
        {
            let refused = ask(&client, "POST", target, &body);
            assert_eq!(refused.status, 400, "{refused:?}");
            assert!(told(&refused).contains("--allow-target"), "{}", told(&refused));
        }
    }
    assert!(agent.asked("/.well-known/agent-card.json").is_empty());
    assert_eq!(names(&client.get("/api/agents")), ["echo"]);
}

#[test]
fn an_agent_is_not_admitted_for_ever() {
    let agent = StandIn::start(false, done);
    let hub = hub();
    let client = owner(&hub);
    add(&client, &json!({"name": "far", "url": agent.url()}));
    assert_eq!(state(&client.clone().agent("far").say("m-1", "go")), "TASK_STATE_COMPLETED");
    hub.write_config("agents:\n  echo: {kind: echo}\n");
    hub.signal("HUP");
    until("the address is not admitted any more", || {
        let task = client.clone().agent("far").say(&format!("m-{}", agent.asked("SendMessage").len() + 2), "go");
        (state(&task) == "TASK_STATE_FAILED").then_some(())
    });
    let checked = ask(&client, "POST", "/api/agents/far/check", &json!({})).json();
    let problem = checked["checks"]["lastError"].as_str().unwrap_or_default();
    assert!(problem.contains("--allow-target"), "{checked}");
}

#[test]
fn slips_are_told_and_nothing_is_added() {
    let hub = hub();
    let client = owner(&hub);
    for (body, told_of) in [
        (json!({"url": "https://h.example"}), "name"),
        (json!({"name": "tasks", "url": "https://h.example"}), "choose another name"),
        (json!({"name": "far"}), "needs 'url:'"),
        (json!({"name": "far", "url": "https://h.example", "card": "https://h.example/c"}), "one of them"),
        (json!({"name": "far", "kind": "command", "command": {"program": "sh"}}), "kind"),
        (json!({"name": "far", "kind": "echo"}), "only agents elsewhere"),
        (json!({"name": "far", "card": "file:///etc/passwd"}), "http or https"),
        (json!({"name": "far", "url": "https://h.example/?key=hunter2"}), "no query"),
        (json!({"name": "far", "url": "https://me:hunter2@h.example"}), "url"),
        (json!({"name": "far", "url": "https://h.example", "colour": "red"}), "colour"),
        (json!({"name": "far", "url": "https://h.example", "auth": {"bearer": "hunter2"}}), "env:NAME or file:PATH"),
        (json!({"name": "far", "url": "https://h.example", "headers": {"X-Key": "hunter2"}}), "write env:NAME"),
        (json!({"name": "far", "url": "https://h.example", "cardKeys": ["nonsense"]}), "no thumbprint"),
        (json!({"name": "far", "url": "https://h.example", "description": "x".repeat(70_000)}), "65536 bytes"),
    ] {
        let refused = add(&client, &body);
        assert_eq!(refused.status, 400, "{refused:?}");
        let told = told(&refused);
        assert!(told.contains(told_of) && !told.contains("hunter2"), "{body}: {told}");
    }
    assert_eq!(names(&client.get("/api/agents")), ["echo"]);
}

#[test]
fn there_are_so_many_and_no_more() {
    let hub = local("registry: {most: 3, most_per_owner: 2}").start();
    let url = "http://127.0.0.1:1";
    let client = owner(&hub);
    for name in ["one", "two"] {
        assert_eq!(add(&client, &json!({"name": name, "url": url})).status, 201);
    }
    let refused = add(&client, &json!({"name": "three", "url": url}));
    assert!(refused.status == 429 && told(&refused).contains("registry.most_per_owner"), "{refused:?}");
    assert_eq!(add(&client, &json!({"name": "three", "url": url, "owner": "olga"})).status, 201);
    let refused = add(&client, &json!({"name": "four", "url": url, "owner": "olga"}));
    assert!(refused.status == 429 && told(&refused).contains("registry.most)"), "{refused:?}");
    assert_eq!(ask(&client, "DELETE", "/api/agents/one", &json!({})).status, 204);
    assert_eq!(add(&client, &json!({"name": "four", "url": url})).status, 201);
}

#[test]
fn an_agent_with_open_tasks_is_removed_only_by_force() {
    let hub = hub();
    let agent = StandIn::start(false, |_: &Asked| {
        vec![Act::Answer(
            json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_INPUT_REQUIRED"}}}),
        )]
    });
    let client = owner(&hub);
    add(&client, &json!({"name": "far", "url": agent.url()}));
    let task = client.clone().agent("far").say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED");
    let refused = ask(&client, "DELETE", "/api/agents/far", &json!({}));
    assert!(refused.status == 400 && told(&refused).contains("force=true"), "{refused:?}");
    assert_eq!(ask(&client, "DELETE", "/api/agents/far?force=maybe", &json!({})).status, 400);
    assert_eq!(ask(&client, "DELETE", "/api/agents/far?force=true", &json!({})).status, 204);
    assert_eq!(client.get(&format!("/api/tasks/{}/log", id(&task))).status, 200);
}
