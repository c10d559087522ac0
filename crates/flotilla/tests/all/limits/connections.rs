//! Connections: how many are served, and how long a silent one is kept.

use super::{UNAVAILABLE, is_over, over};
use crate::cast::{CONFIG, hub_with};
use flotilla_testkit::client::message;
use flotilla_testkit::http::KeptAlive;
use flotilla_testkit::{Binding, HubProcess, Refusal, Request, http, http2, until};

fn kept(hub: &HubProcess) -> KeptAlive {
    let mut kept = KeptAlive::open(hub.address());
    assert_eq!(kept.send(&Request::get("/healthz")).status, 200);
    kept
}

#[test]
fn connections_are_served_up_to_the_limit_and_told_so_beyond_it() {
    let hub = hub_with("limits: {connections: 3}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let held = [kept(&hub), kept(&hub)];
        let third = until("the third is served", || {
            let mut third = KeptAlive::open(hub.address());
            let request = owner.request("SendMessage", &message(&format!("{binding:?}-a"), "complete"));
            (third.send(&request).status == 200).then_some(third)
        });
        let request = owner.request("SendMessage", &message(&format!("{binding:?}-b"), "complete"));
        for response in [http::send(hub.address(), &request), http2::send(hub.address(), &request)] {
            is_over(binding, &Refusal::of(&response), ("connections", "3"), UNAVAILABLE);
            assert_eq!(response.header("retry-after"), Some("1"));
        }
        let mut fourth = KeptAlive::open(hub.address());
        assert_eq!(fourth.send(&request).status, 503);
        assert!(fourth.is_closed(), "a connection that was turned away is not kept");
        for path in ["/healthz", "/readyz", "/metrics"] {
            assert_eq!(owner.get(path).status, 200, "whoever watches over the hub is answered");
        }
        drop(third);
        until("a place is given back", || (http::send(hub.address(), &request).status == 200).then_some(()));
        drop(held);
    }
    assert!(over(&hub, "connections") >= 3 * Binding::ALL.len() as u64);
}

#[test]
fn the_number_of_connections_changes_with_a_reload() {
    let hub = hub_with("limits: {connections: 1}");
    let held = until("the one place is taken", || {
        let mut held = KeptAlive::open(hub.address());
        (held.send(&Request::get("/.well-known/agent-card.json")).status == 200).then_some(held)
    });
    let card = || hub.stranger(Binding::HttpJson).get("/.well-known/agent-card.json").status;
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
    let hub = hub_with("limits: {head_time: 200ms}");
    let mut begun = kept(&hub);
    begun.write(b"GET /healthz HTTP/1.1\r\nHost: ");
    assert!(begun.is_closed());
    assert_eq!(over(&hub, "head_time"), 1, "and it is told from one that is idle");
    assert_eq!(over(&hub, "idle_time"), 0);
}

#[test]
fn a_request_that_takes_longer_than_the_idle_time_is_left_alone() {
    let hub = hub_with("limits: {idle_time: 100ms, head_time: 100ms}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let waited = owner.say(&format!("{binding:?}-a"), "work 400ms");
        assert_eq!(crate::cast::state(&waited), "TASK_STATE_COMPLETED");
        let stream = owner.stream("SendStreamingMessage", &message(&format!("{binding:?}-b"), "trickle 20"));
        assert_eq!(stream.expect("a stream").rest().len(), 23, "{binding:?}");
    }
}
