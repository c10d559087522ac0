//! Claude Code as an agent, by a stand-in that does what the real program will not do on demand.

mod spending;

use crate::cast::{id, reached, setup, state, text};
use flotilla_protocol::fleet::HANDSHAKE;
use flotilla_testkit::client::message;

use flotilla_testkit::{Binding, Client, HubProcess, Request, until};
use flotilla_worker::reaper::{MARK, tree};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Cargo builds examples beside the tests.
fn stand_in() -> PathBuf {
    let tests = std::env::current_exe().expect("this test has a file");
    let program = tests.ancestors().nth(2).expect("a target folder").join("examples/stand_in_claude");
    assert!(program.is_file(), "cargo builds {} with the tests", program.display());
    program
}

/// A hub with an agent `coder`, and what more stands in its section.
fn hub(more: &str) -> HubProcess {
    setup().config(&config(more)).env("SECRET", "hidden").start()
}

pub fn config(more: &str) -> String {
    // The folder of the test, which the hub or the worker is started in.
    format!(
        "agents:\n  coder:\n    kind: claude-code\n    claude_code:\n      program: {}\n      folder: .\n      home: \
         .\n      grace: 300ms\n{more}",
        stand_in().display(),
    )
}

fn coder(hub: &HubProcess) -> Client {
    hub.owner(Binding::JsonRpc).agent("coder")
}

fn alive(task: &str) -> usize {
    tree::marked(MARK, |mark| mark.starts_with(&format!("{task}."))).len()
}

fn said(task: &Value) -> &str {
    text(&task["status"]["message"])
}

fn reply(task: &Value) -> String {
    let parts = task["artifacts"][0]["parts"].as_array().cloned().unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str()).collect()
}

fn log(hub: &HubProcess, task: &Value) -> String {
    hub.owner(Binding::HttpJson).get(&format!("/api/tasks/{}/log", id(task))).text().to_owned()
}

fn in_context(message_id: &str, words: &str, context: &str) -> Value {
    let mut request = message(message_id, words);
    request["message"]["contextId"] = json!(context);
    request
}

#[test]
fn a_message_is_told_on_standard_input_and_nothing_else_goes_along() {
    let hub = hub("      model: small\n      allowed_tools: [Read, 'Bash(git *)']\n      env: {TOKEN: 'env:SECRET'}\n");
    let task = coder(&hub).say("m", "told");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    let told: Value = serde_json::from_str(&reply(&task)).expect("what it was told");
    assert_eq!(
        told["variables"],
        json!(["DISABLE_AUTOUPDATER", "FLOTILLA_RUN", "HOME", "PATH", "TOKEN"]),
        "an allow-list, and no more"
    );
    let arguments = told["arguments"].to_string();
    for expected in
        ["--model=small", "--allowedTools=Read,Bash(git *)", "--permission-prompt-tool=stdio", "--session-id="]
    {
        assert!(arguments.contains(expected), "{arguments}");
    }
    for words in [format!("--help {}", "x".repeat(300_000)), "-p --version".into()] {
        let task = coder(&hub).say(&format!("m{}", words.len()), &words);
        assert_eq!(reply(&task), format!("{} characters", words.len()));
    }
    let log = log(&hub, &task);
    for expected in ["stand-in", "\"cost_usd\":0.25", "peak_memory_bytes", "processor_seconds"] {
        assert!(log.contains(expected), "{expected}: {log}");
    }
    assert!(!task.to_string().contains("cost_usd"), "what it cost is the owner's to know");
}

#[test]
fn a_conversation_goes_on_in_its_context_over_restarts_and_losses() {
    let mut hub = hub("");
    let opening = |hub: &HubProcess, message_id: &str| {
        let client = coder(hub);
        let answer = client.call("SendMessage", &in_context(message_id, "told", "talk")).expect("a task");
        let task = answer["task"].clone();
        assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
        let told: Value = serde_json::from_str(&reply(&task)).expect("what it was told");
        let arguments = told["arguments"].as_array().expect("arguments").clone();
        let is_opening = |word: &&str| word.starts_with("--resume=") || word.starts_with("--session-id=");
        let opening = arguments.iter().filter_map(Value::as_str).find(is_opening).expect("a session").to_owned();
        (opening, PathBuf::from(told["folder"].as_str().expect("a folder")))
    };
    // uuid5(URL, "a2a:talk")
    let session = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_URL, b"a2a:talk").to_string();
    let (first, home) = opening(&hub, "m1");
    assert_eq!(first, format!("--session-id={session}"));
    assert_eq!(opening(&hub, "m2").0, format!("--resume={session}"));
    hub.kill();
    hub.restart();
    assert_eq!(opening(&hub, "m3").0, format!("--resume={session}"), "remembered over a restart");
    // The program forgot it: begun anew. The hub forgot it: gone on with.
    std::fs::remove_file(home.join(&session)).expect("the program's own record");
    assert_eq!(opening(&hub, "m4").0, format!("--session-id={session}"));
    hub.kill();
    std::fs::remove_file(hub.data().join("agents/coder/sessions.json")).expect("the hub's record");
    hub.restart();
    assert_eq!(opening(&hub, "m5").0, format!("--resume={session}"));
}

