//! What a worker's agents do is what the hub's own would do, through every binding.

use super::{STUBBORN, agent, alive, attached, config, hub, log, made, said};
use crate::cast::{id, reached, state, text};
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
