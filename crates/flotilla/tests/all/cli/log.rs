//! `task log`: everything, for the owner, readable, also while it happens.

use super::program::{Place, finish};
use crate::cast::{hub, id, reached, setup};
use flotilla_testkit::{Binding, until};
use serde_json::json;

const THINKER: &str = r#"
agents:
  thinker:
    kind: script
    script:
      otherwise:
        - blocks:
            - {type: thinking, thinking: "Hm, what now?"}
            - {type: tool_use, id: t1, name: Bash, input: {command: ls}}
            - {type: tool_result, tool_use_id: t1, content: [{type: text, text: "a.txt"}]}
            - {type: usage, input_tokens: 12, output_tokens: 3}
            - {type: progress, progress: 3, total: 7, message: reading}
            - {type: progress, progress: 4}
        - completed: Done
"#;

#[test]
fn the_owner_reads_everything_in_human_form() {
    let hub = setup().config(THINKER).start();
    let place = Place::at(&hub);
    let sent = place.json(&["send", "go"]);
    let shown = place.run(&["task", "log", id(&sent["task"])]).ok();
    for words in [
        "Thinking:\n  Hm, what now?",
        "Tool call: Bash (t1)",
        "\"command\": \"ls\"",
        "Tool result: t1",
        "Output:\n  a.txt",
        "Usage: input_tokens 12, output_tokens 3",
        "Progress: 3 of 7 reading\n",
        "Progress: 4\n",
        "asked",
        "status TASK_STATE_COMPLETED",
        "Text:\n  go",
        "Text:\n  Done",
    ] {
        assert!(shown.out.contains(words), "no {words:?} in {}", shown.out);
    }
    assert!(shown.field("Event").starts_with("1 20"), "number and time: {shown:?}");
    assert_eq!((shown.field("Task"), shown.field("State")), (id(&sent["task"]), "TASK_STATE_COMPLETED"));
    assert_eq!(shown.field("Provenance"), "local");
    assert_eq!(shown.field("Context"), sent["task"]["contextId"]);
    let entries = place.lines(&["task", "log", id(&sent["task"])]);
    let whole = place.json(&["task", "log", id(&sent["task"])]);
    assert_eq!(whole["events"].as_array(), Some(&entries), "one document, or one event a line");
    assert_eq!((&whole["taskId"], &whole["contextId"]), (&sent["task"]["id"], &sent["task"]["contextId"]));
    assert_eq!((whole["state"].as_str(), &whole["pruned"]), (Some("TASK_STATE_COMPLETED"), &json!(false)));
    let numbers: Vec<u64> = entries.iter().filter_map(|entry| entry["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=entries.len() as u64).collect::<Vec<_>>());
    let rest = place.lines(&["task", "log", id(&sent["task"]), "--after", "3"]);
    assert_eq!(rest, entries[3..]);
}

#[test]
fn nobody_else_reads_it() {
    let hub = hub();
    let place = Place::at(&hub);
    let sent = place.json(&["send", "complete"]);
    let key = hub.key("alice", &[]);
    for args in [&["task", "log", id(&sent["task"])][..], &["task", "log", "--follow", id(&sent["task"])]] {
        let ran = place.run(&[args, &["--bearer", &key, "-o", "json"]].concat());
        assert_eq!((ran.code, ran.error().as_str()), (1, "TaskNotFoundError"), "{ran:?}");
        assert!(ran.json()["error"]["hint"].as_str().is_some_and(|hint| hint.contains("owner")), "{ran:?}");
    }
}

#[test]
fn a_log_is_followed_until_the_task_ends() {
    let hub = hub();
    let place = Place::at(&hub);
    let started = place.json(&["send", "--async", "hold"]);
    let task = id(&started["task"]).to_owned();
    let follower = place.start(&["task", "log", "--follow", "-o", "json", &task]);
    reached(&hub.owner(Binding::JsonRpc), &task, "TASK_STATE_WORKING");
    place.run(&["task", "cancel", &task]).ok();
    let followed = finish(follower).ok().lines();
    let read = place.lines(&["task", "log", &task]);
    assert_eq!(followed, read, "the same events in the same order");
    let ended = place.run(&["task", "log", "-f", "-o", "json", &task]).ok().lines();
    assert_eq!(ended, read, "an ended task's log ends");
}

#[test]
fn a_followed_log_that_is_left_early_says_how_to_go_on() {
    let hub = hub();
    let place = Place::at(&hub);
    let sent = place.run(&["send", "hold", "--timeout", "1s", "-o", "json"]).json();
    let again = sent["error"]["hint"].as_str().expect("a hint").to_owned();
    let task = again.rsplit(' ').next().expect("a task");
    let ran = place.run(&["task", "log", task, "--follow", "--timeout", "1s"]);
    let shown = ran.out.lines().filter(|line| line.starts_with("Event: ")).count();
    assert!(ran.code == 5 && shown > 1, "{ran:?}");
    assert!(ran.err.contains(&format!("task {task} is TASK_STATE_WORKING")), "{ran:?}");
    assert!(ran.err.contains(&format!("Hint: flotilla task log {task} --follow --after {shown}\n")), "{ran:?}");
}

#[test]
fn a_followed_log_survives_the_restart_of_its_hub() {
    let mut hub = hub();
    let place = Place::at(&hub);
    let started = place.json(&["send", "--async", "hold"]);
    let task = id(&started["task"]).to_owned();
    reached(&hub.owner(Binding::JsonRpc), &task, "TASK_STATE_WORKING");
    let follower = place.start(&["task", "log", "--follow", "-o", "json", &task]);
    super::program::streams(&hub, 1);
    hub.restart();
    let followed = finish(follower).ok().lines();
    let read = place.lines(&["task", "log", &task]);
    assert_eq!(followed, read, "no event is missing and none is there twice");
}

#[test]
fn a_long_log_comes_in_pages() {
    let hub = hub();
    let place = Place::at(&hub);
    let sent = place.json(&["send", "trickle 1100"]);
    let task = id(&sent["task"]);
    let owner = hub.owner(Binding::HttpJson);
    let page = until("a page", || Some(owner.get(&format!("/api/tasks/{task}/log")).json()));
    let next = page["nextAfter"].as_u64().expect("more than one page");
    assert!(page["events"].as_array().is_some_and(|events| events.len() as u64 == next), "{next}");
    let all = place.json(&["task", "log", task]);
    let numbers: Vec<u64> =
        all["events"].as_array().into_iter().flatten().filter_map(|entry| entry["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=page["seq"].as_u64().expect("the last")).collect::<Vec<_>>());
}

#[test]
fn what_says_how_to_call_an_agent_has_no_say() {
    let hub = hub();
    let place = Place::at(&hub);
    let sent = place.json(&["send", "complete"]);
    for args in [
        &["-a", "http://127.0.0.1:1"][..],
        &["--agent", "mock"],
        &["--transport", "GRPC"],
        &["--a2a-version", "1.0"],
        &["--svc-param", "a:b"],
    ] {
        for command in ["log", "why", "tree"] {
            let ran = place.run(&[&["task", command, id(&sent["task"]), "-o", "json"], args].concat());
            assert_eq!((ran.code, ran.error().as_str()), (2, "A2ACLI_ERR_USAGE"), "{ran:?}");
            assert!(ran.json()["error"]["hint"].as_str().is_some_and(|hint| hint.contains("--hub")), "{ran:?}");
        }
    }
    for command in ["log", "why", "tree"] {
        let help = place.run(&["task", command, "--help"]).ok();
        for flag in ["--agent", "--transport", "--a2a-version", "--svc-param"] {
            assert!(!help.out.contains(flag) && help.out.contains("--hub"), "{flag} in {}", help.out);
        }
    }
    let help = place.run(&["task", "get", "--help"]).ok();
    assert!(help.out.contains("--agent-card") && help.out.contains("--svc-param"), "{}", help.out);
}
