//! What is printed: the payload on standard output, words on standard error, and nothing that harms a terminal.

use super::agent::{Agent, Says, card, task};
use super::program::Place;
use crate::cast::hub;
use serde_json::json;

#[test]
fn the_payload_and_the_words_never_mix() {
    let hub = hub();
    let place = Place::at(&hub);
    let ran = place.run(&["send", "fail", "-o", "json", "--debug"]).ok();
    ran.json();
    assert!(ran.err.contains("TASK_STATE_FAILED") && ran.err.contains("> POST"), "{ran:?}");
    let ran = place.run(&["send", "fail"]).ok();
    assert!(!ran.out.contains("Warning") && ran.err.contains("Warning"), "{ran:?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let hub = hub();
    let place = Place::at(&hub);
    let data = hub.data().display().to_string();
    for args in [&["config", "schema"][..], &["config", "check"], &["keys", "list", "--data-dir", &data]] {
        let mut child = place.start(args);
        drop(child.stdout.take());
        let ended = child.wait_with_output().expect("it ends");
        let words = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && words.is_empty(), "{args:?}: {words}");
    }
}

#[test]
fn a_failure_is_one_whether_it_can_be_written_or_not() {
    let hub = hub();
    let place = Place::at(&hub);
    let program = env!("CARGO_BIN_EXE_flotilla");
    let full = place.typed(&format!("{program} task get nope -o json > /dev/full"));
    assert_eq!(full.code, 1, "{full:?}");
    assert!(full.err.contains("TaskNotFound") || full.err.contains("nope"), "{full:?}");
    let mut unread = place.start(&["task", "get", "nope", "-o", "json"]);
    drop(unread.stdout.take());
    assert_eq!(unread.wait().expect("it ends").code(), Some(1));
    let lost = place.typed(&format!("{program} send hello > /dev/full"));
    assert_eq!(lost.code, 1, "{lost:?}");
    assert!(lost.err.contains("standard output cannot be written to"), "{lost:?}");
}

#[test]
fn what_cannot_be_said_beside_the_result_changes_nothing() {
    let hub = hub();
    let place = Place::at(&hub);
    let program = env!("CARGO_BIN_EXE_flotilla");
    for (command, code) in [
        ("send ask -o json", 0),
        ("send hello -o json --debug", 0),
        ("task get nope", 1),
        ("send", 2),
        ("send hello --hub http://127.0.0.1:1", 3),
    ] {
        let unheard = place.typed(&format!("{program} {command} 2>/dev/full"));
        assert_eq!((unheard.code, unheard.out.is_empty()), (code, code != 0), "{command}: {unheard:?}");
    }
}

#[test]
fn a_key_that_could_not_be_shown_is_not_used_up() {
    let place = Place::new();
    let serve = format!("{} serve --listen 127.0.0.1:0 --data-dir data", env!("CARGO_BIN_EXE_flotilla"));
    let unseen = place.typed(&format!("{serve} > /dev/full"));
    assert!(unseen.code != 0 && unseen.err.contains("cannot be shown"), "{unseen:?}");
    let keys = place.run(&["keys", "list", "--data-dir", "data"]).ok();
    let owners = keys.out.lines().find(|line| line.starts_with("owner")).unwrap_or_default();
    assert!(owners.contains("revoked"), "the next start makes another: {keys:?}");
}

#[test]
fn every_answer_about_a_task_names_task_context_and_state() {
    let hub = hub();
    let place = Place::at(&hub);
    let sent = place.run(&["send", "ask"]).ok();
    let task = sent.field("Task").to_owned();
    for args in [
        &["task", "get", &task][..],
        &["task", "list"],
        &["task", "download", &task, "--dir", "x"],
        &["task", "log", &task],
        &["send", "--async", "hold"],
        &["task", "cancel", &task],
    ] {
        let ran = place.run(args).ok();
        for label in ["Task", "Context", "State"] {
            assert!(!ran.field(label).is_empty(), "{args:?}");
        }
        if args[1] != "list" && args[1] != "download" {
            let json = place.run(&["task", "get", ran.field("Task"), "-o", "json"]).ok().json();
            assert!(json["id"].is_string() && json["contextId"].is_string() && json["status"]["state"].is_string());
        }
    }
}

#[test]
fn a_document_is_the_last_word_and_not_the_story() {
    let hub = hub();
    let place = Place::at(&hub);
    let sent = place.json(&["send", "chunks 20"]);
    let keys: Vec<&String> = sent.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["task"]);
    assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(sent["task"]["artifacts"].as_array().map(Vec::len), Some(1), "whole, not in chunks");
}

