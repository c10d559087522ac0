//! Agents that are down, slow, cut off or only half willing: every task ends, and nothing is told twice.

use super::{before, chunk, config, done, reason, status, task, texts};
use crate::cast::{id, reached, setup, state};
use flotilla_testkit::client::message;
use flotilla_testkit::stand_in::card;
use flotilla_testkit::{Act, Asked, Binding, StandIn, until};
use serde_json::{Value, json};

/// The task with all its pieces.
fn whole(state: &str, pieces: &[&str]) -> Value {
    let parts: Vec<Value> = pieces.iter().map(|text| json!({"text": text})).collect();
    let mut task = task("t-1", state);
    task["artifacts"] = json!([{"artifactId": "out", "parts": parts}]);
    task
}

#[test]
fn a_receipt_is_followed_until_the_work_is_done() {
    for streaming in [false, true] {
        let agent = StandIn::start(streaming, move |asked: &Asked| match asked.method.as_str() {
            "SendMessage" => vec![Act::Answer(json!({"task": task("t-1", "WORKING")}))],
            "SubscribeToTask" => vec![
                Act::Event(json!({"task": whole("WORKING", &["1"])})),
                Act::Event(chunk("t-1", "2", true)),
                Act::Event(status("t-1", "COMPLETED")),
            ],
            "GetTask" if asked.nth < 2 && !streaming => vec![Act::Answer(whole("WORKING", &["1"]))],
            "GetTask" => vec![Act::Answer(whole("COMPLETED", &["1", "2"]))],
            other => panic!("nobody asks for {other}"),
        });
        let near = before(&agent, "poll: {first: 10ms, longest: 20ms}");
        let task = near.owner(Binding::JsonRpc).say("m-1", "go");
        assert_eq!(state(&task), "TASK_STATE_COMPLETED");
        assert_eq!(texts(&task["artifacts"][0]), ["1", "2"]);
        assert_eq!(agent.asked("SubscribeToTask").len(), usize::from(streaming));
    }
}

