//! Sending twice: the same message comes to the same task, run once; another under its name is a conflict.

use crate::cast::{CONFIG, hub, hub_with, id, reached, setup, state, text};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess, until};
use serde_json::{Value, json};

/// How many runs the owner's log shows.
fn runs(hub: &HubProcess, task: &str) -> usize {
    let log = hub.owner(Binding::HttpJson).get(&format!("/api/tasks/{task}/log")).json();
    let events = log["events"].as_array().unwrap_or_else(|| panic!("no events in {log}"));
    events.iter().filter(|event| event["event"].get("run_queued").is_some()).count()
}

fn count(client: &Client) -> u64 {
    client.call("ListTasks", &json!({})).expect("a list")["totalSize"].as_u64().expect("a number")
}

#[test]
fn the_same_message_again_is_the_same_task() {
    for binding in Binding::ALL {
        let hub = hub();
        let owner = hub.owner(binding);
        let first = owner.say("m", "complete");
        for again in Binding::ALL {
            assert_eq!(hub.owner(again).say("m", "complete"), first, "through either binding");
        }
        assert_eq!((count(&owner), runs(&hub, id(&first))), (1, 1));
    }
}

#[test]
fn the_same_message_while_the_first_is_running_waits_for_the_same_task() {
    for binding in Binding::ALL {
        let hub = hub();
        let owner = hub.owner(binding);
        let started = owner.start("m", "work 200ms");
        let waited = owner.say("m", "work 200ms");
        assert_eq!((&waited["id"], state(&waited)), (&started["id"], "TASK_STATE_COMPLETED"));
        assert_eq!((count(&owner), runs(&hub, id(&waited))), (1, 1));
    }
}

#[test]
fn twenty_at_once_are_one_task_and_one_run() {
    let hub = hub();
    let callers: Vec<_> = (0..20)
        .map(|index| {
            let client = hub.owner(Binding::ALL[index % 2]);
            std::thread::spawn(move || client.say("m", "work 100ms"))
        })
        .collect();
    let tasks: Vec<Value> = callers.into_iter().map(|caller| caller.join().expect("an answer")).collect();
    assert!(tasks.iter().all(|task| task == &tasks[0]), "{tasks:?}");
    assert_eq!((count(&hub.owner(Binding::JsonRpc)), runs(&hub, id(&tasks[0]))), (1, 1));
}

#[test]
fn twenty_streams_at_once_show_one_task() {
    let hub = hub();
    let callers: Vec<_> = (0..20)
        .map(|index| {
            let client = hub.owner(Binding::ALL[index % 2]);
            std::thread::spawn(move || {
                let mut stream = client.stream("SendStreamingMessage", &message("m", "trickle 10")).expect("a stream");
                stream.rest().iter().map(|event| (event.number(), event.frame())).collect::<Vec<_>>()
            })
        })
        .collect();
    let seen: Vec<_> = callers.into_iter().map(|caller| caller.join().expect("a stream")).collect();
    assert!(seen.iter().all(|events| events == &seen[0]));
    assert_eq!(seen[0].len(), 13);
    assert_eq!(count(&hub.owner(Binding::JsonRpc)), 1);
}

#[test]
fn the_same_message_after_a_kill_is_the_same_task() {
    let mut hub = hub();
    let before = hub.owner(Binding::HttpJson).say("m", "complete");
    hub.restart();
    for binding in Binding::ALL {
        assert_eq!(hub.owner(binding).say("m", "complete"), before);
    }
    assert_eq!(runs(&hub, id(&before)), 1);
}

#[test]
fn a_direct_message_is_answered_again_with_the_same() {
    for binding in Binding::ALL {
        let hub = hub();
        let owner = hub.owner(binding);
        let first = owner.call("SendMessage", &message("m", "direct")).expect("a message");
        assert_eq!(text(&first["message"]), "Hello yourself");
        assert_eq!(owner.call("SendMessage", &message("m", "direct")).expect("a message"), first);
    }
}

