//! What is kept of a lineage, who reads it, and what goes on with webhooks.

use super::{ANCESTRY, PARENT, TRACE, descending, hub_id, owners, owners_view, sent, through};
use crate::cast::{hub, hub_with, state};
use flotilla_testkit::{Binding, Receiver};
use serde_json::{Value, json};

#[test]
fn the_owner_reads_where_a_task_comes_from_also_after_a_restart() {
    let mut hub = hub();
    let deadline = "2999-01-01T00:00:00.000Z";
    let ancestry = json!({"chain": through(&["first", "second"]), "hops": 5, "maxHops": 7, "deadline": deadline});
    let trace = json!({"traceparent": PARENT, "tracestate": "vendor=1"});
    let expected = json!({
        "provenance": "a2a-remote", "chain": through(&["first", "second"]), "hops": 5, "maxHops": 7, "trace": trace,
    });
    let tasks: Vec<(String, Value)> = owners(&hub)
        .into_iter()
        .map(|(door, owner)| {
            let client = owner.header("traceparent", PARENT).header("tracestate", "vendor=1");
            let task = sent(&client, &descending(&door, "complete", &ancestry));
            assert_eq!(state(&task), "TASK_STATE_COMPLETED");
            (door, task)
        })
        .collect();
    let check = |hub: &flotilla_testkit::HubProcess| {
        for (door, task) in &tasks {
            let view = owners_view(hub, task);
            assert_eq!(view["origin"], expected, "{door}");
            assert_eq!((&view["deadline"], &view["traceId"]), (&json!(deadline), &json!(TRACE)));
            let first = &view["events"][0];
            assert_eq!(first["event"]["descended"], json!({"origin": expected, "deadline": deadline}));
            assert_eq!(first["forPeers"], false);
            let shown = hub.cli_ok(&["task", "log", task["id"].as_str().expect("an id")]);
            let words =
                format!("descended a2a-remote hops 5, from second/agent task, deadline {deadline}, trace {TRACE}\n");
            assert!(shown.contains(&words), "no {words:?} in {shown}");
        }
    };
    check(&hub);
    let before = hub_id(&hub);
    hub.restart();
    check(&hub);
    assert_eq!(hub_id(&hub), before, "a hub is the same hub after a restart");
}

#[test]
fn a_later_message_has_its_own_origin_and_the_task_stays_what_it_is() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let task = owner.say("m-1", "ask");
    let mut reply = descending("m-2", "yes", &json!({"chain": through(&["first"]), "hops": 1}));
    reply["message"]["taskId"] = task["id"].clone();
    sent(&owner, &reply);
    let view = owners_view(&hub, &task);
    assert_eq!((&view["provenance"], view.get("origin")), (&json!("local"), None), "{view}");
    let events = view["events"].as_array().expect("events");
    let asked: Vec<&Value> = events.iter().map(|entry| &entry["event"]["asked"]).filter(|it| it.is_object()).collect();
    let [first, later] = asked[..] else { panic!("{view}") };
    assert_eq!((first.get("origin"), &later["origin"]["provenance"]), (None, &json!("a2a-remote")), "{view}");
    let shown = hub.cli_ok(&["task", "log", task["id"].as_str().expect("an id")]);
    assert!(shown.contains("asked m-2 (a2a-remote hops 1, from first/agent task)"), "{shown}");
}

#[test]
fn a_task_nobody_told_anything_about_keeps_nothing() {
    let hub = hub();
    for binding in Binding::ALL {
        let task = hub.owner(binding).say(&format!("{binding:?}"), "complete");
        let view = owners_view(&hub, &task);
        assert_eq!((view.get("origin"), view.get("deadline")), (None, None));
        assert!(!super::kinds(&view).contains(&"descended".to_owned()));
    }
}

#[test]
fn callers_are_shown_their_own_words_and_no_more() {
    let hub = hub();
    for binding in Binding::ALL {
        let owner = hub.owner(binding).header("traceparent", PARENT);
        let task = sent(&owner, &descending(&format!("{binding:?}"), "complete", &json!({"hops": 2})));
        let shown = owner.task(task["id"].as_str().expect("an id")).to_string();
        assert!(!shown.contains(TRACE) && !shown.contains("provenance") && !shown.contains(ANCESTRY), "{shown}");
    }
}

#[test]
fn webhooks_belong_to_the_trace_of_their_task() {
    let hub = hub_with("targets: {allow: [127.0.0.1]}");
    let (receiver, own) = (Receiver::start(), Receiver::start());
    let push = |receiver: &Receiver| json!({"taskPushNotificationConfig": {"url": receiver.url()}});
    let mut params = flotilla_testkit::client::message("traced", "complete");
    params["configuration"] = push(&receiver);
    sent(&hub.owner(Binding::JsonRpc).header("traceparent", PARENT), &params);
    for received in receiver.wait(2) {
        let parent = received.header("traceparent").expect("a traceparent").to_owned();
        assert!(parent.starts_with(&format!("00-{TRACE}-")) && parent.ends_with("-01"), "{parent}");
        assert_ne!(parent, PARENT, "the span is the hub's own");
    }
    let mut params = flotilla_testkit::client::message("untraced", "complete");
    params["configuration"] = push(&own);
    let task = sent(&hub.owner(Binding::JsonRpc), &params);
    let id = task["id"].as_str().expect("an id").replace('-', "");
    let parent = own.wait(1)[0].header("traceparent").expect("a traceparent").to_owned();
    assert!(parent.starts_with(&format!("00-{id}-")), "{parent}");
}

#[test]
fn cards_declare_the_extension_and_it_is_echoed() {
    let hub = hub();
    let card = hub.stranger(Binding::HttpJson).get("/.well-known/agent-card.json").json();
    let extensions = card["capabilities"]["extensions"].as_array().expect("extensions").clone();
    assert!(extensions.iter().any(|one| one["uri"] == ANCESTRY && one["required"] != true), "{extensions:?}");
    for binding in Binding::ALL {
        let client = hub.owner(binding).header("a2a-extensions", ANCESTRY);
        let response = client.response("SendMessage", &flotilla_testkit::client::message("m", "complete"));
        assert_eq!(response.header("a2a-extensions"), Some(ANCESTRY), "{binding:?}");
    }
}
