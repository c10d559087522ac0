//! Tasks that wait for their caller: what the agent does by itself is told, and nothing is done twice.

use super::{before, chunk, config, reason, status, task, texts};
use crate::cast::{id, reached, setup, state};
use flotilla_testkit::client::message;
use flotilla_testkit::{Act, Asked, Binding, StandIn, until};
use serde_json::{Value, json};
use std::sync::{Arc, Condvar, Mutex};

/// Whether the agent has gone on by itself.
#[derive(Clone, Default)]
pub(super) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn open(&self) {
        *self.0.0.lock().expect("no panic") = true;
        self.0.1.notify_all();
    }

    pub fn is_open(&self) -> bool {
        *self.0.0.lock().expect("no panic")
    }

    pub fn wait(&self) {
        drop(self.0.1.wait_while(self.0.0.lock().expect("no panic"), |open| !*open).expect("no panic"));
    }
}

pub(super) fn waiting(state: &str) -> Value {
    let mut waiting = task("t-1", state);
    waiting["status"]["message"] = json!({"messageId": "q", "role": "ROLE_AGENT", "parts": [{"text": "Sign in"}]});
    waiting
}

pub(super) fn ended() -> Value {
    let mut ended = task("t-1", "COMPLETED");
    ended["artifacts"] = json!([{"artifactId": "out", "parts": [{"text": "after that"}]}]);
    ended
}

/// Waits in a state until the gate opens, and is done then, without another message; it takes none, and cancels nothing.
fn waits(streaming: bool, state: &'static str, gate: &Gate) -> StandIn {
    let gate = gate.clone();
    StandIn::start(streaming, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
        ("SendMessage", 0) => vec![Act::Answer(json!({"task": waiting(state)}))],
        ("SendMessage" | "SendStreamingMessage", _) => vec![Act::Refuse(-32004, "the task is over")],
        ("CancelTask", _) => vec![Act::Refuse(-32002, "the task is over")],
        ("GetTask", _) => vec![Act::Answer(if gate.is_open() { ended() } else { waiting(state) })],
        ("SubscribeToTask", 0) => {
            gate.wait();
            let frames =
                [json!({"task": waiting(state)}), chunk("t-1", "after that", false), status("t-1", "COMPLETED")];
            frames.into_iter().map(Act::Event).collect()
        }
        _ => vec![Act::Refuse(-32004, "not here")],
    })
}

#[test]
fn what_an_agent_does_by_itself_while_its_task_waits_is_told() {
    for (streaming, waits_in) in [(true, "AUTH_REQUIRED"), (false, "AUTH_REQUIRED"), (false, "INPUT_REQUIRED")] {
        let gate = Gate::default();
        let agent = waits(streaming, waits_in, &gate);
        let near = before(&agent, "streaming: true");
        let client = near.owner(Binding::JsonRpc);
        let asked = client.say("m-1", "go");
        assert_eq!(state(&asked), format!("TASK_STATE_{waits_in}"));
        let mut stream = client.stream("SubscribeToTask", &json!({"id": id(&asked)})).expect("a stream");
        assert_eq!(state(&stream.expect().frame()["task"]), format!("TASK_STATE_{waits_in}"));
        // The look is under way: what comes now comes by the stream, where there is one.
        agent.wait(if streaming { "SubscribeToTask" } else { "GetTask" }, 1);
        gate.open();
        let told: Vec<Value> = stream.rest().iter().map(|event| event.frame()).collect();
        let last = told.last().expect("events");
        assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED", "{told:?}");
        let mut artifacts = told.iter().filter_map(|frame| frame["artifactUpdate"].get("artifact"));
        assert!(artifacts.any(|artifact| texts(artifact) == ["after that"]), "{told:?}");
        let done = client.task(id(&asked));
        assert_eq!((state(&done), texts(&done["artifacts"][0])), ("TASK_STATE_COMPLETED", vec!["after that"]));
        assert_eq!(agent.asked("SendMessage").len() + agent.asked("SendStreamingMessage").len(), 1, "it is asked once");
    }
}

