//! How a worker leaves: drained, cut short, refused, or replaced.

use super::{STUBBORN, agent, alive, attached, config, hub, made, said};
use crate::cast::{id, reached, state};
use crate::socket::agent_key;
use flotilla_testkit::{WorkerProcess, until};

fn draining(worker: &WorkerProcess) {
    worker.signal("TERM");
    until("it drains", || worker.log().contains("draining").then_some(()));
}

#[test]
fn a_drain_ends_what_it_has_and_leaves_the_rest_for_the_next() {
    let hub = hub("");
    let script = "until [ -e go ]; do sleep 0.02; done; echo done";
    let mut worker = attached(&hub, &config("", &[("gate", "text", script)]));
    let client = agent(&hub, "gate");
    let first = client.start("m", "x");
    reached(&client, id(&first), "TASK_STATE_WORKING");
    draining(&worker);
    let second = client.start("m2", "x");
    assert_eq!(state(&client.task(id(&second))), "TASK_STATE_SUBMITTED");
    assert_eq!(alive(id(&second)), 0);
    std::fs::write(worker.state().with_file_name("go"), "").expect("a file");
    assert_eq!(made(&reached(&client, id(&first), "TASK_STATE_COMPLETED")), "done\n");
    assert_eq!(worker.ended().code(), Some(0), "{}", worker.log());
    assert_eq!(state(&client.task(id(&second))), "TASK_STATE_SUBMITTED", "it waits");
    worker.start();
    reached(&client, id(&second), "TASK_STATE_COMPLETED");
}

#[test]
fn a_drain_has_an_end_and_a_second_signal_is_at_once() {
    let hub = hub("");
    let mut worker =
        hub.worker("one", &hub.url(), &agent_key(&hub, "station"), &config("", &[("s", "text", STUBBORN)]));
    worker.start_with(&["--drain-timeout", "200ms"]);
    let client = agent_when_there(&hub, "s");
    let task = client.start("m", "x");
    until("its processes", || (alive(id(&task)) >= 3).then_some(()));
    worker.signal("TERM");
    let lost = reached(&client, id(&task), "TASK_STATE_FAILED");
    assert!(said(&lost).contains("its worker was stopped"), "{lost}");
    assert_eq!((worker.ended().code(), alive(id(&task))), (Some(3), 0));

    worker.start_with(&["--drain-timeout", "1h"]);
    let task = client.start("m2", "x");
    until("its processes", || (alive(id(&task)) >= 3).then_some(()));
    draining(&worker);
    worker.signal("TERM");
    assert_eq!(worker.ended().code(), Some(3));
    until("nothing is left", || (alive(id(&task)) == 0).then_some(()));
    // The next start says what became of it, long before the hub would give up.
    worker.start();
    let lost = reached(&client, id(&task), "TASK_STATE_FAILED");
    assert!(said(&lost).contains("its worker was stopped while the agent was at work"), "{lost}");
}

fn agent_when_there(hub: &flotilla_testkit::HubProcess, name: &str) -> flotilla_testkit::Client {
    let path = format!("/agents/{name}/.well-known/agent-card.json");
    let owner = hub.owner(flotilla_testkit::Binding::HttpJson);
    until("the agent is registered", || (owner.get(&path).status == 200).then_some(()));
    agent(hub, name)
}

#[test]
fn what_cannot_work_is_told_and_not_tried_again() {
    let hub = hub("");
    let fails = |key: &str, url: &str, config: &str, told: &str| {
        let mut worker = hub.worker("bad", url, key, config);
        worker.start();
        assert_eq!(worker.ended().code(), Some(1), "{config}");
        let log = worker.log();
        assert!(log.contains(told), "{told}: {log}");
        std::fs::remove_dir_all(hub.dir().join("bad")).expect("the folder can be removed");
    };
    let parrot = "agents: {parrot: {kind: echo}}\n";
    let key = agent_key(&hub, "station");
    fails("flk_wrong", &hub.url(), parrot, "does not take the agent 'parrot'");
    fails(&hub.make_key(&["caller", "--scope", "tasks:read"]), &hub.url(), parrot, "agents:connect");
    fails(&key, &hub.url(), "agents: {echo: {kind: echo}}\n", "belongs to another agent");
    fails(&key, "hub.example.com", parrot, "no address of a hub");
    for (config, told) in [
        ("agents: {}\n", "name at least one"),
        ("agents: {a: {kind: socket}}\n", "connects by itself"),
        ("agents: {a: {kind: a2a, url: 'http://x'}}\n", "hub's configuration"),
        ("agents: {a: {kind: echo, visibility: private}}\n", "visibility: is the hub's to say"),
        ("agents: {a: {kind: echo}}\nhub: {}\n", "hub"),
        ("agents: {a: {kind: command, command: {program: x, silense: 1s}}}\n", "did you mean 'silence'?"),
        ("agents: {a: {kind: command, command: {program: x, timeout: 0s}}}\n", "must be more than nothing"),
        ("agents: {a: {kind: command, command: {program: x, probe: {every: 1s}}}}\n", "1m or more"),
        ("worker: {max_concurrent: 0}\nagents: {a: {kind: echo}}\n", "max_concurrent"),
    ] {
        fails(&key, &hub.url(), config, told);
    }
}

#[test]
fn two_workers_of_one_agent_do_not_fight() {
    let hub = hub("");
    let mut first = attached(&hub, "agents:\n  parrot: {kind: echo}\n");
    let key = agent_key(&hub, "other");
    let mut same = hub.worker("one", &hub.url(), &key, "agents:\n  parrot: {kind: echo}\n");
    same.start();
    assert_eq!(same.ended().code(), Some(1));
    assert!(same.log().contains("another worker is using"), "one state folder has one worker");
    let mut second = hub.worker(
        "two",
        &hub.url(),
        &hub.make_key(&["station2", "--agent", "parrot", "--scope", crate::socket::SCOPES]),
        "agents:\n  parrot: {kind: echo}\n",
    );
    second.start();
    assert_eq!(first.ended().code(), Some(1));
    assert!(first.log().contains("is there a second worker?"), "{}", first.log());
    let task = agent(&hub, "parrot").say("m", "hello");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED");
}
