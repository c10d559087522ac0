//! What one request may hold: bytes, levels, parts, bytes of a part, tasks of a page.

use super::{INVALID_PARAMS, INVALID_REQUEST, TOO_LARGE, is_accepted, is_over, over, versions, ways};
use crate::cast::hub_with;
use flotilla_testkit::client::message;
use flotilla_testkit::http::Framing;
use flotilla_testkit::{Binding, Client, Refusal, Request};
use serde_json::{Value, json};

const SENDS: [&str; 2] = ["SendMessage", "SendStreamingMessage"];

/// A send whose body is exactly so long.
fn sized(client: &Client, method: &str, id: &str, bytes: usize) -> Request {
    let with = |text: usize| client.request_over_http2(method, &message(id, &"x".repeat(text)));
    // Lengths are part of a message in protobuf, and take more room for a longer text: look twice.
    let first = bytes - with(0).body.len();
    let request = with(first + bytes - with(first).body.len());
    assert_eq!(request.body.len(), bytes);
    request
}

#[test]
fn a_body_may_be_as_large_as_the_limit_and_no_larger() {
    let hub = hub_with("limits: {body: 5000}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding).agent("echo");
        for (number, method) in SENDS.into_iter().enumerate() {
            for ((version, send), framing) in versions(binding)
                .iter()
                .flat_map(|way| [Framing::Length, Framing::Chunked].map(|framing| (way, framing)))
            {
                let id = format!("{binding:?}-{number}-{framing:?}-{version}");
                let fits = send(owner.address, &sized(&owner, method, &id, 5000).framed(framing));
                assert!(is_accepted(&fits), "{fits:?}");
                let response = send(owner.address, &sized(&owner, method, "more", 5001).framed(framing));
                is_over(binding, &Refusal::of(&response), ("body", "5000"), TOO_LARGE);
            }
        }
    }
    assert_eq!(over(&hub, "body"), 4 * ways());
}

/// A message that is so deep with its opaque JSON, and nowhere deeper.
fn deep(id: &str, place: &str, levels: usize) -> Value {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
    let mut params = message(id, "complete");
    match place {
        // The request, the message, the list of parts, the part.
        "data" => params["message"]["parts"][0] = json!({"data": nested(levels - 4)}),
        "part" => params["message"]["parts"][0]["metadata"] = nested(levels - 4),
        "message" => params["message"]["metadata"] = nested(levels - 2),
        _ => params["metadata"] = nested(levels - 1),
    }
    params
}

#[test]
fn json_may_be_as_deep_as_the_limit_and_no_deeper_wherever_it_is() {
    let hub = hub_with("limits: {json_depth: 20}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding).agent("echo");
        for place in ["data", "part", "message", "request"] {
            for method in SENDS {
                let id = format!("{binding:?}-{place}-{method}");
                let fits = owner.response(method, &deep(&id, place, 20));
                assert!(is_accepted(&fits), "{place}: {}", fits.text());
                let refusal = Refusal::of(&owner.response(method, &deep("more", place, 21)));
                is_over(binding, &refusal, ("json_depth", "20"), INVALID_REQUEST);
            }
        }
    }
    assert_eq!(over(&hub, "json_depth"), 8 * Binding::ALL.len() as u64);
}

#[test]
fn a_message_may_hold_as_many_parts_as_the_limit_and_no_more() {
    let hub = hub_with("limits: {parts: 3}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding).agent("echo");
        for method in SENDS {
            let with = |count: usize| {
                let mut params = message(&format!("{binding:?}-{method}-{count}"), "x");
                params["message"]["parts"] = Value::Array(vec![json!({"text": "x"}); count]);
                params
            };
            assert!(is_accepted(&owner.response(method, &with(3))));
            let refusal = Refusal::of(&owner.response(method, &with(4)));
            is_over(binding, &refusal, ("parts", "3"), INVALID_PARAMS);
            assert_eq!(refusal.fields(), ["message.parts"]);
        }
    }
    assert_eq!(over(&hub, "parts"), 2 * Binding::ALL.len() as u64);
}

/// Parts that hold so many bytes, one for each kind of content.
fn parts(bytes: usize) -> [Value; 5] {
    let text = |length: usize| "x".repeat(length);
    // Whole groups of four stand for three bytes each; the rest is padded.
    let raw = match bytes % 3 {
        0 => "AAAA".repeat(bytes / 3),
        1 => format!("{}AA==", "AAAA".repeat(bytes / 3)),
        _ => format!("{}AAA=", "AAAA".repeat(bytes / 3)),
    };
    [
        json!({"text": text(bytes)}),
        json!({ "raw": raw }),
        json!({"url": text(bytes)}),
        // Two quotes around the text.
        json!({"data": text(bytes - 2)}),
        json!({"text": "x", "metadata": {"a": text(bytes - 9)}}),
    ]
}

#[test]
fn a_part_may_be_as_large_as_the_limit_and_no_larger_whatever_it_holds() {
    let hub = hub_with("limits: {part_bytes: 2000}");
    for binding in Binding::ALL {
        let owner = hub.owner(binding).agent("echo");
        for (fits, beyond) in parts(2000).into_iter().zip(parts(2001)) {
            let with = |part: Value| {
                let mut params = message(&uuid::Uuid::now_v7().to_string(), "x");
                params["message"]["parts"] = json!([{"text": "first"}, part]);
                params
            };
            owner.call("SendMessage", &with(fits)).unwrap_or_else(|refusal| panic!("{refusal:?}"));
            let refusal = owner.call("SendMessage", &with(beyond)).expect_err("too large");
            is_over(binding, &refusal, ("part_bytes", "2000"), TOO_LARGE);
            assert_eq!(refusal.fields(), ["message.parts[1]"]);
        }
    }
    assert_eq!(over(&hub, "part_bytes"), 5 * Binding::ALL.len() as u64);
}

#[test]
fn a_page_may_be_as_long_as_the_limit_and_no_longer() {
    let hub = hub_with("limits: {page: 2}");
    let owner = hub.owner(Binding::JsonRpc);
    for id in ["a", "b", "c"] {
        owner.say(id, "complete");
    }
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        for params in [json!({}), json!({"pageSize": 2})] {
            let page = owner.call("ListTasks", &params).expect("a page");
            assert_eq!((page["tasks"].as_array().map(Vec::len), &page["pageSize"]), (Some(2), &json!(2)));
            assert_eq!(page["totalSize"], 3);
        }
        let refusal = owner.call("ListTasks", &json!({"pageSize": 3})).expect_err("too long");
        is_over(binding, &refusal, ("page", "2"), INVALID_PARAMS);
        assert_eq!(refusal.fields(), ["pageSize"]);
    }
    assert_eq!(over(&hub, "page"), Binding::ALL.len() as u64);
}
