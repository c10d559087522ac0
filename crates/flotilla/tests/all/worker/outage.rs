//! The hub is away for a while: what runs goes on, what was said is told once, and what is too late is ended.

use super::{STUBBORN, agent, alive, attached, attached_at, config, connected, hub, log, made, made_of, said};
use crate::cast::{id, reached, state};
use flotilla_testkit::hostile;
use flotilla_testkit::{Proxy, until};
use std::time::{Duration, Instant};

#[test]
fn a_program_goes_on_while_the_hub_is_down_and_nothing_is_told_twice() {
    let mut hub = hub("");
    let script =
        "for n in 1 2 3; do echo $n; done; until [ -e go ]; do sleep 0.02; done; for n in 4 5 6; do echo $n; done";
    let worker = attached(&hub, &config("", &[("steps", "text", script)]));
    let task = agent(&hub, "steps").start("m", "x");
    until("its first words", || made_of(&agent(&hub, "steps").task(id(&task))).contains('3').then_some(()));
    hub.kill();
    std::fs::write(worker.state().with_file_name("go"), "").expect("a file");
    until("it has ended", || (alive(id(&task)) == 0).then_some(()));
    hub.restart();
    let done = reached(&agent(&hub, "steps"), id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(made(&done), "1\n2\n3\n4\n5\n6\n");
    let log = log(&hub, id(&task));
    assert!(!log.contains("run_lost") && log.matches("run_queued").count() == 1, "{log}");
    until("nothing is kept", || (files(&worker) == 0).then_some(()));
}

/// Files of runs in a worker's state folder.
fn files(worker: &flotilla_testkit::WorkerProcess) -> usize {
    let folders = std::fs::read_dir(worker.state().join("runs")).expect("the folder of runs").flatten();
    folders.map(|folder| std::fs::read_dir(folder.path()).expect("a folder").count()).sum()
}

#[test]
fn cuts_lose_nothing_and_double_nothing() {
    let hub = hub("");
    let proxy = Proxy::to(hub.address());
    let worker = attached_at(&hub, &proxy.url(), &config("", &[]));
    let tasks: Vec<String> =
        (0..8).map(|n| id(&agent(&hub, "mock").start(&format!("m{n}"), "trickle 40")).to_owned()).collect();
    for cut in 2..7 {
        connected(&worker, cut - 1);
        proxy.cut_all();
    }
    let expected: String = (1..=40).map(|n| format!("chunk {n};")).collect();
    for task in &tasks {
        let done = reached(&agent(&hub, "mock"), task, "TASK_STATE_COMPLETED");
        assert_eq!(made(&done), expected);
        assert!(!log(&hub, task).contains("run_lost"));
    }
}

#[test]
fn a_worker_that_is_away_too_long_is_fenced_and_ends_its_program() {
    let hub = hub("grace: 500ms");
    let proxy = Proxy::to(hub.address());
    let _worker = attached_at(&hub, &proxy.url(), &config("", &[("stubborn", "text", STUBBORN)]));
    let task = agent(&hub, "stubborn").start("m", "x");
    until("its processes", || (alive(id(&task)) >= 3).then_some(()));
    proxy.close();
    let lost = reached(&agent(&hub, "stubborn"), id(&task), "TASK_STATE_FAILED");
    assert!(said(&lost).contains("did not come back"), "{lost}");
    assert!(alive(id(&task)) >= 3, "it could not know");
    proxy.open();
    until("nothing is left", || (alive(id(&task)) == 0).then_some(()));
    assert_eq!(state(&agent(&hub, "stubborn").task(id(&task))), "TASK_STATE_FAILED");
}

#[test]
fn a_cancel_while_the_worker_is_away_reaches_it_when_it_is_back() {
    let hub = hub("grace: 20s");
    let proxy = Proxy::to(hub.address());
    let _worker = attached_at(&hub, &proxy.url(), &config("", &[("stubborn", "text", STUBBORN)]));
    let task = agent(&hub, "stubborn").start("m", "x");
    until("its processes", || (alive(id(&task)) >= 3).then_some(()));
    proxy.close();
    let (client, name) = (agent(&hub, "stubborn"), id(&task).to_owned());
    let canceling = std::thread::spawn(move || client.call("CancelTask", &serde_json::json!({"id": name})));
    assert!(alive(id(&task)) >= 3 && state(&agent(&hub, "stubborn").task(id(&task))) == "TASK_STATE_WORKING");
    proxy.open();
    let canceled = canceling.join().expect("no panic").expect("it can be canceled");
    assert_eq!((state(&canceled), alive(id(&task))), ("TASK_STATE_CANCELED", 0));
}

#[test]
fn what_may_be_alive_is_not_said_to_be_canceled() {
    let hub = hub("grace: 1s");
    let proxy = Proxy::to(hub.address());
    let _worker = attached_at(&hub, &proxy.url(), &config("", &[("stubborn", "text", STUBBORN)]));
    let task = agent(&hub, "stubborn").start("m", "x");
    until("its processes", || (alive(id(&task)) >= 3).then_some(()));
    proxy.close();
    let refused = agent(&hub, "stubborn").call("CancelTask", &serde_json::json!({"id": id(&task)}));
    assert!(refused.is_err(), "{refused:?}");
    let lost = reached(&agent(&hub, "stubborn"), id(&task), "TASK_STATE_FAILED");
    assert!(said(&lost).contains("whether it still runs there is not known"), "{lost}");
    assert!(alive(id(&task)) >= 3, "it could not know");
    proxy.open();
    until("nothing is left", || (alive(id(&task)) == 0).then_some(()));
    assert_eq!(state(&agent(&hub, "stubborn").task(id(&task))), "TASK_STATE_FAILED");
}

/// Long enough for a run to begin, and short enough to wait for.
const SOON: Duration = Duration::from_secs(5);

/// A worker that is stopped while it is asked to end a run, for longer than it may take; what becomes of the task when it
/// goes on.
fn canceled_while_stopped(timeout: Duration) {
    let hub = hub("grace: 500ms");
    let mut config = config("", &[("stubborn", "text", STUBBORN)]);
    config.push_str(&format!("      timeout: {}s\n", timeout.as_secs()));
    let worker = attached(&hub, &config);
    let client = agent(&hub, "stubborn");
    let task = client.start("m", "x");
    until("its processes", || (alive(id(&task)) >= 3).then_some(()));
    worker.signal("STOP");
    let began = Instant::now();
    let refused = client.call("CancelTask", &serde_json::json!({"id": id(&task)}));
    assert!(refused.is_err() && state(&client.task(id(&task))) == "TASK_STATE_WORKING", "{refused:?}");
    // A run that comes to its limits meanwhile ends for that reason at the same time.
    until("its limits are over", || (began.elapsed() > timeout.min(SOON)).then_some(()));
    worker.signal("CONT");
    let ended =
        until("it has ended", || Some(client.task(id(&task))).filter(|task| state(task) != "TASK_STATE_WORKING"));
    // Which of two reasons is told first is nobody's to say.
    let canceled = state(&ended) == "TASK_STATE_CANCELED";
    assert!(canceled || (timeout == SOON && state(&ended) == "TASK_STATE_FAILED"), "{ended}");
    assert_eq!(alive(id(&task)), 0, "nothing is said to be canceled that is alive");
    until("nothing is kept", || (files(&worker) == 0).then_some(()));
}

#[test]
fn a_task_is_canceled_when_its_worker_says_so_after_the_cancel_was_refused() {
    canceled_while_stopped(Duration::from_secs(600));
}

#[test]
fn a_run_that_comes_to_its_limits_while_it_is_asked_to_end_is_told_to_be_gone() {
    canceled_while_stopped(SOON);
}

#[test]
fn a_program_whose_worker_is_halted_is_ended_when_its_time_is_over() {
    let hub = hub("");
    let mut config = config("", &[("stubborn", "text", STUBBORN)]);
    config.push_str("      silence: 5s\n");
    let worker = attached(&hub, &config);
    let client = agent(&hub, "stubborn");
    let task = client.start("m", "x");
    until("its processes", || (alive(id(&task)) >= 3).then_some(()));
    worker.signal("STOP");
    until("nothing is left", || (alive(id(&task)) == 0).then_some(()));
    worker.signal("CONT");
    reached(&client, id(&task), "TASK_STATE_FAILED");
}

#[test]
fn a_hub_that_does_not_come_back_ends_what_runs_for_it() {
    let mut hub = hub("grace: 30s");
    let worker = attached(&hub, &config("grace: 300ms", &[("stubborn", "text", STUBBORN)]));
    let task = agent(&hub, "stubborn").start("m", "x");
    until("its processes", || (alive(id(&task)) >= 3).then_some(()));
    hub.kill();
    until("nothing is left", || (alive(id(&task)) == 0).then_some(()));
    hub.restart();
    let lost = reached(&agent(&hub, "stubborn"), id(&task), "TASK_STATE_FAILED");
    assert!(said(&lost).contains("could not reach the hub"), "{lost}");
    until("nothing is kept", || (files(&worker) == 0).then_some(()));
}

#[test]
fn a_hub_that_takes_connections_and_says_nothing_is_away_all_the_same() {
    let mut hub = hub("grace: 30s");
    let _worker = attached(&hub, &config("grace: 300ms", &[("stubborn", "text", STUBBORN)]));
    let task = agent(&hub, "stubborn").start("m", "x");
    until("its processes", || (alive(id(&task)) >= 3).then_some(()));
    hub.kill();
    let _mute = std::net::TcpListener::bind(hub.address()).expect("its port");
    let gone = Instant::now();
    until("nothing is left", || (alive(id(&task)) == 0).then_some(()));
    assert!(gone.elapsed() < Duration::from_secs(10), "not after the worker's own patience: {:?}", gone.elapsed());
}

#[test]
fn what_waits_for_the_hub_has_a_bound_and_the_run_says_so() {
    let mut hub = hub("grace: 30s");
    let script = "echo ready; until [ -e go ]; do sleep 0.02; done; yes | head -c 1000000; sleep 600";
    let worker = attached(&hub, &config("buffer_bytes: 100000", &[("chatty", "text", script)]));
    let task = agent(&hub, "chatty").start("m", "x");
    until("it runs", || made_of(&agent(&hub, "chatty").task(id(&task))).contains("ready").then_some(()));
    hub.kill();
    std::fs::write(worker.state().with_file_name("go"), "").expect("a file");
    until("it was ended", || (alive(id(&task)) == 0).then_some(()));
    hub.restart();
    let lost = reached(&agent(&hub, "chatty"), id(&task), "TASK_STATE_FAILED");
    assert!(said(&lost).contains("bound of 100000 bytes"), "{lost}");
    let made = made(&lost);
    assert!(made.starts_with("ready\ny\ny\n"), "what was kept is told, not: {}", &made[..made.len().min(100)]);
}

#[test]
fn a_hub_that_sends_pings_and_reads_no_answer_is_cut_off() {
    let real = hub("grace: 30s");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let mut worker = real.worker("pinged", &url, "flk_any", &config("", &[]));
    worker.start();
    let (taken, hung_up) = hostile::ping_a_worker(&listener, Duration::from_secs(20));
    let most = hostile::most_resident(worker.id()) / 1024 / 1024;
    println!("{taken} bytes of pings taken, {most} MiB resident at most");
    assert!(most < 200, "{most} MiB after {taken} bytes of pings");
    assert!(hung_up, "the worker ends such a connection, and tries again");
}
