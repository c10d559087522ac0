//! Conversations over several runs: nothing is remembered, everything is told.

use super::agent::{Agent, Says, card, task};
use super::program::Place;
use crate::cast::{hub, id, state, text};
use serde_json::json;

#[test]
fn a_send_waits_for_the_end_and_shows_what_came_of_it() {
    let hub = hub();
    let place = Place::at(&hub);
    let sent = place.json(&["send", "complete this"]);
    assert_eq!(state(&sent["task"]), "TASK_STATE_COMPLETED");
    assert_eq!(text(&sent["task"]["artifacts"][0]), "You said complete this");
    assert_eq!(text(&place.json(&["send", "direct"])["message"]), "Hello yourself");
    assert_eq!(text(&place.json(&["send", "hello", "--agent", "echo"])["task"]["artifacts"][0]), "hello");
}

#[test]
fn without_waiting_the_identifiers_come_at_once() {
    let hub = hub();
    let place = Place::at(&hub);
    for flag in ["--async", "--return-immediately", "--no-wait"] {
        let started = place.json(&["send", flag, "hold"]);
        assert!(!id(&started["task"]).is_empty() && started["task"]["contextId"].is_string(), "{started}");
    }
    let shown = place.run(&["send", "--async", "hold"]).ok();
    let again = format!("flotilla task get --wait {}", shown.field("Task"));
    assert_eq!(shown.field("Resume"), again);
    let place = place.env("A2ACLI_ASYNC", "true");
    assert_eq!(state(&place.json(&["send", "--wait", "complete"])["task"]), "TASK_STATE_COMPLETED");
}

#[test]
fn a_paused_task_is_continued_with_the_command_it_printed() {
    let hub = hub();
    let place = Place::at(&hub);
    let asked = place.run(&["send", "ask"]).ok();
    assert_eq!(asked.field("State"), "TASK_STATE_INPUT_REQUIRED");
    let (task, context) = (asked.field("Task"), asked.field("Context"));
    assert_eq!(asked.field("Resume"), format!("flotilla send --task-id {task} \"<reply>\""));
    assert!(asked.err.contains("TASK_STATE_INPUT_REQUIRED"), "{asked:?}");
    let ended = place.run(&["send", "--task-id", task, "large"]).ok();
    assert_eq!((ended.field("Task"), ended.field("State")), (task, "TASK_STATE_COMPLETED"));
    assert_eq!(ended.field("Context"), context, "the hub knows the context of the task");
    assert_eq!(ended.field("Resume"), format!("flotilla send --context-id {context} \"<message>\""));
    let both = place.run(&["send", "ask"]).ok();
    let args = ["send", "--task-id", both.field("Task"), "--context-id", both.field("Context"), "x"];
    assert_eq!(place.run(&args).ok().field("State"), "TASK_STATE_COMPLETED");
}

#[test]
fn a_context_groups_a_new_task_with_the_old_ones() {
    let hub = hub();
    let place = Place::at(&hub);
    let first = place.json(&["send", "complete"]);
    let context = first["task"]["contextId"].as_str().expect("a context");
    let second = place.json(&["send", "complete", "--context-id", context]);
    assert_eq!(second["task"]["contextId"], context);
    assert_ne!(second["task"]["id"], first["task"]["id"]);
    assert_eq!(place.json(&["task", "list", "--context-id", context])["totalSize"], 2);
}