#[test]
fn a_run_that_goes_wrong_fails_with_the_reason_and_leaves_nothing() {
    for (words, more, told) in [
        ("crash", "", "exit code 3"),
        ("stall", "      silence: 400ms\n", "said nothing"),
        ("stall", "      timeout: 1s\n", "did not end within 1 s"),
        ("flood", "      output_bytes: 100000\n", "more than 100000 bytes"),
        ("memory", "      memory_bytes: 100000000\n", "ended by signal 6|used more than"),
        ("crowd", "      memory_bytes: 100000000\n", "used more than 100000000 bytes of memory"),
        ("spin", "      processor_time: 1s\n", "signal 24|processor time"),
    ] {
        let hub = hub(more);
        let task = coder(&hub).say("m", words);
        assert_eq!(state(&task), "TASK_STATE_FAILED", "{words}");
        // The kernel and the hub look at memory and time, whoever comes first.
        assert!(told.split('|').any(|told| said(&task).contains(told)), "{words}: {}", said(&task));
        assert_eq!(alive(id(&task)), 0, "{words}");
    }
}

#[test]
fn a_result_ends_the_turn_whatever_the_program_does_then() {
    let hub = hub("");
    for words in ["linger", "orphan"] {
        let task = coder(&hub).say(words, words);
        assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{words}");
        until("nothing of it is left", || (alive(id(&task)) == 0).then_some(()));
    }
}

#[test]
fn garbage_and_unknown_frames_are_kept_for_the_owner_and_change_nothing() {
    let hub = hub("");
    let task = coder(&hub).say("m", "garbage");
    assert_eq!((state(&task), reply(&task).as_str()), ("TASK_STATE_COMPLETED", "Still here."));
    let log = log(&hub, &task);
    for expected in ["this is no frame", "hologram", "an aside"] {
        assert!(log.contains(expected) && !task.to_string().contains(expected), "{expected}");
    }
}

#[test]
fn a_form_that_a_contract_asks_for_is_handed_to_the_program() {
    let hub = hub("");
    // Before it is known what it speaks, it is told in words.
    crate::fleet::is(&hub, "coder", "AVAILABLE");
    let schema = json!({"type": "object", "required": ["schema"]});
    let contract = json!({"type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": "form",
        "task": {"reply_schema": "json", "json_schema": schema}});
    let mut request = message("m", "form");
    request["message"]["metadata"] = json!({HANDSHAKE: contract});
    let task = coder(&hub).call("SendMessage", &request).expect("a task")["task"].clone();
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    let artifacts = task["artifacts"].as_array().expect("artifacts");
    let replies = artifacts.iter().filter(|artifact| artifact["name"] == "result");
    let reply: Vec<&Value> = replies.map(|artifact| &artifact["parts"][0]["data"]).collect();
    assert_eq!(reply, [&json!({"schema": schema.to_string(), "told": false})], "{task}");
}

#[test]
fn a_usage_limit_is_told_by_type_with_its_time() {
    let hub = hub("");
    let task = coder(&hub).say("m", "limit");
    assert_eq!(state(&task), "TASK_STATE_FAILED");
    let told = task["status"].to_string() + &task["metadata"].to_string();
    let log = log(&hub, &task);
    assert!(log.contains("usage_limit") && log.contains("retry_after"), "{told} {log}");
    assert!(said(&task).contains("Send the message again in "), "{told}");
}

#[test]
fn text_is_streamed_to_the_caller_as_it_is_said() {
    let hub = hub("");
    let client = coder(&hub);
    let mut stream = client.stream("SendStreamingMessage", &message("m", "pieces of a reply")).expect("a stream");
    let events = format!("{:?}", stream.rest());
    assert!(events.contains("pieces ") && events.contains("TASK_STATE_COMPLETED"), "{events}");
    let task = client.say("m2", "pieces of a reply");
    assert_eq!(reply(&task), "pieces of a reply", "and once only");
}