#[test]
fn other_content_under_the_same_id_is_a_conflict() {
    for binding in Binding::ALL {
        let hub = hub();
        let owner = hub.owner(binding);
        let original = message("m", "complete");
        let first = owner.call("SendMessage", &original).expect("a task");
        for (field, value) in [
            ("parts", json!([{"text": "complete something else"}])),
            ("parts", json!([{"text": "complete"}, {"text": "complete"}])),
            ("metadata", json!({"a": 1})),
            ("contextId", json!("another")),
        ] {
            let mut params = original.clone();
            params["message"][field] = value;
            for refusal in [
                owner.call("SendMessage", &params).expect_err("a conflict"),
                owner.stream("SendStreamingMessage", &params).err().expect("a conflict"),
            ] {
                assert_eq!(refusal.reason, "IDEMPOTENCY_CONFLICT", "{field}");
                let expected = match binding {
                    Binding::JsonRpc => (-32602, 200),
                    Binding::HttpJson => (409, 409),
                    Binding::Grpc => (6, 200),
                };
                assert_eq!((refusal.code, refusal.http), expected);
            }
        }
        assert_eq!(count(&owner), 1);
        assert_eq!(owner.call("SendMessage", &original).expect("still the same"), first);
    }
}

#[test]
fn how_the_answer_is_wanted_does_not_make_it_another_message() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let task = owner.say("m", "complete");
    for configuration in [json!({"historyLength": 0}), json!({"returnImmediately": true}), json!({})] {
        let mut params = message("m", "complete");
        params["configuration"] = configuration;
        assert_eq!(owner.call("SendMessage", &params).expect("a task")["task"]["id"], task["id"]);
    }
}

#[test]
fn a_reply_sent_twice_is_heard_once() {
    for binding in Binding::ALL {
        let hub = hub();
        let owner = hub.owner(binding);
        let asked = owner.say("m", "ask");
        let mut reply = message("r", "small");
        reply["message"]["taskId"] = asked["id"].clone();
        let first = owner.call("SendMessage", &reply).expect("completed");
        assert_eq!(state(&first["task"]), "TASK_STATE_COMPLETED");
        assert_eq!(owner.call("SendMessage", &reply).expect("though the task has ended"), first);
        assert_eq!(runs(&hub, id(&asked)), 2, "one for the question, one for the reply");
    }
}

#[test]
fn the_same_id_may_be_used_in_another_task_or_with_another_agent() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let asked = owner.say("m", "ask");
    let mut reply = message("m", "small");
    reply["message"]["taskId"] = asked["id"].clone();
    assert_eq!(state(&owner.call("SendMessage", &reply).expect("a reply")["task"]), "TASK_STATE_COMPLETED");
    let other = owner.clone().agent("echo").say("m", "ask");
    assert_ne!(other["id"], asked["id"]);
}

#[test]
fn two_principals_do_not_collide() {
    let hub = hub();
    for binding in Binding::ALL {
        let alice = hub.caller(binding, &format!("alice-{binding:?}"));
        let bob = hub.caller(binding, &format!("bob-{binding:?}"));
        let hers = alice.say("m", "complete hers");
        let his = bob.say("m", "complete his");
        assert_ne!(hers["id"], his["id"]);
        assert_eq!((alice.say("m", "complete hers"), bob.say("m", "complete his")), (hers, his));
    }
}

#[test]
fn a_header_names_a_send_better_than_its_message_id() {
    for binding in Binding::ALL {
        let hub = hub();
        let owner = hub.owner(binding).header("idempotency-key", "k-1");
        let first = owner.say("m-1", "complete");
        assert_eq!(owner.say("m-2", "complete"), first, "another message id under the same key");
        let refusal = owner.call("SendMessage", &message("m-3", "fail")).expect_err("a conflict");
        assert_eq!(refusal.reason, "IDEMPOTENCY_CONFLICT");
        let other = owner.clone().header("idempotency-key", "k-2").say("m-1", "complete");
        assert_ne!(other["id"], first["id"], "another key is another send");
    }
}