#[test]
fn a_rejected_identifier_fails_and_starts_nothing() {
    let hub = hub();
    let place = Place::at(&hub);
    let ended = place.json(&["send", "complete"]);
    let (task, context) = (id(&ended["task"]), ended["task"]["contextId"].as_str().expect("a context"));
    let asked = place.json(&["send", "ask"]);
    let waiting = id(&asked["task"]);
    let unknown = "01a1e16e-5295-74a8-a802-191bf0076ab5";
    for flag in ["--task-id", "--context-id"] {
        let empty = place.run(&["send", "x", flag, ""]);
        assert!(empty.code == 2 && empty.err.contains("is empty"), "{empty:?}");
    }
    for args in [
        &["send", "x", "--task-id", task][..],
        &["send", "x", "--task-id", unknown],
        &["send", "x", "--task-id", waiting, "--context-id", context],
    ] {
        let ran = place.run(&[args, &["-o", "json"]].concat());
        assert!(ran.code == 1 && !ran.error().starts_with("A2ACLI"), "{ran:?}");
        assert!(ran.json()["error"]["hint"].as_str().is_some_and(|hint| hint.contains("--debug")), "{ran:?}");
    }
    assert_eq!(place.json(&["task", "list"])["totalSize"], 2, "no new task");
}

#[test]
fn no_identifier_is_invented_and_nothing_is_kept_between_runs() {
    let agent = Agent::start(card(json!({})), |_, _| Says::Result(json!({"task": task("COMPLETED")})));
    let place = Place::new();
    for _ in 0..2 {
        place.run(&["send", "hi", "-a", &agent.url]).ok();
    }
    for asked in agent.asked() {
        let message = &asked.json()["params"]["message"];
        assert!(message["messageId"].as_str().is_some_and(|id| !id.is_empty()));
        assert_eq!((message.get("taskId"), message.get("contextId")), (None, None));
    }
    assert_ne!(agent.asked()[0].json()["params"]["message"], agent.asked()[1].json()["params"]["message"]);
    assert_eq!(std::fs::read_dir(place.dir()).expect("a directory").count(), 0, "nothing is written");
    let ran = place.run(&["send", "hi", "-a", &agent.url, "--continue"]);
    assert_eq!(ran.code, 2, "there is no such thing as --continue");
}

#[test]
fn two_conversations_at_once_do_not_meet() {
    let hub = hub();
    let place = Place::at(&hub);
    let children: Vec<_> = (0..4).map(|n| place.start(&["send", &format!("complete {n}"), "-o", "json"])).collect();
    let mut tasks: Vec<String> = children
        .into_iter()
        .enumerate()
        .map(|(n, child)| {
            let sent = super::program::finish(child).ok().json();
            assert_eq!(text(&sent["task"]["artifacts"][0]), format!("You said complete {n}"));
            id(&sent["task"]).to_owned()
        })
        .collect();
    tasks.sort();
    tasks.dedup();
    assert_eq!(tasks.len(), 4);
}

#[test]
fn the_command_to_go_on_with_says_how_the_agent_is_called() {
    let hub = hub();
    let place = Place::at(&hub);
    let extension = "A2A-Extensions:urn:test:required";
    let args = ["send", "hi", "--agent", "strict", "--svc-param", extension, "--svc-param", "x-pass:hunter22"];
    let sent =
        place.run(&[&args[..], &["--transport", "GRPC", "--insecure", "--bearer", hub.owner_key()]].concat()).ok();
    let (context, resume) = (sent.field("Context"), sent.field("Resume"));
    let called = format!(
        "--agent strict --transport GRPC --svc-param {extension} --svc-param 'x-pass:<value>' --bearer '<token>' --insecure"
    );
    assert_eq!(resume, format!("flotilla send --context-id {context} \"<message>\" {called}"));
    let typed = resume.replacen("flotilla", env!("CARGO_BIN_EXE_flotilla"), 1).replace("<token>", hub.owner_key());
    assert_eq!(place.typed(&typed).ok().field("Context"), context);
}

#[test]
fn a_task_that_has_ended_leads_to_its_context() {
    let hub = hub();
    let place = Place::at(&hub);
    let ended = place.run(&["send", "complete"]).ok();
    let ran = place.run(&["send", "more", "--task-id", ended.field("Task"), "-o", "json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let hint = ran.json()["error"]["hint"].as_str().expect("a hint").to_owned();
    let again = format!("flotilla send --context-id {} \"<message>\"", ended.field("Context"));
    assert!(hint.contains(&again), "{hint}");
}
