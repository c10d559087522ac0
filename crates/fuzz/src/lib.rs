//! Every decoder of bytes from outside as an entry point for a fuzzer, with what must hold beyond "it does not panic".
#![forbid(unsafe_code)]

pub mod bindings;
pub mod config;
pub mod head;
pub mod journal;
pub mod lineage;
pub mod mutate;
pub mod old;
pub mod peers;
pub mod proto;
pub mod sockets;
pub mod targets;

/// An entry point; its name is that of its target in `fuzz/fuzz_targets` and of its inputs in `fuzz/seeds`.
pub struct Entry {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

macro_rules! entries {
    ($($module:ident :: $name:ident),* $(,)?) => {
        /// All of them, in one list: what is not here is not fuzzed.
        pub const ENTRIES: &[Entry] = &[$(Entry { name: stringify!($name), run: $module::$name }),*];
    };
}

entries! {
    bindings::json_rpc,
    bindings::parameters,
    bindings::http_json,
    bindings::grpc_request,
    bindings::grpc_frame,
    bindings::wire_values,
    bindings::catalog_search,
    bindings::announcement,
    config::config,
    head::credential,
    head::cursor,
    head::page_token,
    head::grpc_deadline,
    head::proxy,
    journal::journal_file,
    journal::journal_entry,
    journal::stored_events,
    lineage::lineage,
    old::old_request,
    old::old_result,
    old::old_card,
    proto::grpc_request_03,
    proto::grpc_answer_03,
    proto::proto_json_03,
    proto::answer_03,
    peers::agent_card,
    peers::card_signature,
    peers::sse,
    peers::stream_frame,
    peers::grpc_answer,
    peers::grpc_messages,
    peers::grpc_status,
    peers::oauth,
    sockets::socket_frame,
    sockets::gopherhole_request,
    targets::webhook_url,
    targets::address_shown,
    targets::ranges,
    targets::webhook_secret,
    targets::webhook_credentials,
    targets::webhook_headers,
    targets::key_set,
}

/// Text, where a decoder takes nothing else: what was not read as UTF-8 never gets there.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// The first line and what is behind it.
fn lines<const N: usize>(bytes: &[u8]) -> ([&[u8]; N], &[u8]) {
    let mut rest = bytes;
    let lines = [(); N].map(|()| {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        line
    });
    (lines, rest)
}

/// Headers as they stand in a request, one a line; what is no header is passed over.
fn headers(bytes: &[u8]) -> http::HeaderMap {
    let mut headers = http::HeaderMap::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = http::HeaderName::from_bytes(line[..colon].trim_ascii());
        let value = http::HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}
