//! Who may add agents, what they may say of them, and who sees what.

use super::{add, ask, hub, local, names, owner, told};
use crate::cast::state;
use flotilla_testkit::{Act, Asked, Binding, Client, HubProcess, StandIn, until};
use serde_json::json;

const WRITES: &str = "agents:read,tasks:read,tasks:write,agents:write";
const NOWHERE: &str = "http://127.0.0.1:1";

fn writer(hub: &HubProcess, name: &str) -> Client {
    hub.stranger(Binding::HttpJson).key(&hub.make_key(&[name, "--scope", WRITES]))
}

#[test]
fn adding_needs_its_own_scope() {
    let hub = hub();
    let plain = hub.caller(Binding::HttpJson, "plain");
    for (verb, target, body) in [
        ("POST", "/api/agents", json!({"name": "far", "url": NOWHERE})),
        ("POST", "/api/agents/discover", json!({"url": NOWHERE})),
        ("DELETE", "/api/agents/echo", json!({})),
        ("PATCH", "/api/agents/echo", json!({})),
    ] {
        let refused = ask(&plain, verb, target, &body);
        assert_eq!(refused.status, 403, "{verb} {target}");
        assert!(told(&refused).contains("agents:write"), "{}", told(&refused));
        assert_eq!(ask(&hub.stranger(Binding::HttpJson), verb, target, &body).status, 401);
    }
    let reader = hub.stranger(Binding::HttpJson).key(&hub.make_key(&["reader", "--scope", "tasks:read"]));
    assert_eq!(reader.get("/api/agents").status, 403);
}

#[test]
fn only_an_administrator_gives_agents_away_makes_them_public_or_names_secrets() {
    let hub = hub();
    let writer = writer(&hub, "olga");
    for (more, told_of) in [
        (json!({"owner": "somebody"}), "owner"),
        (json!({"visibility": "public"}), "public"),
        (json!({"auth": {"bearer": "env:AGENT_KEY"}}), "secret of the hub's"),
        (json!({"headers": {"X-Team-Token": "env:AGENT_KEY"}}), "secret of the hub's"),
    ] {
        let mut body = json!({"name": "far", "url": NOWHERE});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let refused = add(&writer, &body);
        assert_eq!(refused.status, 403, "{refused:?}");
        assert!(told(&refused).contains(told_of), "{}", told(&refused));
    }
    let refused =
        ask(&writer, "POST", "/api/agents/discover", &json!({"url": NOWHERE, "auth": {"bearer": "env:AGENT_A"}}));
    assert_eq!(refused.status, 403);
    assert_eq!(add(&writer, &json!({"name": "far", "url": NOWHERE})).status, 201);
    // An agent of theirs that an administrator gave a secret to cannot be made to lead elsewhere.
    let given = json!({"name": "given", "url": NOWHERE, "owner": "olga", "auth": {"bearer": "env:AGENT_KEY"}});
    let hub = local("").env("AGENT_KEY", "s3cret-value").start();
    let writer = self::writer(&hub, "olga");
    assert_eq!(add(&owner(&hub), &given).status, 201);
    assert_eq!(ask(&writer, "PATCH", "/api/agents/given", &json!({"url": "http://127.0.0.1:2"})).status, 403);
    assert_eq!(ask(&writer, "PATCH", "/api/agents/given", &json!({"auth": null, "owner": null})).status, 200);
}

