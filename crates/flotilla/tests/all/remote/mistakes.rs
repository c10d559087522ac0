//! Tasks that wait, at agents that show them late, twice or not at all: a reply gets through, and nothing is lost or made up.

use super::waits::{Gate, ended, remark, say_to, waiting};
use super::{before, chunk, reason, status, task, texts};
use crate::cast::{id, reached, state};
use flotilla_testkit::{Act, Asked, Binding, StandIn, until};
use serde_json::{Value, json};

fn events(frames: &[Value]) -> Vec<Act> {
    frames.iter().cloned().map(Act::Event).collect()
}

/// The states a stream told.
fn states(told: &[Value]) -> Vec<&str> {
    let updates = told.iter().filter_map(|frame| frame["statusUpdate"]["status"]["state"].as_str());
    updates.map(|state| state.trim_start_matches("TASK_STATE_")).collect()
}

/// Without times nobody can tell work from before a sign-in from work after it.
#[test]
fn a_reply_goes_to_an_agent_that_seems_to_have_gone_on() {
    for (streaming, takes) in [(false, true), (true, true), (false, false)] {
        let gate = Gate::default();
        let there = gate.clone();
        let agent = StandIn::start(streaming, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
            ("SendMessage", 0) => vec![Act::Answer(json!({"task": waiting("AUTH_REQUIRED")}))],
            ("SendMessage" | "SendStreamingMessage", _) if !takes => {
                there.open();
                vec![Act::Refuse(-32004, "not now")]
            }
            ("SendMessage", _) => vec![Act::Answer(json!({"task": ended()}))],
            ("SendStreamingMessage", _) => events(&[json!({"task": ended()})]),
            ("GetTask", _) if there.is_open() => vec![Act::Answer(ended())],
            ("GetTask", _) => vec![Act::Answer(task("t-1", "WORKING"))],
            ("SubscribeToTask", _) => vec![Act::Event(json!({"task": task("t-1", "WORKING")})), Act::Hold],
            _ => vec![Act::Refuse(-32601, "not here")],
        });
        let near = before(&agent, "");
        let client = near.owner(Binding::JsonRpc);
        let asked = client.say("m-1", "go");
        reached(&client, id(&asked), "TASK_STATE_WORKING");
        let done = client.call("SendMessage", &say_to(&asked, 2)).expect("an answer")["task"].clone();
        assert_eq!((state(&done), texts(&done["artifacts"][0])), ("TASK_STATE_COMPLETED", vec!["after that"]));
        let words: Vec<&str> = done["history"].as_array().expect("a history").iter().map(crate::cast::text).collect();
        assert_eq!(words.iter().any(|words| words.contains("did not take it (not now)")), !takes, "{words:?}");
        let sends = [agent.asked("SendMessage"), agent.asked("SendStreamingMessage")].concat();
        assert_eq!(sends.len(), 2, "each message once");
        assert_eq!(sends[1].params["message"]["taskId"], "t-1");
    }
}

#[test]
fn what_is_shown_to_every_new_reader_is_no_news() {
    let agent = StandIn::start(true, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
        ("SendMessage", 0) => vec![Act::Answer(json!({"task": shown("AUTH_REQUIRED", &["a", "b"])}))],
        ("SendStreamingMessage", _) => events(&[json!({"task": shown("COMPLETED", &["a", "b"])})]),
        ("GetTask", _) => vec![Act::Answer(shown("AUTH_REQUIRED", &["a", "b"]))],
        ("SubscribeToTask", _) => {
            let now = json!({"task": shown("AUTH_REQUIRED", &["a", "b"])});
            events(&[now, chunk("t-1", "a", false), chunk("t-1", "b", true)])
        }
        _ => vec![Act::Refuse(-32601, "not here")],
    });
    let near = before(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let asked = client.say("m-1", "go");
    let mut stream = client.stream("SubscribeToTask", &json!({"id": id(&asked)})).expect("a stream");
    stream.expect();
    agent.wait("SubscribeToTask", 2);
    client.call("SendMessage", &say_to(&asked, 2)).expect("an answer");
    let told: Vec<Value> = stream.rest().iter().map(|event| event.frame()).collect();
    assert_eq!(states(&told), ["SUBMITTED", "COMPLETED"], "{told:?}");
    assert!(told.iter().all(|frame| frame.get("artifactUpdate").is_none()), "{told:?}");
}

