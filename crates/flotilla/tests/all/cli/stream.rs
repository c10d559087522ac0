//! `--stream` and `task subscribe`: events as they come, and what happens when they stop coming.

use super::agent::{Agent, Says, card, streaming, task};
use super::program::Place;
use crate::cast::{hub, id, state};
use flotilla_testkit::process::OWNER;
use flotilla_testkit::{HubProcess, Proxy};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::sync::mpsc;
use std::time::Duration;

fn kinds(frames: &[Value]) -> Vec<&str> {
    frames.iter().filter_map(|frame| frame.as_object()?.keys().next().map(String::as_str)).collect()
}

fn update(state: &str) -> Value {
    let status = json!({"state": format!("TASK_STATE_{state}")});
    json!({"statusUpdate": {"taskId": "t-1", "contextId": "c-1", "status": status}})
}

#[test]
fn events_are_lines_and_the_last_one_has_the_end() {
    let hub = hub();
    let place = Place::at(&hub);
    for transport in ["JSONRPC", "HTTP+JSON", "GRPC"] {
        let frames = place.lines(&["send", "complete", "--transport", transport]);
        assert_eq!(kinds(&frames), ["task", "statusUpdate", "artifactUpdate", "statusUpdate"], "{transport}");
        let last = &frames[3]["statusUpdate"];
        assert_eq!(state(last), "TASK_STATE_COMPLETED");
        assert!(last["taskId"].is_string() && last["contextId"].is_string());
    }
    let shown = place.run(&["send", "complete", "--stream"]).ok();
    let last: Vec<&str> = shown.out.trim_end().rsplit("\n\n").take(2).collect();
    let last = format!("{}\n{}", last[1], last[0]);
    for label in ["Task: ", "Context: ", "State: TASK_STATE_COMPLETED"] {
        assert!(last.contains(label), "no {label} at the end of {}", shown.out);
    }
}

#[test]
fn a_direct_message_is_one_line_and_no_error() {
    let hub = hub();
    let place = Place::at(&hub);
    assert_eq!(kinds(&place.lines(&["send", "direct"])), ["message"]);
    assert!(place.run(&["send", "direct", "--stream"]).ok().out.contains("Hello yourself"));
}

#[test]
fn an_agent_that_does_not_stream_is_waited_for_and_still_answers_in_lines() {
    let hub = hub();
    let place = Place::at(&hub);
    let ran = place.run(&["send", "hi", "--agent", "still", "--stream", "-o", "json"]).ok();
    assert_eq!(kinds(&ran.lines()), ["task"]);
    assert!(ran.err.contains("does not stream"), "{ran:?}");
    let task = place.run(&["send", "hi", "--agent", "still"]).ok();
    let args = ["task", "subscribe", task.field("Task"), "--agent", "still", "-o", "json"];
    assert_eq!(place.run(&args).ok().json()["id"], task.field("Task"));
    let ran = place.run(&[&args[..], &["--stream"]].concat()).ok();
    assert_eq!(kinds(&ran.lines()), ["task"]);
    assert!(ran.err.contains("asking for the task instead"), "{ran:?}");
}

#[test]
fn an_error_that_ends_a_stream_is_its_last_line() {
    let agent = Agent::start(streaming(), |asked, _| match asked.method().as_str() {
        "SendStreamingMessage" => Says::Events(vec![json!({"task": task("WORKING")})]),
        _ => Says::Error(-32001, "gone"),
    });
    let ran = Place::new().run(&["send", "hi", "-a", &agent.url, "--stream", "-o", "json"]);
    let lines = ran.lines();
    assert_eq!((ran.code, lines.len()), (1, 2), "{ran:?}");
    assert_eq!(lines[1]["error"]["code"], "TaskNotFoundError");
}

