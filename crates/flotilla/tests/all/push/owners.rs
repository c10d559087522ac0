//! What the owner sees of webhooks and does about them, over the API and the command line.

use super::{delivery, hub, push};
use crate::cast::id;
use flotilla_testkit::{Binding, Reaction, Receiver, Request};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A receiver that fails until it is mended.
fn broken() -> (Receiver, Arc<AtomicBool>) {
    let well = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&well);
    let receiver = Receiver::doing(move |_, _| Reaction::Status(if seen.load(Ordering::Acquire) { 200 } else { 500 }));
    (receiver, well)
}

#[test]
fn a_parked_delivery_shows_every_attempt_and_goes_on_when_it_is_redelivered() {
    let hub = hub();
    let (receiver, well) = broken();
    let task = push(&hub.owner(Binding::JsonRpc), "complete", json!({"url": receiver.url()}));
    let parked = delivery(&hub, &task, "parked");
    let attempts = parked["attempts"].as_array().expect("attempts");
    assert_eq!((attempts.len(), receiver.count(), &parked["failures"]), (5, 5, &json!(5)), "{parked}");
    assert_eq!(parked["reason"], "HTTP 500; the last of 5 attempts in a row");
    assert!(parked.get("nextAttemptAt").is_none(), "{parked}");
    for attempt in attempts {
        assert_eq!((&attempt["status"], &attempt["delivered"]), (&json!(500), &json!(false)));
        assert_eq!(attempt["webhookId"], attempts[0]["webhookId"], "the id stays over retries");
        assert!(attempt["durationMs"].is_u64() && attempt["at"].is_string());
    }
    assert!(attempts[1]["nextAttemptAt"].is_string() && attempts[0].get("nextAttemptAt").is_none(), "newest first");
    assert!(receiver.received().iter().all(|one| one.id() == attempts[0]["webhookId"]));

    let list = hub.cli_ok(&["push", "list", "--state", "parked"]);
    let uid = parked["id"].as_str().expect("an id");
    assert!(list.contains(uid) && list.contains("State: parked") && list.contains("Total: 1"), "{list}");
    let shown = hub.cli_ok(&["push", "show", uid]);
    assert_eq!(shown.matches("\nAttempt: ").count(), 5, "{shown}");
    well.store(true, Ordering::Release);
    hub.cli_ok(&["push", "redeliver", uid]);
    let done = delivery(&hub, &task, "done");
    assert_eq!((&done["cursor"], &done["attemptCount"]), (&json!(4), &json!(9)), "{done}");
    let numbers: Vec<u64> = receiver.received()[5..].iter().map(|one| one.number()).collect();
    assert_eq!(numbers, [1, 2, 3, 4], "nothing was dropped");
}

#[test]
fn everything_can_be_delivered_again_and_a_disabled_one_is_told_nothing() {
    let (hub, receiver) = (hub(), Receiver::start());
    let client = hub.owner(Binding::JsonRpc);
    let task = push(&client, "complete", json!({"url": receiver.url()}));
    let done = delivery(&hub, &task, "done");
    let uid = done["id"].as_str().expect("an id");
    let refused = hub.cli(&["push", "redeliver", uid]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("from=1"), "{refused:?}");
    assert!(!hub.cli(&["push", "redeliver", uid, "--from", "6"]).status.success(), "there is no such event");
    hub.cli_ok(&["push", "redeliver", uid, "--from", "3"]);
    let numbers: Vec<u64> = receiver.wait(6).iter().map(|one| one.number()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 3, 4]);
    delivery(&hub, &task, "done");

    let waiting = push(&client, "ask", json!({"url": receiver.url()}));
    receiver.wait(8);
    let active = flotilla_testkit::until("both webhooks are settled", || {
        let active = delivery(&hub, &waiting, "active");
        (active["cursor"] == 2).then_some(active)
    });
    let uid = active["id"].as_str().expect("an id");
    let disabled: Value = serde_json::from_str(&hub.cli_ok(&["push", "disable", uid, "-o", "json"])).expect("JSON");
    assert_eq!((&disabled["state"], &disabled["reason"]), (&json!("disabled"), &json!("disabled by owner")));
    client.call("CancelTask", &json!({"id": id(&waiting)})).expect("canceled");
    let other = push(&client, "fail", json!({"url": receiver.url()}));
    delivery(&hub, &other, "done");
    assert_eq!(receiver.count(), 11, "only the other one was told");
    hub.cli_ok(&["push", "redeliver", uid]);
    assert_eq!(receiver.wait(12)[11].told(), "CANCELED", "it goes on where it was");
}

