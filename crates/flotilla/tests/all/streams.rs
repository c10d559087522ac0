//! Streams: numbered events, resumed without a gap after any cut, the same for every reader.

mod numbers;
mod readers;
mod resume;
mod stops;
mod wire;

use flotilla_testkit::client::message;
use flotilla_testkit::{Client, Event, Stream};
use serde_json::{Value, json};

pub const RESUME: &str = "urn:flotilla:ext:stream-resume:1.0";

/// Sends a text and follows what comes of it.
fn follow(client: &Client, id: &str, text: &str) -> Stream {
    client.stream("SendStreamingMessage", &message(id, text)).expect("a stream")
}

fn subscribe(client: &Client, task: &str) -> Stream {
    client.stream("SubscribeToTask", &json!({"id": task})).expect("a stream")
}

/// Takes a stream up again after an event.
fn resume(client: &Client, task: &str, cursor: &str) -> Stream {
    subscribe(&client.clone().header("last-event-id", cursor), task)
}

fn task_of(first: &Event) -> String {
    first.frame()["task"]["id"].as_str().expect("the first frame is the task").to_owned()
}

fn numbers(events: &[Event]) -> Vec<u64> {
    events.iter().map(Event::number).collect()
}

/// What a reader knows of an event, whatever the binding: its id and its frame.
fn known(events: &[Event]) -> Vec<(String, Value)> {
    events.iter().map(|event| (event.cursor().to_owned(), event.frame())).collect()
}

/// The texts of all artifact updates, joined.
fn produced(events: &[Event]) -> String {
    let chunk = |event: &Event| {
        let frame = event.frame();
        frame["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str().map(str::to_owned)
    };
    events.iter().filter_map(chunk).collect()
}

fn chunks(count: u64) -> String {
    (1..=count).map(|n| format!("chunk {n};")).collect()
}

fn says_gap(event: &Event) -> bool {
    event.frame()["task"]["metadata"][RESUME]["gap"] == true
}
