//! A bad network between an agent and the hub: cuts that only one side sees, delays, and frames that overtake others.

use super::{agent_key, answer, asked, caller, connected};
use crate::cast::{hub, id, reached, setup, text};
use flotilla_testkit::socket::{Dial, Socket};
use flotilla_testkit::{Binding, HubProcess, Proxy};
use serde_json::json;

fn through(proxy: &Proxy, key: &str) -> Dial {
    Dial::new(proxy.address()).key(key)
}

fn token(agent: &Socket) -> String {
    agent.welcome["resumeToken"].as_str().expect("a token").to_owned()
}

#[test]
fn a_cut_that_only_the_agent_sees_costs_nothing() {
    let hub = hub();
    let (key, proxy) = (agent_key(&hub, "weather"), Proxy::to(hub.address()));
    let agent = through(&proxy, &key).open();
    let client = caller(&hub, Binding::JsonRpc, "weather");
    proxy.hold(0);
    let task = client.start("m", "Will it rain?");
    // The hub has written the message, and believes that the connection is there.
    proxy.cut_near(0);
    let mut back = through(&proxy, &key).query("resume", &token(&agent)).open();
    let message = back.kind("message");
    assert_eq!((asked(&message), &message["attempt"]), ("Will it rain?", &json!(2)), "it is sent again, and says so");
    answer(&mut back, &message, "No");
    assert_eq!(text(&reached(&client, id(&task), "TASK_STATE_COMPLETED")["artifacts"][0]), "No");
}

#[test]
fn an_answer_that_a_cut_swallowed_is_told_again_and_counts_once() {
    let hub = hub();
    let (key, proxy) = (agent_key(&hub, "weather"), Proxy::to(hub.address()));
    let mut agent = through(&proxy, &key).open();
    let client = caller(&hub, Binding::JsonRpc, "weather");
    let task = client.start("m", "Count");
    let message = agent.kind("message");
    let piece = |number: u32| {
        json!({"type": "task_response", "id": format!("p{number}"), "taskId": message["taskId"], "run": 1,
               "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": format!("{number};")}]}, "lastChunk": false})
    };
    agent.send(&piece(1));
    agent.wait_for("an ack", |frame| frame["type"] == "ack" && frame["id"] == "p1");
    proxy.hold(0);
    agent.send(&piece(2));
    proxy.cut(0);
    let mut back = through(&proxy, &key).query("resume", &token(&agent)).open();
    for number in 1..=3 {
        back.send(&piece(number));
        back.wait_for("an ack", |frame| frame["type"] == "ack" && frame["id"] == format!("p{number}"));
    }
    back.send(
        &json!({"type": "task_response", "taskId": message["taskId"], "run": 1, "status": {"state": "completed"}}),
    );
    let done = reached(&client, id(&task), "TASK_STATE_COMPLETED");
    let parts = done["artifacts"][0]["parts"].as_array().expect("parts");
    let all: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    assert_eq!(all, "1;2;3;");
}

#[test]
fn what_an_old_connection_says_late_does_not_overtake_the_new_one() {
    let hub = setup().config("sockets: {connections: share}").start();
    let (key, proxy) = (agent_key(&hub, "weather"), Proxy::to(hub.address()));
    let mut old = through(&proxy, &key).open();
    let client = caller(&hub, Binding::JsonRpc, "weather");
    let task = client.start("m", "Once");
    let message = old.kind("message");
    proxy.hold(0);
    answer(&mut old, &message, "late");
    let mut new = through(&proxy, &key).query("resume", &token(&old)).open();
    let again = new.kind("message");
    assert_eq!((&again["taskId"], &again["attempt"]), (&message["taskId"], &json!(2)));
    answer(&mut new, &again, "in time");
    reached(&client, id(&task), "TASK_STATE_COMPLETED");
    proxy.let_go(0);
    new.send(&json!({"type": "ping"}));
    new.kind("pong");
    let done = client.task(id(&task));
    assert_eq!(text(&done["artifacts"][0]), "in time", "{done}");
    assert_eq!(done["artifacts"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_slow_agent_holds_up_nobody_else() {
    let hub: HubProcess = hub();
    let proxy = Proxy::to(hub.address());
    let slow = through(&proxy, &agent_key(&hub, "slow")).open();
    proxy.hold(0);
    caller(&hub, Binding::JsonRpc, "slow").start("m", "Hello?");
    let mut quick = connected(&hub, "quick");
    let client = caller(&hub, Binding::JsonRpc, "quick");
    let task = client.start("m", "Hello?");
    let message = quick.kind("message");
    answer(&mut quick, &message, "Here");
    reached(&client, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(proxy.count(), 1);
    drop(slow);
}
