//! What a worker's agents do is what the hub's own would do, through every binding.

use super::{STUBBORN, agent, alive, attached, config, hub, log, made, said};
use crate::cast::{id, reached, setup, state, text};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, until};
use serde_json::json;

const TALKER: &str = r#"read line
case "$line" in
*direct*) echo '{"type":"answer","text":"Hello yourself"}' ;;
*) echo '{"type":"block","block":{"type":"tool_use","id":"1","name":"grep","input":{"n":1.0}}}'
echo '{"type":"artifact","artifactId":"a","parts":[{"data":{"n":9007199254740993}}],"lastChunk":true}'
echo '{"type":"status","state":"completed","text":"Done","metadata":{"k":1}}' ;;
esac"#;

#[test]
fn every_kind_of_agent_works_through_every_binding() {
    let hub = hub("");
    let scripts = [("upper", "text", "tr a-z A-Z"), ("talker", "json-lines", TALKER), ("stubborn", "text", STUBBORN)];
    let _worker = attached(&hub, &config("", &scripts));
    for binding in Binding::ALL {
        let to = |name: &str| hub.owner(binding).agent(name);
        let mark = format!("{binding:?}");
        let task = to("parrot").say(&format!("e{mark}"), "hello");
        assert_eq!((state(&task), made(&task).as_str()), ("TASK_STATE_COMPLETED", "hello"));
        let long = format!("--help {}", "x".repeat(300_000));
        let task = to("upper").say(&format!("c{mark}"), &long);
        assert_eq!((state(&task), made(&task)), ("TASK_STATE_COMPLETED", long.to_uppercase()));
        let direct = to("talker").call("SendMessage", &message(&format!("d{mark}"), "direct")).expect("an answer");
        assert_eq!(text(&direct["message"]), "Hello yourself");

        let asked = to("mock").say(&format!("a{mark}"), "ask");
        assert_eq!((state(&asked), said(&asked)), ("TASK_STATE_INPUT_REQUIRED", "Which size?"));
        let mut reply = message(&format!("b{mark}"), "large");
        reply["message"]["taskId"] = json!(id(&asked));
        let done = to("mock").call("SendMessage", &reply).expect("an answer")["task"].clone();
        assert_eq!((state(&done), made(&done).as_str()), ("TASK_STATE_COMPLETED", "large, turn 2"));

        let mut stream =
            to("mock").stream("SendStreamingMessage", &message(&format!("s{mark}"), "chunks 50")).expect("a stream");
        let events = format!("{:?}", stream.rest());
        assert!(
            events.contains("chunk 1;") && events.contains("chunk 50;") && events.contains("COMPLETED"),
            "{events}"
        );

        let held = to("mock").start(&format!("h{mark}"), "hold");
        reached(&to("mock"), id(&held), "TASK_STATE_WORKING");
        let canceled = to("mock").call("CancelTask", &json!({"id": id(&held)})).expect("it can be canceled");
        assert_eq!(state(&canceled), "TASK_STATE_CANCELED");

        let task = to("stubborn").start(&format!("k{mark}"), "x");
        until("its processes", || (alive(id(&task)) >= 3).then_some(()));
        let canceled = to("stubborn").call("CancelTask", &json!({"id": id(&task)})).expect("it can be canceled");
        assert_eq!((state(&canceled), alive(id(&task))), ("TASK_STATE_CANCELED", 0), "only when nothing is left");
    }
}

