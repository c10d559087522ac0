//! ListTasks: filters, order, pages, totals, and what is left out.

use super::{on_all, on_current};
use crate::cast::{id, state, text};
use flotilla_testkit::{Binding, Talk};
use serde_json::{Value, json};

fn ids(list: &Value) -> Vec<String> {
    list["tasks"].as_array().expect("tasks").iter().map(|task| id(task).to_owned()).collect()
}

/// Lets the clock go on, so that the next status is later than this task's, by the millisecond.
fn let_time_pass(talk: &Talk, task: &Value) {
    let echo = talk.client.clone().agent("echo");
    let mut ticks = 0;
    flotilla_testkit::until("the clock goes on", || {
        ticks += 1;
        let tick = echo.say(&format!("tick-{}-{ticks}", id(task)), "tick");
        (tick["status"]["timestamp"].as_str() > task["status"]["timestamp"].as_str()).then_some(())
    });
}

#[test]
fn an_empty_list_has_every_field() {
    on_all(|talk| {
        let list = talk.ok("ListTasks", json!({}));
        assert_eq!(list, json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}));
    });
}

#[test]
fn tasks_are_listed_newest_status_first() {
    on_all(|talk| {
        let mut made: Vec<Value> = Vec::new();
        for said in ["ask", "complete", "fail"] {
            let task = talk.say(said);
            let_time_pass(talk, &task);
            made.push(task);
        }
        let newest_first: Vec<String> = made.iter().rev().map(|task| id(task).to_owned()).collect();
        assert_eq!(ids(&talk.ok("ListTasks", json!({}))), newest_first);
        // A new status brings the oldest to the top.
        let params = talk.reply(&made[0], "small");
        talk.ok("SendMessage", params);
        let order = ids(&talk.ok("ListTasks", json!({})));
        assert_eq!(order, [id(&made[0]), id(&made[2]), id(&made[1])]);
    });
}

#[test]
fn tasks_are_filtered_by_state() {
    on_all(|talk| {
        for said in ["complete", "fail", "complete", "ask"] {
            talk.say(said);
        }
        for (wanted, count) in [
            ("TASK_STATE_COMPLETED", 2),
            ("TASK_STATE_FAILED", 1),
            ("TASK_STATE_INPUT_REQUIRED", 1),
            ("TASK_STATE_WORKING", 0),
        ] {
            let list = talk.ok("ListTasks", json!({"status": wanted}));
            assert_eq!(list["totalSize"], count, "{wanted}");
            let tasks = list["tasks"].as_array().expect("tasks");
            assert_eq!(tasks.len(), count);
            assert!(tasks.iter().all(|task| state(task) == wanted));
        }
        assert_eq!(talk.ok("ListTasks", json!({"status": "TASK_STATE_UNSPECIFIED"}))["totalSize"], 4);
    });
}

#[test]
fn tasks_are_filtered_by_context_and_state_together() {
    on_all(|talk| {
        for (context, said) in [("a", "complete"), ("a", "fail"), ("b", "complete")] {
            let mut params = talk.message(said);
            params["message"]["contextId"] = json!(context);
            talk.ok("SendMessage", params);
        }
        assert_eq!(talk.ok("ListTasks", json!({"contextId": "a"}))["totalSize"], 2);
        let list = talk.ok("ListTasks", json!({"contextId": "a", "status": "TASK_STATE_COMPLETED"}));
        assert_eq!((list["totalSize"].as_i64(), ids(&list).len()), (Some(1), 1));
        assert_eq!(talk.ok("ListTasks", json!({"contextId": "c"}))["totalSize"], 0);
    });
}

#[test]
fn tasks_are_filtered_by_the_time_of_their_status() {
    on_all(|talk| {
        let old = talk.say("complete");
        let_time_pass(talk, &old);
        let new = talk.say("complete");
        let after = new["status"]["timestamp"].clone();
        let list = talk.ok("ListTasks", json!({"statusTimestampAfter": after}));
        assert_eq!(ids(&list), [id(&new)], "at or after the given time");
        assert_eq!(list["totalSize"], 1);
        let list = talk.ok("ListTasks", json!({"statusTimestampAfter": old["status"]["timestamp"]}));
        assert_eq!(list["totalSize"], 2);
        assert_eq!(talk.ok("ListTasks", json!({"statusTimestampAfter": "2999-01-01T00:00:00Z"}))["totalSize"], 0);
    });
}

#[test]
fn a_time_that_is_none_is_refused() {
    let hub = crate::cast::hub();
    for binding in Binding::JSON {
        let params = json!({"statusTimestampAfter": "yesterday"});
        let refusal = hub.owner(binding).call("ListTasks", &params).expect_err("refused");
        assert_eq!(refusal.fields(), ["statusTimestampAfter"]);
    }
}

