//! A key's end: what it opened ends with it, whether it was revoked or its time is over.

use crate::cast::{CONFIG, hub, setup};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess, Refusal, Request, Stream, http, until};
use serde_json::json;
use std::time::{Duration, Instant};

/// A stream on which nothing happens any more.
fn quiet(client: &Client) -> Stream {
    let mut stream = client.stream("SendStreamingMessage", &message("m", "hold")).expect("a stream");
    stream.through(|event| event.data.as_deref().is_some_and(|data| data.contains("TASK_STATE_WORKING")));
    stream
}

/// The stream's last word; how long it was waited for.
fn ended(mut stream: Stream) -> Duration {
    let started = Instant::now();
    let last = stream.rest().pop().expect("a last word").data.expect("data");
    assert!(last.contains("UNAUTHENTICATED"), "the stream says why it ends: {last}");
    started.elapsed()
}

fn revoke(hub: &HubProcess, name: &str) {
    let request = Request::new("DELETE", &format!("/api/keys/{name}"));
    assert_eq!(hub.owner(Binding::HttpJson).send(request).status, 204);
}

#[test]
fn what_is_revoked_over_http_ends_its_streams_at_once() {
    let hub = hub();
    for binding in Binding::ALL {
        let mut bystander = quiet(&hub.caller(binding, &format!("bob-{binding:?}")));
        let mut waits: Vec<Duration> = (0..5)
            .map(|round| {
                let name = format!("alice-{binding:?}-{round}");
                let alice = hub.caller(binding, &name);
                let streams = [quiet(&alice), quiet(&alice)];
                revoke(&hub, &name);
                streams.map(ended).into_iter().max().expect("two streams")
            })
            .collect();
        waits.sort();
        // The store is looked at once a second, so a hub that only looked there would often take longer.
        assert!(waits[2] < Duration::from_millis(250), "{binding:?}: {waits:?}");
        revoke(&hub, &format!("bob-{binding:?}"));
        assert!(bystander.rest().len() == 1, "other keys' streams went on until then");
    }
}

#[test]
fn a_stream_of_a_key_that_another_process_revoked_ends_though_nothing_happens_on_it() {
    let hub = hub();
    for binding in Binding::ALL {
        let name = format!("alice-{binding:?}");
        let stream = quiet(&hub.caller(binding, &name));
        hub.cli_ok(&["keys", "revoke", &name]);
        assert!(ended(stream) < Duration::from_secs(5));
    }
}

#[test]
fn a_send_that_waits_is_refused_and_its_task_goes_on() {
    let hub = hub();
    for binding in Binding::ALL {
        let name = format!("alice-{binding:?}");
        let alice = hub.caller(binding, &name);
        let second = hub.make_key(&[&format!("{name}-b"), "--principal", &name]);
        let waiting = std::thread::spawn(move || alice.call("SendMessage", &message("m", "work 2s")));
        let other = hub.stranger(binding).key(&second);
        until("the task is there", || (other.call("ListTasks", &json!({})).ok()?["totalSize"] == 1).then_some(()));
        revoke(&hub, &name);
        assert_eq!(waiting.join().expect("a caller").expect_err("revoked").reason, "UNAUTHENTICATED");
        until("the task is completed", || {
            let list = other.call("ListTasks", &json!({})).expect("a list");
            (list["tasks"][0]["status"]["state"] == "TASK_STATE_COMPLETED").then_some(())
        });
    }
}

#[test]
fn the_owners_view_ends_with_its_key() {
    let hub = hub();
    let key = hub.make_key(&["operator", "--scope", "admin"]);
    let operator = hub.stranger(Binding::HttpJson).key(&key);
    let task = operator.start("m", "hold");
    let target = format!("/api/tasks/{}/log", task["id"].as_str().expect("an id"));
    let request = operator.dress(Request::get(&target).header("accept", "text/event-stream"));
    let mut stream = http::try_stream(hub.address(), &request).expect("a stream");
    stream.through(|event| event.data.as_deref().is_some_and(|data| data.contains("TASK_STATE_WORKING")));
    revoke(&hub, "operator");
    ended(stream);
}

