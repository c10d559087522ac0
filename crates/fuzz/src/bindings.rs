//! Requests of every binding: what is read is within its limits, reads the same again, and is the same everywhere.

use crate::{lines, text};
use bytes::Bytes;
use flotilla_core::limits::Limits;
use flotilla_grpc::Reader;
use flotilla_inbound::fuzz as inbound;
use flotilla_outbound::fuzz as outbound;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::push::PushOptions;
use flotilla_protocol::a2a::request::Request;
use flotilla_protocol::a2a::validate;
use flotilla_protocol::decode::is_deeper;
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::{Base64, Int32};
use http::{HeaderMap, Uri};

fn depth() -> usize {
    Limits::default().json_depth
}

/// A request as JSON, as a client of ours writes it.
fn json(request: &Request) -> String {
    let json = match request {
        Request::SendMessage(r) | Request::SendStreamingMessage(r) => serde_json::to_string(r),
        Request::GetTask(r) => serde_json::to_string(r),
        Request::ListTasks(r) => serde_json::to_string(r),
        Request::CancelTask(r) => serde_json::to_string(r),
        Request::SubscribeToTask(r) => serde_json::to_string(r),
        Request::CreatePushConfig(r) => serde_json::to_string(r),
        Request::GetPushConfig(r) | Request::DeletePushConfig(r) => serde_json::to_string(r),
        Request::ListPushConfigs(r) => serde_json::to_string(r),
        Request::GetExtendedAgentCard(r) => serde_json::to_string(r),
    };
    json.expect("a request that was read can be written")
}

/// What holds of every request, whatever it was read from.
pub(crate) fn check(request: &Request) {
    let json = json(request);
    let again = inbound::parameters(request.method(), &json).expect("a request that was written can be read");
    assert_eq!(again, *request, "it reads differently as {json}");
    look_closer(request);
}

/// The second look the core takes at what a binding has read.
fn look_closer(request: &Request) {
    let _ = request.tenant();
    match request {
        Request::SendMessage(r) | Request::SendStreamingMessage(r) => {
            if let Ok(message) = validate::send_message(r) {
                assert!(!message.parts.is_empty() && message.message_id.len() <= validate::MAX_ID);
            }
            let parts = r.message.iter().flat_map(|message| &message.parts);
            for raw in parts.filter_map(|part| part.raw.as_ref()) {
                assert_eq!(raw.decode().len(), raw.decoded_len(), "base64 {}", raw.text());
            }
            let _ = PushOptions::of(r.metadata.as_ref(), "metadata");
        }
        Request::ListTasks(r) => {
            let _ = validate::list_tasks(r);
        }
        Request::CreatePushConfig(r) => {
            let _ = validate::push_config(r);
            let _ = r.metadata().and_then(|metadata| PushOptions::of(metadata.as_ref(), "metadata"));
        }
        Request::ListPushConfigs(r) => {
            if let Ok(size) = r.size(20) {
                assert!(size <= 20, "a page larger than the largest");
            }
        }
        _ => {}
    }
}

/// A JSON-RPC body.
pub fn json_rpc(bytes: &[u8]) {
    let Ok((id, request)) = inbound::json_rpc(bytes, &Limits::default()) else { return };
    // As text: a number may be larger than any that can be held.
    serde_json::from_str::<flotilla_protocol::wire::Json>(&id).expect("the id is echoed, so it is JSON");
    assert!(!is_deeper(bytes, depth() + 1));
    check(&request);
}

/// The parameters of every operation; the first line may name one.
pub fn parameters(bytes: &[u8]) {
    let ([name], rest) = lines::<1>(bytes);
    let named = text(name).and_then(Method::from_name);
    let (methods, params) = named.map_or((Method::ALL.to_vec(), bytes), |method| (vec![method], rest));
    let Some(params) = text(params) else { return };
    if is_deeper(params.as_bytes(), depth()) {
        return;
    }
    for method in methods {
        if let Ok(request) = inbound::parameters(method, params) {
            assert_eq!(request.method(), method);
            check(&request);
        }
    }
}

/// The verb and target on the first line, then the body.
pub fn http_json(bytes: &[u8]) {
    let ([first], body) = lines::<1>(bytes);
    let Some((verb, target)) = text(first).and_then(|line| line.split_once(' ')) else { return };
    let (Ok(verb), Ok(uri)) = (verb.parse(), target.parse::<Uri>()) else { return };
    let Some(Ok(request)) = inbound::http_json(&verb, &uri, body, &Limits::default()) else { return };
    check(&request);
}

/// The message of every operation; the first byte picks one.
pub fn grpc_request(bytes: &[u8]) {
    let Some((first, message)) = bytes.split_first() else { return };
    let method = Method::ALL[usize::from(*first) % Method::ALL.len()];
    let reader = Reader { json_depth: depth() };
    let Ok(request) = reader.request(method, message) else { return };
    let json = json(&request);
    assert!(!is_deeper(json.as_bytes(), depth()), "deeper than JSON may be: {json}");
    check(&request);
    let framed = Bytes::from(outbound::grpc_request(&request));
    let sent = inbound::grpc_message(&HeaderMap::new(), framed).expect("our client frames its messages");
    let again = reader.request(method, &sent).expect("a request that was sent can be read");
    assert_eq!(again, request, "it reads differently over gRPC");
}

/// The body of a gRPC call.
pub fn grpc_frame(bytes: &[u8]) {
    if let Ok(message) = inbound::grpc_message(&HeaderMap::new(), Bytes::copy_from_slice(bytes)) {
        assert_eq!(message, bytes[5..], "a message is what is in its frame");
    }
}

/// Values that have a notation of their own: moments, base64, numbers.
pub fn wire_values(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    if let Ok(moment) = Millis::parse(text) {
        assert_eq!(Millis::parse(&moment.to_string()), Ok(moment), "{text} is shown as {moment}");
    }
    if let Ok(base64) = Base64::parse(text) {
        assert_eq!(base64.decode().len(), base64.decoded_len());
        assert_eq!(Base64::encode(&base64.decode()).decode(), base64.decode());
    }
    if let Ok(number) = serde_json::from_str::<Int32>(text) {
        assert_eq!(serde_json::from_str::<Int32>(&number.0.to_string()).ok(), Some(number));
    }
}

/// A search of the catalog: pages have their bounds, whatever is asked for.
pub fn catalog_search(bytes: &[u8]) {
    if let Ok(size) = inbound::catalog_search(bytes) {
        assert!((1..=100).contains(&size));
    }
}

/// An announcement: what it says of an agent that is not refused is an object, and few are announced at once.
pub fn announcement(bytes: &[u8]) {
    if let Ok(agents) = inbound::announcement(bytes) {
        assert!((1..=100).contains(&agents.len()));
        assert!(agents.iter().filter_map(|(_, said)| said.as_ref()).all(|said| said.starts_with('{')));
    }
}