#[test]
fn a_running_task_is_followed_to_its_end() {
    let hub = hub();
    let place = Place::at(&hub);
    let started = place.json(&["send", "--async", "work 3s"]);
    let task = id(&started["task"]);
    let whole = place.start(&["task", "subscribe", task, "-o", "json"]);
    let frames = place.lines(&["task", "subscribe", task]);
    assert_eq!(frames[0]["task"]["id"], task, "the first event is the whole task");
    assert_eq!(state(&frames.last().expect("the end")["statusUpdate"]), "TASK_STATE_COMPLETED");
    let ended = super::program::finish(whole).ok().json();
    assert_eq!((id(&ended), state(&ended)), (task, "TASK_STATE_COMPLETED"), "one Task, bare");
    let ran = place.run(&["task", "subscribe", task]);
    assert!(ran.code == 1 && ran.err.contains("task get"), "{ran:?}");
}

#[test]
fn a_stream_that_breaks_is_taken_up_again() {
    let agent = Agent::start(streaming(), |asked, _| match asked.method().as_str() {
        "SendStreamingMessage" => Says::Events(vec![json!({"task": task("WORKING")})]),
        _ => Says::Events(vec![json!({"task": task("WORKING")}), update("COMPLETED")]),
    });
    let ran = Place::new().run(&["send", "hi", "-a", &agent.url, "--stream", "-o", "json"]).ok();
    assert_eq!(kinds(&ran.lines()), ["task", "task", "statusUpdate"]);
    let methods: Vec<String> = agent.asked().iter().map(super::agent::Asked::method).collect();
    assert_eq!(methods, ["SendStreamingMessage", "SubscribeToTask"], "no GetTask is needed");
}

#[test]
fn a_stream_survives_the_restart_of_its_hub() {
    let mut hub = crate::cast::setup()
        .config(&crate::cast::CONFIG.replace("kind: script", "kind: script\n    on_lost: retry"))
        .start();
    let place = Place::at(&hub);
    let started = place.json(&["send", "--async", "hold"]);
    let task = id(&started["task"]).to_owned();
    let children = ["JSONRPC", "HTTP+JSON", "GRPC"].map(|transport| {
        place.start(&["task", "subscribe", &task, "--stream", "-o", "json", "--transport", transport])
    });
    crate::cast::reached(&hub.owner(flotilla_testkit::Binding::JsonRpc), &task, "TASK_STATE_WORKING");
    super::program::streams(&hub, 3);
    hub.restart();
    place.run(&["task", "cancel", &task]).ok();
    for child in children {
        let ran = super::program::finish(child).ok();
        let lines = ran.lines();
        assert_eq!(state(&lines.last().expect("the end")["statusUpdate"]), "TASK_STATE_CANCELED", "{ran:?}");
    }
}

#[test]
fn streaming_is_only_ever_asked_for_on_the_command_line() {
    let hub = hub();
    let place = Place::at(&hub).env("A2ACLI_STREAM", "true");
    place.file(".env", "A2ACLI_STREAM=true\n");
    let ran = place.run(&["send", "complete", "-o", "json"]).ok();
    assert!(ran.json()["task"].is_object(), "one document: {ran:?}");
}

#[test]
fn what_is_one_object_is_one_line_for_who_reads_lines() {
    let agent = Agent::start(card(json!({})), |_, _| Says::Result(task("COMPLETED")));
    let place = Place::new();
    for args in [&["task", "get", "t-1"][..], &["task", "cancel", "t-1"], &["card", "get"]] {
        let args = [args, &["-a", &agent.url]].concat();
        assert_eq!(place.lines(&args), [place.json(&args)], "{args:?}");
    }
}

#[test]
fn a_stream_that_only_repeats_itself_is_given_up() {
    let agent = Agent::start(streaming(), |asked, _| match asked.method().as_str() {
        "GetTask" => Says::Result(task("COMPLETED")),
        _ => Says::Events(vec![json!({"task": task("WORKING")}), update("WORKING")]),
    });
    let ran = Place::new().run(&["send", "hi", "-a", &agent.url, "-o", "json"]).ok();
    assert_eq!(state(&ran.json()["task"]), "TASK_STATE_COMPLETED");
    assert!(agent.asked().len() < 10, "{} requests", agent.asked().len());
}

