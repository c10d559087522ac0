//! Connections: how many are served, and how long a silent one is kept.

use super::{UNAVAILABLE, is_over, over, versions, ways};
use crate::cast::{CONFIG, hub_set, hub_with};
use flotilla_testkit::client::message;
use flotilla_testkit::http::KeptAlive;
use flotilla_testkit::{Binding, HubProcess, Refusal, Request, grpc, http2, until};
use serde_json::json;
use std::time::{Duration, Instant};

const CARD: &str = "/.well-known/agent-card.json";

fn kept(hub: &HubProcess) -> KeptAlive {
    let mut kept = KeptAlive::open(hub.address());
    assert_eq!(kept.send(&Request::get("/healthz")).status, 200);
    kept
}

/// A connection that has one of the places; earlier ones may take a moment to be given back.
fn taken(hub: &HubProcess) -> KeptAlive {
    until("there is a place", || {
        let mut taken = KeptAlive::open(hub.address());
        (taken.send(&Request::get(CARD)).status == 200).then_some(taken)
    })
}

#[test]
fn connections_are_served_up_to_the_limit_and_told_so_beyond_it() {
    let hub = hub_with("limits: {connections: 3}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let mut held = [taken(&hub), taken(&hub), taken(&hub)];
        let request = owner.request_over_http2("SendMessage", &message(&format!("{binding:?}"), "complete"));
        for (version, send) in versions(binding) {
            let response = send(hub.address(), &request);
            is_over(binding, &Refusal::of(&response), ("connections", "3"), UNAVAILABLE);
            let retry = (binding != Binding::Grpc).then_some("1");
            assert_eq!(response.header("retry-after"), retry, "{version}: gRPC tells it in its details");
        }
        assert!(
            held.iter_mut().all(|held| held.send(&Request::get(CARD)).status == 200),
            "those who are in are served"
        );
        let mut fourth = KeptAlive::open(hub.address());
        assert_eq!(fourth.send(&Request::get(CARD)).status, 503);
        assert!(fourth.is_closed(), "a connection that was turned away is not kept");
        for path in ["/healthz", "/readyz", "/metrics"] {
            assert_eq!(owner.get(path).status, 200, "whoever watches over the hub is answered");
        }
        assert_eq!(grpc::health(hub.address(), ""), Ok(1), "in its own way too");
        drop(held);
        until("a place is given back", || owner.call("ListTasks", &json!({})).ok());
    }
    assert!(over(&hub, "connections") >= ways() + Binding::ALL.len() as u64);
}

#[test]
fn the_number_of_connections_changes_with_a_reload() {
    let hub = hub_with("limits: {connections: 1}");
    let held = taken(&hub);
    let card = || hub.stranger(Binding::HttpJson).get(CARD).status;
    assert_eq!(card(), 503);
    hub.write_config(&format!("{CONFIG}\nlimits: {{connections: 2}}\n"));
    hub.signal("HUP");
    until("there is a second place", || (card() == 200).then_some(()));
    drop(held);
}

#[test]
fn a_connection_without_a_request_is_closed_in_time() {
    let hub = hub_with("limits: {idle_time: 200ms}");
    let mut idle = kept(&hub);
    assert!(idle.is_closed());
    let response = http2::send_and_wait_for_the_end(hub.address(), &Request::get("/healthz"));
    assert_eq!(response.status, 200);
    assert_eq!(over(&hub, "idle_time"), 2);
}

#[test]
fn a_head_that_is_not_finished_is_not_waited_for() {
    let hub = hub_with("limits: {head_time: 1s}");
    let mut begun = kept(&hub);
    begun.write(b"GET /healthz HTTP/1.1\r\nHost: ");
    assert!(begun.is_closed());
    assert_eq!(over(&hub, "head_time"), 1, "and it is told from one that is idle");
    assert_eq!(over(&hub, "idle_time"), 0);
}

#[test]
fn the_first_head_is_not_waited_for_over_http2_either() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    const HEADERS_THAT_GO_ON: &[u8] = b"\0\0\x01\x01\0\0\0\0\x01\x82";
    let hub = hub_with("limits: {head_time: 200ms}");
    let begin = |sent: &[&[u8]]| {
        let mut connection = KeptAlive::open(hub.address());
        connection.write(&sent.concat());
        connection
    };
    let mut begun = [
        begin(&[b"PRI * HTTP/2.0\r\n"]),
        begin(&[PREFACE]),
        begin(&[PREFACE, SETTINGS]),
        begin(&[PREFACE, SETTINGS, b"\0\0"]),
        begin(&[PREFACE, SETTINGS, HEADERS_THAT_GO_ON]),
    ];
    let all = begun.len() as u64;
    assert!(begun.iter_mut().all(KeptAlive::is_closed_at_last));
    assert_eq!((over(&hub, "head_time"), over(&hub, "idle_time")), (all, 0));
    assert!(http2::is_told_to_go(hub.address()), "who asks for nothing yet sees it in time to ask elsewhere");
}

#[test]
fn an_http2_connection_that_has_had_a_request_may_be_idle_for_longer() {
    let hub = hub_with("limits: {head_time: 100ms, idle_time: 1s}");
    let response = http2::send_and_wait_for_the_end(hub.address(), &Request::get("/healthz"));
    assert_eq!(response.status, 200);
    assert_eq!((over(&hub, "head_time"), over(&hub, "idle_time")), (0, 1));
}

#[test]
fn a_request_that_takes_longer_than_the_idle_time_is_left_alone() {
    let hub = hub_with("limits: {idle_time: 100ms}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let waited = owner.say(&format!("{binding:?}-a"), "work 400ms");
        assert_eq!(crate::cast::state(&waited), "TASK_STATE_COMPLETED");
        let stream = owner.stream("SendStreamingMessage", &message(&format!("{binding:?}-b"), "trickle 20"));
        assert_eq!(stream.expect("a stream").rest().len(), 23, "{binding:?}");
    }
}

#[test]
fn a_stopping_hub_does_not_wait_for_a_connection_that_says_nothing() {
    let mut hub = hub_set("drain: 20s");
    let silent = KeptAlive::open(hub.address());
    let idle = kept(&hub);
    let started = Instant::now();
    assert!(hub.terminate().success());
    assert!(started.elapsed() < Duration::from_secs(10), "ended after {:?}", started.elapsed());
    drop((silent, idle));
}