#[test]
fn pages_are_complete_stable_and_without_repetition() {
    on_all(|talk| {
        let mut made: Vec<String> = (0..7).map(|_| id(&talk.say("complete")).to_owned()).collect();
        let mut seen: Vec<String> = Vec::new();
        let mut token = String::new();
        let mut sizes = Vec::new();
        loop {
            let list = talk.ok("ListTasks", json!({"pageSize": 3, "pageToken": token}));
            assert_eq!(list["pageSize"], 3);
            sizes.push((ids(&list).len(), list["totalSize"].as_u64().expect("a total")));
            seen.extend(ids(&list));
            if sizes.len() == 1 {
                // What comes in between is newer than the page shown, so it is on no later page.
                talk.say("complete");
            }
            token = list["nextPageToken"].as_str().expect("a token, if only an empty one").to_owned();
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(sizes, [(3, 7), (3, 8), (1, 8)]);
        seen.sort();
        made.sort();
        assert_eq!(seen, made);
    });
}

#[test]
fn a_page_that_ends_with_the_list_has_no_next() {
    on_all(|talk| {
        for _ in 0..4 {
            talk.say("complete");
        }
        let list = talk.ok("ListTasks", json!({"pageSize": 2}));
        let list = talk.ok("ListTasks", json!({"pageSize": 2, "pageToken": list["nextPageToken"]}));
        assert_eq!((ids(&list).len(), list["nextPageToken"].as_str()), (2, Some("")));
    });
}

#[test]
fn a_page_token_of_nobody_is_refused() {
    on_all(|talk| {
        for token in ["nonsense", "!!!", "AAAA", "eyJhIjoxfQ"] {
            assert_eq!(talk.refused("ListTasks", json!({"pageToken": token})).fields(), ["pageToken"], "{token}");
        }
    });
}

#[test]
fn a_page_holds_between_one_and_a_hundred_tasks() {
    on_all(|talk| {
        for size in [0, -1, 101, 1_000_000] {
            assert_eq!(talk.refused("ListTasks", json!({"pageSize": size})).fields(), ["pageSize"], "{size}");
        }
        for size in [1, 100] {
            assert_eq!(talk.ok("ListTasks", json!({"pageSize": size}))["pageSize"], size);
        }
    });
}

#[test]
fn artifacts_are_left_out_unless_asked_for() {
    on_all(|talk| {
        talk.say("complete");
        talk.say("ask");
        for params in [json!({}), json!({"includeArtifacts": false})] {
            let list = talk.ok("ListTasks", params);
            assert!(list["tasks"].as_array().expect("tasks").iter().all(|task| task.get("artifacts").is_none()));
        }
        let list = talk.ok("ListTasks", json!({"includeArtifacts": true}));
        for task in list["tasks"].as_array().expect("tasks") {
            match state(task) {
                "TASK_STATE_COMPLETED" => assert_eq!(text(&task["artifacts"][0]), "You said complete"),
                // An empty list, which protobuf cannot tell from none.
                _ if talk.client.binding == Binding::Grpc => assert!(task.get("artifacts").is_none()),
                _ => assert_eq!(task["artifacts"], json!([])),
            }
        }
    });
}

#[test]
fn the_tasks_of_another_agent_are_not_listed() {
    on_all(|talk| {
        talk.say("complete");
        let list = talk.ok("ListTasks", json!({"tenant": "echo"}));
        assert_eq!((list["totalSize"].as_i64(), ids(&list).len()), (Some(0), 0));
        assert_eq!(talk.ok("ListTasks", json!({"tenant": "mock"}))["totalSize"], 1);
    });
}

#[test]
fn an_unknown_state_is_refused() {
    let hub = crate::cast::hub();
    for binding in Binding::JSON {
        let refusal = hub.owner(binding).call("ListTasks", &json!({"status": "WORKING"})).expect_err("refused");
        assert_eq!(refusal.fields(), ["status"]);
    }
    on_current(|talk| assert_eq!(talk.refused("ListTasks", json!({"status": 99})).fields(), ["status"]));
}

#[test]
fn a_page_ends_early_when_its_content_is_large() {
    let hub = crate::cast::hub_with("limits: {page_bytes: 100000}");
    for binding in Binding::ALL {
        let owner = hub.caller(binding, &format!("caller-{binding:?}")).agent("echo");
        // Each is there twice, in the history and as an artifact.
        for (n, length) in [22_000, 22_000, 22_000, 60_000, 22_000].into_iter().enumerate() {
            owner.say(&format!("m{n}"), &"x".repeat(length));
        }
        let (mut sizes, mut token) = (Vec::new(), String::new());
        loop {
            let params = json!({"includeArtifacts": true, "pageToken": token});
            let page = owner.call("ListTasks", &params).expect("a page");
            assert_eq!(page["totalSize"], 5);
            assert!(
                page["tasks"].as_array().is_some_and(|tasks| tasks.len() == 1) || page.to_string().len() <= 100_000
            );
            sizes.push(page["tasks"].as_array().expect("tasks").len());
            token = page["nextPageToken"].as_str().expect("a token").to_owned();
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(sizes, [1, 1, 2, 1], "no task that does not fit, and a large one by itself");
    }
}
