//! Many readers at any speed, and readers that go away.

use super::{chunks, follow, known, numbers, produced, resume, subscribe, task_of};
use crate::cast::{hub, id, reached, state};
use flotilla_testkit::client::message;
use flotilla_testkit::http::shout;
use flotilla_testkit::{Binding, until};
use serde_json::json;

#[test]
fn ten_thousand_chunks_arrive_complete_and_in_order() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let events = follow(&owner, "m", "chunks 10000").rest();
    assert_eq!(numbers(&events), (1..=10_003).collect::<Vec<u64>>());
    assert_eq!(produced(&events), chunks(10_000));
    let task = owner.task(&task_of(&events[0]));
    let parts = task["artifacts"][0]["parts"].as_array().expect("parts");
    let whole: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    assert_eq!(whole, chunks(10_000), "the task holds what was streamed");
}

#[test]
fn all_readers_see_the_same_events_though_one_does_not_read() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let mut first = follow(&owner, "m", "chunks 10000");
    let opening = first.expect();
    let task = task_of(&opening);
    let start = format!("{}.0", opening.epoch());
    let mut idle = resume(&owner, &task, &start);
    let readers: Vec<_> = (0..4)
        .map(|index| {
            let client = hub.owner(Binding::ALL[index % 2]);
            let (task, start) = (task.clone(), start.clone());
            std::thread::spawn(move || known(&resume(&client, &task, &start).rest()))
        })
        .collect();
    let mut all = vec![opening];
    all.extend(first.rest());
    let expected = known(&all);
    assert_eq!(expected.len(), 10_003);
    for reader in readers {
        assert_eq!(reader.join().expect("a reader"), expected);
    }
    assert_eq!(known(&idle.rest()), expected, "the one that did not read has lost nothing");
}

#[test]
fn a_reader_that_hangs_up_does_not_touch_the_task() {
    let hub = hub();
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let mut stream = follow(&owner, &format!("s-{binding:?}"), "work 200ms");
        let task = task_of(&stream.expect());
        let other = subscribe(&owner, &task);
        drop(stream);
        drop(other);
        reached(&owner, &task, "TASK_STATE_COMPLETED");
    }
}

#[test]
fn a_caller_that_hangs_up_while_it_waits_does_not_touch_the_task() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.caller(binding, &format!("{binding:?}"));
        let list = || owner.call("ListTasks", &json!({})).expect("a list")["tasks"].clone();
        let connection = shout(owner.address, &owner.request("SendMessage", &message("m", "work 200ms")));
        let task = until("the task is there", || list().get(0).cloned());
        drop(connection);
        let ended = reached(&owner, id(&task), "TASK_STATE_COMPLETED");
        assert_eq!(state(&ended), "TASK_STATE_COMPLETED");
    }
}

#[test]
fn closing_one_stream_leaves_the_others_open() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let task = owner.start("m", "trickle 25");
    let mut kept = subscribe(&owner, id(&task));
    let first = kept.expect();
    for _ in 0..5 {
        let mut gone = subscribe(&owner, id(&task));
        gone.expect();
    }
    let rest = kept.rest();
    assert_eq!(numbers(&rest), (first.number() + 1..=28).collect::<Vec<u64>>());
}
