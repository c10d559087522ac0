//! The window of a connection: agents that know no acknowledgement are not deaf behind it, and callers are told who waits.

use super::{agent_key, answer, asked, caller, dial};
use crate::cast::{id, reached, setup, state, text};
use flotilla_testkit::Binding;
use flotilla_testkit::client::message;
use flotilla_testkit::socket::Socket;
use serde_json::{Value, json};

fn numbers(agent: &mut Socket, count: usize) -> Vec<Value> {
    (0..count).map(|_| agent.kind("message")).collect()
}

fn said(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(asked).collect()
}

#[test]
fn an_agent_that_acknowledges_nothing_gets_every_message() {
    let hub = setup().config("sockets: {window: 2}").start();
    let key = agent_key(&hub, "listener");
    let mut agent = dial(&hub, &key).open();
    let client = caller(&hub, Binding::JsonRpc, "listener");
    let begun: Vec<Value> = (0..7).map(|number| client.start(&format!("m-{number}"), &number.to_string())).collect();
    let all = ["0", "1", "2", "3", "4", "5", "6"];
    assert_eq!(said(&numbers(&mut agent, 7)), all, "it takes, and never answers");
    agent.cut();
    let mut agent = dial(&hub, &key).open();
    let again = numbers(&mut agent, 7);
    assert_eq!(said(&again), all, "what it may not have seen is sent again");
    assert!(again.iter().all(|message| message["attempt"] == 2), "and said to be: {again:?}");
    client.start("m-7", "7");
    assert_eq!(asked(&agent.kind("message")), "7", "and what is new comes after it");
    answer(&mut agent, &again[3], "Done");
    reached(&client, id(&begun[3]), "TASK_STATE_COMPLETED");
}

#[test]
fn messages_come_in_the_order_they_were_sent_in() {
    let hub = setup().start();
    let mut agent = dial(&hub, &agent_key(&hub, "listener")).open();
    let client = caller(&hub, Binding::JsonRpc, "listener");
    let all: Vec<String> = (0..150).map(|number| number.to_string()).collect();
    all.iter().for_each(|number| drop(client.start(&format!("m-{number}"), number)));
    assert_eq!(said(&numbers(&mut agent, all.len())), all);
}

#[test]
fn whoever_waits_behind_others_is_told_so() {
    let hub = setup().config("sockets: {window: 1}").start();
    let mut agent = dial(&hub, &agent_key(&hub, "slow")).subprotocol("a2a.v1").open();
    let client = caller(&hub, Binding::JsonRpc, "slow");
    client.start("m-1", "first");
    let request = agent.wait_for("a request", |frame| frame["method"] == "SendStreamingMessage");
    let mut stream = client.stream("SendStreamingMessage", &message("m-2", "second")).expect("a stream");
    let first = stream.expect().frame();
    assert_eq!(state(&first["task"]), "TASK_STATE_SUBMITTED");
    let second = id(&first["task"]).to_owned();
    let told = flotilla_testkit::until("it is told why", || {
        let task = client.task(&second);
        task["status"]["message"].is_object().then(|| text(&task["status"]["message"]).to_owned())
    });
    assert!(told.contains("has not taken the messages before this one"), "{told}");
    let done = json!({"task": {"id": "theirs", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}});
    agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": done}));
    let next = agent.wait_for("a request", |frame| frame["method"] == "SendStreamingMessage");
    assert_eq!(next["params"]["message"]["parts"][0]["text"], "second");
}
