//! Bodies that are too deep, too large, not JSON, not text, or not said to be JSON.

use super::no_task;
use crate::cast::{hub, hub_with};
use flotilla_testkit::http::{Framing, send};
use flotilla_testkit::{Binding, Client, Refusal, Request, Response};
use serde_json::json;

fn deep(levels: usize) -> String {
    let data = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    format!(
        r#"{{"tenant":"echo","message":{{"messageId":"m-{levels}","role":"ROLE_USER","parts":[{{"data":{data}}}]}}}}"#
    )
}

fn raw(client: &Client, request: Request) -> Response {
    send(client.address, &request)
}

#[test]
fn json_that_is_nested_too_deeply_is_refused_and_the_hub_lives() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding);
        for levels in [200, 100_000] {
            for method in ["SendMessage", "SendStreamingMessage"] {
                let refusal = owner.call_text(method, &deep(levels)).expect_err("too deep");
                assert_eq!(refusal.code, if binding == Binding::JsonRpc { -32600 } else { 400 });
            }
        }
        no_task(&owner);
    }
    hub.owner(Binding::JsonRpc).call_text("SendMessage", &deep(50)).expect("deep enough for honest callers");
}

#[test]
fn brackets_that_open_no_json_are_refused() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding);
        let mut request = owner.request_text("SendMessage", "{}");
        request.body = "[".repeat(1_000_000).into_bytes();
        assert!([200, 400].contains(&raw(&owner, request).status));
        no_task(&owner);
    }
}

#[test]
fn a_body_that_is_too_large_is_refused_however_its_length_is_told() {
    let hub = hub_with("limits: {body: 20000}");
    let large = format!(
        r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"{}"}}]}}}}"#,
        "x".repeat(20_000)
    );
    for binding in Binding::JSON {
        let owner = hub.owner(binding);
        for method in ["SendMessage", "SendStreamingMessage"] {
            let request = owner.request_text(method, &large);
            // What is sent is more than the hub is willing to drop unread, and less than was claimed.
            let body = [request.body.clone(), vec![b' '; 160_000]].concat();
            let claimed = Request { body, ..request.clone() }.framed(Framing::Claimed(1 << 40));
            for request in [request.clone(), request.framed(Framing::Chunked), claimed] {
                let response = raw(&owner, request.clone());
                assert_eq!(response.status, 413, "{binding:?} {:?}", request.framing);
                let refusal = Refusal::of(&response);
                assert_eq!(refusal.reason, "PAYLOAD_TOO_LARGE");
                assert_eq!(
                    (&refusal.metadata["limit"], &refusal.metadata["limitValue"]),
                    (&"body".into(), &"20000".into())
                );
            }
        }
        no_task(&owner);
    }
}

#[test]
fn a_body_in_chunks_is_read_like_any_other() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding);
        let request = owner.request_text("SendMessage", &deep(3)).framed(Framing::Chunked);
        assert_eq!(raw(&owner, request).status, 200);
    }
}

#[test]
fn a_body_that_is_no_json_is_refused() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding);
        for method in ["SendMessage", "SendStreamingMessage"] {
            for body in ["{", "nonsense", "{\"message\":}", "{'message':{}}", "{}{}", "\u{feff}{}", "{\"a\":01}"] {
                let mut request = owner.request_text(method, "{}");
                request.body = body.into();
                let refusal = Refusal::of(&raw(&owner, request));
                let expected = if binding == Binding::JsonRpc { (-32700, 200) } else { (400, 400) };
                assert_eq!((refusal.code, refusal.http), expected, "{body}: {}", refusal.message);
            }
        }
        no_task(&owner);
    }
}

#[test]
fn bytes_that_are_no_utf8_are_refused() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding);
        for part in [&b"{\"text\":\"\xff\xfe\"}"[..], b"{\"data\":{\"a\":\"\xc3\x28\"}}", b"{\"data\":{\"\xff\":1}}"] {
            let template = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[@]}}"#;
            let mut request = owner.request_text("SendMessage", template);
            let place = request.body.iter().position(|byte| *byte == b'@').expect("the place");
            request.body.splice(place..=place, part.iter().copied());
            let refusal = Refusal::of(&raw(&owner, request));
            let expected = if binding == Binding::JsonRpc { (-32700, 200) } else { (400, 400) };
            assert_eq!((refusal.code, refusal.http), expected, "{}", refusal.message);
        }
        no_task(&owner);
    }
}

#[test]
fn half_a_surrogate_pair_is_no_text() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding);
        let params = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"\ud800"}]}}"#;
        owner.call_text("SendMessage", params).expect_err("refused");
        no_task(&owner);
    }
}

#[test]
fn an_empty_body_makes_no_task() {
    let hub = hub();
    for binding in Binding::JSON {
        let owner = hub.owner(binding);
        for method in ["SendMessage", "SendStreamingMessage"] {
            for body in ["", " \n"] {
                let mut request = owner.request_text(method, "{}");
                request.body = body.into();
                let refusal = Refusal::of(&raw(&owner, request));
                match binding {
                    Binding::JsonRpc => assert_eq!(refusal.code, -32700),
                    _ => assert_eq!((refusal.http, refusal.fields()), (400, vec!["message"])),
                }
            }
        }
        no_task(&owner);
    }
}

#[test]
fn a_body_of_another_media_type_is_refused() {
    for binding in Binding::JSON {
        let hub = hub();
        let owner = hub.owner(binding);
        for media_type in ["text/plain", "application/x-www-form-urlencoded", "application/xml", "multipart/form-data"]
        {
            for method in ["SendMessage", "SendStreamingMessage"] {
                let request = owner.request_text(method, &deep(3)).header("content-type", media_type);
                let response = raw(&owner, request);
                assert_eq!(response.status, 415, "{binding:?} {media_type}");
                assert_eq!(Refusal::of(&response).reason, "CONTENT_TYPE_NOT_SUPPORTED");
            }
        }
        no_task(&owner.clone().agent("echo"));
        for media_type in ["application/json; charset=utf-8", "application/a2a+json", "Application/JSON"] {
            let request = owner.request_text("SendMessage", &deep(3)).header("content-type", media_type);
            assert_eq!(raw(&owner, request).status, 200, "{media_type}");
        }
    }
}

#[test]
fn a_json_rpc_body_that_is_no_json_is_a_parse_error_whatever_its_type() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    let request = Request::post("/a2a", "hello").header("content-type", "text/plain");
    assert_eq!(Refusal::of(&owner.send(request)).code, -32700);
}

#[test]
fn cancel_and_subscribe_need_no_body() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let task = owner.say("m", "ask");
    let target = format!("/tasks/{}:cancel", crate::cast::id(&task));
    let response = owner.send(Request::post(&target, "").header("content-type", "application/json"));
    assert_eq!(response.json()["status"]["state"], "TASK_STATE_CANCELED");
    let target = format!("/tasks/{}:subscribe", crate::cast::id(&task));
    for request in [Request::post(&target, "").header("content-type", "application/json"), Request::get(&target)] {
        assert_eq!(Refusal::of(&owner.send(request)).reason, "UNSUPPORTED_OPERATION", "ended, but understood");
    }
}

#[test]
fn an_http_body_that_names_another_task_than_the_path_is_refused() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let task = owner.say("m", "ask");
    let target = format!("/tasks/{}:cancel", crate::cast::id(&task));
    let response = owner.send(Request::post(&target, json!({"id": "other"}).to_string()));
    assert_eq!(Refusal::of(&response).fields(), ["id"]);
    assert_eq!(owner.task(crate::cast::id(&task)), task);
}