#[test]
fn what_an_agent_did_while_the_hub_was_away_is_told_after_its_start() {
    let gate = Gate::default();
    let agent = waits(false, "AUTH_REQUIRED", &gate);
    let mut near = before(&agent, "");
    let asked = near.owner(Binding::JsonRpc).say("m-1", "go");
    near.kill();
    gate.open();
    near.restart();
    let done = reached(&near.owner(Binding::JsonRpc), id(&asked), "TASK_STATE_COMPLETED");
    assert_eq!(texts(&done["artifacts"][0]), ["after that"]);
    assert_eq!(agent.asked("SendMessage").len(), 1);
}

#[test]
fn nobody_looks_longer_than_the_work_may_take() {
    let gate = Gate::default();
    let [hasty, patient] = [waits(false, "AUTH_REQUIRED", &gate), waits(false, "AUTH_REQUIRED", &gate)];
    let more = format!("  patient: {{kind: a2a, url: '{}'}}\n", patient.url());
    let near = setup().config(&(config(&hasty.url(), "timeouts: {whole: 900ms}") + &more)).start();
    let first = near.owner(Binding::JsonRpc).say("m-1", "go");
    let client = near.owner(Binding::JsonRpc).agent("patient");
    let second = client.say("m-1", "go");
    gate.open();
    // Whoever was asked first would have been looked at first.
    reached(&client, id(&second), "TASK_STATE_COMPLETED");
    assert_eq!(hasty.asked("GetTask").len(), 0);
    assert_eq!(state(&near.owner(Binding::JsonRpc).task(id(&first))), "TASK_STATE_AUTH_REQUIRED");
}

#[test]
fn a_message_to_a_task_that_its_agent_has_ended_begins_no_other() {
    for streaming in [true, false] {
        let gate = Gate::default();
        let agent = waits(streaming, "AUTH_REQUIRED", &gate);
        let near = before(&agent, "");
        let client = near.owner(Binding::JsonRpc);
        let asked = client.say("m-1", "go");
        gate.open();
        let mut params = message("m-2", "I have signed in");
        params["message"]["taskId"] = asked["id"].clone();
        let done = client.call("SendMessage", &params).expect("an answer")["task"].clone();
        assert_eq!((state(&done), texts(&done["artifacts"][0])), ("TASK_STATE_COMPLETED", vec!["after that"]));
        let told = done["history"].as_array().expect("a history").iter();
        let told: Vec<&str> = told.map(crate::cast::text).collect();
        assert!(told.iter().any(|words| words.contains("did not take it (the task is over)")), "{told:?}");
        let sends = [agent.asked("SendMessage"), agent.asked("SendStreamingMessage")].concat();
        let new = sends.iter().filter(|send| send.params["message"].get("taskId").is_none()).count();
        assert_eq!(new, 1, "the work is asked for once");
    }
}