#[test]
fn secrets_are_named_by_place_and_only_those_that_may_be() {
    let agent = StandIn::start(false, |_: &Asked| {
        vec![Act::Answer(json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}}))]
    });
    let dir = flotilla_testkit::scratch();
    let file = dir.path().join("far.token");
    std::fs::write(&file, "from-a-file\n").expect("the file can be written");
    let may = format!("registry: {{references: ['env:AGENT_*', 'file:{}/*']}}", dir.path().display());
    let mut hub = local(&may).env("AGENT_KEY", "s3cret-value").env("OTHER_KEY", "s3cret-too").start();
    let client = owner(&hub);
    let with = |place: &str| json!({"name": "far", "url": agent.url(), "auth": {"bearer": place}});
    for (place, told_of) in [
        ("env:OTHER_KEY", "registry.references"),
        ("file:/etc/hostname", "registry.references"),
        ("env:AGENT_NOT_SET", "AGENT_NOT_SET"),
    ] {
        let refused = add(&client, &with(place));
        assert!(refused.status == 400 && told(&refused).contains(told_of), "{place}: {refused:?}");
    }
    assert_eq!(add(&client, &with("env:AGENT_KEY")).status, 201);
    client.clone().agent("far").say("m-1", "go");
    assert_eq!(agent.asked("SendMessage")[0].header("authorization"), Some("Bearer s3cret-value"));
    let shown = client.get("/api/agents/far");
    assert_eq!(shown.json()["remote"]["credential"], "bearer env:AGENT_KEY");
    assert!(!shown.text().contains("s3cret"), "{}", shown.text());

    let by_file = json!({"auth": {"bearer": format!("file:{}", file.display())}});
    assert_eq!(ask(&client, "PATCH", "/api/agents/far", &by_file).status, 200);
    std::fs::remove_file(&file).expect("the file can be removed");
    hub.restart();
    let client = owner(&hub);
    let shown = until("the missing secret is told", || {
        let shown = client.get("/api/agents/far").json();
        shown["checks"]["lastError"].is_string().then_some(shown)
    });
    assert_eq!(shown["state"], "unreachable", "{shown}");
    assert!(shown["checks"]["lastError"].as_str().is_some_and(|text| text.contains("far.token")), "{shown}");
    let task = client.clone().agent("far").say("m-2", "go");
    assert_eq!(state(&task), "TASK_STATE_FAILED");
    assert!(!task.to_string().contains("far.token"), "callers are not told where secrets are: {task}");
    assert_eq!(ask(&client, "DELETE", "/api/agents/far", &json!({})).status, 204);
}

#[test]
fn others_see_what_is_there_for_them() {
    let hub = hub();
    let (olga, team, mate) = (writer(&hub, "olga"), writer(&hub, "team/anna"), writer(&hub, "team/ben"));
    assert_eq!(add(&olga, &json!({"name": "olgas", "url": NOWHERE, "visibility": "private"})).status, 201);
    assert_eq!(add(&team, &json!({"name": "teams", "url": NOWHERE})).status, 201);
    assert_eq!(add(&team, &json!({"name": "annas", "url": NOWHERE, "visibility": "private"})).status, 201);
    assert_eq!(names(&olga.get("/api/agents")), ["echo", "olgas"]);
    assert_eq!(names(&team.get("/api/agents")), ["annas", "echo", "teams"]);
    assert_eq!(names(&mate.get("/api/agents")), ["echo", "teams"]);
    assert_eq!(names(&owner(&hub).get("/api/agents")), ["annas", "echo", "olgas", "teams"]);
    let (gone, never) = (mate.get("/api/agents/annas"), mate.get("/api/agents/nobody"));
    assert_eq!((gone.status, told(&gone).replace("annas", "nobody")), (404, told(&never)));
    for target in ["/api/agents/annas", "/api/agents/olgas"] {
        assert_eq!(ask(&mate, "DELETE", target, &json!({})).status, 404, "{target}");
        assert_eq!(ask(&mate, "POST", &format!("{target}/check"), &json!({})).status, 404, "{target}");
    }
    let seen = mate.get("/api/agents/teams");
    assert!(!seen.text().contains("127.0.0.1:1"), "{}", seen.text());
    assert_eq!(seen.json()["own"], false);
    for (verb, body) in [("DELETE", json!({})), ("PATCH", json!({"description": "mine now"}))] {
        assert_eq!(ask(&mate, verb, "/api/agents/teams", &body).status, 403);
    }
    assert_eq!(ask(&mate, "POST", "/api/agents/teams/check", &json!({})).status, 403);
    // A name that is taken out of sight is taken all the same, and stays its owner's when it is free again.
    let refused = add(&mate, &json!({"name": "olgas", "url": NOWHERE}));
    assert!(refused.status == 409 && told(&refused).contains("another agent"), "{refused:?}");
    assert_eq!(ask(&olga, "DELETE", "/api/agents/olgas", &json!({})).status, 204);
    let refused = add(&mate, &json!({"name": "olgas", "url": NOWHERE}));
    assert!(refused.status == 409 && told(&refused).contains("another owner's"), "{refused:?}");
    assert_eq!(add(&olga, &json!({"name": "olgas", "url": NOWHERE})).status, 201);
}

#[test]
fn a_key_for_some_agents_adds_those_alone() {
    let hub = hub();
    let key = hub.make_key(&["narrow", "--scope", WRITES, "--agent", "mine"]);
    let narrow = hub.stranger(Binding::HttpJson).key(&key);
    assert_eq!(add(&narrow, &json!({"name": "other", "url": NOWHERE})).status, 403);
    assert_eq!(add(&narrow, &json!({"name": "mine", "url": NOWHERE})).status, 201);
    assert_eq!(names(&narrow.get("/api/agents")), ["mine"]);
}