#[test]
fn a_caller_that_wants_a_task_at_once_has_one_also_where_nobody_streams() {
    let agent = StandIn::start(false, |asked: &Asked| match asked.method.as_str() {
        "SendMessage" => vec![Act::Answer(json!({"task": task("t-1", "SUBMITTED")}))],
        "GetTask" if asked.nth < 3 => vec![Act::Answer(task("t-1", "WORKING"))],
        _ => vec![Act::Answer(whole("COMPLETED", &["1"]))],
    });
    let near = before(&agent, "poll: {first: 10ms, longest: 10ms}");
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    reached(&client, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(agent.asked("SendMessage")[0].params["configuration"]["returnImmediately"], true);
}

#[test]
fn a_stream_that_breaks_is_taken_up_and_nothing_is_told_twice() {
    let agent = StandIn::start(true, |asked: &Asked| match (asked.method.as_str(), asked.nth) {
        ("SendStreamingMessage", _) => vec![
            Act::Event(json!({"task": task("t-1", "WORKING")})),
            Act::Event(chunk("t-1", "1", false)),
            Act::Event(chunk("t-1", "2", true)),
            Act::HangUp,
        ],
        ("SubscribeToTask", 0) => vec![Act::HangUp],
        // What came meanwhile is in the task; what came at that moment is in it, and comes once more.
        ("SubscribeToTask", _) => vec![
            Act::Event(json!({"task": whole("WORKING", &["1", "2", "3"])})),
            Act::Event(chunk("t-1", "3", true)),
            Act::Event(chunk("t-1", "4", true)),
            Act::Event(status("t-1", "COMPLETED")),
        ],
        ("GetTask", 0) => vec![Act::Answer(whole("WORKING", &["1", "2"]))],
        // A server may be behind its own stream.
        ("GetTask", 1) => vec![Act::Answer(whole("WORKING", &["1"]))],
        ("GetTask", _) => vec![Act::Answer(whole("COMPLETED", &["1", "2", "3", "4"]))],
        (other, _) => panic!("nobody asks for {other}"),
    });
    let near = before(&agent, "retries: {first: 10ms}");
    let client = near.owner(Binding::JsonRpc);
    let mut stream = client.stream("SendStreamingMessage", &message("m-1", "go")).expect("a stream");
    let frames: Vec<Value> = stream.rest().iter().map(|event| event.frame()).collect();
    let pieces: Vec<&str> =
        frames.iter().filter_map(|frame| frame["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str()).collect();
    assert_eq!(pieces, ["1", "2", "3", "4"], "{frames:?}");
    let task = client.task(frames[0]["task"]["id"].as_str().unwrap());
    assert_eq!((state(&task), texts(&task["artifacts"][0])), ("TASK_STATE_COMPLETED", vec!["1", "2", "3", "4"]));
    assert_eq!(agent.asked("SendStreamingMessage").len(), 1, "sent once");
}

#[test]
fn a_stream_that_begins_with_a_gap_is_only_a_reason_to_ask() {
    let agent = StandIn::start(true, |asked: &Asked| match (asked.method.as_str(), asked.nth) {
        ("SendStreamingMessage", _) => {
            vec![Act::Event(json!({"task": task("t-1", "WORKING")})), Act::Event(chunk("t-1", "1", false)), Act::HangUp]
        }
        // An older server: no task first, and "2" was missed.
        ("SubscribeToTask", _) => vec![Act::Event(chunk("t-1", "3", true)), Act::Event(status("t-1", "COMPLETED"))],
        ("GetTask", _) => vec![Act::Answer(whole("COMPLETED", &["1", "2", "3"]))],
        (other, _) => panic!("nobody asks for {other}"),
    });
    let near = before(&agent, "retries: {first: 10ms}");
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    let task = reached(&client, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(texts(&task["artifacts"][0]), ["1", "2", "3"]);
}

#[test]
fn a_stream_that_cannot_be_taken_up_is_followed_by_asking() {
    let agent = StandIn::start(true, |asked: &Asked| match (asked.method.as_str(), asked.nth) {
        ("SendStreamingMessage", _) => vec![Act::Event(json!({"task": task("t-1", "WORKING")})), Act::HangUp],
        ("SubscribeToTask", _) => vec![Act::Refuse(-32004, "not here")],
        ("GetTask", nth) if nth < 3 => vec![Act::Answer(whole("WORKING", &["1"]))],
        _ => vec![Act::Answer(whole("COMPLETED", &["1", "2"]))],
    });
    let near = before(&agent, "poll: {first: 10ms, longest: 10ms}");
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    let task = reached(&client, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(texts(&task["artifacts"][0]), ["1", "2"]);
    assert_eq!(agent.asked("SubscribeToTask").len(), 1, "what is refused is not asked for again");
}

#[test]
fn a_quiet_stream_is_asked_about() {
    let agent = StandIn::start(true, |asked: &Asked| match (asked.method.as_str(), asked.nth) {
        ("SendStreamingMessage" | "SubscribeToTask", _) => {
            vec![Act::Event(json!({"task": task("t-1", "WORKING")})), Act::Hold]
        }
        ("GetTask", 0) => vec![Act::Answer(task("t-1", "WORKING"))],
        _ => vec![Act::Answer(task("t-1", "COMPLETED"))],
    });
    let near = before(&agent, "timeouts: {idle: 100ms}, retries: {first: 10ms}");
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    reached(&client, id(&task), "TASK_STATE_COMPLETED");
}

#[test]
fn an_agent_that_is_gone_for_good_is_given_up() {
    let agent = StandIn::start(true, |asked: &Asked| match asked.method.as_str() {
        "SendStreamingMessage" => vec![Act::Event(json!({"task": task("t-1", "WORKING")})), Act::HangUp],
        _ => vec![Act::HangUp],
    });
    let near = before(&agent, "timeouts: {lost: 200ms}, retries: {first: 10ms, longest: 50ms}");
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    let task = reached(&client, id(&task), "TASK_STATE_FAILED");
    assert!(reason(&task).contains("cannot be reached any more"), "{}", reason(&task));
}

#[test]
fn an_agent_that_is_too_slow_is_stopped() {
    let agent = StandIn::start(true, |asked: &Asked| match asked.method.as_str() {
        "SendStreamingMessage" => vec![Act::Event(json!({"task": task("t-1", "WORKING")})), Act::Hold],
        _ => vec![Act::Answer(task("t-1", "CANCELED"))],
    });
    let near = before(&agent, "timeouts: {whole: 300ms}");
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    let task = reached(&client, id(&task), "TASK_STATE_FAILED");
    assert!(reason(&task).contains("longer than it may"), "{}", reason(&task));
    agent.wait("CancelTask", 1);
}

#[test]
fn a_hub_starts_without_its_agent_and_finds_it_later() {
    let address = StandIn::start(true, |_| done("x")).address;
    // The port of a stand-in that never was: nobody is there yet.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_ne!(address, port);
    let near = setup()
        .config(&config(
            &format!("http://{port}"),
            "retries: {most: 50, first: 20ms, longest: 50ms}, breaker: {failures: 1000}",
        ))
        .start();
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    let agent = StandIn::at(&port.to_string(), |url| card(url, false), |_| done("t-1"));
    reached(&client, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(agent.asked("SendMessage").len(), 1);
}

#[test]
fn an_agent_that_cannot_be_reached_is_left_alone_for_a_while() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings = "retries: {most: 1, first: 10ms}, breaker: {failures: 2, pause: 500ms}, card_refresh: 1h";
    let near = setup().config(&config(&format!("http://{port}"), settings)).start();
    let client = near.owner(Binding::JsonRpc);
    let first = client.say("m-1", "go");
    assert_eq!(state(&first), "TASK_STATE_FAILED");
    assert!(reason(&first).contains("cannot be reached"), "{}", reason(&first));
    assert!(!reason(&first).contains("127.0.0.1"), "where it is, is its owner's to know: {}", reason(&first));
    let listed = client.get("/api/agents").json();
    let far = &listed["agents"][0]["remote"];
    assert_eq!((&far["breaker"], &far["failures"]), (&json!("closed"), &json!(1)), "two tries are one send");
    client.say("m-2", "go");
    let second = client.say("m-3", "go");
    assert!(reason(&second).contains("left alone for now: 2 tries in a row"), "{}", reason(&second));
    let listed = client.get("/api/agents").json();
    let far = &listed["agents"][0];
    assert_eq!(
        (&far["name"], &far["remote"]["breaker"], &far["remote"]["failures"]),
        (&json!("far"), &json!("open"), &json!(2))
    );
    let metrics = client.get("/metrics").text().to_owned();
    assert!(metrics.contains("flotilla_remote_breaker{agent=\"far\"} 2"), "{metrics}");
    until("the pause is over wherever that is shown", || {
        let shown = client.get("/api/agents/far").json()["remote"]["breaker"] == "half-open";
        let is_one = client.get("/metrics").text().contains("flotilla_remote_breaker{agent=\"far\"} 1");
        (shown && is_one).then_some(())
    });
    let _agent = StandIn::at(&port.to_string(), |url| card(url, false), |_| done("t-1"));
    let mut number = 3;
    until("the agent is tried again", || {
        number += 1;
        let task = client.say(&format!("m-{number}"), "go");
        (state(&task) == "TASK_STATE_COMPLETED").then_some(())
    });
    let listed = client.get("/api/agents").json();
    assert_eq!(listed["agents"][0]["remote"]["breaker"], "closed");
}

#[test]
fn an_answer_that_is_cut_off_is_looked_for_and_never_sent_twice() {
    let agent = StandIn::start(false, |asked: &Asked| match (asked.method.as_str(), asked.nth) {
        ("SendMessage", _) => vec![Act::HangUp],
        ("ListTasks", 0) => vec![Act::HangUp],
        ("ListTasks", _) => {
            let mut task = whole("COMPLETED", &["1"]);
            task["history"] = json!([{"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "go"}]}]);
            let mut other = super::task("t-0", "COMPLETED");
            other["history"] = json!([{"messageId": "m-0", "role": "ROLE_USER", "parts": [{"text": "go"}]}]);
            vec![Act::Answer(json!({"tasks": [other, task], "nextPageToken": "", "pageSize": 50, "totalSize": 2}))]
        }
        (other, _) => panic!("nobody asks for {other}"),
    });
    let near = before(&agent, "retries: {first: 10ms}");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    assert_eq!((state(&task), texts(&task["artifacts"][0])), ("TASK_STATE_COMPLETED", vec!["1"]));
    assert_eq!(agent.asked("SendMessage").len(), 1);
}

#[test]
fn what_cannot_be_found_out_is_said() {
    let script = |asked: &Asked| match asked.method.as_str() {
        "SendMessage" if asked.nth == 0 => vec![Act::HangUp],
        "SendMessage" => done("t-1"),
        _ => vec![Act::Refuse(-32601, "no such method")],
    };
    let agent = StandIn::start(false, script);
    let near = before(&agent, "");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_FAILED");
    assert!(reason(&task).contains("outcome unknown"), "{}", reason(&task));
    assert_eq!(agent.asked("SendMessage").len(), 1);
    let agent = StandIn::start(false, script);
    let near = before(&agent, "on_lost: retry");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED");
    let asked = agent.asked("SendMessage");
    assert_eq!(asked[0].header("idempotency-key"), asked[1].header("idempotency-key"));
    let log = near.owner(Binding::JsonRpc).get(&format!("/api/tasks/{}/log", id(&task))).text().to_owned();
    assert!(log.contains("outcome unknown") && log.contains("sent again"), "{log}");
}

/// The last event of a stream that ends without an empty line counts if it is whole; otherwise the stream was cut.
#[test]
fn a_stream_that_ends_in_an_event_loses_nothing() {
    for whole in [true, false] {
        let mut ended = task("t-1", "COMPLETED");
        ended["artifacts"] = json!([{"artifactId": "out", "parts": [{"text": "after that"}]}]);
        let agent = StandIn::start(true, move |asked: &Asked| match asked.method.as_str() {
            "SendStreamingMessage" => {
                let last = json!({"jsonrpc": "2.0", "id": 1, "result": {"task": ended.clone()}}).to_string();
                let last = if whole { last.as_str() } else { &last[..last.len() - 9] };
                vec![Act::Event(json!({"task": task("t-1", "WORKING")})), Act::Raw(format!("data: {last}"))]
            }
            "GetTask" if !whole => vec![Act::Answer(ended.clone())],
            _ => vec![Act::Refuse(-32601, "not here")],
        });
        let near = before(&agent, "timeouts: {lost: 1s}");
        let client = near.owner(Binding::JsonRpc);
        let task = client.start("m-1", "go");
        let done = reached(&client, id(&task), "TASK_STATE_COMPLETED");
        assert_eq!(texts(&done["artifacts"][0]), ["after that"], "{done}");
        assert_eq!(agent.asked("GetTask").len(), usize::from(!whole), "what is whole is taken as it is");
    }
}

/// COMPLETED and no more, of a task that is shown at work: for a moment that may be late, and then the stream counts.
#[test]
fn the_end_of_a_stream_is_believed_though_its_task_is_shown_at_work() {
    for late in [true, false] {
        let agent = StandIn::start(true, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
            ("SendStreamingMessage", _) => {
                vec![Act::Event(json!({"task": task("t-1", "WORKING")})), Act::Event(status("t-1", "COMPLETED"))]
            }
            ("GetTask", 1) if late => vec![Act::Answer(whole("COMPLETED", &["1"]))],
            ("GetTask", _) => vec![Act::Answer(task("t-1", "WORKING"))],
            _ => vec![Act::Refuse(-32004, "not here")],
        });
        let near = before(&agent, "poll: {first: 50ms}");
        let client = near.owner(Binding::JsonRpc);
        let done = reached(&client, id(&client.start("m-1", "go")), "TASK_STATE_COMPLETED");
        let artifacts = done["artifacts"].as_array().map_or(0, Vec::len);
        assert_eq!(artifacts, usize::from(late), "{done}");
        assert_eq!(agent.asked("CancelTask").len(), 0);
    }
}
