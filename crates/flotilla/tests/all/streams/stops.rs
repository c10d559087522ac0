//! Streams over the end of a process: killed or told to stop, nothing that was shown is lost or shown twice.

use super::{follow, known, numbers, resume, task_of};
use crate::cast::{hub, hub_set, reached, state};
use flotilla_testkit::{Binding, until};
use serde_json::json;

#[test]
fn an_ended_task_is_replayed_alike_after_the_hub_was_killed() {
    let mut hub = hub();
    let before = follow(&hub.owner(Binding::HttpJson), "m", "chunks 40").rest();
    hub.restart();
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let after = resume(&owner, &task_of(&before[0]), before[4].cursor()).rest();
        assert_eq!(known(&after), known(&before[5..]));
    }
}

#[test]
fn a_stream_cut_by_a_kill_is_resumed_and_sees_what_became_of_the_run() {
    let mut hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let mut stream = follow(&owner, "m", "hold");
    let seen = stream.through(|event| event.frame().get("statusUpdate").is_some());
    hub.kill();
    assert!(stream.rest().is_empty());
    hub.restart();
    let rest = resume(&owner, &task_of(&seen[0]), seen.last().expect("events").cursor()).rest();
    assert_eq!(numbers(&rest), [3], "one event more, with the next number");
    let status = &rest[0].frame()["statusUpdate"];
    assert_eq!(state(status), "TASK_STATE_FAILED");
    assert!(crate::cast::text(&status["status"]["message"]).contains("the hub stopped"));
}

#[test]
fn events_shown_before_a_kill_are_there_after_it() {
    let mut hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let mut stream = follow(&owner, "m", "trickle 1000");
    let seen: Vec<_> = (0..20).map(|_| stream.expect()).collect();
    hub.kill();
    hub.restart();
    let start = format!("{}.0", seen[0].epoch());
    let replayed = resume(&owner, &task_of(&seen[0]), &start).rest();
    assert_eq!(known(&replayed[..20]), known(&seen));
    assert_eq!(numbers(&replayed), (1..=replayed.len() as u64).collect::<Vec<u64>>());
    assert_eq!(state(&replayed.last().expect("events").frame()["statusUpdate"]), "TASK_STATE_FAILED");
}

#[test]
fn a_stopping_hub_tells_its_streams_to_come_back() {
    for binding in Binding::ALL {
        let mut hub = hub_set("drain: 100ms");
        let owner = hub.owner(binding);
        let mut stream = follow(&owner, "m", "hold");
        let seen = stream.through(|event| event.frame().get("statusUpdate").is_some());
        hub.signal("TERM");
        let farewell = stream.block().expect("a word before the end");
        let comment = farewell.comment.expect("a word").to_ascii_lowercase();
        assert!(comment.contains("last-event-id"), "what to do is said");
        if binding != Binding::Grpc {
            assert!(farewell.retry.is_some_and(|retry| retry.parse::<u64>().is_ok()), "and when");
        }
        assert!(stream.block().is_none() && !stream.cut, "the stream is closed in order");
        assert!(hub.ended().success());
        hub.restart();
        let owner = hub.owner(binding);
        let rest = resume(&owner, &task_of(&seen[0]), seen.last().expect("events").cursor()).rest();
        assert_eq!(numbers(&rest), [3]);
    }
}

#[test]
fn a_stopping_hub_lets_runs_end_within_its_bound() {
    let mut hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let task = owner.start("m", "work 300ms");
    let task = crate::cast::id(&task).to_owned();
    reached(&owner, &task, "TASK_STATE_WORKING");
    assert!(hub.terminate().success());
    hub.restart();
    assert_eq!(state(&hub.owner(Binding::HttpJson).task(&task)), "TASK_STATE_COMPLETED");
}

#[test]
fn a_stopping_hub_answers_those_who_wait_with_the_task_as_it_is() {
    for binding in Binding::ALL {
        let mut hub = hub_set("drain: 500ms");
        let (owner, waiting) = (hub.owner(binding), hub.owner(binding));
        let sent = std::thread::spawn(move || waiting.say("m", "hold"));
        until("the send is under way", || {
            let list = owner.call("ListTasks", &json!({"status": "TASK_STATE_WORKING"})).expect("a list");
            (list["totalSize"] == 1).then_some(())
        });
        assert!(hub.terminate().success());
        assert_eq!(state(&sent.join().expect("an answer")), "TASK_STATE_WORKING");
    }
}