/// With an artifact of some parts.
fn shown(state: &str, parts: &[&str]) -> Value {
    let mut shown = waiting(state);
    let parts: Vec<Value> = parts.iter().map(|text| json!({"text": text})).collect();
    shown["artifacts"] = json!([{"artifactId": "out", "parts": parts}]);
    shown
}

#[test]
fn an_artifact_that_grows_while_the_task_waits_is_told() {
    let agent = StandIn::start(false, move |asked: &Asked| match asked.method.as_str() {
        "SendMessage" => vec![Act::Answer(json!({"task": shown("AUTH_REQUIRED", &["a"])}))],
        _ => vec![Act::Answer(shown("AUTH_REQUIRED", &["a", "b"]))],
    });
    let near = before(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let asked = client.say("m-1", "go");
    let grown = until("all of the artifact is there", || {
        let task = client.task(id(&asked));
        (texts(&task["artifacts"][0]).len() > 1 && state(&task) == "TASK_STATE_AUTH_REQUIRED").then_some(task)
    });
    assert_eq!((texts(&grown["artifacts"][0]), reason(&grown)), (vec!["a", "b"], "Sign in"), "{grown}");
}

/// The stream of the answer does not show it, and nobody has looked before the reply.
#[test]
fn an_artifact_that_is_given_just_before_a_reply_is_told() {
    let replied = Gate::default();
    let there = replied.clone();
    let agent = StandIn::start(true, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
        ("SendMessage", 0) => vec![Act::Answer(json!({"task": waiting("INPUT_REQUIRED")}))],
        ("SendStreamingMessage", _) => {
            there.open();
            let chunks = [chunk("t-1", "after", false), chunk("t-1", " that", true)];
            [events(&chunks), events(&[status("t-1", "COMPLETED")])].concat()
        }
        ("GetTask", _) if there.is_open() => {
            let mut shown = ended();
            let given = json!({"artifactId": "given", "parts": [{"text": "meanwhile"}]});
            shown["artifacts"].as_array_mut().expect("artifacts").insert(0, given);
            vec![Act::Answer(shown)]
        }
        ("GetTask", _) => vec![Act::Answer(waiting("INPUT_REQUIRED"))],
        _ => vec![Act::Refuse(-32601, "not here")],
    });
    let near = before(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let asked = client.say("m-1", "go");
    let done = client.call("SendMessage", &say_to(&asked, 2)).expect("an answer")["task"].clone();
    assert_eq!(state(&done), "TASK_STATE_COMPLETED");
    let artifacts: Vec<Vec<&str>> = done["artifacts"].as_array().expect("artifacts").iter().map(texts).collect();
    assert_eq!(artifacts, [vec!["after", " that"], vec!["meanwhile"]], "what was streamed stays as it came");
}

#[test]
fn a_stream_that_begins_with_the_task_as_it_was_goes_on() {
    for (timed, given) in [(false, false), (true, false), (false, true), (true, true)] {
        let asks = move || {
            let mut asks = waiting("INPUT_REQUIRED");
            if timed {
                asks["status"]["timestamp"] = json!("2026-01-31T12:00:00Z");
            }
            asks
        };
        let agent = StandIn::start(true, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
            ("SendMessage", 0) => vec![Act::Answer(json!({"task": asks()}))],
            ("SendStreamingMessage", _) => {
                let mut first = asks();
                if given {
                    first["artifacts"] = json!([{"artifactId": "given", "parts": [{"text": "meanwhile"}]}]);
                }
                let then = [status("t-1", "WORKING"), chunk("t-1", "after that", false), status("t-1", "COMPLETED")];
                [events(&[json!({"task": first})]), events(&then)].concat()
            }
            _ => vec![Act::Answer(asks())],
        });
        let near = before(&agent, "");
        let client = near.owner(Binding::JsonRpc);
        let asked = client.say("m-1", "go");
        let mut stream = client.stream("SendStreamingMessage", &say_to(&asked, 2)).expect("a stream");
        let told: Vec<Value> = stream.rest().iter().map(|event| event.frame()).collect();
        assert!(!states(&told).contains(&"INPUT_REQUIRED"), "{told:?}");
        assert_eq!(states(&told).last(), Some(&"COMPLETED"), "{told:?}");
        let done = client.task(id(&asked));
        let artifacts: Vec<Vec<&str>> = done["artifacts"].as_array().expect("artifacts").iter().map(texts).collect();
        assert_eq!(artifacts.len(), 1 + usize::from(given), "{done}");
        assert_eq!(artifacts.last(), Some(&vec!["after that"]));
    }
}

