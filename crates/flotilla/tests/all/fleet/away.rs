//! Work that is ended while its worker is cut off: the worker is told so as soon as it is back.

use super::ceilings::{is_stopped, part_of, uses};
use super::{announce, begin, give, is, key, say, worker};
use crate::cast::{hub, hub_with, reached};
use crate::lineage::in_time;
use crate::socket::dial;
use flotilla_testkit::socket::Socket;
use flotilla_testkit::{HubProcess, until};
use serde_json::json;
use std::time::{Duration, Instant};

/// How a worker of frames comes, and comes again.
pub(super) struct Line {
    pub key: String,
    pub token: String,
}

impl Line {
    pub fn of(hub: &HubProcess, name: &str) -> (Self, Socket) {
        let key = key(hub, name);
        let mut socket = dial(hub, &key).open();
        let token = socket.welcome["resumeToken"].as_str().expect("a token").to_owned();
        say(&mut socket, &announce(name, 1));
        (Self { key, token }, socket)
    }
}

/// The connection is cut, and the hub has seen it.
fn cut(hub: &HubProcess, name: &str, socket: Socket) {
    socket.cut();
    is(hub, name, "OFFLINE");
}

#[test]
fn a_worker_that_is_away_when_a_ceiling_is_reached_is_told_to_stop_when_it_is_back() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let budget = json!({"max_total_tokens": 1000, "hard": true});
    let (parent, adas) = give(&hub, &json!({"to": "ada", "task": {"budget": budget}}));
    let parents = ada.kind("message");
    let part = |name: &str| give(&hub, &json!({"to": name, "metadata": part_of(&hub, "ada", &parent)}));

    let (bob_line, mut bob) = Line::of(&hub, "bob");
    let (bobs, bob_client) = part("bob");
    let message = bob.kind("message");
    begin(&mut bob, &message);
    reached(&bob_client, &bobs, "TASK_STATE_WORKING");
    cut(&hub, "bob", bob);

    let (eve_line, mut eve) = Line::of(&hub, "eve");
    let (eves, eve_client) = part("eve");
    eve.kind("message");
    cut(&hub, "eve", eve);

    let far_key = key(&hub, "far");
    let open = || dial(&hub, &far_key).subprotocol("a2a.v1").open();
    let mut far = open();
    say(&mut far, &announce("far", 1));
    let (fars, far_client) = part("far");
    let request = far.wait_for("a request", |frame| frame.get("method").is_some());
    let theirs = json!({"id": "theirs", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}});
    far.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"task": theirs}}));
    reached(&far_client, &fars, "TASK_STATE_WORKING");
    cut(&hub, "far", far);

    uses(&mut ada, &parents, 1000);
    is_stopped(&adas, &parent, "budget of this task");
    for (client, task) in [(&bob_client, &bobs), (&eve_client, &eves), (&far_client, &fars)] {
        is_stopped(client, task, "budget of the task this is part of");
    }
    let mut bob = dial(&hub, &bob_line.key).query("resume", &bob_line.token).open();
    assert_eq!(bob.kind("cancel")["taskId"], json!(bobs), "it had taken the run");
    let mut eve = dial(&hub, &eve_line.key).open();
    assert_eq!(eve.kind("cancel")["taskId"], json!(eves), "it was sent the run, and shows no token");
    let mut far = open();
    let asked = far.wait_for("a request", |frame| frame.get("method").is_some());
    assert_eq!((&asked["method"], &asked["params"]["id"]), (&json!("CancelTask"), &json!("theirs")));
    let (next, _) = give(&hub, &json!({"to": "bob"}));
    assert_eq!(bob.kind("message")["taskId"], json!(next), "and is given work again");
}

#[test]
fn a_worker_that_is_away_when_its_task_is_canceled_is_told_to_stop_when_it_is_back() {
    let hub = hub_with("sockets: {cancel: 50ms, grace: 1s}");
    let (line, mut bob) = Line::of(&hub, "bob");
    let (task, client) = give(&hub, &json!({"to": "bob"}));
    let message = bob.kind("message");
    begin(&mut bob, &message);
    reached(&client, &task, "TASK_STATE_WORKING");
    cut(&hub, "bob", bob);
    client.call("CancelTask", &json!({"id": task})).expect("it is canceled");
    reached(&client, &task, "TASK_STATE_CANCELED");
    let mut bob = dial(&hub, &line.key).query("resume", &line.token).open();
    let stop = bob.kind("cancel");
    assert_eq!((&stop["taskId"], &stop["run"]), (&json!(task), &message["run"]));
    is(&hub, "bob", "AVAILABLE");
}

#[test]
fn a_worker_is_told_of_a_deadline_that_passed_while_the_hub_was_dead() {
    let mut hub = hub();
    let (line, mut bob) = Line::of(&hub, "bob");
    let time = Duration::from_secs(3);
    let (deadline, over) = (in_time(time), Instant::now() + time + Duration::from_secs(1));
    let (task, client) = give(&hub, &json!({"to": "bob", "deadline": deadline}));
    let message = bob.kind("message");
    begin(&mut bob, &message);
    reached(&client, &task, "TASK_STATE_WORKING");
    hub.kill();
    until("the deadline passes", || (Instant::now() > over).then_some(()));
    hub.restart();
    let mut bob = dial(&hub, &line.key).query("resume", &line.token).open();
    let stop = bob.kind("cancel");
    assert_eq!((&stop["taskId"], &stop["run"]), (&json!(task), &message["run"]));
}
