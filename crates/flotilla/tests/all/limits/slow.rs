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

#[cfg(target_os = "linux")]
#[test]
fn readers_that_do_not_read_hold_little_of_a_large_stream() {
    for binding in Binding::ALL {
        let hub = setup().config(BIG).start();
        let owner = hub.owner(binding);
        let epoch =
            owner.stream("SendStreamingMessage", &message("m", "x")).expect("a stream").expect().epoch().to_owned();
        // Twelve megabytes of events.
        let task = owner.start("large", &"x".repeat(200_000));
        let completed = json!({"status": "TASK_STATE_COMPLETED"});
        let ended = || owner.call("ListTasks", &completed).expect("a list")["totalSize"] == 2;
        until("the task is completed", || ended().then_some(()));
        let before = hub.peak_memory();
        // After the first event, which is the task as a whole.
        let reader = owner.clone().header("last-event-id", &format!("{epoch}.1"));
        let subscribe = json!({"id": id(&task)});
        let readers: Vec<_> =
            (0..20).map(|_| reader.stream("SubscribeToTask", &subscribe).expect("a stream nobody reads")).collect();
        until("all of them are served", || metrics(&hub).contains("flotilla_streams_open 20").then_some(()));
        assert_eq!(reader.stream("SubscribeToTask", &subscribe).expect("a stream").rest().len(), 61);
        let held = hub.peak_memory() - before;
        assert!(held < 200_000_000, "{binding:?}: twenty readers that do not read hold {held} bytes");
        drop(readers);
    }
}
