//! Slow senders are cut off; slow readers hold nobody's memory.

use super::{TIMEOUT, is_over, metrics, over, versions, ways};
use crate::cast::{hub_with, id, setup};
use flotilla_testkit::client::message;
use flotilla_testkit::http::Framing;
use flotilla_testkit::{Binding, Refusal, until};
use serde_json::json;

#[test]
fn a_body_that_does_not_come_is_waited_for_only_so_long() {
    let hub = hub_with("limits: {body_time: 300ms, body_rate: 1000000}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        for method in ["SendMessage", "SendStreamingMessage"] {
            let request = owner.request_over_http2(method, &message("m", "complete")).framed(Framing::Claimed(10_000));
            for (version, send) in versions(binding) {
                let response = send(owner.address, &request);
                is_over(binding, &Refusal::of(&response), ("body_time", "300ms"), TIMEOUT);
                let closing = (*version == "HTTP/1.1").then_some("close");
                assert_eq!(response.header("connection"), closing);
            }
        }
        assert_eq!(owner.call("ListTasks", &json!({})).expect("a list")["totalSize"], 0);
    }
    assert_eq!(over(&hub, "body_time"), 2 * ways());
}

/// An agent that says what it was told, many times over.
const BIG: &str = r#"
agents:
  big:
    kind: script
    script:
      otherwise:
        - artifact: {id: stream, name: stream, chunks: {count: 60, text: "{text}"}}
        - completed
"#;

/// Thirty thousand small events, said at once.
const MANY: &str = r#"
agents:
  many:
    kind: script
    script:
      rules: [{when: {text: x}, do: [{artifact: {id: stream, chunks: {count: 30000, text: chunk}}}, completed]}]
      otherwise: [completed]
"#;

#[cfg(target_os = "linux")]
#[test]
fn readers_that_do_not_read_hold_little_of_a_large_stream() {
    for binding in Binding::ALL {
        // Twelve megabytes of events.
        let held = held_by_twenty(BIG, binding, &"x".repeat(200_000), 62);
        assert!(held < 200_000_000, "{binding:?}: twenty readers that do not read hold {held} bytes");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn readers_that_do_not_read_hold_little_of_a_stream_of_many_small_events() {
    for binding in [Binding::JsonRpc, Binding::Grpc] {
        let held = held_by_twenty(MANY, binding, "x", 30_002);
        assert!(held < 150_000_000, "{binding:?}: twenty readers that do not read hold {held} bytes");
    }
}

/// How much memory a hub takes while twenty readers do not read what an agent says, and another reads all of it.
fn held_by_twenty(config: &str, binding: Binding, said: &str, events: usize) -> u64 {
    let hub = setup().config(config).start();
    let owner = hub.owner(binding);
    let epoch = owner.stream("SendStreamingMessage", &message("m", "y")).expect("a stream").expect().epoch().to_owned();
    let task = owner.start("large", said);
    let completed = json!({"status": "TASK_STATE_COMPLETED"});
    let ended = || owner.call("ListTasks", &completed).expect("a list")["totalSize"] == 2;
    until("the task is completed", || ended().then_some(()));
    let before = hub.peak_memory();
    let reader = owner.clone().header("last-event-id", &format!("{epoch}.0"));
    let subscribe = json!({"id": id(&task)});
    let readers: Vec<_> =
        (0..20).map(|_| reader.stream("SubscribeToTask", &subscribe).expect("a stream nobody reads")).collect();
    until("all of them are served", || metrics(&hub).contains("flotilla_streams_open 20").then_some(()));
    assert_eq!(reader.stream("SubscribeToTask", &subscribe).expect("a stream").rest().len(), events);
    let held = hub.peak_memory() - before;
    drop(readers);
    held
}