#[test]
fn a_cancel_that_comes_too_late_finds_out_how_the_task_ended() {
    let gate = Gate::default();
    let agent = waits(false, "AUTH_REQUIRED", &gate);
    let near = before(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let asked = client.say("m-1", "go");
    let refusal = client.call("CancelTask", &json!({"id": id(&asked)})).expect_err("a refusal");
    assert!(refusal.message.contains("did not cancel the task: the task is over"), "{}", refusal.message);
    assert_eq!(state(&client.task(id(&asked))), "TASK_STATE_AUTH_REQUIRED", "it waits as before");
    gate.open();
    let refusal = client.call("CancelTask", &json!({"id": id(&asked)})).expect_err("a refusal");
    assert_eq!(refusal.reason, "TASK_NOT_CANCELABLE");
    assert!(refusal.message.contains("had ended the task (TASK_STATE_COMPLETED)"), "{}", refusal.message);
    let done = client.task(id(&asked));
    assert_eq!((state(&done), texts(&done["artifacts"][0])), ("TASK_STATE_COMPLETED", vec!["after that"]));
}

pub(super) fn remark() -> Value {
    json!({"message": {"messageId": "r", "role": "ROLE_AGENT", "contextId": "their-context",
        "parts": [{"text": "What do you mean?"}], "metadata": {"n": 1}}})
}

pub(super) fn say_to(task: &Value, number: usize) -> Value {
    let mut params = message(&format!("m-{number}"), "go on");
    params["message"]["taskId"] = task["id"].clone();
    params
}

#[test]
fn a_message_in_answer_to_a_reply_leaves_the_task_waiting() {
    for streaming in [true, false] {
        let said = move |told: Value| vec![if streaming { Act::Event(told) } else { Act::Answer(told) }];
        let agent = StandIn::start(streaming, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
            ("SendMessage", 0) => vec![Act::Answer(json!({"task": waiting("INPUT_REQUIRED")}))],
            ("SendStreamingMessage", 0) | ("SendMessage", 1) => said(remark()),
            ("SendMessage" | "SendStreamingMessage", _) => said(json!({"task": ended()})),
            ("GetTask", _) => vec![Act::Answer(waiting("INPUT_REQUIRED"))],
            _ => vec![Act::Refuse(-32004, "not here")],
        });
        let near = before(&agent, "");
        let client = near.owner(Binding::JsonRpc);
        let asked = client.say("m-1", "go");
        let told = client.call("SendMessage", &say_to(&asked, 2)).expect("an answer")["task"].clone();
        assert_eq!((state(&told), reason(&told)), ("TASK_STATE_INPUT_REQUIRED", "What do you mean?"), "{told}");
        assert_eq!(told["status"]["message"]["metadata"], json!({"n": 1}));
        let done = client.call("SendMessage", &say_to(&asked, 3)).expect("it is waited for")["task"].clone();
        assert_eq!(state(&done), "TASK_STATE_COMPLETED", "{done}");
        let words = done["history"].as_array().expect("a history").iter().map(crate::cast::text);
        assert_eq!(words.collect::<Vec<_>>(), ["go", "Sign in", "go on", "What do you mean?", "go on"]);
    }
}

