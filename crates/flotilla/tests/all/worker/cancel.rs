//! A cancel that takes longer than somebody lives: it is not forgotten, and what it was for is not begun again.

use super::{STUBBORN, agent, alive, attached, config, log, made_of};
use crate::cast::{id, reached, setup, state};
use flotilla_testkit::{HubProcess, WorkerProcess, until};
use serde_json::json;

/// A hub whose agent may be run again when a run is lost.
fn forgiving(grace: &str) -> HubProcess {
    setup().config(&hub_config(grace)).start()
}

fn hub_config(grace: &str) -> String {
    format!("agents:\n  stubborn: {{kind: socket, owner: station, on_lost: retry}}\nsockets: {{grace: {grace}}}\n")
}

/// A worker at work, halted and asked to cancel in vain.
fn asked_in_vain(hub: &HubProcess, talk: &str, script: &str) -> (WorkerProcess, String) {
    let worker = attached(hub, &config("", &[("stubborn", talk, script)]));
    let client = agent(hub, "stubborn");
    let task = id(&client.start("m", "x")).to_owned();
    until("its first words", || made_of(&client.task(&task)).contains("ready").then_some(()));
    worker.signal("STOP");
    let refused = client.call("CancelTask", &json!({"id": task})).expect_err("it cannot know");
    assert!(format!("{refused:?}").contains("as soon as it does"), "{refused:?}");
    (worker, task)
}

#[test]
fn a_cancel_that_was_promised_outlives_the_hub() {
    for is_killed in [true, false] {
        let mut hub = forgiving("1s");
        let (worker, task) = asked_in_vain(&hub, "text", STUBBORN);
        if is_killed {
            hub.kill();
        } else {
            hub.terminate();
        }
        hub.write_config(&hub_config("1m"));
        hub.restart();
        worker.signal("CONT");
        reached(&agent(&hub, "stubborn"), &task, "TASK_STATE_CANCELED");
        assert_eq!(alive(&task), 0);
        let log = log(&hub, &task);
        assert_eq!((log.matches("stop_asked").count(), log.matches("run_queued").count()), (1, 1), "{log}");
    }
}

#[test]
fn what_a_program_said_before_it_was_asked_to_end_is_told() {
    let hub = forgiving("1s");
    let script = "echo ready; until [ -e go ]; do sleep 0.02; done; echo last words";
    let (worker, task) = asked_in_vain(&hub, "text", script);
    std::fs::write(worker.state().with_file_name("go"), "").expect("a file");
    until("the program has ended", || (alive(&task) == 0).then_some(()));
    worker.signal("CONT");
    let client = agent(&hub, "stubborn");
    let ended = until("it has ended", || Some(client.task(&task)).filter(|task| state(task) != "TASK_STATE_WORKING"));
    assert!(made_of(&ended).contains("last words"), "{ended}");
}

#[test]
fn a_program_that_asks_back_before_it_hears_that_it_is_to_end_is_canceled_too() {
    let hub = forgiving("1s");
    let script = r#"echo '{"type":"artifact","name":"output","text":"ready"}'
        until [ -e go ]; do sleep 0.02; done; echo '{"type":"status","state":"input-required"}'"#;
    let (worker, task) = asked_in_vain(&hub, "json-lines", script);
    std::fs::write(worker.state().with_file_name("go"), "").expect("a file");
    until("the program has ended", || (alive(&task) == 0).then_some(()));
    worker.signal("CONT");
    reached(&agent(&hub, "stubborn"), &task, "TASK_STATE_CANCELED");
}

#[test]
fn a_cancel_of_the_hubs_own_program_outlives_the_hub() {
    let script = json!(STUBBORN);
    let mut hub = setup()
        .config(&format!(
            "agents:\n  stubborn:\n    kind: command\n    on_lost: retry\n    command: {{program: sh, arguments: [-c, \
             {script}], talk: text, folder: ., grace: 10m}}\n"
        ))
        .start();
    let client = agent(&hub, "stubborn");
    let task = id(&client.start("m", "x")).to_owned();
    until("its first words", || made_of(&client.task(&task)).contains("ready").then_some(()));
    let (canceling, name) = (agent(&hub, "stubborn"), task.clone());
    let canceling = std::thread::spawn(move || canceling.call("CancelTask", &json!({"id": name})));
    until("it is in the log", || log(&hub, &task).contains("stop_asked").then_some(()));
    hub.kill();
    assert!(canceling.join().is_err(), "the connection ends without an answer");
    hub.restart();
    assert_eq!(state(&agent(&hub, "stubborn").task(&task)), "TASK_STATE_CANCELED");
    assert_eq!(log(&hub, &task).matches("run_queued").count(), 1);
    until("nothing is left", || (alive(&task) == 0).then_some(()));
}
