//! Deadlines that pass while there is something left to do: the task fails, its run is cut off, a restart changes nothing.

use super::{descending, in_time, kinds, owners_view, sent};
use crate::cast::{hub, id, reached, state, text};
use flotilla_testkit::{Binding, Client};
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_millis(400);
const LATER: Duration = Duration::from_secs(600);

fn until(name: &str, said: &str, left: Duration) -> Value {
    descending(name, said, &json!({"deadline": in_time(left)}))
}

fn begun(client: &Client, mut params: Value) -> Value {
    params["configuration"] = json!({"returnImmediately": true});
    sent(client, &params)
}

#[test]
fn a_deadline_ends_what_is_at_work_silent_or_waiting() {
    let hub = hub();
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        for said in ["hold", "silence", "ask"] {
            let task = begun(&owner, until(&format!("{binding:?}-{said}"), said, SOON));
            let ended = reached(&owner, id(&task), "TASK_STATE_FAILED");
            let told = text(&ended["status"]["message"]);
            assert!(told.starts_with("The deadline passed (20"), "{told}");
            let view = owners_view(&hub, &ended);
            assert_eq!(kinds(&view).last().map(String::as_str), Some("status"));
            assert_eq!(kinds(&view).iter().filter(|kind| *kind == "run_queued").count(), 1, "{said}");
            let metrics = flotilla_testkit::until("the run is cut off", || {
                let text = owner.clone().through(Binding::HttpJson).get("/metrics").text().to_owned();
                text.lines().any(|line| line == "flotilla_runs_live 0").then_some(text)
            });
            assert!(metrics.contains("flotilla_tasks_ended_total{state=\"failed\"}"));
        }
    }
    let told = |line: &&str| line.contains("deadline passed") && line.contains("trace=");
    assert_eq!(hub.log().lines().filter(told).count(), 9, "each is in the hub's log, with its trace");
}

#[test]
fn a_send_that_waits_gets_the_task_as_its_deadline_left_it() {
    let hub = hub();
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let task = sent(&owner, &until(&format!("{binding:?}-1"), "hold", SOON));
        assert_eq!(state(&task), "TASK_STATE_FAILED");
        let params = until(&format!("{binding:?}-2"), "silence", SOON);
        let events = owner.stream("SendStreamingMessage", &params).expect("a stream").rest();
        assert!(events.last().expect("an end").frame().to_string().contains("TASK_STATE_FAILED"));
    }
}

#[test]
fn what_has_ended_is_left_alone() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let done = sent(&owner, &until("done", "complete", SOON));
    assert_eq!(state(&done), "TASK_STATE_COMPLETED");
    // Its deadline is later, so by then the other's has passed.
    sent(&owner, &until("hold", "hold", SOON));
    assert_eq!(owner.task(id(&done)), done);
    assert_eq!(kinds(&owners_view(&hub, &done)).iter().filter(|kind| *kind == "status").count(), 2);
}

#[test]
fn a_reply_may_bring_another_deadline() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let task = sent(&owner, &until("ask", "ask", LATER));
    let mut reply = until("reply", "hold", SOON);
    reply["message"]["taskId"] = task["id"].clone();
    assert_eq!(state(&sent(&owner, &reply)), "TASK_STATE_FAILED");
    let view = owners_view(&hub, &task);
    assert_eq!(kinds(&view).iter().filter(|kind| *kind == "descended").count(), 2);
}

#[test]
fn a_deadline_outlives_the_process() {
    let mut hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let waiting = sent(&owner, &until("waiting", "ask", SOON));
    assert_eq!(state(&waiting), "TASK_STATE_INPUT_REQUIRED");
    let far = sent(&owner, &until("far", "ask", LATER));
    let silent = begun(&owner, until("silent", "silence", SOON));
    hub.restart();
    let owner = hub.owner(Binding::HttpJson);
    for task in [&waiting, &silent] {
        let ended = reached(&owner, id(task), "TASK_STATE_FAILED");
        assert!(text(&ended["status"]["message"]).starts_with("The deadline passed"), "{ended}");
    }
    assert_eq!(state(&owner.task(id(&far))), "TASK_STATE_INPUT_REQUIRED");
}

#[test]
fn what_became_too_late_while_the_hub_was_down_is_not_run_again() {
    let mut hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let deadline = in_time(SOON);
    let task = begun(&owner, descending("silent", "silence", &json!({"deadline": deadline})));
    hub.kill();
    flotilla_testkit::until("the deadline passes", || (in_time(Duration::ZERO) > deadline).then_some(()));
    hub.restart();
    let ended = hub.owner(Binding::HttpJson).task(id(&task));
    assert_eq!(state(&ended), "TASK_STATE_FAILED", "at once");
    let kinds = kinds(&owners_view(&hub, &ended));
    assert_eq!(kinds, ["descended", "asked", "opened", "run_queued", "status"]);
}
