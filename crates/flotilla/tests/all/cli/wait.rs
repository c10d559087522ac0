//! Waiting: by asking, over a stream, for a limited time, and never for what does not come.

use super::agent::{Agent, Says, card, streaming, task};
use super::program::{Place, Ran, finish};
use crate::cast::{hub, id, state};
use flotilla_testkit::stand_in::{Act, StandIn};
use flotilla_testkit::{HubProcess, until};
use serde_json::json;

#[test]
fn a_task_is_asked_for_until_it_ends() {
    let agent = Agent::start(card(json!({})), |_, before| {
        Says::Result(if before < 3 { task("WORKING") } else { task("COMPLETED") })
    });
    let place = Place::new();
    let once = place.json(&["task", "get", "t-1", "-a", &agent.url]);
    assert_eq!((state(&once), agent.asked().len()), ("TASK_STATE_WORKING", 1));
    let ended = place.json(&["task", "get", "t-1", "--wait", "-a", &agent.url, "--poll-interval", "20ms"]);
    assert_eq!((state(&ended), agent.asked().len()), ("TASK_STATE_COMPLETED", 4));
}

#[test]
fn waiting_stops_where_the_caller_has_to_act() {
    let hub = hub();
    let place = Place::at(&hub);
    for (words, paused) in [("ask", "TASK_STATE_INPUT_REQUIRED"), ("sign in", "TASK_STATE_AUTH_REQUIRED")] {
        let sent = place.run(&["send", words]).ok();
        assert_eq!(sent.field("State"), paused);
        let got = place.run(&["task", "get", "--wait", sent.field("Task")]).ok();
        assert_eq!(got.field("State"), paused);
        assert!(sent.err.contains(paused) && got.err.contains(paused), "{sent:?} {got:?}");
    }
}

#[test]
fn an_unspecified_state_is_neither_an_end_nor_a_pause() {
    let agent = Agent::start(card(json!({})), |_, before| {
        Says::Result(if before < 3 { task("UNSPECIFIED") } else { task("COMPLETED") })
    });
    let place = Place::new();
    let shown = place.run(&["task", "get", "t-1", "-a", &agent.url]).ok();
    assert_eq!(shown.field("State"), "TASK_STATE_UNSPECIFIED");
    let ended = place.json(&["task", "get", "t-1", "--wait", "-a", &agent.url, "--poll-interval", "20ms"]);
    assert_eq!((state(&ended), agent.asked().len()), ("TASK_STATE_COMPLETED", 4));
    // ProtoJSON leaves it out, and a2a-sdk does.
    let silent = Agent::start(card(json!({})), |_, before| {
        let status = json!({"timestamp": "2026-11-17T00:00:00Z"});
        let unsaid = json!({"id": "t-1", "contextId": "c-1", "status": status});
        Says::Result(if before < 2 { unsaid } else { task("COMPLETED") })
    });
    let ended = place.json(&["task", "get", "t-1", "--wait", "-a", &silent.url, "--poll-interval", "20ms"]);
    assert_eq!((state(&ended), silent.asked().len()), ("TASK_STATE_COMPLETED", 3));
    let stuck = Agent::start(card(json!({})), |_, _| Says::Result(task("UNSPECIFIED")));
    let args = ["task", "get", "t-1", "--wait", "-a", &stuck.url, "--poll-interval", "20ms", "--timeout", "300ms"];
    assert_eq!(place.run(&args).code, 5);
}