/// A hub's card, with everything it names behind a proxy.
fn card_behind(proxy: &Proxy, hub: &HubProcess) -> String {
    let card = Place::at(hub).json(&["card", "get"]).to_string();
    let address = |place: std::net::SocketAddr| place.to_string();
    card.replace(&address(hub.address()), &address(proxy.address()))
}

/// What a program says to people, line by line, as it comes.
fn aside(child: &mut Child) -> mpsc::Receiver<String> {
    let (say, said) = mpsc::channel();
    let lines = BufReader::new(child.stderr.take().expect("standard error")).lines();
    std::thread::spawn(move || lines.map_while(Result::ok).all(|line| say.send(line).is_ok()));
    said
}

fn heard(said: &mpsc::Receiver<String>, words: &str) {
    let mut all = Vec::new();
    while let Ok(line) = said.recv_timeout(Duration::from_secs(60)) {
        all.push(line);
        if all.last().is_some_and(|line| line.contains(words)) {
            return;
        }
    }
    panic!("no {words:?} in {all:?}");
}

/// The numbers of the chunks that events brought.
fn chunks(frames: &[Value]) -> Vec<usize> {
    let text = |frame: &Value| frame["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str().map(str::to_owned);
    let number = |text: String| text.trim_start_matches("chunk ").trim_end_matches(';').parse().expect("a number");
    frames.iter().filter_map(text).map(number).collect()
}

const CHUNKS: usize = 300;

#[test]
fn a_stream_that_was_away_for_long_misses_nothing() {
    let hub = hub();
    let proxy = Proxy::to(hub.address());
    let place = Place::new().env("A2ACLI_BEARER", OWNER);
    let card = place.file("card.json", card_behind(&proxy, &hub));
    let words = format!("trickle {CHUNKS}");
    let mut children = ["JSONRPC", "HTTP+JSON", "GRPC"].map(|transport| {
        let how = ["--transport", transport, "--poll-interval", "500ms", "--stream", "-o", "json"];
        place.start(&[&["send", &words, "-a", &card], &how[..]].concat())
    });
    super::program::streams(&hub, 3);
    let asides = children.each_mut().map(aside);
    proxy.close();
    asides.iter().for_each(|said| heard(said, "until it is there again"));
    proxy.open();
    for child in children {
        let frames = super::program::finish(child).ok().lines();
        let seen = chunks(&frames);
        let first = CHUNKS + 1 - seen.len();
        assert_eq!(seen, (first..=CHUNKS).collect::<Vec<_>>(), "each once, and none is missing");
        assert!(first <= 2, "what came before the first chunk is the task itself: {:?}", frames.first());
        assert_eq!(state(&frames.last().expect("the end")["statusUpdate"]), "TASK_STATE_COMPLETED");
    }
}

#[test]
fn an_agent_without_event_ids_is_streamed_from_again_when_it_is_back() {
    let agent = Agent::start(streaming(), |asked, before| match (asked.method().as_str(), before) {
        ("SendStreamingMessage", _) => Says::Events(vec![json!({"task": task("SUBMITTED")})]),
        // Away for a while, then only to be asked, then whole again.
        (_, 1..=4) => Says::Status(502, json!("away")),
        ("GetTask", _) => Says::Result(task("WORKING")),
        (_, 6) => Says::Status(503, json!("not yet")),
        _ => Says::Events(vec![json!({"task": task("WORKING")}), update("COMPLETED")]),
    });
    let args = ["send", "hi", "-a", &agent.url, "--stream", "-o", "json", "--poll-interval", "20ms"];
    let ran = Place::new().run(&args).ok();
    assert_eq!(kinds(&ran.lines()), ["task", "task", "statusUpdate"], "{ran:?}");
    assert!(ran.err.contains("until it is there again"), "{ran:?}");
}