#[test]
fn the_owner_sees_blocks_and_the_caller_bytes_as_they_were() {
    let hub = hub("");
    let _worker = attached(&hub, &config("", &[("talker", "json-lines", TALKER)]));
    let task = agent(&hub, "talker").say("m", "go");
    assert_eq!((state(&task), said(&task)), ("TASK_STATE_COMPLETED", "Done"));
    assert_eq!(task["artifacts"][0]["parts"][0]["data"]["n"], 9_007_199_254_740_993_u64);
    let log = log(&hub, id(&task));
    assert!(log.contains("grep") && log.contains(r#"{"n":1.0}"#), "{log}");
    assert!(!task.to_string().contains("grep"), "a peer does not see tools");
    let card = hub.owner(Binding::HttpJson).get("/agents/parrot/.well-known/agent-card.json");
    assert!(card.text().contains("Repeats."), "the worker's configuration describes it: {}", card.text());
}

#[test]
fn a_worker_has_as_many_runs_as_it_says_and_the_others_wait() {
    let hub = hub("");
    let script = [("gate", "text", "until [ -e go ]; do sleep 0.02; done; echo done")];
    let worker = attached(&hub, &config("max_concurrent: 2", &script));
    let client = agent(&hub, "gate");
    let tasks: Vec<String> = (0..5).map(|n| id(&client.start(&format!("m{n}"), "x")).to_owned()).collect();
    let working = || tasks.iter().filter(|task| state(&client.task(task)) == "TASK_STATE_WORKING").count();
    until("two are at work", || (working() == 2).then_some(()));
    assert!(tasks.iter().filter(|task| alive(task) > 0).count() <= 2);
    std::fs::write(worker.state().with_file_name("go"), "").expect("a file");
    for task in &tasks {
        reached(&client, task, "TASK_STATE_COMPLETED");
    }
}

#[test]
fn a_program_that_halts_its_reaper_is_ended() {
    let hub = hub("");
    let script = "trap '' TERM; echo halted; kill -STOP $PPID; (setsid env -i sleep 600 &); sleep 600";
    let _worker = attached(&hub, &config("", &[("freezer", "text", script)]));
    let task = agent(&hub, "freezer").say("m", "go");
    assert_eq!((state(&task), alive(id(&task))), ("TASK_STATE_FAILED", 0));
    assert!(said(&task).contains("killed or halted from outside"), "{task}");
}

/// Prints the line it is sent.
const LINES: &str =
    "python3 -c 'import json,sys; print(json.loads(sys.stdin.readline())[\"message\"][\"parts\"][0][\"text\"])'";

#[test]
fn what_cannot_be_taken_fails_the_task_with_the_reason() {
    let limited = "agents:\n  echo: {kind: echo}\nlimits: {json_depth: 30}\n";
    let hub = setup().config(limited).start();
    let worker = attached(&hub, &config("", &[("lines", "json-lines", LINES)]));
    let own = setup().config(&config("", &[("lines", "json-lines", LINES)]).replace("worker: {}\n", "")).start();
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let none = r#"[{"nope":1}]"#.to_owned();
    for (number, parts) in [&none, &format!(r#"[{{"data":{}}}]"#, nested(90))].into_iter().enumerate() {
        for line in [
            format!(r#"{{"type":"status","state":"completed","parts":{parts}}}"#),
            format!(r#"{{"type":"answer","parts":{parts}}}"#),
            format!(r#"{{"type":"artifact","name":"a","parts":{parts}}}"#),
        ] {
            for (place, hub) in [&hub, &own].into_iter().enumerate() {
                let task = agent(hub, "lines").say(&format!("{number}{place}{}", &line[..20]), &line);
                assert_eq!(state(&task), "TASK_STATE_FAILED", "{line}");
                assert!(said(&task).contains("not understood") && said(&task).contains(&line[..30]), "{task}");
            }
        }
    }
    // What the worker takes for good and the hub does not: nothing of it is lost in silence, and nothing waits.
    let artifact = format!(r#"{{"type":"artifact","name":"a","parts":[{{"data":{}}}]}}"#, nested(40));
    let task = agent(&hub, "lines").say("deep", &artifact);
    assert_eq!(state(&task), "TASK_STATE_FAILED", "{task}");
    assert!(said(&task).contains("nested deeper than 30 levels"), "{task}");
    let runs = worker.state().join("runs");
    until("nothing is left of it", || {
        let left = walk(&runs);
        left.is_empty().then_some(())
    });
}

/// The files below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(walk(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}