#[test]
fn protocol_objects_are_handed_on_unchanged() {
    let exotic =
        json!({"id": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_COMPLETED"}, "hologram": [1.0]});
    let agent = Agent::start(card(json!({})), move |_, _| Says::Result(exotic.clone()));
    let ran = Place::new().run(&["task", "get", "t-1", "-a", &agent.url, "-o", "json"]).ok();
    assert!(ran.out.contains("1.0") && ran.json()["hologram"].is_array(), "{ran:?}");
}

#[test]
fn text_is_fields_and_blocks_and_no_terminal_codes() {
    let mut evil = task("COMPLETED");
    evil["artifacts"] = json!([{"artifactId": "a", "name": "x\u{1b}[31m\nState: FAKE", "parts": [
        {"text": "one\n\nState: TASK_STATE_FAILED\u{1b}[2J\u{7}"},
        {"data": {"k": [1]}},
        {"raw": "AAEC", "filename": "f.bin", "mediaType": "application/x"},
        {"hologram": 1},
    ]}]);
    let agent = Agent::start(card(json!({})), move |_, _| Says::Result(evil.clone()));
    let ran = Place::new().run(&["task", "get", "t-1", "-a", &agent.url]).ok();
    assert!(!ran.out.contains(['\u{1b}', '\u{7}']), "{ran:?}");
    let mut in_block = false;
    for line in ran.out.lines() {
        match line {
            "" => in_block = false,
            line if in_block => assert!(line.starts_with("  "), "{line:?}"),
            line => {
                let (label, value) = line.split_once(':').unwrap_or_else(|| panic!("no label in {line:?}"));
                assert!(label.chars().all(|c| c.is_ascii_alphabetic() || c == ' '), "{line:?}");
                in_block = value.is_empty();
            }
        }
    }
    assert_eq!(ran.out.lines().filter(|line| line.starts_with("State: ")).count(), 1);
    assert!(ran.out.contains("Data:\n  {\n    \"k\": [\n      1\n    ]\n  }\n\n"), "{ran:?}");
    assert_eq!(ran.field("File"), "f.bin (application/x, 3 bytes)");
    assert!(ran.out.contains("hologram"), "no part is dropped: {ran:?}");
}

#[test]
fn nothing_asks_a_person_and_nothing_changes_with_the_terminal() {
    let hub = hub();
    let place = Place::at(&hub);
    let ran = place.run_with_input(&["send", "complete"], b"yes\n").ok();
    let labels = |out: &str| -> Vec<String> {
        out.lines().filter_map(|line| line.split_once(':').map(|(label, _)| label.to_owned())).collect()
    };
    let again = place.run(&["send", "complete"]).ok();
    assert_eq!(labels(&ran.out), labels(&again.out), "the same labels every time");
}

#[test]
fn more_is_shown_to_who_wants_more() {
    let hub = hub();
    let place = Place::at(&hub);
    let concise = place.run(&["send", "complete"]).ok();
    let verbose = place.run(&["send", "complete", "--verbose"]).ok();
    assert!(verbose.out.len() > concise.out.len());
    for label in ["Message id", "Role", "Media type", "Artifact id", "History"] {
        verbose.field(label);
        assert!(!concise.out.contains(&format!("{label}:")), "{label}");
    }
    let place = place.env("A2ACLI_VERBOSE", "1");
    assert!(!place.run(&["send", "complete", "--verbose=false"]).ok().out.contains("History:"));
}

#[test]
fn the_task_s_outcome_is_not_the_program_s() {
    let hub = hub();
    let place = Place::at(&hub);
    for (words, state) in [
        ("fail", "TASK_STATE_FAILED"),
        ("reject", "TASK_STATE_REJECTED"),
        ("give up", "TASK_STATE_CANCELED"),
        ("ask", "TASK_STATE_INPUT_REQUIRED"),
        ("sign in", "TASK_STATE_AUTH_REQUIRED"),
    ] {
        let ran = place.run(&["send", words]);
        assert_eq!((ran.code, ran.field("State")), (0, state));
        assert!(ran.err.contains(state), "{ran:?}");
    }
}

#[test]
fn what_turns_text_around_is_shown_and_not_done() {
    let evil = json!({"id": "t-1", "contextId": "c\u{202e}1", "status": {"state": "TASK_STATE_COMPLETED",
        "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "pay\u{2066}\u{9b}2J"}]}}});
    let agent = Agent::start(card(json!({})), move |asked, _| match asked.method().as_str() {
        "GetTask" => Says::Result(evil.clone()),
        _ => Says::Error(-32602, "no\u{202e}t"),
    });
    let place = Place::new();
    let ran = place.run(&["task", "get", "t-1", "-a", &agent.url]).ok();
    assert!(ran.field("Context") == "c\\u{202e}1" && ran.out.contains("pay\\u{2066}\\u{9b}2J"), "{ran:?}");
    let ran = place.run(&["task", "cancel", "t-1", "-a", &agent.url]);
    assert!(ran.err.contains("no\\u{202e}t"), "{ran:?}");
    for more in [&[][..], &["--stream"]] {
        let ran = place.run(&[&["task", "get", "t-1", "-a", &agent.url, "-o", "json"], more].concat()).ok();
        assert!(!ran.out.contains(['\u{202e}', '\u{2066}', '\u{9b}']), "{ran:?}");
        assert_eq!(ran.json()["contextId"], "c\u{202e}1", "a program reads what was said");
    }
}
