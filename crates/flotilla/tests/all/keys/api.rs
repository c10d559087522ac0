//! `/api/keys`: for whoever administers the hub, and for nobody else.

use crate::cast::{hub, state};
use flotilla_testkit::{Binding, Client, Refusal, Request, Response};
use serde_json::{Value, json};

fn post(client: &Client, target: &str, body: &Value) -> Response {
    client.send(Request::post(target, body.to_string()).header("content-type", "application/json"))
}

fn delete(client: &Client, target: &str) -> Response {
    client.send(Request::new("DELETE", target))
}

/// A key made over HTTP.
fn made(admin: &Client, wanted: Value) -> String {
    let response = post(admin, "/api/keys", &wanted);
    assert_eq!(response.status, 201, "{}", response.text());
    assert_eq!(response.header("cache-control"), Some("no-store"));
    response.json()["secret"].as_str().expect("a key").to_owned()
}

#[test]
fn only_an_administrator_manages_keys() {
    let hub = hub();
    let others = ["agents:read,tasks:read,tasks:write,push:write"]
        .map(|scopes| hub.stranger(Binding::HttpJson).key(&hub.make_key(&["caller", "--scope", scopes])));
    let stranger = hub.stranger(Binding::HttpJson);
    let ask = |client: &Client| {
        [
            client.get("/api/keys"),
            post(client, "/api/keys", &json!({"name": "new"})),
            post(client, "/api/keys/owner:rotate", &json!({})),
            delete(client, "/api/keys/owner"),
        ]
    };
    for response in others.iter().flat_map(ask) {
        assert_eq!((response.status, Refusal::of(&response).reason.as_str()), (403, "PERMISSION_DENIED"));
        assert_eq!(Refusal::of(&response).metadata["requiredScope"], "admin");
    }
    for response in ask(&stranger) {
        assert_eq!((response.status, Refusal::of(&response).reason.as_str()), (401, "UNAUTHENTICATED"));
    }
    let operator = hub.stranger(Binding::HttpJson).key(&hub.make_key(&["operator", "--scope", "admin"]));
    assert_eq!(operator.get("/api/keys").status, 200);
    assert_eq!(state(&operator.say("m", "complete")), "TASK_STATE_COMPLETED", "an administrator may all");
}

#[test]
fn keys_are_made_listed_rotated_and_revoked_at_once() {
    let hub = hub();
    let admin = hub.owner(Binding::HttpJson);
    let wanted = json!({"name": "alice", "workspace": "team", "scopes": ["tasks:read", "tasks:write"],
        "agents": ["mock"], "expiresAt": "2999-01-01T00:00:00Z"});
    let first = made(&admin, wanted);
    let client = |key: &str| hub.stranger(Binding::JsonRpc).key(key);
    let task = client(&first).say("m", "complete");
    let rotated = post(&admin, "/api/keys/team/alice:rotate", &json!({"overlapSeconds": 3600}));
    assert_eq!(rotated.status, 201, "{}", rotated.text());
    let second = rotated.json()["secret"].as_str().expect("a key").to_owned();
    for key in [&first, &second] {
        let list = client(key).call("ListTasks", &json!({})).expect("both work");
        assert_eq!(list["tasks"][0]["id"], task["id"], "for the same principal");
    }
    let response = admin.get("/api/keys");
    let list = response.json();
    let shown = |name: &str| {
        let keys = list["keys"].as_array().expect("a list");
        keys.iter().find(|key| key["name"] == name).unwrap_or_else(|| panic!("no {name} in {list}")).clone()
    };
    let (old, new) = (shown("alice"), shown("alice-2"));
    for field in ["workspace", "principal", "scopes", "agents"] {
        assert_eq!(old[field], new[field], "{field}");
    }
    assert_eq!((&new["replaces"], &new["principal"]), (&json!("alice"), &json!("alice")));
    assert!(new["expiresAt"].as_str() > Some("2999") && old["expiresAt"].as_str() < Some("2999"), "{list}");
    assert_eq!(shown("owner")["scopes"].as_array().map(Vec::len), Some(5));
    for secret in [&first, &second] {
        assert!(!response.text().contains(secret.as_str()), "a list of keys holds no keys");
    }
    for (target, key) in [("/api/keys/team/alice", &first), ("/api/keys/team/alice-2", &second)] {
        assert_eq!(delete(&admin, target).status, 204);
        let refusal = client(key).call("ListTasks", &json!({})).expect_err("revoked, at once");
        assert_eq!(refusal.reason, "UNAUTHENTICATED");
        assert_eq!(delete(&admin, target).status, 404, "revoked already");
    }
}

#[test]
fn mistakes_are_told_in_words_that_help() {
    let hub = hub();
    let admin = hub.owner(Binding::HttpJson);
    made(&admin, json!({"name": "alice"}));
    made(&admin, json!({"name": "owner-laptop", "principal": "owner", "scopes": ["tasks:read"]}));
    for (wanted, status, word) in [
        (json!({"name": "alice"}), 409, "choose another name"),
        (json!({"name": "a b"}), 400, "letters, digits"),
        (json!({"name": "x", "scopes": ["tasks"]}), 400, "tasks:read"),
        (json!({"name": "x", "scopes": []}), 400, "at least one"),
        (json!({"name": "x", "expiresAt": "2001-01-01T00:00:00Z"}), 400, "future"),
        (json!({"name": "x", "expiresAt": "9999-06-01T00:00:00Z"}), 400, "year 9999"),
        (json!({"name": "x", "agents": []}), 400, "at least one agent"),
        (json!({"name": "x", "agents": ["echo"], "scopes": ["admin"]}), 400, "scope admin"),
        (json!({"name": "x", "expires": "1d"}), 400, "expires"),
        (json!({"name": "x", "principal": "anonymous"}), 400, "anonymous"),
        (json!({"name": "owner-9"}), 400, "owner"),
        (json!({}), 400, "name"),
    ] {
        let response = post(&admin, "/api/keys", &wanted);
        assert_eq!(response.status, status, "{wanted}: {}", response.text());
        assert!(Refusal::of(&response).message.contains(word), "{wanted}: {}", response.text());
    }
    assert_eq!(post(&admin, "/api/keys/nobody:rotate", &json!({})).status, 404);
    let negative = post(&admin, "/api/keys/alice:rotate", &json!({"overlapSeconds": -1}));
    assert!(Refusal::of(&negative).message.contains("a whole number, 0 or more"), "{}", negative.text());
    assert_eq!(delete(&admin, "/api/keys/other/alice").status, 404);
    assert_eq!(admin.get("/api/keys/alice").status, 405);
    assert_eq!(delete(&admin, "/api/keys").status, 405);
}
