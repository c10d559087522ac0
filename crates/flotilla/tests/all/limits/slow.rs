//! Slow senders are cut off; slow readers hold nobody's memory.

use super::{TIMEOUT, is_over, over};
use crate::cast::hub_with;
use flotilla_testkit::client::message;
use flotilla_testkit::http::Framing;
use flotilla_testkit::{Binding, Refusal, http, http2};
use serde_json::json;

#[test]
fn a_body_that_does_not_come_is_waited_for_only_so_long() {
    let hub = hub_with("limits: {body_time: 300ms, body_rate: 1000000}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        for method in ["SendMessage", "SendStreamingMessage"] {
            let request = owner.request(method, &message("m", "complete")).framed(Framing::Claimed(10_000));
            let response = http::send(owner.address, &request);
            is_over(binding, &Refusal::of(&response), ("body_time", "300ms"), TIMEOUT);
            assert_eq!(response.header("connection"), Some("close"));
            is_over(binding, &Refusal::of(&http2::send(owner.address, &request)), ("body_time", "300ms"), TIMEOUT);
        }
        assert_eq!(owner.call("ListTasks", &json!({})).expect("a list")["totalSize"], 0);
    }
    assert_eq!(over(&hub, "body_time"), 4 * Binding::ALL.len() as u64);
}
