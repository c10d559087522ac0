//! Webhooks over the end of a hub: at least once, in order, under the same ids.

use super::{delivery, push};
use crate::cast::hub_with;
use flotilla_testkit::{Binding, Reaction, Receiver, until};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_hub_killed_between_attempts_makes_the_next_one_under_the_same_id() {
    let well = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&well);
    let receiver = Receiver::doing(move |_, _| Reaction::Status(if seen.load(Ordering::Acquire) { 200 } else { 503 }));
    let mut hub = hub_with("targets: {allow: [127.0.0.1]}\npush: {schedule: [200ms, 200ms, 200ms, 1s, 1s, 1s, 1s]}");
    let task = push(&hub.owner(Binding::JsonRpc), "complete", json!({"url": receiver.url()}));
    receiver.wait(2);
    let client = hub.owner(Binding::HttpJson);
    // The second failure is on the disk, the next attempt is yet to come.
    until("two attempts are settled", || {
        let list = client.get("/api/deliveries").json();
        (list["deliveries"][0]["attemptCount"].as_u64() >= Some(2)).then_some(())
    });
    hub.kill();
    let before = receiver.count();
    well.store(true, Ordering::Release);
    hub.restart();
    let done = delivery(&hub, &task, "done");
    let received = receiver.received();
    assert!(received[..before].iter().all(|one| one.id() == received[0].id()));
    let after: Vec<u64> = received[before..].iter().map(|one| one.number()).collect();
    assert_eq!(after, [1, 2, 3, 4], "it goes on where it was, in order: {done}");
}

#[test]
fn an_attempt_that_a_crash_cut_off_is_made_again() {
    let first = Arc::new(AtomicBool::new(true));
    let receiver = Receiver::doing(move |_, _| match first.swap(false, Ordering::AcqRel) {
        true => Reaction::Hang,
        false => Reaction::Status(200),
    });
    let mut hub = hub_with("targets: {allow: [127.0.0.1]}\npush: {timeout: 20s}");
    let task = push(&hub.owner(Binding::JsonRpc), "complete", json!({"url": receiver.url()}));
    receiver.wait(1);
    hub.restart();
    delivery(&hub, &task, "done");
    let received = receiver.received();
    assert_eq!(received[0].id(), received[1].id(), "under the same id");
    assert_eq!(received[0].body, received[1].body, "with the same content");
    let numbers: Vec<u64> = received.iter().map(|one| one.number()).collect();
    assert_eq!(numbers, [1, 1, 2, 3, 4]);
}

#[test]
fn a_hub_that_is_asked_to_stop_waits_for_the_answer() {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let receiver = Receiver::doing(move |number, _| {
        if number == 0 {
            // Until the test lets go.
            let _ = held.lock().expect("one at a time").recv();
        }
        Reaction::Status(200)
    });
    let mut hub = hub_with("targets: {allow: [127.0.0.1]}");
    let task = push(&hub.owner(Binding::JsonRpc), "complete", json!({"url": receiver.url()}));
    receiver.wait(1);
    hub.signal("TERM");
    until("the hub takes no more connections", || std::net::TcpStream::connect(hub.address()).is_err().then_some(()));
    release.send(()).expect("the receiver waits");
    assert!(hub.ended().success());
    hub.restart();
    delivery(&hub, &task, "done");
    let numbers: Vec<u64> = receiver.received().iter().map(|one| one.number()).collect();
    assert_eq!(numbers, [1, 2, 3, 4], "nothing came twice");
}

#[test]
fn a_lost_secret_key_is_told_and_uses_up_nothing_until_it_is_back() {
    let receiver = Receiver::start();
    let mut hub = hub_with("targets: {allow: [127.0.0.1]}\npush: {schedule: []}");
    let client = hub.owner(Binding::JsonRpc);
    let sealed = push(&client, "ask", json!({"url": format!("{}?sealed", receiver.url()), "token": "t-1"}));
    let open = push(&client, "ask", json!({"url": format!("{}?open", receiver.url())}));
    for task in [&sealed, &open] {
        until("all of it is told", || (delivery(&hub, task, "active")["cursor"] == 2).then_some(()));
    }
    assert!(!hub.log().contains("another secret key"));
    hub.kill();
    let (key, away) = (hub.data().join("secret.key"), hub.data().join("away.key"));
    std::fs::rename(&key, &away).expect("moved");
    hub.restart();
    until("the log says so", || hub.log().contains("another secret key").then_some(()));
    for task in [&sealed, &open] {
        client.call("CancelTask", &json!({"id": task["id"]})).expect("canceled");
    }
    assert_eq!(delivery(&hub, &open, "done")["attemptCount"], 3, "one without secrets needs no key");
    let waiting = until("the reason is shown", || {
        let shown = delivery(&hub, &sealed, "active");
        shown["reason"].as_str().is_some_and(|reason| reason.contains("another secret key")).then_some(shown)
    });
    assert_eq!((&waiting["attemptCount"], &waiting["failures"]), (&json!(2), &json!(0)), "{waiting}");
    hub.kill();
    std::fs::rename(&away, &key).expect("moved back");
    hub.restart();
    let done = delivery(&hub, &sealed, "done");
    assert_eq!((&done["attemptCount"], done.get("reason")), (&json!(3), None), "{done}");
}

#[test]
fn a_lost_secret_key_is_told_also_for_webhooks_that_wait_for_somebody() {
    let gone = Receiver::doing(|_, _| Reaction::Status(500));
    let mut hub = hub_with("targets: {allow: [127.0.0.1]}\npush: {schedule: []}");
    let task = push(&hub.owner(Binding::JsonRpc), "complete", json!({"url": gone.url(), "token": "t-1"}));
    delivery(&hub, &task, "parked");
    hub.kill();
    std::fs::remove_file(hub.data().join("secret.key")).expect("removed");
    hub.restart();
    until("the log says so", || hub.log().contains("another secret key").then_some(()));
}

#[test]
fn nothing_is_lost_and_nothing_disordered_under_kills() {
    let receiver = Receiver::start();
    let mut hub = hub_with("targets: {allow: [127.0.0.1]}\npush: {schedule: [50ms, 50ms, 50ms]}");
    let mut tasks = Vec::new();
    for round in 0..4 {
        let client = hub.owner(Binding::JsonRpc);
        for index in 0..10 {
            let url = format!("{}?{round}-{index}", receiver.url());
            tasks.push((push(&client, "trickle 10", json!({"url": url})), url));
        }
        receiver.wait(30 * (round + 1));
        hub.restart();
    }
    for (task, _) in &tasks {
        delivery(&hub, task, "done");
    }
    let received = receiver.received();
    for (task, url) in &tasks {
        let path = url.split_once("/hook").map(|(_, query)| format!("/hook{query}")).expect("a path");
        let mine: Vec<_> = received.iter().filter(|one| one.path == path).collect();
        let mut seen = HashSet::new();
        let firsts: Vec<u64> =
            mine.iter().filter(|one| seen.insert(one.id().to_owned())).map(|one| one.number()).collect();
        let expected: Vec<u64> = (1..=firsts.len() as u64).collect();
        assert_eq!(firsts, expected, "each event, in order, of {task}");
        let last: Value = mine.last().expect("a webhook").json();
        let state = last["statusUpdate"]["status"]["state"].as_str().unwrap_or_default();
        assert!(["TASK_STATE_COMPLETED", "TASK_STATE_FAILED"].contains(&state), "{last}");
        for again in &mine {
            let first = mine.iter().find(|one| one.id() == again.id()).expect("itself at least");
            assert_eq!(first.body, again.body, "the same id has the same content");
        }
    }
}
