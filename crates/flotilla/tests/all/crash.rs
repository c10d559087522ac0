//! Killed fifty times under load: nothing acknowledged is lost, nothing is stuck, nothing is done twice.

use crate::cast::{id, setup, state};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, Event, HubProcess, http, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const KILLS: usize = 50;
const CALLERS: usize = 8;
/// Acknowledgements between two kills.
const LOAD: usize = 24;

const CONFIG: &str = "
agents:
  echo: {kind: echo}
  slow:
    kind: script
    script:
      otherwise:
        - working
        - artifact: {id: out, chunks: {count: 12, text: \"{message_id}/{n}\", every: 3ms}}
        - completed
";

/// What the callers were told, and so must be true for ever.
#[derive(Default)]
struct Told {
    /// Message id to task, as it was answered.
    answered: Mutex<BTreeMap<String, (String, Value)>>,
    /// Task id to every event that was streamed.
    streamed: Mutex<BTreeMap<String, Vec<Event>>>,
    acknowledged: AtomicUsize,
    over: AtomicBool,
}

impl Told {
    fn answer(&self, agent: &str, message_id: &str, task: Value) {
        self.answered.lock().expect("no caller panicked").insert(message_id.to_owned(), (agent.to_owned(), task));
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
    }

    fn stream(&self, task: &str, events: Vec<Event>) {
        self.streamed.lock().expect("no caller panicked").entry(task.to_owned()).or_default().extend(events);
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sends until it is told to stop. A send whose answer was cut off is repeated under its own id, as a client would.
fn call_on(told: &Told, client: &Client, caller: usize) {
    let mut number = 0;
    while !told.over.load(Ordering::Relaxed) {
        number += 1;
        let message_id = format!("{caller}-{number}");
        let params = message(&message_id, "hello");
        match (caller + number) % 3 {
            0 => repeat(told, client, "echo", &message_id, &params),
            1 => {
                let mut params = params;
                params["configuration"] = json!({"returnImmediately": true});
                repeat(told, client, "slow", &message_id, &params);
            }
            _ => listen(told, &client.clone().agent("slow"), &params),
        }
    }
}

fn repeat(told: &Told, client: &Client, agent: &str, message_id: &str, params: &Value) {
    let client = client.clone().agent(agent);
    until("a send is answered", || {
        if told.over.load(Ordering::Relaxed) {
            return Some(());
        }
        let response = http::try_send(client.address, &client.request("SendMessage", params)).ok()?;
        let answer = response.json();
        let task = answer["result"]["task"].clone();
        assert!(task.is_object(), "{answer}");
        told.answer(agent, message_id, task);
        Some(())
    });
}

fn listen(told: &Told, client: &Client, params: &Value) {
    let request = client.request("SendStreamingMessage", params);
    let Ok(mut stream) = http::try_stream(client.address, &request) else { return };
    let events = stream.rest();
    if let Some(first) = events.first() {
        let task = id(&first.frame()["task"]).to_owned();
        told.stream(&task, events);
    }
}

#[test]
fn fifty_kills_under_load_lose_nothing_and_repeat_nothing() {
    let mut hub = setup().config(CONFIG).start();
    let told = Arc::new(Told::default());
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (told, client) = (Arc::clone(&told), hub.owner(Binding::JsonRpc));
            std::thread::spawn(move || call_on(&told, &client, caller))
        })
        .collect();
    for _ in 0..KILLS {
        let before = told.acknowledged.load(Ordering::Relaxed);
        until("the hub answers under load", || {
            (told.acknowledged.load(Ordering::Relaxed) >= before + LOAD).then_some(())
        });
        hub.restart();
    }
    told.over.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.join().expect("a caller is content");
    }
    hub.restart();
    nothing_is_stuck(&hub);
    answers_still_hold(&hub, &told);
    streams_still_hold(&hub, &told);
}

fn nothing_is_stuck(hub: &HubProcess) {
    for agent in ["echo", "slow"] {
        let client = hub.owner(Binding::JsonRpc).agent(agent);
        for open in ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"] {
            until(&format!("no task of {agent} is {open}"), || {
                let list = client.call("ListTasks", &json!({"status": open})).expect("a list");
                (list["totalSize"] == 0).then_some(())
            });
        }
    }
}

fn answers_still_hold(hub: &HubProcess, told: &Told) {
    let answered = told.answered.lock().expect("no caller panicked");
    assert!(answered.len() >= KILLS, "only {} answers", answered.len());
    for (message_id, (agent, task)) in answered.iter() {
        let now = hub.owner(Binding::JsonRpc).agent(agent).task(id(task));
        assert_eq!(now["history"][0]["messageId"], *message_id, "{now}");
        if state(task) == "TASK_STATE_COMPLETED" {
            assert_eq!(now, *task, "an answered task does not change");
        }
        one_clean_log(hub, id(task));
    }
}

/// Dense numbers, one end, and a second run only where the log says that the first was lost before it began.
fn one_clean_log(hub: &HubProcess, task: &str) {
    let log = hub.owner(Binding::HttpJson).get(&format!("/api/tasks/{task}/log")).json();
    let events = log["events"].as_array().expect("a log");
    let kinds: Vec<&str> = events.iter().map(kind).collect();
    let count = |kind: &str| kinds.iter().filter(|known| **known == kind).count();
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], index as u64 + 1, "{log}");
    }
    assert_eq!(log["seq"], events.len() as u64, "{log}");
    assert_eq!(count("run_queued"), 1 + count("run_lost") - lost_and_failed(events), "{log}");
    assert!(count("run_started") <= 1, "started twice: {log}");
    let ends = events.iter().filter(|event| {
        let state = event["event"]["status"]["state"].as_str().unwrap_or_default();
        ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED"].contains(&state)
    });
    assert_eq!(ends.count(), 1, "{log}");
}

/// The name of a logged event.
fn kind(event: &Value) -> &str {
    event["event"].as_object().and_then(|event| event.keys().next()).expect("an event has a name")
}

/// A started run that is lost is failed instead of repeated.
fn lost_and_failed(events: &[Value]) -> usize {
    let failed = |event: &&Value| event["event"]["status"]["state"] == "TASK_STATE_FAILED";
    events.iter().filter(failed).count()
}

fn streams_still_hold(hub: &HubProcess, told: &Told) {
    let streamed = told.streamed.lock().expect("no caller panicked");
    assert!(streamed.len() >= KILLS / 2, "only {} streams", streamed.len());
    let client = hub.owner(Binding::JsonRpc).agent("slow");
    for (task, events) in streamed.iter() {
        let start = format!("{}.0", events[0].epoch());
        let replay = client.clone().header("Last-Event-ID", &start);
        let replayed = replay.stream("SubscribeToTask", &json!({"id": task})).expect("a replay").rest();
        for (index, event) in events.iter().enumerate() {
            assert_eq!(event.number(), index as u64 + 1, "events are numbered without gaps");
            assert_eq!(replayed.get(index).map(Event::frame), Some(event.frame()), "what was shown is still there");
        }
    }
}
