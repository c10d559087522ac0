//! `task get`, `list`, `cancel`, `download` and `push-config` at the hub.

use super::agent::{Agent, Says, card, task};
use super::program::Place;
use crate::cast::{hub, id, state};
use serde_json::json;

#[test]
fn a_task_is_read_with_its_artifacts_and_as_much_history_as_is_wanted() {
    let hub = hub();
    let place = Place::at(&hub);
    let sent = place.json(&["send", "complete"]);
    let task = id(&sent["task"]);
    let got = place.json(&["task", "get", task]);
    assert_eq!((id(&got), state(&got)), (task, "TASK_STATE_COMPLETED"));
    assert_eq!(got["artifacts"], sent["task"]["artifacts"]);
    assert!(place.json(&["task", "get", task, "--history", "0"]).get("history").is_none());
    let shown = place.run(&["task", "get", task, "--history", "1"]).ok();
    assert!(shown.out.contains("  You said complete") && shown.field("History").starts_with("ROLE_"), "{shown:?}");
    let plain = place.run(&["task", "get", task]).ok();
    assert!(plain.out.contains("  You said complete") && !plain.out.contains("History:"), "{plain:?}");
}

#[test]
fn tasks_are_listed_page_by_page_and_by_what_they_are() {
    let hub = hub();
    let place = Place::at(&hub);
    for words in ["complete", "complete", "ask"] {
        place.run(&["send", words]).ok();
    }
    let page = place.json(&["task", "list", "--page-size", "2"]);
    assert_eq!((page["tasks"].as_array().map(Vec::len), page["totalSize"].as_u64()), (Some(2), Some(3)));
    let token = page["nextPageToken"].as_str().expect("a token");
    let rest = place.json(&["task", "list", "--page-size", "2", "--page-token", token]);
    assert_eq!(rest["tasks"].as_array().map(Vec::len), Some(1));
    let shown = place.run(&["task", "list", "--page-size", "2"]).ok();
    assert!(shown.field("Next page").contains("--page-token"), "{shown:?}");
    for status in ["TASK_STATE_INPUT_REQUIRED", "input-required"] {
        assert_eq!(place.json(&["task", "list", "--status", status])["totalSize"], 1);
    }
    let all = place.json(&["task", "list", "--all", "--page-size", "1"]);
    assert_eq!((all["tasks"].as_array().map(Vec::len), &all["nextPageToken"]), (Some(3), &json!("")), "one document");
    assert_eq!(place.lines(&["task", "list", "--all", "--page-size", "1"]).len(), 3, "one task a line");
    assert_eq!(place.lines(&["task", "list", "--page-size", "2"]), *page["tasks"].as_array().expect("tasks"));
    assert_eq!(place.run(&["task", "list", "--status", "sleepy"]).code, 2);
}

#[test]
fn a_task_is_canceled_and_its_state_told() {
    let hub = hub();
    let place = Place::at(&hub);
    let started = place.json(&["send", "--async", "hold"]);
    let task = id(&started["task"]);
    let canceled = place.run(&["task", "cancel", task]).ok();
    assert_eq!((canceled.field("Task"), canceled.field("State")), (task, "TASK_STATE_CANCELED"));
    let again = place.run(&["task", "cancel", task, "-o", "json"]);
    assert_eq!((again.code, again.error().as_str()), (1, "TaskNotCancelableError"));
    assert_eq!(state(&place.json(&["task", "get", task])), "TASK_STATE_CANCELED", "and changes nothing");
}

#[test]
fn cancelling_twice_is_as_good_as_once_where_the_agent_says_so() {
    let agent = Agent::start(card(json!({})), |_, _| Says::Result(task("CANCELED")));
    let place = Place::new();
    let first = place.json(&["task", "cancel", "t-1", "-a", &agent.url]);
    assert_eq!(place.json(&["task", "cancel", "t-1", "-a", &agent.url]), first);
}

