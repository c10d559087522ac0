//! How often: requests of a caller, messages to an agent, wrong keys from an address.

use super::{EXHAUSTED, is_accepted, is_over, over};
use crate::cast::{CONFIG, hub_with, setup};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, Refusal, Request, until};
use serde_json::json;

/// Asks until refused; the refusal, which says when to come again.
fn flood(client: &Client, method: &str, params: impl Fn(usize) -> serde_json::Value) -> Refusal {
    let mut tries = 0..1000;
    let response = tries.find_map(|number| {
        let response = client.response(method, &params(number));
        (!is_accepted(&response)).then_some(response)
    });
    let response = response.expect("a thousand requests are too many");
    if client.binding != Binding::Grpc {
        let wait: u32 = response.header("retry-after").expect("when to come again").parse().expect("seconds");
        assert!((1..=60).contains(&wait), "{wait}");
    }
    Refusal::of(&response)
}

#[test]
fn a_caller_makes_so_many_requests_in_a_second() {
    let hub = hub_with("limits: {requests_per_caller: 5}");
    for binding in Binding::ALL {
        let caller = hub.caller(binding, &format!("{binding:?}"));
        let refusal = flood(&caller, "ListTasks", |_| json!({}));
        is_over(binding, &refusal, ("requests_per_caller", "5"), EXHAUSTED);
        let other = hub.caller(binding, &format!("other-{binding:?}"));
        other.call("ListTasks", &json!({})).expect("others have a pace of their own");
        until("a moment later there is room", || caller.call("ListTasks", &json!({})).ok());
        let second = hub.make_key(&[&format!("{binding:?}-b"), "--principal", &format!("{binding:?}")]);
        let refusal = flood(&hub.stranger(binding).key(&second), "ListTasks", |_| json!({}));
        assert_eq!(refusal.reason, "RESOURCE_EXHAUSTED");
        let both = [&caller, &hub.stranger(binding).key(&second)];
        let refused = both.iter().filter(|client| client.call("ListTasks", &json!({})).is_err()).count();
        assert!(refused >= 1, "two keys of one caller share its pace");
    }
    assert!(over(&hub, "requests_per_caller") >= 2 * Binding::ALL.len() as u64);
}

#[test]
fn an_agent_gets_so_many_messages_in_a_second_whoever_sends_them() {
    let hub = hub_with("limits: {sends_per_agent: 5}");
    for binding in Binding::ALL {
        let callers = ["a", "b"].map(|name| hub.caller(binding, &format!("{name}-{binding:?}")));
        let refusal = flood(&callers[0], "SendMessage", |number| message(&format!("m-{number}"), "direct"));
        is_over(binding, &refusal, ("sends_per_agent", "5"), EXHAUSTED);
        let refusal = flood(&callers[1], "SendMessage", |number| message(&format!("m-{number}"), "direct"));
        assert_eq!(refusal.metadata["limit"], "sends_per_agent");
        callers[1].call("ListTasks", &json!({})).expect("reading does not reach the agent");
        until("the agent takes messages again", || {
            callers[1].clone().agent("echo").call("SendMessage", &message("e", "hello")).ok()
        });
    }
}

#[test]
fn only_messages_that_are_taken_count_for_the_agent() {
    for binding in Binding::ALL {
        let hub = hub_with("limits: {sends_per_agent: 2}");
        let (one, other) = (hub.caller(binding, "one"), hub.caller(binding, "other"));
        let mut lost = message("m-lost", "direct");
        lost["message"]["taskId"] = json!("00000000-0000-7000-8000-000000000000");
        for _ in 0..4 {
            assert_eq!(one.call("SendMessage", &lost).expect_err("no task").reason, "TASK_NOT_FOUND");
            assert_eq!(one.call("SendMessage", &json!({})).expect_err("no message").reason, "INVALID_PARAMS");
        }
        let first = other.call("SendMessage", &message("m", "direct")).expect("nothing was taken yet");
        let repeated = || other.call("SendMessage", &message("m", "direct")).expect("a repeat is not held up");
        assert_eq!([repeated(), repeated(), repeated()], [first.clone(), first.clone(), first.clone()]);
        other.call("SendMessage", &message("m-2", "direct")).expect("repeats take no room");
        flood(&one, "SendMessage", |number| message(&format!("m-{number}"), "direct"));
        assert_eq!(repeated(), first, "not even when there is none");
    }
}

const WRONG: &str = "flk_00000000000000000000000000000000000000000000000000000000000000cc";

#[test]
fn whoever_tries_keys_must_wait_and_keys_in_use_go_on() {
    for binding in Binding::ALL {
        let hub = hub_with("limits: {wrong_keys_per_address: 3}");
        let caller = hub.caller(binding, "caller");
        caller.call("ListTasks", &json!({})).expect("a key in use");
        hub.owner(binding).call("ListTasks", &json!({})).expect("another");
        let fresh = hub.caller(binding, "fresh");
        let wrong = hub.stranger(binding).key(WRONG);
        for _ in 0..3 {
            assert_eq!(wrong.call("ListTasks", &json!({})).expect_err("wrong").reason, "UNAUTHENTICATED");
        }
        let refusal = flood(&wrong, "ListTasks", |_| json!({}));
        is_over(binding, &refusal, ("wrong_keys_per_address", "3"), EXHAUSTED);
        let nonsense = hub.stranger(binding).key("nonsense");
        assert_eq!(nonsense.call("ListTasks", &json!({})).expect_err("wrong").reason, "RESOURCE_EXHAUSTED");
        caller.call("ListTasks", &json!({})).expect("whoever is known goes on");
        hub.owner(binding).call("ListTasks", &json!({})).expect("the owner too");
        let refusal = fresh.call("ListTasks", &json!({})).expect_err("right, but nobody used it from here");
        assert_eq!(refusal.reason, "RESOURCE_EXHAUSTED", "an answer would tell that it is right");
        let none = hub.stranger(binding).call("ListTasks", &json!({})).expect_err("no key at all");
        assert_eq!(none.reason, "UNAUTHENTICATED", "which is no try");
        assert!(over(&hub, "wrong_keys_per_address") >= 2);
    }
}

#[test]
fn a_trusted_proxy_says_who_tries() {
    let proxied = CONFIG.replace("\nhub:\n", "\nhub:\n  trusted_proxies: [127.0.0.1]\n");
    let limits = "limits: {wrong_keys_per_address: 2}";
    let hub = setup().config(&format!("{proxied}\n{limits}")).start();
    let ask = |hub: &flotilla_testkit::HubProcess, from: &str| {
        let request = Request::get("/tasks").header("x-forwarded-for", from).header("a2a-version", "1.0");
        hub.stranger(Binding::HttpJson).key(WRONG).send(request).status
    };
    let tries = |from: &str| [ask(&hub, from), ask(&hub, from), ask(&hub, from)];
    assert_eq!(tries("203.0.113.7"), [401, 401, 429]);
    assert_eq!(tries("203.0.113.8"), [401, 401, 429], "somebody else");
    assert_eq!(tries("203.0.113.9, 203.0.113.8"), [429; 3], "what a client says of itself is not believed");
    assert_eq!([ask(&hub, "2001:db8::1"), ask(&hub, "2001:db8::2"), ask(&hub, "2001:db8::3")], [401, 401, 429]);
    let direct = hub_with(limits);
    let statuses = ["203.0.113.1", "203.0.113.2", "203.0.113.3"].map(|from| ask(&direct, from));
    assert_eq!(statuses, [401, 401, 429], "without a trusted proxy the header is nothing");
}
