//! Whose work is whose when the hub chooses the worker: keys that are limited, rules, and owners of workers.

use super::{dispatch, give, owner, post, result, steps, told, worker};
use crate::cast::{hub, hub_with, reached};
use crate::socket::{SCOPES, dial};
use flotilla_testkit::http::{Request, try_stream};
use flotilla_testkit::{Binding, Client, HubProcess, until};
use serde_json::{Value, json};

fn with_key(hub: &HubProcess, args: &[&str]) -> Client {
    hub.stranger(Binding::HttpJson).key(&hub.make_key(args))
}

#[test]
fn a_key_limited_to_agents_has_its_work_done_by_these_alone() {
    let hub = hub();
    let (mut ada, mut bob) = (worker(&hub, "ada"), worker(&hub, "bob"));
    let limited = with_key(&hub, &["lim", "--agent", "fleet", "--agent", "bob"]);
    let given = |with: &Value| {
        let answer = post(&limited, "/api/dispatch", &dispatch(with));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["task"]["id"].as_str().expect("an id").to_owned()
    };
    let task = given(&json!({}));
    let message = bob.kind("message");
    assert_eq!(message["taskId"], task);
    let why = limited.get(&format!("/api/tasks/{task}/why"));
    assert_eq!(why.status, 200, "{}", why.text());
    assert!(!why.text().contains("\"ada\""), "no other is spoken of: {}", why.text());
    // Its only worker is busy, and the other one is free.
    let second = given(&json!({"on_blocked": []}));
    let rejected = told(&reached(&limited.clone().agent("fleet"), &second, "TASK_STATE_REJECTED"));
    assert_eq!(rejected["blocked_reason"], "over_capacity");
    assert!(!rejected["detail"].to_string().contains("ada"), "{rejected}");
    result(&mut bob, &message, &json!({"status": "done"}));
    ada.send(&json!({"type": "ping"}));
    assert_eq!(ada.read()["type"], "pong", "nothing was sent to the other");
}

fn ask(socket: &mut flotilla_testkit::socket::Socket, work: &Value, tool: &str) {
    socket.send(&json!({"type": "approval_request", "id": format!("q-{tool}"), "taskId": work["taskId"],
        "run": work["run"], "tool": tool, "input": {"command": "ls"}, "text": "May I?"}));
}

#[test]
fn the_owner_of_the_worker_is_asked_and_its_rules_hold_whoever_chose_it() {
    let hub = hub_with("approvals: {rules: [{agent: ada, tool: Bash, decide: deny}]}");
    let mut ada = worker(&hub, "ada");
    let boss = with_key(&hub, &["ada-boss", "--principal", "ada", "--scope", "tasks:read,approvals:write"]);
    let limited =
        with_key(&hub, &["ada-only", "--principal", "ada", "--scope", "tasks:read,approvals:write", "--agent", "ada"]);
    let other = with_key(&hub, &["bob-boss", "--principal", "bob", "--scope", "tasks:read,approvals:write"]);
    let caller = hub.caller(Binding::HttpJson, "peer");
    let given = post(&caller, "/api/dispatch", &dispatch(&json!({}))).json();
    let task = given["task"]["id"].as_str().expect("an id");
    let work = ada.kind("message");

    ask(&mut ada, &work, "Bash");
    assert_eq!(ada.kind("approval_decision")["decision"], "deny", "the rule for the worker holds");
    ask(&mut ada, &work, "Edit");
    let open = |client: &Client| client.get("/api/approvals?state=open").json()["approvals"].clone();
    let asked = until("its owner is asked", || open(&boss).get(0).cloned());
    assert_eq!((&asked["agent"], &asked["taskId"]), (&json!("ada"), &json!(task)));
    assert_eq!(open(&limited)[0]["id"], asked["id"]);
    assert_eq!((open(&other), open(&caller)), (json!([]), json!([])));

    let status = |client: &Client, view: &str| client.get(&format!("/api/tasks/{task}/{view}")).status;
    for view in ["log", "why", "tree"] {
        let seen = [&boss, &limited, &owner(&hub), &other].map(|client| status(client, view));
        assert_eq!(seen, [200, 200, 200, 404], "{view}");
    }
    let path = format!("/api/approvals/{}", asked["id"].as_str().expect("an id"));
    assert_eq!(post(&other, &path, &json!({"decision": "allow"})).status, 404);
    assert_eq!(post(&boss, &path, &json!({"decision": "allow"})).status, 200);
    assert_eq!(ada.kind("approval_decision")["decision"], "allow");

    result(&mut ada, &work, &json!({"status": "done"}));
    reached(&caller.agent("fleet"), task, "TASK_STATE_COMPLETED");
    assert_eq!((status(&boss, "log"), status(&other, "log")), (200, 404), "also when it is done");
}

