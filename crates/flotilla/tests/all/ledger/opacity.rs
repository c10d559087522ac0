//! The caller of an agent neither sees nor answers what the agent asks its owner, whichever way it looks.

use super::{allow, answer, approval, hub_with, owner};
use crate::cast::{id, reached};
use flotilla_testkit::{Binding, Receiver};
use serde_json::json;

/// Words of the question that must not get out.
const SECRETS: [&str; 4] = ["Bash", "May I?", "approval", "hush-hush"];

fn is_opaque(what: &str, seen: &str) {
    // What the caller itself said is no secret from it.
    for secret in SECRETS {
        assert!(!seen.contains(secret), "{what} tells of {secret}: {seen}");
    }
}

#[test]
fn no_binding_shows_a_question_and_no_peer_answers_one() {
    let hub = hub_with("targets: {allow: [127.0.0.1]}\n");
    for binding in [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc] {
        let receiver = Receiver::start();
        let name = format!("peer-{binding:?}").to_lowercase();
        let caller = hub.caller(binding, &name);
        let mut params = flotilla_testkit::client::message(&format!("m-{name}"), "run it");
        params["configuration"] =
            json!({"returnImmediately": true, "taskPushNotificationConfig": {"url": receiver.url()}});
        let task = caller.call("SendMessage", &params).unwrap()["task"].clone();
        let open = approval(&hub, "open");
        let mut stream = caller.stream("SubscribeToTask", &json!({"id": id(&task)})).unwrap();
        is_opaque("GetTask", &caller.task(id(&task)).to_string());
        if binding == Binding::JsonRpc {
            is_opaque("tasks/get of 0.3", &caller.clone().in_03().task(id(&task)).to_string());
            is_opaque("a socket", &caller.clone().over_socket().task(id(&task)).to_string());
        }
        is_opaque("ListTasks", &caller.call("ListTasks", &json!({})).unwrap().to_string());
        let page = hub.stranger(Binding::HttpJson).key(&hub.key(&format!("{name}-http"), &[]));
        let list = page.get("/api/approvals");
        assert_eq!((list.status, list.json()["approvals"].as_array().unwrap().len()), (200, 0));
        let one = page.get(&format!("/api/approvals/{}", open["id"].as_str().unwrap()));
        assert_eq!(one.status, 404);
        let said = json!({"decision": "allow"});
        let refused = answer(&page, &open, &said);
        assert!(refused.status == 403 && refused.text().contains("approvals:write"), "{}", refused.text());
        let scoped = hub.make_key(&[&format!("{name}-scoped"), "--scope", "tasks:read,approvals:write"]);
        assert_eq!(
            answer(&hub.stranger(Binding::HttpJson).key(&scoped), &open, &said).status,
            404,
            "not their agent's"
        );
        let noted = json!({"decision": "allow", "note": "hush-hush"});
        assert_eq!(answer(&owner(&hub), &open, &noted).status, 200);
        reached(&caller, id(&task), "TASK_STATE_COMPLETED");
        for event in stream.rest() {
            is_opaque("a stream", event.data.as_deref().unwrap_or_default());
        }
        for webhook in receiver.wait(3) {
            is_opaque("a webhook", &webhook.json().to_string());
        }
        assert_eq!(caller.get(&format!("/api/tasks/{}/log", id(&task))).status, 404, "the log is the owner's");
    }
}

#[test]
fn an_owner_of_one_agent_answers_for_that_one() {
    let config = r#"
agents:
  hers: {kind: script, owner: anna, script: {otherwise: [{approval: {tool: T}}, completed]}}
  his: {kind: script, owner: ben, script: {otherwise: [{approval: {tool: T}}, completed]}}
"#;
    let hub = crate::cast::setup().config(config).start();
    let key = |name: &str, who: &str, scope: &str| {
        hub.stranger(Binding::HttpJson).key(&hub.make_key(&[name, "--principal", who, "--scope", scope]))
    };
    let (anna, ben) = (key("a", "anna", "tasks:read,approvals:write"), key("b", "ben", "tasks:read,approvals:write"));
    let agent = key("c", "anna", "tasks:read,tasks:write,agents:connect");
    hub.owner(Binding::HttpJson).agent("hers").start("m1", "go");
    let open = approval(&hub, "open");
    assert_eq!(ben.get("/api/approvals").json()["approvals"], json!([]));
    assert_eq!(answer(&ben, &open, &json!({"decision": "allow"})).status, 404);
    assert_eq!(answer(&agent, &open, &json!({"decision": "allow"})).status, 403, "an agent's key answers nothing");
    assert_eq!(anna.get("/api/approvals").json()["approvals"][0]["id"], open["id"]);
    assert_eq!(answer(&anna, &open, &json!({"decision": "allow"})).json()["answer"]["by"], "a");
    hub.owner(Binding::HttpJson).agent("his").start("m2", "go");
    allow(&hub, &approval(&hub, "open"));
}
