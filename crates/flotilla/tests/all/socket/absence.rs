//! Away: messages wait for an agent that is not there, are sent again after a cut, and end when their time is over.

use super::{agent_key, answer, asked, caller, connected, dial};
use crate::cast::{hub, id, reached, setup, state, text};
use flotilla_testkit::socket::Socket;
use flotilla_testkit::{Binding, Client, HubProcess};
use serde_json::{Value, json};

fn start(client: &Client, message_id: &str, said: &str, ttl: Option<u32>) -> Result<Value, flotilla_testkit::Refusal> {
    let mut params = flotilla_testkit::client::message(message_id, said);
    params["configuration"] = json!({"returnImmediately": true});
    if let Some(ttl) = ttl {
        params["metadata"] = json!({"x-ttl": ttl});
    }
    client.call("SendMessage", &params).map(|answer| answer["task"].clone())
}

/// A hub whose agent `weather` was there once.
fn left(settings: &str) -> (HubProcess, String) {
    let hub = setup().config(settings).start();
    let key = agent_key(&hub, "weather");
    dial(&hub, &key).open().close();
    (hub, key)
}

fn why(task: &Value) -> &str {
    text(&task["status"]["message"])
}

#[test]
fn a_message_waits_over_a_restart_and_is_delivered() {
    for binding in Binding::ALL {
        let (mut hub, key) = left("hub: {name: Waiting}");
        let client = caller(&hub, binding, "weather");
        let task = start(&client, "m", "Will it rain?", None).expect("it waits");
        assert_eq!(state(&task), "TASK_STATE_SUBMITTED");
        assert!(why(&task).contains("not connected"), "{task}");
        hub.restart();
        assert_eq!(state(&client.task(id(&task))), "TASK_STATE_SUBMITTED");
        let mut agent = dial(&hub, &key).open();
        let message = agent.kind("message");
        assert_eq!((asked(&message), &message["taskId"]), ("Will it rain?", &task["id"]));
        answer(&mut agent, &message, "No");
        reached(&client, id(&task), "TASK_STATE_COMPLETED");
    }
}

#[test]
fn messages_that_waited_over_a_restart_are_delivered_in_the_order_they_were_sent() {
    let mut hub = setup().start();
    let key = agent_key(&hub, "weather");
    let mut agent = dial(&hub, &key).open();
    let client = caller(&hub, Binding::JsonRpc, "weather");
    let begun = client.start("m", "Will it rain?");
    let question = agent.kind("message");
    let status = json!({"state": "input-required", "message": "Where?"});
    agent.send(&json!({"type": "task_response", "taskId": question["taskId"], "run": 1, "status": status}));
    reached(&client, id(&begun), "TASK_STATE_INPUT_REQUIRED");
    agent.close();
    let mut sent: Vec<String> = (0..30).map(|number| format!("Message {number}")).collect();
    for (number, said) in sent.iter().enumerate() {
        start(&client, &format!("m{number}"), said, None).expect("it waits");
    }
    // Its task is the oldest, and what is said in it the latest.
    let mut reply = flotilla_testkit::client::message("reply", "Here");
    reply["message"]["taskId"] = begun["id"].clone();
    reply["configuration"] = json!({"returnImmediately": true});
    client.call("SendMessage", &reply).expect("it waits");
    sent.push("Here".into());
    for _ in 0..2 {
        hub.restart();
    }
    let mut agent = dial(&hub, &key).open();
    let came: Vec<String> = received(&mut agent, sent.len()).into_iter().map(|(said, _)| said).collect();
    assert_eq!(came, sent);
}

#[test]
fn a_blocking_send_is_answered_that_it_waits() {
    let (hub, _) = left("limits: {absent_wait: 100ms}");
    let task = caller(&hub, Binding::JsonRpc, "weather").say("m", "Hello?");
    assert_eq!(state(&task), "TASK_STATE_SUBMITTED");
    assert!(why(&task).contains("not connected"), "{task}");
}

#[test]
fn what_waits_too_long_fails_and_what_may_not_wait_is_refused() {
    for binding in Binding::ALL {
        let (hub, _) = left("sockets: {ttl: 1s}");
        let client = caller(&hub, binding, "weather");
        let task = start(&client, "m", "Quick", None).expect("it waits");
        let failed = reached(&client, id(&task), "TASK_STATE_FAILED");
        assert!(why(&failed).contains("within 1 s"), "{failed}");
        let refused = start(&client, "n", "Now or never", Some(0)).expect_err("refused");
        assert_eq!((refused.reason.as_str(), refused.message.contains("ttl 0")), ("UNAVAILABLE", true), "{binding:?}");
    }
}