#[test]
fn an_expired_key_is_refused_and_its_streams_end() {
    let hub = hub();
    for binding in Binding::ALL {
        let key = hub.make_key(&[&format!("short-{binding:?}"), "--expires", "2s"]);
        let short = hub.stranger(binding).key(&key);
        let stream = quiet(&short);
        ended(stream);
        assert_eq!(short.call("ListTasks", &json!({})).expect_err("expired").reason, "UNAUTHENTICATED");
    }
    assert!(hub.cli_ok(&["keys", "list"]).contains(" expired 20"));
}

#[test]
fn a_rotated_key_works_for_the_overlap_and_no_longer() {
    let hub = hub();
    let old = hub.make_key(&["alice", "--scope", "tasks:read,tasks:write", "--agent", "mock"]);
    let new = hub.cli_ok(&["keys", "rotate", "alice", "--overlap", "2s"]).trim().to_owned();
    for binding in Binding::ALL {
        let stream = quiet(&hub.stranger(binding).key(&new));
        hub.stranger(binding).key(&old).call("ListTasks", &json!({})).expect("it still works");
        drop(stream);
    }
    until("the overlap is over", || {
        (hub.stranger(Binding::HttpJson).key(&old).get("/tasks").status == 401).then_some(())
    });
    let alice = hub.stranger(Binding::JsonRpc).key(&new);
    assert!(
        alice.call("ListTasks", &json!({})).expect("a list")["totalSize"].as_u64() >= Some(1),
        "the same principal"
    );
    assert_eq!(
        alice.clone().agent("echo").call("ListTasks", &json!({})).expect_err("limited").reason,
        "AGENT_NOT_FOUND"
    );
    // Rotating on goes on with the name it began with.
    hub.cli_ok(&["keys", "rotate", "alice-2", "--overlap", "0s"]);
    let list = hub.cli_ok(&["keys", "list"]);
    assert!(list.lines().any(|line| line.starts_with("alice-3 ")), "{list}");
    assert!(!hub.cli(&["keys", "rotate", "alice"]).status.success(), "it has ended");
}

#[test]
fn a_key_is_replaced_once_and_its_successor_lives_on() {
    let hub = hub();
    hub.key("team-9", &[]);
    hub.cli_ok(&["keys", "rotate", "team-9"]);
    let again = hub.cli(&["keys", "rotate", "team-9"]);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(!again.status.success() && said.contains("replaced by 'team-9-2' already; rotate 'team-9-2'"), "{said}");
    let response = hub.owner(Binding::HttpJson).send(Request::post("/api/keys/team-9:rotate", ""));
    assert_eq!((response.status, Refusal::of(&response).reason.as_str()), (409, "ALREADY_EXISTS"));
    hub.cli_ok(&["keys", "rotate", "team-9-2"]);
    let list = hub.cli_ok(&["keys", "list"]);
    assert!(list.lines().any(|line| line.starts_with("team-9-3 ") && line.contains(" in use ")), "{list}");
    // The last of the line is named, and what to do if that has ended.
    let refused = |name: &str| String::from_utf8_lossy(&hub.cli(&["keys", "rotate", name]).stderr).into_owned();
    assert!(refused("team-9").contains("rotate 'team-9-3'"), "{}", refused("team-9"));
    hub.cli_ok(&["keys", "revoke", "team-9-3"]);
    assert!(refused("team-9").contains("keys create NAME --principal"), "{}", refused("team-9"));
}

