//! Calls that may not go on become REJECTED tasks that say why, on every binding, and nothing is run.

use super::{ANCESTRY, descending, hub_id, in_time, kinds, owners, owners_view, sent, through};
use crate::cast::{hub, hub_with, state, text};
use flotilla_testkit::{Binding, HubProcess};
use serde_json::{Value, json};
use std::time::Duration;

/// The task was rejected for this reason, and its log holds no run.
fn is_rejected(hub: &HubProcess, task: &Value, reason: &str, words: &str) {
    assert_eq!(state(task), "TASK_STATE_REJECTED", "{task}");
    let said = &task["status"]["message"];
    assert!(text(said).contains(words) && text(said).contains("nothing was run"), "{said}");
    assert_eq!(said["metadata"][ANCESTRY], json!({"refused": reason}));
    let view = owners_view(hub, task);
    assert_eq!(kinds(&view), ["descended", "asked", "opened", "status"]);
}

#[test]
fn a_call_that_comes_round_is_rejected() {
    let hub = hub();
    let here = hub_id(&hub);
    for (door, owner) in owners(&hub) {
        let chain = |agent: &str| json!([{"hub": "up", "agent": "a"}, {"hub": here, "agent": agent}, {"hub": "down", "agent": "b"}]);
        let params = |name: &str, agent: &str| {
            descending(&format!("{door}-{name}"), "complete", &json!({"chain": chain(agent)}))
        };
        is_rejected(&hub, &sent(&owner, &params("ring", "mock")), "ring", "a to mock to b to mock");
        assert_eq!(state(&sent(&owner, &params("other", "echo"))), "TASK_STATE_COMPLETED", "another agent of this hub");
        let mut within = params("within", "mock");
        within["message"]["metadata"] = within["metadata"].take();
        is_rejected(&hub, &sent(&owner, &within), "ring", "ring");
        let events = owner.stream("SendStreamingMessage", &params("stream", "mock")).expect("a stream").rest();
        let last = events.last().expect("an event").frame().clone();
        assert!(last.to_string().contains("TASK_STATE_REJECTED"), "{last}");
        let mut at_once = params("at once", "mock");
        at_once["configuration"] = json!({"returnImmediately": true});
        is_rejected(&hub, &sent(&owner, &at_once), "ring", "ring");
    }
}

#[test]
fn a_call_goes_as_many_hops_as_the_limit_and_no_more() {
    let hub = hub_with("limits: {hops: 3}");
    let mut rejected = 0;
    for (door, owner) in owners(&hub) {
        let ways = |hops: usize| {
            let by_header = owner.clone().header("x-fleet-hops", &hops.to_string());
            let names: Vec<String> = (0..hops).map(|n| format!("hub-{n}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            [
                (owner.clone(), json!({"chain": through(&names)})),
                (owner.clone(), json!({"chain": through(&["up"]), "hops": hops})),
                (by_header, json!({"hops": 1})),
            ]
        };
        for (way, (client, ancestry)) in ways(3).into_iter().enumerate() {
            let task = sent(&client, &descending(&format!("{door}-{way}-edge"), "complete", &ancestry));
            assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{ancestry}");
            assert_eq!(owners_view(&hub, &task)["origin"]["hops"], 3);
        }
        for (way, (client, ancestry)) in ways(4).into_iter().enumerate() {
            let params = descending(&format!("{door}-{way}-beyond"), "complete", &ancestry);
            is_rejected(&hub, &sent(&client, &params), "hops", "4 hops from where it began, and at most 3");
            rejected += 1;
        }
        // The beginning of a chain may allow less than the hub does.
        let narrow = json!({"hops": 2, "maxHops": 1});
        is_rejected(
            &hub,
            &sent(&owner, &descending(&format!("{door}-narrow"), "complete", &narrow)),
            "hops",
            "at most 1",
        );
    }
    let metrics = hub.owner(Binding::HttpJson).get("/metrics").text().to_owned();
    let counted = format!("flotilla_over_limit_total{{limit=\"hops\",by=\"task\"}} {rejected}");
    assert!(metrics.contains(&counted), "no {counted} in {metrics}");
}

#[test]
fn the_limit_of_hops_is_eight_where_none_is_set() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let send = |hops: u32| sent(&owner, &descending(&format!("{hops}"), "complete", &json!({"hops": hops})));
    assert_eq!((state(&send(8)), state(&send(9))), ("TASK_STATE_COMPLETED", "TASK_STATE_REJECTED"));
}

#[test]
fn work_that_is_too_late_is_not_begun() {
    let hub = hub();
    for (door, owner) in owners(&hub) {
        let late = json!({"deadline": "2020-01-01T00:00:00Z"});
        let task = sent(&owner, &descending(&format!("{door}-late"), "complete", &late));
        is_rejected(&hub, &task, "deadline", "deadline passed before the work began (2020-01-01T00:00:00.000Z)");
        let early = json!({"deadline": in_time(Duration::from_secs(600))});
        let task = sent(&owner, &descending(&format!("{door}-early"), "complete", &early));
        assert_eq!(state(&task), "TASK_STATE_COMPLETED");
    }
}

#[test]
fn a_later_message_that_may_not_go_on_is_refused_and_the_task_stays() {
    let hub = hub();
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let task = owner.say(&format!("{binding:?}-1"), "ask");
        let reply = |name: &str, ancestry: Value| {
            let mut params = descending(&format!("{binding:?}-{name}"), "complete", &ancestry);
            params["message"]["taskId"] = task["id"].clone();
            params
        };
        let refusal = owner.call("SendMessage", &reply("far", json!({"hops": 99}))).expect_err("too far");
        assert_eq!((refusal.reason.as_str(), &refusal.metadata["refused"]), ("UNSUPPORTED_OPERATION", &json!("hops")));
        assert_eq!(owner.task(task["id"].as_str().expect("an id")), task, "nothing happened");
        let done = owner.call("SendMessage", &reply("near", json!({"hops": 1}))).expect("taken");
        assert_eq!(state(&done["task"]), "TASK_STATE_COMPLETED");
    }
}

#[test]
fn a_rejected_call_is_the_same_when_it_is_sent_again() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let params = descending("again", "complete", &json!({"hops": 99}));
    let (first, second) = (sent(&owner, &params), sent(&owner, &params));
    assert_eq!(first, second);
}