#[test]
fn full_queues_are_told_apart() {
    for binding in Binding::ALL {
        let (hub, _) = left("limits: {queued_per_agent: 2, queued_per_workspace: 3}");
        let other = agent_key(&hub, "other");
        dial(&hub, &other).open().close();
        let client = caller(&hub, binding, "weather");
        for number in 0..2 {
            start(&client, &format!("m{number}"), "Wait", None).expect("there is room");
        }
        let refused = start(&client, "m2", "Wait", None).expect_err("full");
        assert_eq!(refused.reason, "QUEUE_FULL", "{binding:?}");
        start(&client, "m1", "Wait", None).expect("what was sent before needs no room");
        let client = caller(&hub, binding, "other");
        start(&client, "o0", "Wait", None).expect("there is room");
        let refused = start(&client, "o1", "Wait", None).expect_err("full");
        assert_eq!(refused.reason, "TENANT_QUEUE_FULL", "{binding:?}");
        if binding == Binding::JsonRpc {
            assert_eq!((refused.http, refused.code), (429, -32014));
        }
    }
}

fn tasks(client: &Client, texts: &[&str]) {
    for said in texts {
        start(client, said, said, None).expect("it is sent");
    }
}

fn received(agent: &mut Socket, count: usize) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for _ in 0..count {
        let message = agent.kind("message");
        all.push((asked(&message).to_owned(), message["attempt"].as_u64().expect("a number")));
    }
    all
}

#[test]
fn what_was_not_acknowledged_is_sent_again_in_order() {
    let hub = hub();
    let key = agent_key(&hub, "weather");
    let mut agent = dial(&hub, &key).open();
    let client = caller(&hub, Binding::JsonRpc, "weather");
    tasks(&client, &["one", "two", "three"]);
    let first = agent.kind("message");
    agent.send(&json!({"type": "ack", "taskId": first["taskId"], "run": 1}));
    received(&mut agent, 2);
    // The acknowledgement is read before the cut.
    agent.send(&json!({"type": "ping"}));
    agent.kind("pong");
    let token = agent.welcome["resumeToken"].as_str().expect("a token").to_owned();
    agent.cut();
    tasks(&client, &["four"]);
    let mut agent = dial(&hub, &key).query("resume", &token).open();
    assert_eq!(agent.welcome["resumed"], true);
    let again: Vec<(String, u64)> = received(&mut agent, 3);
    assert_eq!(again, [("two".into(), 2), ("three".into(), 2), ("four".into(), 1)]);
    answer(&mut agent, &first, "still mine");
    reached(&client, first["taskId"].as_str().expect("an id"), "TASK_STATE_COMPLETED");
}

#[test]
fn a_run_that_was_taken_is_held_and_then_lost() {
    let (hub, key) = left("sockets: {grace: 300ms}");
    let mut agent = dial(&hub, &key).open();
    let client = caller(&hub, Binding::JsonRpc, "weather");
    let task = start(&client, "m", "Work", None).expect("it is sent");
    let message = agent.kind("message");
    agent.send(&json!({"type": "task_response", "taskId": message["taskId"], "status": {"state": "working"}}));
    reached(&client, id(&task), "TASK_STATE_WORKING");
    agent.cut();
    let failed = reached(&client, id(&task), "TASK_STATE_FAILED");
    assert!(why(&failed).contains("did not come back"), "{failed}");
}

#[test]
fn a_lost_run_is_run_again_where_that_is_allowed() {
    let (hub, key) = left("sockets: {grace: 200ms, on_lost: retry}");
    let mut agent = dial(&hub, &key).open();
    let client = caller(&hub, Binding::JsonRpc, "weather");
    let task = start(&client, "m", "Work", None).expect("it is sent");
    let message = agent.kind("message");
    agent.send(&json!({"type": "ack", "taskId": message["taskId"]}));
    agent.send(&json!({"type": "ping"}));
    agent.kind("pong");
    agent.cut();
    let mut agent = dial(&hub, &key).open();
    assert_eq!(agent.welcome["resumed"], false);
    let again = agent.kind("message");
    assert_eq!((&again["taskId"], &again["run"]), (&task["id"], &json!(2)));
    answer(&mut agent, &message, "from the first run");
    assert_eq!(agent.kind("ack")["over"], true, "an old run changes nothing");
    answer(&mut agent, &again, "from the second");
    let done = reached(&client, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(text(&done["artifacts"][0]), "from the second");
}

#[test]
fn a_started_run_survives_a_restart_of_the_hub() {
    let (mut hub, key) = left("hub: {name: Restarted}");
    let mut agent = dial(&hub, &key).open();
    let client = caller(&hub, Binding::JsonRpc, "weather");
    let task = start(&client, "m", "Work", None).expect("it is sent");
    let message = agent.kind("message");
    let chunk = |text: &str| {
        json!({"type": "task_response", "taskId": message["taskId"], "run": 1, "lastChunk": false,
               "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": text}]}})
    };
    agent.send(&chunk("one "));
    agent.send(&json!({"type": "task_response", "taskId": message["taskId"], "run": 1, "id": "w", "status": {"state": "working"}}));
    agent.kind("ack");
    hub.restart();
    let mut agent = dial(&hub, &key).open();
    agent.send(&chunk("two"));
    agent.send(
        &json!({"type": "task_response", "taskId": message["taskId"], "run": 1, "status": {"state": "completed"}}),
    );
    let done = reached(&client, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(done["artifacts"][0]["parts"].as_array().map(Vec::len), Some(2), "chunks go on: {done}");
}

