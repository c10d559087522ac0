//! Receivers that refuse, hang, drip, flood, lie and are gone; and the others, who must not notice.

use super::{delivery, hub, push};
use crate::cast::hub_with;
use flotilla_testkit::{Binding, Reaction, Receiver, until};
use serde_json::{Value, json};
use std::time::Duration;

fn reasons(delivery: &Value) -> Vec<String> {
    let attempts = delivery["attempts"].as_array().expect("attempts");
    attempts.iter().rev().map(|one| one["reason"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn each_fault_is_told_and_parked_after_the_last_attempt() {
    let hub = hub_with("targets: {allow: [127.0.0.1]}\npush: {schedule: [50ms], timeout: 300ms}");
    let client = hub.owner(Binding::JsonRpc);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let hangs = Receiver::doing(|_, _| Reaction::Hang);
    let drips = Receiver::doing(|_, _| Reaction::Drip);
    let fails = Receiver::doing(|_, _| Reaction::Status(500));
    let hangs_up = Receiver::doing(|_, _| Reaction::HangUp);
    let inside = Receiver::start();
    let inside_url = inside.url();
    let redirects = Receiver::doing(move |_, _| Reaction::With(302, "location", inside_url.clone()));
    let plain = Receiver::start();
    let table = [
        (format!("http://{closed}/"), "refused"),
        (hangs.url(), "no answer within 300 ms"),
        (drips.url(), "no answer within 300 ms"),
        (fails.url(), "HTTP 500"),
        (hangs_up.url(), "connection"),
        (redirects.url(), "HTTP 302: redirects are not followed"),
        // TLS is asked for where none is spoken.
        (plain.url().replace("http://", "https://"), "does not speak TLS"),
    ];
    let tasks: Vec<Value> = table.iter().map(|(url, _)| push(&client, "complete", json!({"url": url}))).collect();
    for (task, (url, why)) in tasks.iter().zip(&table) {
        let parked = delivery(&hub, task, "parked");
        let reasons = reasons(&parked);
        assert_eq!(reasons.len(), 2, "{url}: {reasons:?}");
        assert!(reasons[0].contains(why) && !reasons[0].is_empty(), "{url}: {reasons:?}");
        assert!(reasons[1].ends_with("; the last of 2 attempts in a row"), "{url}: {reasons:?}");
    }
    assert_eq!((inside.count(), plain.count()), (0, 0), "nobody else was called");
}

#[test]
fn a_certificate_nobody_vouches_for_is_not_trusted() {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let dir = flotilla_testkit::scratch();
    let (certificate, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    // Another hub speaks TLS well enough to be called.
    let tls = format!("hub:\n  tls:\n    certificate: {}\n    key: {}\n", certificate.display(), key.display());
    let other = crate::cast::setup().config(&tls).start();
    let hub = hub_with("targets: {allow: [127.0.0.1]}\npush: {schedule: []}");
    let url = format!("https://{}/", other.address());
    let task = push(&hub.owner(Binding::JsonRpc), "complete", json!({"url": url}));
    let parked = delivery(&hub, &task, "parked");
    let told = "the receiver's certificate is not accepted: this machine does not trust who signed it";
    assert!(reasons(&parked)[0].contains(told), "{parked}");
}

#[test]
fn a_receiver_that_is_gone_is_told_nothing_more() {
    let hub = hub();
    let receiver = Receiver::doing(|_, _| Reaction::Status(410));
    let task = push(&hub.owner(Binding::JsonRpc), "complete", json!({"url": receiver.url()}));
    let disabled = delivery(&hub, &task, "disabled");
    assert_eq!(receiver.count(), 1);
    assert!(disabled["reason"].as_str().is_some_and(|reason| reason.contains("410")), "{disabled}");
}

#[test]
fn a_receiver_may_ask_for_time() {
    let hub = hub();
    let receiver = Receiver::doing(|number, _| match number {
        0 => Reaction::With(429, "retry-after", "1".into()),
        1 => Reaction::With(503, "retry-after", "1".into()),
        _ => Reaction::Status(200),
    });
    push(&hub.owner(Binding::JsonRpc), "direct", json!({"url": receiver.url()}));
    let received = receiver.wait(3);
    for pair in received[..3].windows(2) {
        let pause = pair[1].at - pair[0].at;
        assert!(pause >= Duration::from_millis(990), "it came again after {pause:?}");
        assert_eq!(pair[0].id(), pair[1].id());
    }
}

#[test]
fn an_answer_without_end_is_an_answer() {
    let hub = hub();
    let receiver = Receiver::doing(|_, _| Reaction::Flood);
    let task = push(&hub.owner(Binding::JsonRpc), "complete", json!({"url": receiver.url()}));
    delivery(&hub, &task, "done");
    assert_eq!(receiver.count(), 4);
    assert!(hub.peak_memory() < 200 * 1024 * 1024, "its body is not kept");
}

#[test]
fn one_dead_target_among_a_thousand_holds_nobody_up() {
    let hub = hub_with("targets: {allow: [127.0.0.0/8]}\npush: {timeout: 60s}");
    let client = hub.owner(Binding::JsonRpc);
    let dead = Receiver::doing(|_, _| Reaction::Hang);
    // More than it is trusted with.
    for index in 0..20 {
        push(&client, "fail", json!({"url": format!("{}?{index}", dead.url())}));
    }
    until("the dead one is called", || (dead.count() > 0).then_some(()));
    let others = Receiver::everywhere();
    for index in 0..1000 {
        // Each an origin of its own.
        let host = format!("127.1.{}.{}", index / 250, index % 250 + 1);
        push(&client, "fail", json!({"url": others.url().replace("0.0.0.0", &host)}));
    }
    // Long before anybody would give the dead one up.
    others.wait(3000);
    assert!(dead.count() <= 4, "a target that does not answer is not flooded: {}", dead.count());
}

#[test]
fn one_callers_hanging_webhooks_do_not_slow_anothers_at_the_same_origin() {
    let hub = hub_with("targets: {allow: [127.0.0.1]}\npush: {timeout: 60s}");
    let receiver = Receiver::doing(|_, received| match received.path.contains("hang") {
        true => Reaction::Hang,
        false => Reaction::Status(200),
    });
    for index in 0..40 {
        push(&hub.owner(Binding::JsonRpc), "fail", json!({"url": format!("{}?hang-{index}", receiver.url())}));
    }
    receiver.wait(4);
    let task = push(&hub.caller(Binding::JsonRpc, "other"), "fail", json!({"url": receiver.url()}));
    delivery(&hub, &task, "done");
}

#[test]
fn more_hanging_origins_than_there_are_places_hold_up_their_caller_alone() {
    let hub = hub_with("targets: {allow: [127.0.0.0/8]}\npush: {timeout: 60s}");
    // Connections are made, and nobody ever takes them.
    let hangs = std::net::TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = hangs.local_addr().expect("an address").port();
    let client = hub.owner(Binding::JsonRpc);
    for index in 0..1100 {
        let url = format!("http://127.2.{}.{}:{port}/", index / 250, index % 250 + 1);
        push(&client, "fail", json!({ "url": url }));
    }
    let receiver = Receiver::start();
    let task = push(&hub.caller(Binding::JsonRpc, "other"), "fail", json!({"url": receiver.url()}));
    delivery(&hub, &task, "done");
}