#[test]
fn the_owners_key_is_rotated_like_any_other() {
    let mut hub = hub();
    let new = hub.cli_ok(&["keys", "rotate", "owner", "--overlap", "0s"]).trim().to_owned();
    let refused = |client: &Client| Refusal::of(&client.get("/api/keys")).reason;
    until("the hub knows", || (hub.owner(Binding::HttpJson).get("/api/keys").status == 401).then_some(()));
    assert_eq!(refused(&hub.owner(Binding::HttpJson)), "UNAUTHENTICATED");
    assert_eq!(hub.stranger(Binding::HttpJson).key(&new).get("/api/keys").status, 200);
    // The preset is the old one: it does not come back to life, and takes nothing with it.
    hub.terminate();
    let said = hub.second_refused();
    assert!(said.contains("FLOTILLA_OWNER_KEY") && said.contains("preset a new one"), "{said}");
    let list = hub.cli_ok(&["keys", "list"]);
    assert!(list.lines().any(|line| line.starts_with("owner-2 ") && line.contains(" in use ")), "{list}");
}

/// Whoever ends a key of the owner's is told of the preset.
#[test]
fn the_end_of_an_owners_key_is_told_with_what_else_is_to_be_done() {
    let hub = hub();
    let said = |args: &[&str]| String::from_utf8_lossy(&hub.cli(args).stderr).into_owned();
    assert!(said(&["keys", "rotate", "owner"]).contains("hub.owner_key"));
    assert!(said(&["keys", "revoke", "owner-2"]).contains("hub.owner_key"));
    hub.make_key(&["spare", "--principal", "owner", "--scope", "admin"]);
    hub.key("alice", &[]);
    assert_eq!(said(&["keys", "revoke", "alice"]), "", "nothing to be done");
    let owner = hub.owner(Binding::HttpJson);
    let rotated = owner.send(Request::post("/api/keys/spare:rotate", ""));
    assert!(rotated.json()["note"].as_str().is_some_and(|note| note.contains("hub.owner_key")), "{}", rotated.text());
    let revoked = owner.send(Request::new("DELETE", "/api/keys/owner"));
    assert_eq!(revoked.status, 200);
    assert!(revoked.json()["note"].as_str().is_some_and(|note| note.contains("hub.owner_key")), "{}", revoked.text());
}

#[test]
fn a_new_preset_ends_all_that_stood_for_the_owner() {
    let mut hub = hub();
    let laptop = hub.make_key(&["laptop", "--principal", "owner", "--scope", "tasks:read"]);
    let alice = hub.key("alice", &[]);
    hub.terminate();
    let new = format!("flk_{}", "b".repeat(64));
    hub.preset(&new);
    let status = |key: &str| hub.stranger(Binding::HttpJson).key(key).get("/tasks").status;
    assert_eq!([status(&new), status(&laptop), status(&alice)], [200, 401, 200]);
    assert_eq!(hub.owner(Binding::HttpJson).get("/tasks").status, 401);
}

#[test]
fn a_key_that_cannot_be_is_not_made() {
    let hub = hub();
    for (args, word) in [
        (["x", "--expires", "99999999d"].as_slice(), "year 9999"),
        (&["x", "--scope", "admin", "--agent", "echo"], "scope admin"),
    ] {
        let output = hub.cli(&[&["keys", "create"], args].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(word), "{args:?}: {said}");
    }
    hub.cli_ok(&["keys", "rotate", "owner", "--overlap", "99999999d"]);
    assert!(!hub.cli_ok(&["keys", "list"]).contains("until 1970"), "{}", hub.cli_ok(&["keys", "list"]));
}

#[test]
fn memory_has_keys_too() {
    let hub = setup().config(CONFIG).arg("--memory").start();
    let admin = hub.owner(Binding::HttpJson);
    let body = json!({"name": "alice", "scopes": ["tasks:read"]}).to_string();
    let made = admin.send(Request::post("/api/keys", body).header("content-type", "application/json"));
    let key = made.json()["secret"].as_str().expect("a key").to_owned();
    for binding in Binding::ALL {
        let alice = hub.stranger(binding).key(&key);
        alice.call("ListTasks", &json!({})).expect("let in");
        assert_eq!(alice.call("SendMessage", &message("m", "complete")).expect_err("no").reason, "PERMISSION_DENIED");
    }
    revoke(&hub, "alice");
    assert_eq!(hub.stranger(Binding::HttpJson).key(&key).get("/tasks").status, 401);
}