#[test]
fn a_report_that_comes_twice_counts_once() {
    let hub = hub();
    let mut agent = connected(&hub, "weather");
    let client = caller(&hub, Binding::JsonRpc, "weather");
    let task = start(&client, "m", "Work", None).expect("it is sent");
    let message = agent.kind("message");
    let chunk = json!({"type": "task_response", "taskId": message["taskId"], "run": 1, "id": "c1", "lastChunk": false,
                       "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "x"}]}});
    for _ in 0..2 {
        agent.send(&chunk);
        assert_eq!(agent.kind("ack")["id"], "c1");
    }
    agent.send(
        &json!({"type": "task_response", "taskId": message["taskId"], "id": "end", "status": {"state": "completed"}}),
    );
    assert_eq!(agent.kind("ack")["over"], Value::Null);
    let done = reached(&client, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(done["artifacts"][0]["parts"].as_array().map(Vec::len), Some(1), "{done}");
    agent.send(&json!({"type": "task_response", "taskId": "0190b5a0-0000-7000-8000-000000000000", "status": {"state": "completed"}}));
    assert_eq!(agent.kind("error")["error"], "TASK_NOT_FOUND", "somebody else's");
}

#[test]
fn whoever_makes_something_works_and_a_run_that_never_was_is_no_run_that_is_over() {
    let hub = hub();
    let mut agent = connected(&hub, "weather");
    let client = caller(&hub, Binding::JsonRpc, "weather");
    let task = start(&client, "m", "Work", None).expect("it is sent");
    let message = agent.kind("message");
    let mut chunk = json!({"type": "task_response", "taskId": message["taskId"], "run": 2, "id": "c1",
                           "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "x"}]}});
    for run in [0, 2] {
        chunk["run"] = json!(run);
        agent.send(&chunk);
        let refused = agent.kind("error");
        assert_eq!(refused["id"], "c1");
        assert!(refused["message"].as_str().is_some_and(|text| text.contains(&format!("no run {run}"))), "{refused}");
    }
    assert_eq!(client.task(id(&task)).get("artifacts"), None);
    chunk["run"] = json!(1);
    agent.send(&chunk);
    assert_eq!(agent.kind("ack").get("over"), None);
    assert_eq!(client.task(id(&task))["status"]["state"], "TASK_STATE_WORKING", "it was not said, but seen");
    let said = json!({"type": "task_response", "taskId": message["taskId"], "run": 1, "id": "s", "status": {"state": "working", "message": "Half"}});
    agent.send(&said);
    agent.kind("ack");
    chunk["id"] = json!("c2");
    agent.send(&chunk);
    agent.kind("ack");
    assert_eq!(text(&client.task(id(&task))["status"]["message"]), "Half", "what was said stays");
}

#[test]
fn a_new_connection_takes_the_place_of_the_old_or_shares_its_work() {
    let (hub, key) = left("hub: {name: Two}");
    let mut old = dial(&hub, &key).open();
    let _new = dial(&hub, &key).open();
    assert!(old.kind("warning")["message"].as_str().is_some_and(|text| text.contains("taken the place")));
    assert!(old.try_read().expect_err("closed").starts_with("4000"));

    let (hub, key) = left("sockets: {connections: share, window: 1}");
    let (mut one, mut two) = (dial(&hub, &key).open(), dial(&hub, &key).open());
    let client = caller(&hub, Binding::JsonRpc, "weather");
    tasks(&client, &["first", "second", "third"]);
    let (a, b) = (one.kind("message"), two.kind("message"));
    assert_ne!(a["taskId"], b["taskId"], "each has one, and the window holds the third back");
    answer(&mut one, &a, "done");
    assert_eq!(asked(&one.kind("message")), "third");
}

#[test]
fn a_silent_connection_is_let_go_and_one_that_answers_pings_is_not() {
    let hub = setup().config("sockets: {ping: 100ms, idle: 400ms}").start();
    let mut agent = connected(&hub, "alive");
    // Whoever reads answers pings.
    let listening = std::thread::spawn(move || agent.kind("message"));
    let mut deaf = std::net::TcpStream::connect(hub.address()).expect("the hub takes connections");
    let key = agent_key(&hub, "deaf");
    use std::io::{Read as _, Write as _};
    write!(
        deaf,
        "GET /ws HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        hub.address()
    )
    .expect("the hub takes the request");
    let mut rest = Vec::new();
    deaf.read_to_end(&mut rest).expect("the hub closes it");
    assert!(rest.windows(7).any(|bytes| bytes == b"welcome"), "it was let in first");
    start(&caller(&hub, Binding::JsonRpc, "alive"), "m", "still there?", None).expect("it is sent");
    assert_eq!(asked(&listening.join().expect("it is")), "still there?");
}

#[test]
fn a_frame_that_is_too_large_ends_the_connection() {
    let hub = setup().config("sockets: {frame: 2048}").start();
    let mut agent = connected(&hub, "chatty");
    agent.send(&json!({"type": "ping", "padding": "x".repeat(4000)}));
    assert!(agent.try_read().expect_err("closed").starts_with("1009"));
}