#[test]
fn where_the_events_are_gone_the_whole_task_is_told_and_with_the_task_its_deliveries_go() {
    let (receiver, well) = broken();
    let settings = format!("{}\nretention: {{events: 50ms, interval: 50ms}}", super::QUICK);
    let mut hub = crate::cast::hub_with(&settings);
    let client = hub.owner(Binding::JsonRpc);
    let task = push(&client, "complete", json!({"url": receiver.url()}));
    let parked = delivery(&hub, &task, "parked");
    let log = format!("/api/tasks/{}/log", id(&task));
    flotilla_testkit::until("the events are gone", || {
        let page = hub.owner(Binding::HttpJson).get(&log).json();
        (page["pruned"] == true).then_some(())
    });
    well.store(true, Ordering::Release);
    hub.cli_ok(&["push", "redeliver", parked["id"].as_str().expect("an id")]);
    delivery(&hub, &task, "done");
    let last = receiver.received().last().expect("a webhook").json();
    assert_eq!(last["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{last}");
    assert_eq!(last["task"]["metadata"]["urn:flotilla:ext:stream-resume:1.0"]["gap"], true, "{last}");
    hub.kill();
    hub.write_config(&format!("{}\n{}\nretention: {{tasks: 50ms, interval: 50ms}}", crate::cast::CONFIG, super::QUICK));
    hub.restart();
    flotilla_testkit::until("the delivery is gone", || {
        let list = hub.owner(Binding::HttpJson).get("/api/deliveries").json();
        list["deliveries"].as_array().is_some_and(Vec::is_empty).then_some(())
    });
}

#[test]
fn deliveries_are_for_the_owner_of_the_agent() {
    let (hub, receiver) = (hub(), Receiver::start());
    let caller = hub.caller(Binding::HttpJson, "anna");
    let task = push(&caller, "complete", json!({"url": receiver.url()}));
    let done = delivery(&hub, &task, "done");
    let path = format!("/api/deliveries/{}", done["id"].as_str().expect("an id"));
    assert_eq!(caller.get("/api/deliveries").json(), json!({"deliveries": []}));
    assert_eq!(caller.get(&path).status, 404);
    for end in [":redeliver?from=1", ":disable"] {
        assert_eq!(caller.send(Request::post(&format!("{path}{end}"), "")).status, 404, "{end}");
    }
    assert_eq!(hub.stranger(Binding::HttpJson).get("/api/deliveries").status, 401);
    let owner = hub.owner(Binding::HttpJson);
    assert_eq!(owner.get("/api/deliveries?state=lost").status, 400);
    assert_eq!(owner.get("/api/deliveries/nonsense").status, 404);
    assert_eq!(owner.send(Request::post("/api/deliveries", "")).status, 405);
    assert_eq!(owner.get(&format!("{path}:disable")).status, 405);
    for wrong in
        [":redeliver?from=x", ":redeliver?from=0", ":redeliver?form=1", ":redeliver?from=1&from=2", ":disable?x"]
    {
        assert_eq!(owner.send(Request::post(&format!("{path}{wrong}"), "")).status, 400, "{wrong}");
    }
    let body = Request::post(&format!("{path}:redeliver"), r#"{"from":77}"#).header("content-type", "application/json");
    let refused = owner.send(body);
    assert!(refused.status == 400 && refused.text().contains("?from=N"), "{}", refused.text());
    for wrong in ["?states=done", "?state=parked&state=done", "?before=bogus"] {
        assert_eq!(owner.get(&format!("/api/deliveries{wrong}")).status, 400, "{wrong}");
    }
    for nothing in ["?task=bogus", "?task=00000000-0000-7000-8000-000000000000", "?agent=echo"] {
        assert_eq!(owner.get(&format!("/api/deliveries{nothing}")).json(), json!({"deliveries": []}), "{nothing}");
    }
    let of_agent = owner.get("/api/deliveries?agent=mock").json();
    assert_eq!(of_agent["deliveries"].as_array().map(Vec::len), Some(1), "{of_agent}");
    let missing = owner.get("/api/deliveries/00000000-0000-7000-8000-000000000000");
    assert_eq!((missing.status, flotilla_testkit::Refusal::of(&missing).reason.as_str()), (404, "NOT_FOUND"));
    let operator = hub.stranger(Binding::HttpJson).key(&hub.make_key(&["operator", "--scope", "admin"]));
    assert_eq!(operator.get(&path).status, 200, "an administrator sees all");
}

#[test]
fn a_developer_listens_and_sees_what_is_verified() {
    let hub = hub();
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let place = crate::cli::program::Place::at(&hub);
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let address = free.to_string();
    let listening = place.start(&["listen", "--listen", &address, "--secret", secret, "--count", "5", "-o", "json"]);
    flotilla_testkit::until("somebody listens", || std::net::TcpStream::connect(free).ok());
    let client = hub.owner(Binding::JsonRpc);
    let url = format!("http://{free}/");
    push(&client, "direct", json!({"url": url, "token": secret}));
    push(&client, "fail", json!({"url": format!("{url}?2")}));
    let ran = crate::cli::program::finish(listening).ok();
    let lines = ran.lines();
    let by = |who: &str| lines.iter().filter(|line| line["verified"] == true && line["by"] == who).count();
    assert_eq!((by("the secret"), by("the hub's key")), (2, 3), "{lines:?}");
    assert!(lines.iter().any(|line| line["body"]["statusUpdate"]["status"]["state"] == "TASK_STATE_FAILED"));
    // A secret the sender does not know: seen, told, and refused.
    let other = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let listening = place.start(&["listen", "--listen", &address, "--secret", other, "--count", "1"]);
    flotilla_testkit::until("somebody listens", || std::net::TcpStream::connect(free).ok());
    let task = push(&client, "complete", json!({"url": format!("{url}?3"), "token": secret}));
    let ran = crate::cli::program::finish(listening).ok();
    assert!(ran.field("Verified").starts_with("no: no signature fits"), "{ran:?}");
    let parked = delivery(&hub, &task, "parked");
    let first = parked["attempts"].as_array().and_then(|all| all.last()).expect("an attempt").clone();
    assert_eq!(first["status"], 401, "{parked}");
}

#[test]
fn what_is_no_json_is_shown_as_it_came_and_who_ends_the_listening_is_told_so() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let place = crate::cli::program::Place::new();
    let listening = place.start(&["listen", "--listen", &free.to_string(), "--any"]);
    flotilla_testkit::until("somebody listens", || std::net::TcpStream::connect(free).ok());
    let odd = "a  b {\"c\\d\" }";
    flotilla_testkit::http::send(free, &Request::post("/", odd));
    let pid = listening.id().to_string();
    std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("a signal");
    let ran = crate::cli::program::finish(listening);
    assert!(ran.out.contains(odd), "{ran:?}");
    assert!(ran.code == 130 && ran.err.contains("nobody listens any more") && !ran.err.contains("task"), "{ran:?}");
}

#[test]
fn what_goes_wrong_on_the_command_line_has_a_fitting_hint() {
    let hub = hub();
    let unknown = "00000000-0000-7000-8000-000000000000";
    for (args, hint) in [
        (&["push", "show", unknown][..], "flotilla push list shows"),
        (&["push", "list", "--state", "lost"], "the message names what is wrong"),
        (&["push", "list", "--bearer", "wrong"], "set FLOTILLA_KEY to the owner's key"),
        (&["push", "list", "--hub", "http://127.0.0.1:1"], "check that the hub runs"),
        (&["push", "show", ""], "--help"),
        (&["push", "show", "."], "--help"),
        (&["push", "disable", ".."], "--help"),
        (&["push", "list", "--agent", "nope"], "flotilla push list shows"),
        (&["push", "list", "--transport", "BOGUS"], "flotilla push list --help"),
        (&["push", "list", "-a", "https://example.com"], "flotilla push list --help"),
        (&["push", "redeliver", unknown, "--from", "0"], "--help"),
        (&["listen", "--a2a-version", "9.9"], "flotilla listen --help"),
        (&["listen", "--count", "0"], "--help"),
        (&["task", "push-config", "get", unknown, "..", "--transport", "HTTP+JSON"], "--help"),
        (&["card", "get", "--agent", ".."], "--help"),
    ] {
        let output = hub.cli(args);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let hints: Vec<&str> = told.lines().filter(|line| line.starts_with("Hint: ")).collect();
        assert!(!output.status.success() && hints.len() == 1 && hints[0].contains(hint), "{args:?}: {told}");
    }
}

#[test]
fn a_config_for_a_task_that_is_over_tells_nothing_until_its_owner_asks() {
    let (hub, receiver) = (hub(), Receiver::start());
    let client = hub.owner(Binding::JsonRpc);
    let task = client.say("m-over", "complete");
    let url = format!("{}?room=SECRET", receiver.url());
    let params = json!({"taskId": task["id"], "id": "c", "url": url});
    client.call("CreateTaskPushNotificationConfig", &params).expect("kept");
    let got = client.call("GetTaskPushNotificationConfig", &json!({"taskId": task["id"], "id": "c"})).expect("there");
    assert_eq!(got["url"], url, "whoever made it may see it");
    let done = delivery(&hub, &task, "done");
    assert_eq!(done["url"], url.replace("SECRET", "[redacted]"), "others may not");
    assert!(!hub.cli_ok(&["push", "list"]).contains("SECRET"));
    assert_eq!((&done["attemptCount"], receiver.count()), (&json!(0), 0), "{done}");
    hub.cli_ok(&["push", "redeliver", done["id"].as_str().expect("an id"), "--from", "1"]);
    let numbers: Vec<u64> = receiver.wait(4).iter().map(|one| one.number()).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
}
