//! "Not yours" takes as long as "not there": how long an answer takes does not tell whether a task exists.

use super::isolation::NOWHERE;
use crate::cast::{hub, id, reached};
use crate::limits::versions;
use flotilla_testkit::{Binding, Client, Refusal, Request};
use serde_json::json;
use std::time::{Duration, Instant};

const PAIRS: usize = 400;
/// How often, of all pairs, one side may win if only chance decides: a fair coin is outside once in ten thousand times.
const FAIR: std::ops::RangeInclusive<f64> = 0.40..=0.60;

fn time(client: &Client, request: &Request) -> Duration {
    let (_, send) = versions(client.binding).last().expect("a version of HTTP");
    let started = Instant::now();
    let response = send(client.address, request);
    let taken = started.elapsed();
    assert_eq!(Refusal::of(&response).reason, "TASK_NOT_FOUND", "not yours, or not there");
    taken
}

/// The share of pairs in which the task that is there was answered faster. Pairs are asked close together, in turns.
fn faster(client: &Client, method: &str, task: &str) -> f64 {
    let [there, nowhere] = [task, NOWHERE].map(|task| client.request_over_http2(method, &json!({"id": task})));
    let wins = (0..PAIRS).filter(|turn| {
        if turn % 2 == 0 {
            let taken = time(client, &there);
            taken < time(client, &nowhere)
        } else {
            let taken = time(client, &nowhere);
            time(client, &there) < taken
        }
    });
    wins.count() as f64 / PAIRS as f64
}

#[test]
fn how_long_it_takes_does_not_tell_what_is_there() {
    let hub = hub();
    // Through the same door to the same core; a connection for each call of gRPC would hide any difference.
    for binding in Binding::JSON {
        let alice = hub.caller(binding, &format!("alice-{binding:?}"));
        let bob = hub.caller(binding, &format!("bob-{binding:?}"));
        // One that is in memory, with a run under way, and one that is only in the store.
        let (live, ended) = (alice.start("live", "hold"), alice.say("ended", "complete"));
        reached(&alice, id(&live), "TASK_STATE_WORKING");
        for (method, task) in
            [("CancelTask", &live), ("GetTask", &live), ("CancelTask", &ended), ("SubscribeToTask", &live)]
        {
            // What else this machine does may weigh on one side by accident, but not every time.
            let mut shares = (0..4).map(|_| faster(&bob, method, id(task)));
            let found: Vec<f64> = shares.by_ref().take(1).collect();
            assert!(
                FAIR.contains(&found[0]) || shares.any(|share| FAIR.contains(&share)),
                "{binding:?} {method}: a task that is there wins {:.2} of the time",
                found[0]
            );
        }
    }
}
