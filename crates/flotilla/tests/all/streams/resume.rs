//! Taking a stream up again: only what came later, or one whole task that says there is a gap.

use super::{RESUME, chunks, follow, known, numbers, produced, resume, says_gap, subscribe, task_of};
use crate::cast::{hub, hub_with, id, reached, state};
use flotilla_testkit::{Binding, until};
use serde_json::json;

#[test]
fn a_cut_stream_is_resumed_in_the_middle_of_a_task() {
    let hub = hub();
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let mut stream = follow(&owner, &format!("m-{binding:?}"), "trickle 25");
        let mut events: Vec<_> = (0..7).map(|_| stream.expect()).collect();
        drop(stream);
        let task = task_of(&events[0]);
        let mut resumed = resume(&owner, &task, events[6].cursor());
        assert_eq!(resumed.header("a2a-extensions"), Some(RESUME));
        events.extend(resumed.rest());
        assert!(!resumed.cut);
        assert_eq!(numbers(&events), (1..=28).collect::<Vec<u64>>());
        assert_eq!(produced(&events), chunks(25));
    }
}

#[test]
fn a_cursor_may_be_a_query_parameter() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding);
        let events = follow(&owner, &format!("m-{binding:?}"), "chunks 3").rest();
        let task = task_of(&events[0]);
        for name in ["Last-Event-ID", "last-event-id", "lastEventId"] {
            let resumed = subscribe(&owner.clone().query(name, events[3].cursor()), &task).rest();
            assert_eq!(known(&resumed), known(&events[4..]), "{name}");
        }
    }
}

#[test]
fn an_ended_task_is_replayed_from_any_event() {
    let hub = hub();
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let events = follow(&owner, &format!("m-{binding:?}"), "chunks 5").rest();
        let task = task_of(&events[0]);
        let start = format!("{}.0", events[0].epoch());
        assert_eq!(known(&resume(&owner, &task, &start).rest()), known(&events), "from the very beginning");
        for (index, event) in events.iter().enumerate() {
            let mut stream = resume(&owner, &task, event.cursor());
            assert_eq!(known(&stream.rest()), known(&events[index + 1..]));
            assert!(!stream.cut, "a replay is closed in order");
        }
    }
}

#[test]
fn a_resumed_stream_goes_on_until_the_task_ends() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let asked = follow(&owner, "m", "ask").rest();
    let task = task_of(&asked[0]);
    let mut stream = resume(&owner, &task, asked.last().expect("events").cursor());
    let reply =
        json!({"message": {"messageId": "r", "taskId": task, "role": "ROLE_USER", "parts": [{"text": "small"}]}});
    owner.call("SendMessage", &reply).expect("a reply");
    let rest = stream.rest();
    assert_eq!(numbers(&rest)[0], asked.last().expect("events").number() + 1);
    assert_eq!(state(&rest.last().expect("events").frame()["statusUpdate"]), "TASK_STATE_COMPLETED");
}

#[test]
fn a_cursor_of_another_store_gets_the_whole_task_and_is_told_of_the_gap() {
    let hub = hub();
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let events = follow(&owner, &format!("m-{binding:?}"), "chunks 3").rest();
        let task = task_of(&events[0]);
        let replayed = resume(&owner, &task, "elsewhere.2").rest();
        assert_eq!(replayed.len(), 1);
        assert!(says_gap(&replayed[0]));
        assert_eq!(replayed[0].cursor(), events.last().expect("events").cursor());
        assert_eq!(state(&replayed[0].frame()["task"]), "TASK_STATE_COMPLETED");
        assert_eq!(replayed[0].frame()["task"]["artifacts"], owner.task(&task)["artifacts"]);
    }
}

#[test]
fn a_cursor_ahead_of_the_task_is_told_of_the_gap_and_follows_on() {
    let hub = hub();
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let mut first = follow(&owner, &format!("m-{binding:?}"), "hold");
        let opening = first.expect();
        let task = task_of(&opening);
        reached(&owner, &task, "TASK_STATE_WORKING");
        let mut stream = resume(&owner, &task, &format!("{}.999", opening.epoch()));
        let gap = stream.expect();
        assert!(says_gap(&gap));
        assert_eq!((gap.number(), state(&gap.frame()["task"])), (2, "TASK_STATE_WORKING"));
        owner.call("CancelTask", &json!({"id": task})).expect("canceled");
        let rest = stream.rest();
        assert_eq!(numbers(&rest), [3]);
    }
}

#[test]
fn a_cursor_that_is_none_is_refused() {
    let hub = hub();
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let task = owner.say(&format!("m-{binding:?}"), "complete");
        for cursor in ["nonsense", "5", "x.", ".5", "x.-1", "x.1.5x", "x.99999999999999999999999"] {
            let client = owner.clone().header("last-event-id", cursor);
            let refusal = client.stream("SubscribeToTask", &json!({"id": id(&task)})).err().expect("refused");
            assert_eq!(refusal.fields(), ["Last-Event-ID"], "{cursor}");
        }
    }
}

#[test]
fn events_that_are_no_longer_kept_are_answered_by_the_whole_task() {
    let hub = hub_with("retention: {events: 1ms, interval: 20ms}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let events = follow(&owner, &format!("m-{binding:?}"), "chunks 50").rest();
        let task = task_of(&events[0]);
        let whole = owner.task(&task);
        let gap = until("the events are gone", || {
            let replayed = resume(&owner, &task, events[2].cursor()).rest();
            (replayed.len() == 1 && says_gap(&replayed[0])).then(|| replayed[0].clone())
        });
        assert_eq!(gap.cursor(), events.last().expect("events").cursor());
        let mut shown = gap.frame()["task"].clone();
        shown.as_object_mut().expect("a task").remove("metadata");
        assert_eq!(shown, whole, "what the task came to is kept");
        assert_eq!(owner.task(&task), whole);
        assert!(resume(&owner, &task, gap.cursor()).rest().is_empty(), "nothing is missing after the gap");
    }
}

#[test]
fn without_a_cursor_an_ended_task_is_not_replayed() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let task = owner.say("m", "complete");
    let refusal = owner.stream("SubscribeToTask", &json!({"id": id(&task)})).err().expect("refused");
    assert_eq!(refusal.reason, "UNSUPPORTED_OPERATION");
}
