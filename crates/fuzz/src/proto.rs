//! A2A 0.3 as its proto file has it, over gRPC and as ProtoJSON: what was read can be written, and then reads the same.

use flotilla_core::limits::Limits;
use flotilla_grpc::v03::Reader;
use flotilla_inbound::fuzz as inbound;
use flotilla_outbound::fuzz as outbound;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::request::Request;
use flotilla_protocol::decode::is_deeper;
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::proto03::json::{self, Proto};
use http::HeaderMap;

fn depth() -> usize {
    Limits::default().json_depth
}

/// The message of every operation of 0.3 over gRPC; the first byte picks one.
pub fn grpc_request_03(bytes: &[u8]) {
    let Some((first, message)) = bytes.split_first() else { return };
    let method = Method::ALL[usize::from(*first) % Method::ALL.len()];
    let reader = Reader { json_depth: depth(), files: Files::Text };
    let Ok(request) = reader.request(method, message) else { return };
    assert_eq!(request.method(), method);
    let resent = |request: &Request| {
        let framed = outbound::grpc_request_03(request).into();
        let sent = inbound::grpc_message(&HeaderMap::new(), framed).expect("our client frames its messages");
        reader.request(method, &sent).expect("a request that was sent can be read")
    };
    // Our client says more than it must: what it said once it says again.
    let once = resent(&request);
    assert_eq!(resent(&once), once, "it reads differently over gRPC");
}

/// The answer to every operation of 0.3 over gRPC; the first byte picks one. What is read is 1.0.
pub fn grpc_answer_03(bytes: &[u8]) {
    let Some((first, message)) = bytes.split_first() else { return };
    let method = Method::ALL[usize::from(*first) % Method::ALL.len()];
    let Ok(answer) = outbound::grpc_answer_03(method, message) else { return };
    serde_json::from_str::<serde_json::Value>(&answer).expect("an answer is JSON");
}

/// Bodies of 0.3 in the form of its proto: a send, a push config, a task, a frame of a stream.
pub fn proto_json_03(bytes: &[u8]) {
    if is_deeper(bytes, depth()) {
        return;
    }
    if let Ok(sent) = json::read_send(bytes, Files::Text) {
        let again = |request| {
            let body = json::write_send(&request, Files::Text).expect("a send that was read can be written");
            json::read_send(body.as_bytes(), Files::Text).expect("a send that was written can be read")
        };
        let once = again(sent);
        assert_eq!(again(once.clone()), once);
    }
    if let Ok(config) = json::read_create_push("t", bytes) {
        let body = json::write_create_push(&config).expect("a config that was read can be written");
        let again = json::read_create_push("t", body.as_bytes()).expect("a config that was written can be read");
        assert_eq!((&again.id, &again.url, &again.token), (&config.id, &config.url, &config.token));
    }
    if let Ok(frame) = json::frame(bytes, Files::Text) {
        let again = |frame| {
            let body = serde_json::to_string(&Proto(&frame, Files::Text)).expect("a frame can be written");
            json::frame(body.as_bytes(), Files::Text).expect("a frame that was written can be read")
        };
        let once = again(frame);
        assert_eq!(again(once.clone()), once);
    }
    let _ = json::task(bytes, Files::Bytes);
    let _ = json::push_config(bytes);
    let _ = json::push_list(bytes);
}

/// The answer of an agent of 0.3 in any of its forms; the first byte picks the operation. What is read is 1.0.
pub fn answer_03(bytes: &[u8]) {
    let Some((first, answer)) = bytes.split_first() else { return };
    let method = Method::ALL[usize::from(*first) % Method::ALL.len()];
    let Ok(answer) = std::str::from_utf8(answer) else { return };
    if is_deeper(answer.as_bytes(), depth()) {
        return;
    }
    if let Ok(upgraded) = outbound::answer_03(method, answer) {
        serde_json::from_str::<serde_json::Value>(&upgraded).expect("an answer is JSON");
    }
}