/// The same question once more, from an agent that tells no times, and whose streams last.
#[test]
fn a_stream_that_holds_the_task_as_it_was_and_no_more_is_an_answer() {
    let asks = || json!({"task": waiting("INPUT_REQUIRED")});
    for quiet in [false, true] {
        let agent = StandIn::start(true, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
            ("SendMessage", 0) => vec![Act::Answer(asks())],
            ("SendStreamingMessage", _) if !quiet => vec![Act::Event(asks())],
            ("GetTask", _) => vec![Act::Answer(waiting("INPUT_REQUIRED"))],
            _ => vec![Act::Event(asks()), Act::Hold],
        });
        let near = before(&agent, if quiet { "timeouts: {idle: 100ms}" } else { "" });
        let client = near.owner(Binding::JsonRpc);
        let asked = client.say("m-1", "go");
        let again = client.call("SendMessage", &say_to(&asked, 2)).expect("an answer")["task"].clone();
        assert_eq!((state(&again), reason(&again)), ("TASK_STATE_INPUT_REQUIRED", "Sign in"), "{again}");
        assert_eq!(agent.asked("SendStreamingMessage").len(), 1);
    }
}

#[test]
fn a_message_of_an_agent_that_cannot_be_asked_for_its_task_is_told_at_once() {
    let ways: [fn() -> Vec<Act>; 5] = [
        || vec![Act::Body(500, "broken".into())],
        || vec![Act::Body(200, "<html>".into())],
        || vec![Act::Refuse(-32603, "broken")],
        || vec![Act::Refuse(-32601, "no such method")],
        || vec![Act::Answer(json!({"no": "task"}))],
    ];
    for (streaming, broken) in [true, false].into_iter().flat_map(|streams| ways.map(|way| (streams, way))) {
        let agent = StandIn::start(streaming, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
            ("SendMessage", 0) => vec![Act::Answer(json!({"task": waiting("INPUT_REQUIRED")}))],
            ("SendMessage", _) => vec![Act::Answer(remark())],
            ("SendStreamingMessage", _) => vec![Act::Event(remark())],
            ("GetTask", _) => broken(),
            ("SubscribeToTask", _) => vec![Act::Event(json!({"task": waiting("INPUT_REQUIRED")})), Act::Hold],
            _ => vec![Act::Refuse(-32601, "not here")],
        });
        let near = before(&agent, "");
        let client = near.owner(Binding::JsonRpc);
        let asked = client.say("m-1", "go");
        let told = client.call("SendMessage", &say_to(&asked, 2)).expect("an answer")["task"].clone();
        assert_eq!((state(&told), reason(&told)), ("TASK_STATE_INPUT_REQUIRED", "What do you mean?"), "{told}");
    }
}