#[test]
fn a_message_in_answer_to_a_reply_is_the_end_where_the_task_is_gone() {
    let agent = StandIn::start(false, |asked: &Asked| match (asked.method.as_str(), asked.nth) {
        ("SendMessage", 0) => vec![Act::Answer(json!({"task": waiting("INPUT_REQUIRED")}))],
        ("SendMessage", _) => vec![Act::Answer(remark())],
        _ => vec![Act::Refuse(-32001, "no such task")],
    });
    let near = before(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let asked = client.say("m-1", "go");
    let told = client.call("SendMessage", &say_to(&asked, 2)).expect("an answer")["task"].clone();
    assert_eq!((state(&told), reason(&told)), ("TASK_STATE_COMPLETED", "What do you mean?"), "{told}");
}

/// Within one second by the agent's clock, and with nothing else that tells the two apart.
#[test]
fn a_second_question_that_looks_like_the_first_is_told() {
    let mut asks = task("t-1", "INPUT_REQUIRED");
    asks["status"]["timestamp"] = json!("2026-01-31T12:00:00Z");
    let agent = StandIn::start(false, move |asked: &Asked| match asked.method.as_str() {
        "SendMessage" => vec![Act::Answer(json!({"task": asks}))],
        _ => vec![Act::Answer(asks.clone())],
    });
    let near = before(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let asked = client.say("m-1", "go");
    for number in 2..4 {
        let again = client.call("SendMessage", &say_to(&asked, number)).expect("an answer")["task"].clone();
        assert_eq!(state(&again), "TASK_STATE_INPUT_REQUIRED");
    }
    let sends = agent.asked("SendMessage");
    assert_eq!(sends.len(), 3);
    assert_ne!(sends[1].params["configuration"]["returnImmediately"], true, "a receipt would say nothing");
}

#[test]
fn how_a_reply_goes_is_told_before_it_is_answered() {
    let gate = Gate::default();
    let there = gate.clone();
    let agent = StandIn::start(false, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
        ("SendMessage", 0) => vec![Act::Answer(json!({"task": waiting("INPUT_REQUIRED")}))],
        ("SendMessage", _) => {
            there.wait();
            vec![Act::Answer(json!({"task": ended()}))]
        }
        ("GetTask", 0) => vec![Act::Answer(waiting("INPUT_REQUIRED"))],
        _ => vec![Act::Answer(task("t-1", "WORKING"))],
    });
    let near = before(&agent, "poll: {first: 10ms, longest: 20ms}");
    let client = near.owner(Binding::JsonRpc);
    let asked = client.say("m-1", "go");
    let mut params = say_to(&asked, 2);
    params["configuration"] = json!({"returnImmediately": true});
    client.call("SendMessage", &params).expect("a receipt");
    reached(&client, id(&asked), "TASK_STATE_WORKING");
    gate.open();
    reached(&client, id(&asked), "TASK_STATE_COMPLETED");
    assert_eq!(agent.asked("SendMessage").len(), 2);
}

/// Work under a contract stays with the worker that goes on with it.
#[test]
fn dispatched_work_that_goes_on_by_itself_is_not_given_away() {
    let gate = Gate::default();
    let agent = waits(false, "AUTH_REQUIRED", &gate);
    let near = before(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let mut params = message("m-1", "Do it");
    params["message"]["metadata"] = json!({"urn:flotilla:ext:fleet-handshake:2.0": crate::fleet::dispatch(&json!({}))});
    let asked = client.call("SendMessage", &params).expect("a task")["task"].clone();
    assert_eq!(state(&asked), "TASK_STATE_AUTH_REQUIRED", "{asked}");
    gate.open();
    let done = reached(&client, id(&asked), "TASK_STATE_COMPLETED");
    let artifacts = done["artifacts"].as_array().expect("artifacts");
    assert!(artifacts.iter().any(|artifact| texts(artifact) == ["after that"]), "{done}");
    assert_eq!(agent.asked("SendMessage").len(), 1);
    assert_eq!(crate::fleet::steps(&near, id(&asked)), "assigned far, resumed far, judged far");
}

/// What it shows when it is asked is from before its question.
#[test]
fn a_task_that_is_shown_as_it_was_before_its_question_still_waits() {
    for shown_at in [json!("2026-01-31T11:59:59Z"), json!(null)] {
        let mut asks = waiting("INPUT_REQUIRED");
        asks["status"]["timestamp"] = json!("2026-01-31T12:00:00Z");
        let mut lags = task("t-1", "WORKING");
        lags["status"]["timestamp"] = shown_at;
        let agent = StandIn::start(false, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
            ("SendMessage", 0) => vec![Act::Answer(json!({"task": asks}))],
            ("SendMessage", _) => vec![Act::Answer(json!({"task": ended()}))],
            _ => vec![Act::Answer(lags.clone())],
        });
        let near = before(&agent, "");
        let client = near.owner(Binding::JsonRpc);
        let asked = client.say("m-1", "go");
        agent.wait("GetTask", 3);
        let still = client.task(id(&asked));
        assert_eq!((state(&still), reason(&still)), ("TASK_STATE_INPUT_REQUIRED", "Sign in"), "{still}");
        let done = client.call("SendMessage", &say_to(&asked, 2)).expect("an answer")["task"].clone();
        assert_eq!((state(&done), texts(&done["artifacts"][0])), ("TASK_STATE_COMPLETED", vec!["after that"]));
    }
}

#[test]
fn an_artifact_that_is_given_while_the_task_waits_is_told() {
    let agent = StandIn::start(false, move |asked: &Asked| match asked.method.as_str() {
        "SendMessage" => vec![Act::Answer(json!({"task": waiting("AUTH_REQUIRED")}))],
        _ => {
            let mut shown = waiting("AUTH_REQUIRED");
            shown["artifacts"] = json!([{"artifactId": "code", "parts": [{"text": "sign in with this"}]}]);
            vec![Act::Answer(shown)]
        }
    });
    let near = before(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let asked = client.say("m-1", "go");
    let given = until("the artifact is there", || {
        let task = client.task(id(&asked));
        (task["artifacts"].is_array() && state(&task) == "TASK_STATE_AUTH_REQUIRED").then_some(task)
    });
    assert_eq!((texts(&given["artifacts"][0]), reason(&given)), (vec!["sign in with this"], "Sign in"), "{given}");
}