#[test]
fn a_permission_is_the_owners_to_give() {
    let hub = hub("");
    let client = coder(&hub);
    let owner = hub.owner(Binding::HttpJson);
    for (decision, expected) in [("allow", r#""behavior":"allow""#), ("deny", "not today")] {
        let task = client.start(decision, "permission");
        let approval = until("a question to the owner", || {
            let open: Value = serde_json::from_str(owner.get("/api/approvals?state=open").text()).ok()?;
            open["approvals"].as_array()?.first()?["id"].as_str().map(str::to_owned)
        });
        assert!(!client.task(id(&task)).to_string().contains("Bash"), "the caller sees WORKING only");
        let answer = json!({"decision": decision, "note": "not today"});
        let post = Request::post(&format!("/api/approvals/{approval}"), answer.to_string());
        owner.send(post.header("content-type", "application/json"));
        let task = until("the end", || Some(client.task(id(&task))).filter(|task| state(task).ends_with("COMPLETED")));
        assert!(reply(&task).contains(expected), "{}", reply(&task));
    }
}

#[test]
fn a_question_is_put_to_the_caller_and_the_answer_goes_on() {
    let hub = hub("");
    let client = coder(&hub);
    let task = client.say("m", "question");
    assert_eq!((state(&task), said(&task)), ("TASK_STATE_INPUT_REQUIRED", "Which size?\n- Large"));
    let mut answer = message("m2", "told Large");
    answer["message"]["taskId"] = json!(id(&task));
    let done = client.call("SendMessage", &answer).expect("a task")["task"].clone();
    assert!(state(&done).ends_with("COMPLETED") && done.to_string().contains("--resume="), "{done}");
}

#[test]
fn what_is_said_during_a_run_steers_it_or_waits() {
    for (more, runs) in [("      follow_up: steer\n", 1), ("", 2)] {
        let hub = hub(more);
        let client = coder(&hub);
        let words = if runs == 1 { "more" } else { "stall" };
        let task = client.start("m", words);
        until("it works", || client.task(id(&task)).to_string().contains("WORKING").then_some(()));
        let mut request = message("m2", "and more");
        request["message"]["taskId"] = json!(id(&task));
        request["configuration"] = json!({"returnImmediately": true});
        client.call("SendMessage", &request).expect("it is taken");
        if runs == 2 {
            assert!(!log(&hub, &task).contains("taken_up"), "it waits for the run to end");
            client.call("CancelTask", &json!({"id": id(&task)})).expect("it can be canceled");
            assert_eq!(alive(id(&task)), 0, "canceled is said when nothing is left");
            continue;
        }
        let done = until("the end", || Some(client.task(id(&task))).filter(|task| state(task).ends_with("COMPLETED")));
        assert_eq!(reply(&done), "Go on.\n\nYou said and more.");
        let log = log(&hub, &task);
        assert!(log.contains("taken_up") && !log.contains(r#""run":2"#), "{log}");
    }
}

#[test]
fn the_doctor_looks_at_the_program() {
    let hub = hub("");
    for (more, told) in
        [("", "coder: 9.9.9 (Stand-in)"), ("      max_turns: 3\n", "coder: claude_code: max_turns: the installed")]
    {
        hub.write_config(&config(more));
        let said = hub.cli(&["doctor", "--config", "hub.yaml"]).stdout;
        assert!(String::from_utf8_lossy(&said).contains(told), "{}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn what_the_installed_version_cannot_do_is_said_at_the_start() {
    for (more, told) in [
        ("      max_turns: 3\n", "agents.coder: claude_code: max_turns: the installed Claude Code (9.9.9 (Stand-in))"),
        ("      permission_mode: auto\n", "does not list 'auto'"),
        ("      root: /usr\n", "is not in /usr"),
        ("      env: {ANTHROPIC_API_KEY: sk-1}\n", "write env:NAME"),
    ] {
        let refused = setup().config(&config(more)).refused();
        let flat = refused.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(told), "{refused}");
    }
}

#[test]
fn fifty_runs_at_once_cost_the_hub_less_than_a_megabyte_each() {
    const RUNS: usize = 50;
    let hub = hub("");
    let client = coder(&hub);
    client.say("warm", "hello");
    let before = hub.peak_memory();
    let tasks: Vec<Value> = (0..RUNS).map(|number| client.start(&format!("m{number}"), "stall")).collect();
    // Each has a reaper and a program.
    let is_one = |mark: &str| tasks.iter().any(|task| mark.starts_with(id(task)));
    until("all of them at work", || (tree::marked(MARK, is_one).len() == 2 * RUNS).then_some(()));
    let each = (hub.peak_memory() - before) / RUNS as u64;
    println!("{each} bytes of the hub's memory for each run");
    assert!(each < 1 << 20, "{each} bytes each");
}

#[test]
fn what_a_killed_reaper_leaves_is_ended_at_once_and_the_run_says_so() {
    let hub = hub("");
    let task = coder(&hub).start("m", "stall");
    until("its processes", || (alive(id(&task)) == 2).then_some(()));
    let processes = tree::marked(MARK, |mark| mark.starts_with(id(&task)));
    let reaper = processes.iter().find(|process| process.is_reaper()).expect("a reaper").pid;
    let killed = std::process::Command::new("kill").args(["-9", &reaper.to_string()]).status().expect("kill");
    assert!(killed.success());
    let failed = reached(&coder(&hub), id(&task), "TASK_STATE_FAILED");
    assert_eq!(alive(id(&task)), 0, "nothing is left when it is told");
    assert!(said(&failed).contains("killed or halted from outside"), "{failed}");
}