#[test]
fn the_owner_of_the_worker_hears_of_the_fleet_s_work_it_does() {
    let hub = hub();
    let listen = |args: &[&str]| {
        let request = with_key(&hub, args).dress(Request::get("/api/events").header("accept", "text/event-stream"));
        try_stream(hub.address(), &request).expect("a stream")
    };
    let mut ada = worker(&hub, "ada");
    let boss = listen(&["ada-boss", "--principal", "ada", "--scope", "tasks:read"]);
    let limited = listen(&["ada-only", "--principal", "ada", "--scope", "tasks:read", "--agent", "ada"]);
    let mut other = listen(&["bob-boss", "--principal", "bob", "--scope", "tasks:read"]);
    let done = |hub: &HubProcess, socket: &mut flotilla_testkit::socket::Socket| {
        let (task, client) = give(hub, &json!({}));
        let message = socket.kind("message");
        result(socket, &message, &json!({"status": "done"}));
        reached(&client, &task, "TASK_STATE_COMPLETED");
        task
    };
    let task = done(&hub, &mut ada);
    let ended = |event: &flotilla_testkit::Event| {
        event.event.as_deref() == Some("task") && event.json()["state"] == "TASK_STATE_COMPLETED"
    };
    for mut stream in [boss, limited] {
        let heard = stream.through(ended);
        let told = heard.last().expect("it came").json();
        assert_eq!((&told["taskId"], &told["worker"], &told["agent"]), (&json!(task), &json!("ada"), &json!("fleet")));
    }
    assert_eq!(post(&owner(&hub), "/api/fleet/ada/drain", &json!({})).status, 200);
    let mut bob = worker(&hub, "bob");
    let task = done(&hub, &mut bob);
    let heard = other.through(|event| event.event.as_deref() == Some("task"));
    assert_eq!(heard.last().expect("it came").json()["taskId"], json!(task), "the first it hears of is its own");
}

#[test]
fn the_owner_of_the_worker_hears_that_its_question_is_void_when_it_does_not_begin() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let boss = with_key(&hub, &["ada-boss", "--principal", "ada", "--scope", "tasks:read,approvals:write"]);
    let request = boss.dress(Request::get("/api/events").header("accept", "text/event-stream"));
    let mut heard = try_stream(hub.address(), &request).expect("a stream");
    let (task, _) = give(&hub, &json!({"on_blocked": ["queue"]}));
    let message = ada.kind("message");
    ask(&mut ada, &message, "Bash");
    for state in ["open", "withdrawn"] {
        let read = heard.through(|event| event.event.as_deref() == Some("approval"));
        let told = read.last().expect("it came").json();
        assert_eq!((&told["state"], &told["taskId"], &told["agent"]), (&json!(state), &json!(task), &json!("ada")));
        if state == "open" {
            result(&mut ada, &message, &json!({"status": "blocked", "blocked_reason": "dirty_tree"}));
        }
    }
}

#[test]
fn work_that_another_s_worker_does_is_not_shown_to_who_refused_it() {
    let hub = hub();
    let (mut ada, mut bob) = (worker(&hub, "ada"), worker(&hub, "bob"));
    let (task, client) = give(&hub, &json!({}));
    super::blocked::block(&mut ada, &json!({"blocked_reason": "stale_profile"}));
    let message = bob.kind("message");
    result(&mut bob, &message, &json!({"status": "done"}));
    reached(&client, &task, "TASK_STATE_COMPLETED");
    let log = |name: &str| {
        let key = with_key(&hub, &[&format!("{name}-sees"), "--principal", name, "--scope", "tasks:read"]);
        key.get(&format!("/api/tasks/{task}/log")).status
    };
    assert_eq!((log("ada"), log("bob")), (404, 200), "{}", steps(&hub, &task));
}

#[test]
fn what_is_told_beside_a_dispatch_is_an_object() {
    let hub = hub();
    let _ada = worker(&hub, "ada");
    for metadata in [json!(5), json!("x"), json!([1]), json!(true)] {
        let refused = post(&owner(&hub), "/api/dispatch", &dispatch(&json!({"to": "ada", "metadata": metadata})));
        assert_eq!(refused.status, 400, "{metadata}: {}", refused.text());
        assert!(refused.text().contains("must be an object"), "{}", refused.text());
    }
}

#[test]
fn the_fleet_is_no_worker_and_any_is_no_name() {
    let hub = hub();
    let _ada = worker(&hub, "ada");
    let refused = post(&owner(&hub), "/api/dispatch", &dispatch(&json!({"to": "fleet"})));
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("stands for all workers"), "{}", refused.text());
    let message = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}],
        "metadata": {"urn:flotilla:ext:fleet-handshake:2.0": dispatch(&json!({"to": "fleet"}))}}});
    let refused = owner(&hub).agent("fleet").call("SendMessage", &message).expect_err("it is refused");
    assert!(format!("{refused:?}").contains("stands for all workers"), "{refused:?}");
    for name in ["any", "stream", "fleet"] {
        let refused = hub.cli(&["keys", "create", name, "--scope", SCOPES]);
        assert!(!refused.status.success(), "{name}");
        let dialed = dial(&hub, &hub.make_key(&[&format!("k-{name}"), "--scope", SCOPES]));
        assert!(dialed.query("agent", name).try_open().is_err(), "{name}");
    }
}