#[test]
fn a_wait_that_fails_names_the_task_and_the_way_back() {
    for refused in [Says::Error(-32009, "not this version"), Says::Status(401, json!({}))] {
        let refused = std::sync::Mutex::new(Some(refused));
        let agent = Agent::start(card(json!({})), move |_, before| match before {
            0 => Says::Result(json!({"task": task("WORKING")})),
            _ => refused.lock().unwrap().take().unwrap_or(Says::Status(401, json!({}))),
        });
        let ran = Place::new().run(&["send", "x", "-a", &agent.url, "--poll-interval", "20ms", "-o", "json"]);
        let told = ran.json()["error"].clone();
        let message = told["message"].as_str().unwrap_or_default();
        assert!(message.ends_with("task t-1 (context c-1) is TASK_STATE_WORKING"), "{ran:?}");
        assert!(told["hint"].as_str().is_some_and(|hint| hint.contains("flotilla task get --wait t-1")), "{ran:?}");
    }
}

#[test]
fn a_stream_that_tells_of_another_task_is_not_followed() {
    let agent = Agent::start(card(streaming()), |asked, _| match asked.body.contains("SubscribeToTask") {
        true => Says::Events(vec![json!({"task": task("COMPLETED")})]),
        false => Says::Error(-32001, "no such task"),
    });
    let ran = Place::new().run(&["task", "subscribe", "t-2", "-a", &agent.url, "--poll-interval", "20ms"]);
    assert!(ran.code != 0 && ran.err.contains("tells of the task t-1, and not of t-2"), "{ran:?}");
}

#[test]
fn a_limit_ends_the_wait_with_its_own_code_and_the_way_back() {
    let hub = hub();
    let place = Place::at(&hub);
    let ran = place.run(&["send", "hold", "--timeout", "1s", "-o", "json"]);
    assert_eq!((ran.code, ran.error().as_str()), (5, "A2ACLI_ERR_TIMEOUT"));
    let listed = place.json(&["task", "list"]);
    let task = id(&listed["tasks"][0]);
    assert_eq!(ran.json()["error"]["hint"], format!("flotilla task get --wait {task}"));
    assert_eq!(state(&place.json(&["task", "get", task])), "TASK_STATE_WORKING", "the task is not touched");
}

#[test]
fn a_wait_for_an_agent_that_does_not_answer_names_the_task_that_was_given() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let place = Place::new();
    for (args, again) in [
        (&["task", "get", "t-1"][..], "task get --wait t-1"),
        (&["task", "get", "--wait", "t-1"], "task get --wait t-1"),
        (&["task", "subscribe", "t-1"], "task get --wait t-1"),
        (&["task", "cancel", "t-1"], "task cancel t-1"),
        (&["task", "download", "t-1", "-d", "a b"], "task download t-1 --dir 'a b'"),
        (&["task", "push-config", "list", "t-1"], "task push-config list t-1"),
        (&["task", "push-config", "delete", "t-1", "c"], "task push-config list t-1"),
    ] {
        let ran = place.run(&[args, &["-a", &url, "--timeout", "200ms", "-o", "json"]].concat());
        assert_eq!((ran.code, ran.error().as_str()), (5, "A2ACLI_ERR_TIMEOUT"), "{ran:?}");
        let error = &ran.json()["error"];
        assert!(error["message"].as_str().is_some_and(|text| text.contains("task t-1")), "{error}");
        assert_eq!(error["hint"], format!("flotilla {again} --agent-card {url}"));
    }
    let ran = place.run(&["task", "log", "t-1", "--follow", "--after", "3", "--hub", &url, "--timeout", "200ms"]);
    assert!(ran.err.contains(&format!("Hint: flotilla task log t-1 --follow --after 3 --hub {url}")), "{ran:?}");
}

#[test]
fn a_task_that_does_not_change_is_asked_for_ever_less_often() {
    let agent = Agent::start(card(json!({})), |_, _| Says::Result(task("WORKING")));
    let args = ["task", "get", "t-1", "--wait", "-a", &agent.url, "--poll-interval", "50ms", "--timeout", "2s"];
    assert_eq!(Place::new().run(&args).code, 5);
    // 50 ms all the time would be 40 questions, no pause at all thousands.
    let asked = agent.asked().len();
    assert!((4..=16).contains(&asked), "{asked} questions");
}

