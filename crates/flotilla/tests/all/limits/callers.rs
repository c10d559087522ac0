//! What one caller and one agent may have under way: open tasks, streams, runs.

use super::{EXHAUSTED, is_over, over};
use crate::cast::{hub_with, id, state};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, Refusal, until};
use serde_json::{Value, json};

/// The refusal of an operation, which says when to come again.
fn refused(client: &Client, method: &str, params: &Value) -> Refusal {
    let response = client.response(method, params);
    // gRPC tells it in its details instead.
    let retry = (client.binding != Binding::Grpc).then_some("1");
    assert_eq!(response.header("retry-after"), retry, "{}", response.text());
    Refusal::of(&response)
}

fn total(client: &Client) -> Value {
    client.call("ListTasks", &json!({})).expect("a list")["totalSize"].clone()
}

#[test]
fn a_caller_reads_as_many_streams_as_the_limit_and_no_more() {
    let hub = hub_with("limits: {streams_per_caller: 2}");
    for binding in Binding::ALL {
        let caller = hub.caller(binding, &format!("{binding:?}"));
        let mut first = caller.stream("SendStreamingMessage", &message("a", "hold")).expect("the first stream");
        let task = first.expect().frame()["task"]["id"].clone();
        let subscribe = || caller.stream("SubscribeToTask", &json!({"id": task}));
        let second = subscribe().expect("the second stream");
        let refusal = refused(&caller, "SendStreamingMessage", &message("b", "hold"));
        is_over(binding, &refusal, ("streams_per_caller", "2"), EXHAUSTED);
        assert_eq!(total(&caller), 1, "a refused stream makes no task");
        let refusal = refused(&caller, "SubscribeToTask", &json!({"id": task}));
        is_over(binding, &refusal, ("streams_per_caller", "2"), EXHAUSTED);
        caller.say("c", "complete");
        let other = hub.caller(binding, &format!("other-{binding:?}"));
        other.stream("SendStreamingMessage", &message("a", "complete")).expect("others have streams of their own");
        drop(second);
        until("a closed stream makes room", || subscribe().ok());
    }
    assert!(over(&hub, "streams_per_caller") >= 2 * Binding::ALL.len() as u64);
}

#[test]
fn a_caller_opens_as_many_tasks_as_the_limit_and_no_more_also_after_a_restart() {
    for binding in Binding::ALL {
        let mut hub = hub_with("limits: {open_tasks_per_caller: 3}");
        let caller = hub.caller(binding, "caller");
        // A send that is repeated opens no second task, so it takes no second place.
        let tasks: Vec<Value> = ["a", "a", "a", "a", "b", "c"].map(|name| caller.say(name, "ask")).into();
        let tasks = &tasks[3..];
        let one_more = |name: &str| {
            for method in ["SendMessage", "SendStreamingMessage"] {
                let refusal = refused(&caller, method, &message(name, "ask"));
                is_over(binding, &refusal, ("open_tasks_per_caller", "3"), EXHAUSTED);
            }
        };
        one_more("d");
        assert_eq!(caller.say("b", "ask"), tasks[1], "a send that was made before is found, not refused");
        hub.caller(binding, "other").say("a", "ask");
        hub.restart();
        one_more("e");
        let mut answer = message("f", "anything");
        answer["message"]["taskId"] = tasks[0]["id"].clone();
        let ended = caller.call("SendMessage", &answer).expect("an open task goes on");
        assert_eq!(state(&ended["task"]), "TASK_STATE_COMPLETED");
        for ending in ["complete", "fail", "reject", "give up"] {
            caller.say(ending, ending);
        }
        for name in ["direct 1", "direct 2"] {
            caller.call("SendMessage", &message(name, "direct")).expect("a Message is no open task");
        }
        caller.say("g", "ask");
        one_more("h");
        caller.call("CancelTask", &json!({"id": tasks[1]["id"]})).expect("canceled");
        caller.say("i", "ask");
        one_more("j");
        assert_eq!(over(&hub, "open_tasks_per_caller"), 6, "since the restart");
    }
}

#[test]
fn many_sends_at_once_open_exactly_as_many_tasks_as_the_limit() {
    let hub = hub_with("limits: {open_tasks_per_caller: 5}");
    for binding in Binding::ALL {
        let caller = hub.caller(binding, &format!("{binding:?}"));
        let senders: Vec<_> = (0..20)
            .map(|number| {
                let caller = caller.clone();
                let params = message(&format!("m-{number}"), "ask");
                std::thread::spawn(move || caller.call("SendMessage", &params).is_ok())
            })
            .collect();
        let taken = senders.into_iter().map(|sender| sender.join().expect("a sender"));
        assert_eq!(taken.filter(|taken| *taken).count(), 5);
        assert_eq!(total(&caller), 5);
    }
}

#[test]
fn an_agent_has_as_many_runs_as_the_limit_and_no_more() {
    let hub = hub_with("limits: {runs_per_agent: 2}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let name = |name: &str| format!("{binding:?}-{name}");
        let held = [owner.start(&name("a"), "hold"), owner.start(&name("b"), "hold")];
        for method in ["SendMessage", "SendStreamingMessage"] {
            let refusal = refused(&hub.owner(binding), method, &message(&name("c"), "complete"));
            is_over(binding, &refusal, ("runs_per_agent", "2"), EXHAUSTED);
        }
        assert_eq!(owner.start(&name("a"), "hold")["id"], held[0]["id"], "sent before");
        let mut more = message(&name("d"), "wait for the run");
        more["message"]["taskId"] = held[0]["id"].clone();
        more["configuration"] = json!({"returnImmediately": true});
        owner.call("SendMessage", &more).expect("a message to a running task starts no run");
        owner.clone().agent("echo").say(&name("e"), "other agents have runs of their own");
        for task in &held {
            owner.call("CancelTask", &json!({"id": id(task)})).expect("canceled");
        }
        until("ended runs make room", || owner.call("SendMessage", &message(&name("f"), "complete")).ok());
    }
    assert!(over(&hub, "runs_per_agent") >= 2 * Binding::ALL.len() as u64);
}

#[test]
fn the_hub_has_as_many_runs_as_the_limit_and_no_more() {
    let hub = hub_with("limits: {live_runs: 2}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let name = |name: &str| format!("{binding:?}-{name}");
        let held = [owner.start(&name("a"), "hold"), owner.start(&name("b"), "hold")];
        let echo = owner.clone().agent("echo");
        let refusal = refused(&echo, "SendMessage", &message(&name("c"), "hello"));
        is_over(binding, &refusal, ("live_runs", "2"), EXHAUSTED);
        owner.call("CancelTask", &json!({"id": id(&held[0])})).expect("canceled");
        until("an ended run makes room", || echo.call("SendMessage", &message(&name("d"), "hello")).ok());
        owner.call("CancelTask", &json!({"id": id(&held[1])})).expect("canceled");
    }
    assert!(over(&hub, "live_runs") >= Binding::ALL.len() as u64);
}
