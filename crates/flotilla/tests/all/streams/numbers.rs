//! The ids of events, and the form of a stream.

use super::{chunks, follow, known, numbers, produced, subscribe, task_of};
use crate::cast::{hub, hub_set, id, reached};
use flotilla_testkit::Binding;
use std::io::{Read as _, Write as _};

#[test]
fn events_are_numbered_from_one_without_gaps() {
    let hub = hub();
    for binding in Binding::ALL {
        let events = follow(&hub.owner(binding), &format!("m-{binding:?}"), "chunks 20").rest();
        assert_eq!(numbers(&events), (1..=23).collect::<Vec<u64>>());
        assert!(events.iter().all(|event| !event.epoch().is_empty() && event.epoch() == events[0].epoch()));
        assert_eq!(produced(&events), chunks(20));
    }
}

#[test]
fn the_epoch_is_that_of_the_store_and_not_of_the_process() {
    let mut hub = hub();
    let before = follow(&hub.owner(Binding::HttpJson), "one", "complete").expect();
    hub.restart();
    let after = follow(&hub.owner(Binding::HttpJson), "two", "complete").expect();
    assert_eq!(before.epoch(), after.epoch());
    let other = self::hub();
    assert_ne!(follow(&other.owner(Binding::HttpJson), "one", "complete").expect().epoch(), before.epoch());
}

#[test]
fn a_subscriptions_first_frame_has_the_number_of_what_it_shows() {
    let hub = hub();
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let task = owner.start(&format!("m-{binding:?}"), "hold");
        reached(&owner, id(&task), "TASK_STATE_WORKING");
        assert_eq!(subscribe(&owner, id(&task)).expect().number(), 2, "SUBMITTED is 1, WORKING is 2");
    }
}

#[test]
fn all_bindings_show_the_same_events_under_the_same_ids() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let task = owner.start("m", "hold");
    reached(&owner, id(&task), "TASK_STATE_WORKING");
    let mut streams = Binding::ALL.map(|binding| subscribe(&hub.owner(binding), id(&task)));
    let firsts = streams.each_mut().map(|stream| stream.expect());
    owner.call("CancelTask", &serde_json::json!({"id": id(&task)})).expect("canceled");
    let rests = streams.each_mut().map(|stream| stream.rest());
    for (first, rest) in firsts.iter().zip(&rests).skip(1) {
        assert_eq!(known(&firsts[..1]), known(std::slice::from_ref(first)));
        assert_eq!(known(&rests[0]), known(rest));
    }
    assert_eq!(rests[0].len(), 1);
}

#[test]
fn a_quiet_stream_shows_that_it_is_alive() {
    let hub = hub_set("keep_alive: 50ms");
    for binding in Binding::JSON {
        let owner = hub.owner(binding);
        let mut undecided = follow(&owner, &format!("m-{binding:?}"), "silence");
        for _ in 0..3 {
            let block = undecided.block().expect("the stream goes on");
            assert!(block.comment.is_some() && block.data.is_none() && block.id.is_none(), "{block:?}");
        }
    }
}

#[test]
fn a_stream_is_not_cached_or_buffered() {
    let hub = hub();
    let stream = follow(&hub.owner(Binding::HttpJson), "m", "complete");
    assert_eq!(stream.header("cache-control"), Some("no-cache"));
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
}

#[test]
fn every_json_rpc_frame_answers_the_same_request() {
    let hub = hub();
    let events = follow(&hub.owner(Binding::JsonRpc), "m", "complete").rest();
    assert!(events.iter().all(|event| event.json()["jsonrpc"] == "2.0" && event.json()["id"] == 1));
    let task = task_of(&events[0]);
    assert_eq!(hub.owner(Binding::JsonRpc).task(&task)["status"]["state"], "TASK_STATE_COMPLETED");
}

/// The kind of an HTTP/2 frame that asks whether the other side is there, and the flag of the answer to it.
const PING: u8 = 6;
const ACK: u8 = 1;

#[test]
fn a_quiet_connection_of_http_2_is_asked_as_often_as_streams_show_that_they_are_alive() {
    let hub = hub_set("keep_alive: 50ms");
    let mut connection = std::net::TcpStream::connect(hub.address()).expect("a connection");
    connection.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("a time-out");
    // The preface and settings without any.
    connection.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").expect("it is taken");
    let mut pings = 0;
    while pings < 3 {
        let mut head = [0; 9];
        connection.read_exact(&mut head).expect("a frame before long");
        let mut body = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        connection.read_exact(&mut body).expect("the whole frame");
        if head[3] == PING && head[4] & ACK == 0 {
            pings += 1;
            head[4] = ACK;
            connection.write_all(&[&head[..], &body].concat()).expect("it is taken");
        }
    }
}