#[test]
fn artifacts_become_files() {
    let parts = json!([
        {"text": "hello"},
        {"raw": "AAH/", "filename": "../evil.bin", "mediaType": "application/octet-stream"},
        {"data": {"n": 1.0}},
        {"url": "https://example.com/x"},
    ]);
    let whole = json!({"id": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": [{"artifactId": "a-1", "name": "out", "parts": parts}, {"artifactId": "a-2", "parts": [{"text": "2"}]}]});
    let agent = Agent::start(card(json!({})), move |_, _| Says::Result(whole.clone()));
    let place = Place::new();
    let args = ["task", "download", "t-1", "-a", &agent.url, "--dir", "got"];
    let ran = place.run(&args).ok();
    assert_eq!(ran.field("State"), "TASK_STATE_COMPLETED");
    let read =
        |name: &str| std::fs::read(place.dir().join("got").join(name)).unwrap_or_else(|_| panic!("{name}: {ran:?}"));
    assert_eq!(read("out-1.txt"), b"hello");
    assert_eq!(read("evil.bin"), [0, 1, 255]);
    assert!(String::from_utf8_lossy(&read("out-3.json")).contains("1.0"));
    assert_eq!(read("a-2.txt"), b"2");
    assert!(ran.err.contains("https://example.com/x"), "what is not fetched is told: {ran:?}");
    assert_eq!(place.run(&args).code, 2, "nothing is overwritten");
    place.run(&[&args[..], &["--force"]].concat()).ok();
    place.run(&["task", "download", "t-1", "-a", &agent.url, "--dir", "one", "--artifact", "a-2"]).ok();
    assert_eq!(std::fs::read_dir(place.dir().join("one")).expect("a directory").count(), 1);
}

#[test]
fn a_download_is_all_or_nothing_and_leads_nowhere_else() {
    let parts = json!([{"text": "1", "filename": "a.txt"}, {"text": "2", "filename": "b.txt"}]);
    let whole = json!({"id": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": [{"artifactId": "a-1", "parts": parts}]});
    let agent = Agent::start(card(json!({})), move |_, _| Says::Result(whole.clone()));
    let place = Place::new();
    let (mine, got) = (place.file("mine.txt", "mine"), place.dir().join("got"));
    std::fs::create_dir(&got).expect("a directory");
    std::os::unix::fs::symlink(&mine, got.join("b.txt")).expect("a link");
    let args = ["task", "download", "t-1", "-a", &agent.url, "--dir", "got"];
    let ran = place.run(&args);
    assert!(ran.code == 2 && ran.err.contains("b.txt is there already"), "{ran:?}");
    assert!(!got.join("a.txt").exists(), "nothing is saved if not all can be");
    place.run(&[&args[..], &["--force"]].concat()).ok();
    assert_eq!(std::fs::read_to_string(got.join("b.txt")).expect("saved"), "2");
    assert_eq!(std::fs::read_to_string(&mine).expect("there"), "mine", "what the link led to stays");
}

#[test]
fn push_configs_are_refused_before_asking_where_the_card_has_none() {
    let hub = crate::cast::hub();
    let place = Place::at(&hub);
    for args in [
        &["task", "push-config", "create", "t", "--url", "https://example.com"][..],
        &["task", "push-config", "get", "t", "c"],
        &["task", "push-config", "list", "t"],
        &["task", "push-config", "delete", "t", "c"],
    ] {
        let ran = place.run(&[args, &["-o", "json", "--agent", "still"]].concat());
        assert_eq!((ran.code, ran.error().as_str()), (1, "PushNotificationNotSupportedError"), "{ran:?}");
    }
    let agent = Agent::start(card(json!({})), |_, _| Says::Result(json!({})));
    assert_eq!(place.run(&["task", "push-config", "list", "t", "-a", &agent.url]).code, 1);
    assert_eq!(agent.asked().len(), 0, "the card said no");
}

#[test]
fn push_configs_are_made_read_listed_and_deleted() {
    let config = json!({"id": "p-1", "taskId": "t-1", "url": "https://example.com/hook", "token": "tok-secret"});
    let answered = config.clone();
    let agent = Agent::start(card(json!({"capabilities": {"pushNotifications": true}})), move |asked, _| {
        Says::Result(match asked.method().as_str() {
            "ListTaskPushNotificationConfigs" => json!({"configs": [answered]}),
            "DeleteTaskPushNotificationConfig" => json!(null),
            _ => answered.clone(),
        })
    });
    let place = Place::new();
    let push = |args: &[&str]| place.run(&[&["task", "push-config"], args, &["-a", &agent.url]].concat()).ok();
    let made = push(&[
        "create",
        "t-1",
        "--url",
        "https://example.com/hook",
        "--id",
        "p-1",
        "--token",
        "tok-secret",
        "--auth-scheme",
        "Bearer",
        "--auth-credentials",
        "cred-secret",
        "-o",
        "json",
    ]);
    assert_eq!(made.json(), config);
    let sent = agent.asked()[0].json();
    assert_eq!(sent["params"]["authentication"], json!({"scheme": "Bearer", "credentials": "cred-secret"}));
    assert_eq!(push(&["get", "t-1", "p-1", "-o", "json"]).json(), config);
    assert_eq!(push(&["list", "t-1", "-o", "json"]).json(), json!({"configs": [config]}));
    let shown = push(&["list", "t-1"]);
    assert!(shown.field("Push config") == "p-1" && !shown.out.contains("tok-secret"), "{shown:?}");
    assert_eq!(push(&["delete", "t-1", "p-1"]).field("Deleted"), "p-1");
    let methods: Vec<String> = agent.asked().iter().map(super::agent::Asked::method).collect();
    assert_eq!(methods[1..3], ["GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs"]);
    assert_eq!(methods[4], "DeleteTaskPushNotificationConfig");
}

#[test]
fn the_next_page_is_one_command_away() {
    let hub = hub();
    let place = Place::at(&hub);
    for _ in 0..3 {
        place.run(&["send", "complete", "--context-id", "a b"]).ok();
        place.run(&["send", "fail", "--context-id", "a b"]).ok();
        place.run(&["send", "complete"]).ok();
    }
    let mut command = "task list --status completed --page-size 1 --context-id 'a b'".to_owned();
    let mut seen = Vec::new();
    for left in (0..3).rev() {
        let typed = format!("{} {command}", env!("CARGO_BIN_EXE_flotilla"));
        let ran = place.typed(&typed).ok();
        assert_eq!(
            (ran.field("State"), ran.field("Context"), ran.field("Total")),
            ("TASK_STATE_COMPLETED", "a b", "3")
        );
        seen.push(ran.field("Task").to_owned());
        let next = ran.out.lines().find_map(|line| line.strip_prefix("Next page: flotilla "));
        assert_eq!(next.is_some(), left > 0, "{ran:?}");
        command = next.unwrap_or_default().to_owned();
    }
    seen.dedup();
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_task_that_is_not_there_is_not_to_be_read() {
    let hub = hub();
    let place = Place::at(&hub);
    for command in ["cancel", "subscribe"] {
        let ran = place.run(&["task", command, "nope", "-o", "json"]);
        assert_eq!(ran.error(), "TaskNotFoundError");
        let hint = ran.json()["error"]["hint"].as_str().expect("a hint").to_owned();
        assert!(hint.contains("task list") && !hint.contains("task get"), "{hint}");
    }
}

#[test]
fn a_list_asks_for_no_messages_that_it_does_not_show() {
    let page = json!({"tasks": [task("WORKING")], "nextPageToken": "", "pageSize": 1, "totalSize": 1});
    let agent = Agent::start(card(json!({})), move |_, _| Says::Result(page.clone()));
    let place = Place::new();
    let asked = |more: &[&str]| {
        place.run(&[&["task", "list", "-a", &agent.url], more].concat()).ok();
        agent.asked().pop().expect("a request").json()["params"].get("historyLength").cloned()
    };
    assert_eq!(asked(&[]), Some(json!(0)));
    assert_eq!(asked(&["-o", "json"]), Some(json!(0)));
    assert_eq!(asked(&["--history", "3"]), Some(json!(3)));
    assert_eq!(asked(&["--verbose"]), None);
    let hub = hub();
    let place = Place::at(&hub);
    place.run(&["send", "complete"]).ok();
    assert!(place.run(&["task", "list", "--history", "9"]).ok().field("History").starts_with("ROLE_USER"));
    assert!(!place.run(&["task", "list"]).ok().out.contains("History:"));
}

#[test]
fn a_task_too_large_to_be_read_is_canceled_all_the_same() {
    let agent = Agent::start(card(json!({})), |asked, _| match asked.method().as_str() {
        "CancelTask" => {
            let mut all = task("CANCELED");
            all["history"] =
                json!([{"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x".repeat(65 << 20)}]}]);
            Says::Result(all)
        }
        _ => {
            assert_eq!(asked.json()["params"]["historyLength"], 0);
            Says::Result(task("CANCELED"))
        }
    });
    let ran = Place::new().run(&["task", "cancel", "t-1", "-a", &agent.url]).ok();
    assert_eq!(ran.field("State"), "TASK_STATE_CANCELED");
    assert!(ran.err.contains("too large"), "{ran:?}");
}

#[test]
fn numbers_below_what_there_is_are_told_as_such() {
    for args in [&["get", "t", "--history", "-1"][..], &["list", "--history", "-1"], &["list", "--page-size", "0"]] {
        let ran = Place::new().run(&[&["task"], args].concat());
        assert!(ran.code == 2 && ran.err.contains("must be a whole number"), "{ran:?}");
        assert!(
            ran.err.contains(&format!("flotilla task {} --help", args[0])) && !ran.err.contains("-- -1"),
            "{ran:?}"
        );
    }
}

#[test]
fn an_answer_that_is_nothing_is_no_task_and_no_config() {
    let agent =
        Agent::start(card(json!({"capabilities": {"pushNotifications": true}})), |_, _| Says::Result(json!({})));
    let place = Place::new();
    for args in [
        &["task", "get", "t-1"][..],
        &["task", "get", "t-1", "--wait"],
        &["task", "cancel", "t-1"],
        &["task", "push-config", "create", "t-1", "--url", "https://example.com"],
        &["task", "push-config", "get", "t-1", "c-1"],
    ] {
        let ran = place.run(&[args, &["-a", &agent.url, "-o", "json"]].concat());
        assert_eq!((ran.code, ran.error().as_str()), (1, "InvalidAgentResponseError"), "{args:?}");
    }
}

#[test]
fn secrets_of_a_push_config_come_from_the_environment_too() {
    let agent = Agent::start(card(json!({"capabilities": {"pushNotifications": true}})), |asked, _| {
        Says::Result(asked.json()["params"].clone())
    });
    let place = Place::new().env("A2ACLI_TOKEN", "tok-7").env("A2ACLI_AUTH_CREDENTIALS", "cred-7");
    let create = ["task", "push-config", "create", "t-1", "--url", "https://example.com", "-a", &agent.url];
    let sent = |args: &[&str]| {
        place.run(&[&create[..], args].concat()).ok();
        agent.asked().pop().expect("a request").json()["params"].clone()
    };
    let plain = sent(&[]);
    assert!(plain["token"] == "tok-7" && plain["authentication"].is_null(), "{plain}");
    let both = sent(&["--auth-scheme", "Bearer", "--token", "flag"]);
    assert_eq!((&both["token"], &both["authentication"]["credentials"]), (&json!("flag"), &json!("cred-7")));
    let ran = Place::new().run(&[&create[..], &["--auth-scheme", "Bearer"]].concat());
    assert!(ran.code == 2 && ran.err.contains("A2ACLI_AUTH_CREDENTIALS"), "{ran:?}");
    let shown = place.run(&["config", "show"]).ok().out;
    assert!(shown.contains("token: [redacted] (environment A2ACLI_TOKEN)") && !shown.contains("tok-7"), "{shown}");
}

#[test]
fn a_page_in_lines_tells_the_next_one_beside_them() {
    let hub = hub();
    let place = Place::at(&hub);
    for _ in 0..3 {
        place.run(&["send", "complete"]).ok();
    }
    let ran = place.run(&["task", "list", "--page-size", "2", "-o", "json", "--stream"]).ok();
    assert!(ran.lines().len() == 2 && ran.err.contains("Next page: flotilla task list --page-size 2"), "{ran:?}");
    let token = ran.err.split("--page-token ").nth(1).expect("a token").split_whitespace().next().expect("one");
    let ran = place.run(&["task", "list", "--page-token", token, "-o", "json", "--stream"]).ok();
    assert!(ran.lines().len() == 1 && ran.err.is_empty(), "{ran:?}");
}