#[test]
fn a_key_that_cannot_be_one_is_refused() {
    let hub = hub();
    for binding in Binding::ALL {
        for key in ["", &"k".repeat(257)] {
            let client = hub.owner(binding).header("idempotency-key", key);
            let refusal = client.call("SendMessage", &message("m", "complete")).expect_err("refused");
            assert_eq!(refusal.fields(), ["Idempotency-Key"]);
        }
        assert_eq!(count(&hub.owner(binding)), 0);
    }
}

#[test]
fn strangers_are_recognised_only_by_the_header() {
    for binding in Binding::ALL {
        let hub = setup().config(CONFIG).arg("--allow-anonymous").start();
        let stranger = hub.stranger(binding);
        let (one, two) = (stranger.say("m", "complete"), stranger.say("m", "complete"));
        assert_ne!(one["id"], two["id"], "a message id is no secret between strangers");
        stranger.say("m", "fail");
        let keyed = stranger.header("idempotency-key", "k");
        assert_eq!(keyed.say("m", "complete"), keyed.say("m", "complete"));
    }
}

#[test]
fn an_agent_may_count_only_the_header() {
    let hub = setup().config("agents: {echo: {kind: echo, dedupe: header}}").start();
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        assert_ne!(owner.say("m", "x")["id"], owner.say("m", "x")["id"]);
        owner.say("m", "other content");
        let keyed = owner.header("idempotency-key", &format!("k-{binding:?}"));
        assert_eq!(keyed.say("m", "x"), keyed.say("m", "x"));
    }
}

#[test]
fn a_send_is_forgotten_after_its_time() {
    let hub = hub_with("idempotency: {window: 200ms}\nretention: {interval: 20ms}");
    let owner = hub.owner(Binding::HttpJson);
    let first = owner.say("m", "complete");
    let next = until("the send is forgotten", || {
        let task = owner.say("m", "complete");
        (task["id"] != first["id"]).then_some(task)
    });
    assert_eq!(state(&next), "TASK_STATE_COMPLETED");
}

#[test]
fn the_oldest_sends_are_forgotten_over_the_bound() {
    let hub = hub_with("idempotency: {max: 3}\nretention: {interval: 20ms}");
    let owner = hub.owner(Binding::HttpJson);
    let first = owner.say("m-0", "complete");
    for index in 1..10 {
        owner.say(&format!("m-{index}"), "complete");
    }
    until("the oldest is forgotten", || (owner.say("m-0", "complete")["id"] != first["id"]).then_some(()));
}

#[test]
fn a_refused_message_is_not_remembered() {
    let hub = hub();
    for binding in Binding::ALL {
        let owner = hub.owner(binding).agent("plain");
        let mut params = message(&format!("m-{binding:?}"), "hello");
        params["message"]["parts"] = json!([{"data": 1}]);
        owner.call("SendMessage", &params).expect_err("a part it does not take");
        params["message"]["parts"] = json!([{"text": "hello"}]);
        owner.call("SendMessage", &params).expect("the same id with better content");
    }
}

#[test]
fn a_repeated_stream_is_shown_from_its_beginning() {
    for binding in Binding::ALL {
        let hub = hub();
        let owner = hub.owner(binding);
        let follow = || {
            let mut stream = owner.stream("SendStreamingMessage", &message("m", "chunks 5")).expect("a stream");
            stream.rest().iter().map(|event| (event.number(), event.frame())).collect::<Vec<_>>()
        };
        let first = follow();
        assert_eq!(follow(), first);
        let task = first[0].1["task"]["id"].as_str().expect("an id").to_owned();
        reached(&owner, &task, "TASK_STATE_COMPLETED");
        assert_eq!(runs(&hub, &task), 1);
    }
}
