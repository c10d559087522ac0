//! What a request may hold is the same in 0.3: bytes, levels, parts, requests at a pace, and who asks at all.

use crate::cast::hub_with;
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess, Refusal};
use serde_json::{Value, json};

fn limited() -> HubProcess {
    hub_with("limits: {body: 5000, json_depth: 20, parts: 3}")
}

/// What a send comes to, in each version through each JSON binding.
fn everywhere(hub: &HubProcess, check: impl Fn(&Client, &str)) {
    for binding in Binding::JSON {
        let owner = hub.owner(binding).agent("echo");
        check(&owner, &format!("{binding:?} 1.0"));
        check(&owner.in_03(), &format!("{binding:?} 0.3"));
    }
}

fn refused(client: &Client, params: &Value) -> Refusal {
    client.call("SendMessage", params).expect_err("refused")
}

#[test]
fn a_body_is_as_large_as_in_1_0() {
    let hub = limited();
    everywhere(&hub, |client, name| {
        let refusal = refused(client, &message("large", &"x".repeat(5000)));
        assert_eq!((refusal.reason.as_str(), refusal.http), ("PAYLOAD_TOO_LARGE", 413), "{name}");
        assert_eq!(refusal.metadata["limit"], "body", "{name}");
        client.call("SendMessage", &message(&format!("{name} fits"), &"x".repeat(4000))).expect(name);
    });
}

#[test]
fn json_is_as_deep_as_in_1_0() {
    let hub = limited();
    let deep = |id: &str, levels: usize| {
        let mut params = message(id, "");
        let nested = (0..levels - 4).fold(json!(1), |inner, _| json!({"a": inner}));
        params["message"]["parts"][0] = json!({"data": nested});
        params
    };
    everywhere(&hub, |client, name| {
        let refusal = refused(client, &deep("deep", 21));
        assert_eq!(
            (refusal.reason.as_str(), &refusal.metadata["limit"]),
            ("INVALID_REQUEST", &json!("json_depth")),
            "{name}"
        );
        client.call("SendMessage", &deep(&format!("{name} fits"), 20)).expect(name);
    });
}

#[test]
fn a_message_has_as_many_parts_as_in_1_0() {
    let hub = limited();
    let with = |id: &str, count: usize| {
        let mut params = message(id, "");
        params["message"]["parts"] = (0..count).map(|n| json!({"text": n.to_string()})).collect();
        params
    };
    everywhere(&hub, |client, name| {
        let refusal = refused(client, &with("many", 4));
        assert_eq!(
            (refusal.reason.as_str(), &refusal.metadata["limit"]),
            ("INVALID_PARAMS", &json!("parts")),
            "{name}"
        );
        client.call("SendMessage", &with(&format!("{name} fits"), 3)).expect(name);
    });
}

#[test]
fn nobody_is_let_in_without_a_key() {
    let hub = limited();
    for binding in Binding::JSON {
        let stranger = hub.stranger(binding).agent("echo").in_03();
        let refusal = refused(&stranger, &message("m", "hello"));
        assert_eq!((refusal.reason.as_str(), refusal.http), ("UNAUTHENTICATED", 401), "{binding:?}");
        let response = stranger.response("ListTasks", &json!({}));
        assert!(response.header("www-authenticate").is_some(), "{binding:?}");
    }
}

#[test]
fn a_caller_has_the_pace_of_1_0() {
    let hub = hub_with("limits: {requests_per_caller: 3}");
    for binding in Binding::JSON {
        let caller = hub.caller(binding, &format!("fast-{binding:?}")).in_03();
        let last = (0..10).find_map(|_| caller.call("ListTasks", &json!({})).err()).expect("too fast");
        assert_eq!((last.reason.as_str(), last.http), ("RESOURCE_EXHAUSTED", 429), "{binding:?}");
    }
}