#[test]
fn a_wait_that_is_interrupted_names_the_task() {
    let hub = hub();
    let (ran, task) = interrupted(&hub, &[]);
    assert!(ran.code == 130 && ran.err.contains(&task) && ran.out.is_empty(), "{ran:?}");
    let (ran, task) = interrupted(&hub, &["-o", "json"]);
    assert_eq!((ran.code, ran.error().as_str()), (130, "FLOTILLA_ERR_INTERRUPTED"), "{ran:?}");
    let error = &ran.json()["error"];
    assert!(error["message"].as_str().is_some_and(|text| text.contains(&task)), "{error}");
    let again = format!("flotilla task get --wait {task}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains(&again)), "{error}");
}

/// Sends, interrupts the wait, and ends the task.
fn interrupted(hub: &HubProcess, more: &[&str]) -> (Ran, String) {
    let place = Place::at(hub);
    let child = place.start(&[&["send", "hold"], more].concat());
    let listed = until("the task is there", || {
        let listed = place.json(&["task", "list", "--status", "working"]);
        (listed["totalSize"] == 1).then_some(listed)
    });
    let task = id(&listed["tasks"][0]).to_owned();
    super::program::streams(hub, 1);
    let sent = std::process::Command::new("sh").arg("-c").arg(format!("kill -INT {}", child.id())).status();
    assert!(sent.expect("sh can be started").success());
    let ran = finish(child);
    place.run(&["task", "cancel", &task]).ok();
    (ran, task)
}

#[test]
fn when_a_stream_fails_the_task_is_asked_for_instead() {
    let agent = Agent::start(streaming(), |asked, before| match asked.method().as_str() {
        "SendStreamingMessage" => Says::Events(vec![json!({"task": task("WORKING")})]),
        "SubscribeToTask" => Says::Error(-32004, "no second stream"),
        _ => Says::Result(if before < 4 { task("WORKING") } else { task("COMPLETED") }),
    });
    let args = ["send", "hi", "-a", &agent.url, "-o", "json", "--poll-interval", "20ms"];
    let ran = Place::new().run(&args).ok();
    assert_eq!(state(&ran.json()["task"]), "TASK_STATE_COMPLETED");
    assert!(ran.err.contains("Stream:"), "{ran:?}");
    let last = agent.asked().last().expect("requests").method();
    assert_eq!(last, "GetTask");
}

#[test]
fn a_long_wait_shows_a_sign_of_life() {
    let hub = hub();
    let place = Place::at(&hub);
    let sent = place.run(&["send", "work 4s", "--poll-interval", "100ms"]).ok();
    assert_eq!(sent.field("State"), "TASK_STATE_COMPLETED");
    assert!(sent.err.contains("Waiting: 3 s"), "a sign of life: {sent:?}");
}

#[test]
fn a_stream_that_is_quiet_for_long_shows_a_sign_of_life() {
    let hub = hub();
    let place = Place::at(&hub);
    let sent = place.run(&["send", "work 17s", "--stream", "-o", "json"]).ok();
    let signs: Vec<&str> = sent.err.lines().filter(|line| line.starts_with("Waiting: ")).collect();
    assert!(matches!(signs[..], [sign] if sign.ends_with("TASK_STATE_WORKING")), "{signs:?}");
}

#[test]
fn an_agent_that_forgets_what_it_streamed_is_still_understood() {
    let chunk = |text: &str, append: bool| {
        let artifact = json!({"artifactId": "a", "parts": [{"text": text}]});
        json!({"artifactUpdate": {"taskId": "t-1", "contextId": "c-1", "artifact": artifact, "append": append}})
    };
    let status = json!({"state": "TASK_STATE_COMPLETED"});
    let end = json!({"statusUpdate": {"taskId": "t-1", "contextId": "c-1", "status": status}});
    let events = vec![json!({"task": task("WORKING")}), chunk("one", false), chunk("two", true), end];
    let agent = Agent::start(streaming(), move |asked, _| match asked.method().as_str() {
        "SendStreamingMessage" => Says::Events(events.clone()),
        _ => Says::Error(-32001, "what task?"),
    });
    let sent = Place::new().json(&["send", "hi", "-a", &agent.url]);
    assert_eq!(state(&sent["task"]), "TASK_STATE_COMPLETED");
    assert_eq!(sent["task"]["artifacts"][0]["parts"], json!([{"text": "one"}, {"text": "two"}]));
}

/// Neither streams nor ends.
const SLOW: &str = "
hub: {default_agent: echo}
agents:
  echo: {kind: echo}
  slow: {kind: script, streaming: false, script: {otherwise: [working, {delay: 1h}]}}
";

#[test]
fn the_task_of_an_agent_that_does_not_stream_is_found_when_the_wait_ends() {
    let hub = crate::cast::setup().config(SLOW).start();
    let place = Place::at(&hub);
    let only = || {
        let listed = place.json(&["task", "list", "--agent", "slow", "--status", "working"]);
        (listed["totalSize"] == 1).then(|| listed["tasks"][0].clone())
    };
    for how in ["late", "interrupted"] {
        let ran = if how == "late" {
            place.run(&["send", "x", "--agent", "slow", "--timeout", "1s", "-o", "json"])
        } else {
            let child = place.start(&["send", "x", "--agent", "slow", "-o", "json"]);
            until("the task is there", only);
            let sent = std::process::Command::new("sh").arg("-c").arg(format!("kill -INT {}", child.id())).status();
            assert!(sent.expect("sh can be started").success());
            finish(child)
        };
        let task = only().expect("the task goes on");
        let (error, id) = (ran.json()["error"].clone(), id(&task));
        let standing =
            format!("task {id} (context {}) is TASK_STATE_WORKING", task["contextId"].as_str().expect("one"));
        assert!(error["message"].as_str().is_some_and(|text| text.contains(&standing)), "{how}: {error}");
        assert_eq!(error["hint"], format!("flotilla task get --wait {id} --agent slow"), "{how}");
        place.run(&["task", "cancel", id, "--agent", "slow"]).ok();
    }
}

#[test]
fn an_agent_that_hangs_up_may_have_taken_what_was_sent() {
    for streams in [false, true] {
        let gone = StandIn::start(streams, |_| vec![Act::HangUp]);
        let ran = Place::new().run(&["send", "x", "-a", &gone.url(), "-o", "json"]);
        assert_eq!((ran.code, ran.error().as_str()), (3, "A2ACLI_ERR_UNREACHABLE"), "{ran:?}");
        let hint = ran.json()["error"]["hint"].as_str().expect("a hint").to_owned();
        let list = format!("may have been taken: flotilla task list --agent-card {}", gone.url());
        assert!(hint.contains(&list), "{hint}");
    }
}

#[test]
fn where_the_task_cannot_be_found_the_way_to_all_tasks_is_told() {
    let silent = StandIn::start(false, |asked| match asked.method.as_str() {
        "SendMessage" => vec![Act::Hold],
        _ => vec![Act::Refuse(-32601, "no lists here")],
    });
    let ran = Place::new().run(&["send", "x", "-a", &silent.url(), "--timeout", "500ms", "-o", "json"]);
    assert_eq!((ran.code, ran.error().as_str()), (5, "A2ACLI_ERR_TIMEOUT"), "{ran:?}");
    let hint = ran.json()["error"]["hint"].as_str().expect("a hint").to_owned();
    assert!(hint.contains(&format!("flotilla task list --agent-card {}", silent.url())), "{hint}");
    let known = ["send", "x", "-a", &silent.url(), "--task-id", "t-7", "--timeout", "500ms", "-o", "json"];
    let error = Place::new().run(&known).json()["error"].clone();
    assert!(error["message"].as_str().is_some_and(|text| text.contains("task t-7")), "{error}");
}
