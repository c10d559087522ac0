//! Whose word on a lineage counts, and what becomes of a word that cannot be read.

use super::{ANCESTRY, PARENT, TRACE, descending, hub_id, owners_view, sent, through};
use crate::cast::{hub, hub_set, state};
use flotilla_testkit::client::message;
use flotilla_testkit::{Act, Asked, Binding, StandIn};
use serde_json::{Value, json};

#[test]
fn who_shows_no_key_is_not_believed() {
    let hub = hub_set("allow_anonymous: true");
    let here = hub_id(&hub);
    let chain = json!([{"hub": "far", "agent": "mock"}]);
    let ancestry = json!({"chain": chain, "hops": 2, "maxHops": 99, "deadline": "2020-01-01T00:00:00Z"});
    let ring = json!({"chain": [{"hub": here, "agent": "mock"}]});
    for binding in Binding::ALL {
        let params = descending(&format!("{binding:?}"), "complete", &ancestry);
        let stranger = hub.stranger(binding).header("traceparent", PARENT).header("x-fleet-hops", "3");
        let task = sent(&stranger, &params);
        assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{binding:?}");
        let view = owners_view(&hub, &task);
        let (trace, claimed) = (json!({"traceparent": PARENT}), json!({"chain": chain, "hops": 3, "maxHops": 99}));
        let origin = json!({"provenance": "a2a-external", "hops": 0, "trace": trace, "claimed": claimed});
        assert_eq!(view["origin"], origin, "it is told as what it is");
        assert_eq!((&view["traceId"], view.get("deadline")), (&json!(TRACE), None));
        for (index, (stranger, ancestry)) in [
            (hub.stranger(binding), ring.clone()),
            (hub.stranger(binding).header("x-fleet-hops", "99"), json!({"maxHops": 100})),
        ]
        .into_iter()
        .enumerate()
        {
            let params = descending(&format!("{binding:?}-{index}"), "complete", &ancestry);
            assert_eq!(state(&sent(&stranger, &params)), "TASK_STATE_REJECTED", "it counts against its own work");
        }
        let mut malformed = message(&format!("{binding:?}-malformed"), "complete");
        malformed["metadata"] = json!({ANCESTRY: "nonsense"});
        assert_eq!(
            state(&sent(&hub.stranger(binding), &malformed)),
            "TASK_STATE_COMPLETED",
            "what cannot be read is nothing"
        );
        let task = sent(&hub.owner(binding), &params);
        assert_eq!(state(&task), "TASK_STATE_REJECTED", "with a key the same words count");
    }
}

#[test]
fn what_cannot_be_read_is_refused_and_opens_nothing() {
    let hub = hub();
    let wrong: [(Value, &str); 6] = [
        (json!("nonsense"), "or chain"),
        (json!({"hops": -1}), "hops"),
        (json!({"deadline": "tomorrow"}), "RFC 3339"),
        (json!({"chain": [{"hub": "h"}]}), "chain[0]"),
        (json!({"chain": [{"hub": "", "agent": "a"}]}), "chain[0].hub"),
        (json!({"chain": through(&["h"; 129])}), "129 entries"),
    ];
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        for (ancestry, words) in &wrong {
            let params = descending("wrong", "complete", ancestry);
            for method in ["SendMessage", "SendStreamingMessage"] {
                let refusal = flotilla_testkit::Refusal::of(&owner.response(method, &params));
                assert_eq!((refusal.reason.as_str(), refusal.fields()), ("INVALID_PARAMS", vec!["metadata"]));
                assert!(refusal.message.contains(words) && refusal.message.contains(ANCESTRY), "{}", refusal.message);
            }
        }
        let hops = owner.clone().header("x-fleet-hops", "many").call("SendMessage", &message("wrong", "complete"));
        assert_eq!(hops.expect_err("no number").fields(), ["x-fleet-hops"]);
    }
    let all = hub.owner(Binding::JsonRpc).call("ListTasks", &json!({})).expect("a list");
    assert_eq!(all["totalSize"], 0);
}

#[test]
fn a_trace_that_cannot_be_read_is_none() {
    let hub = hub();
    for binding in Binding::ALL {
        for (index, wrong) in ["nonsense", &PARENT.to_uppercase(), "00-0-0-0"].into_iter().enumerate() {
            let client = hub.owner(binding).header("traceparent", wrong).header("tracestate", "a=1");
            let task = client.say(&format!("{binding:?}-{index}"), "complete");
            assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{wrong}");
            let view = owners_view(&hub, &task);
            assert_eq!(view.get("origin"), None, "nothing is known");
            let own = task["id"].as_str().expect("an id").replace('-', "");
            assert_eq!(view["traceId"], json!(own), "a task without a trace begins one");
        }
    }
}

/// An agent that reads no metadata has only the header to pass on.
#[test]
fn hops_that_are_claimed_go_on_in_the_header() {
    let agent = StandIn::start(false, |_: &Asked| {
        vec![Act::Answer(json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}}))]
    });
    let config = format!("hub: {{allow_anonymous: true}}\nagents:\n  far: {{kind: a2a, url: '{}'}}\n", agent.url());
    let hub = crate::cast::setup().config(&config).start();
    let stranger = hub.stranger(Binding::JsonRpc).agent("far").header("x-fleet-hops", "3");
    stranger.call("SendMessage", &message("m-1", "go")).expect("an answer");
    assert_eq!(agent.asked("SendMessage")[0].header("x-fleet-hops"), Some("4"));
}
