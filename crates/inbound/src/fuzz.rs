//! What a fuzzer calls: each binding's decoder, from the bytes of a request to what is asked for, with no hub behind it.

use crate::parameters::Parameters;
use crate::rest::path;
use crate::{address, body, caller, grpc, jsonrpc, rest, route};
use bytes::Bytes;
use flotilla_core::limits::Limits;
use flotilla_core::log::Cursor;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::request::Request;
use http::request::Parts;
use http::{HeaderMap, Uri};
use std::net::IpAddr;
use std::time::Duration;

pub use crate::jsonrpc::decode::request as parameters;

/// A JSON-RPC body; with the id it is answered under.
pub fn json_rpc(bytes: &[u8], limits: &Limits) -> Result<(String, Request), Refusal> {
    body::check_depth(bytes, limits, jsonrpc::ENVELOPE)?;
    let envelope = flotilla_protocol::jsonrpc::Envelope::parse(bytes)?;
    let id = envelope.answer_id()?.to_owned();
    let method = jsonrpc::decode::method(&envelope.method_name()?)?;
    Ok((id, parameters(method, envelope.params_text()?)?))
}

/// An HTTP+JSON request; none where its path or verb leads nowhere.
pub fn http_json(verb: &http::Method, uri: &Uri, bytes: &[u8], limits: &Limits) -> Option<Result<Request, Refusal>> {
    let decoded = route::decoded(uri.path());
    let segments: Vec<&str> = decoded.iter().map(AsRef::as_ref).collect();
    let rest = match segments.as_slice() {
        ["agents", _, rest @ ..] if path::is_ours(rest) => rest,
        rest if path::is_ours(rest) => rest,
        [_, rest @ ..] => rest,
        [] => return None,
    };
    let target = path::target(verb, rest).ok()?;
    Some(body::check_depth(bytes, limits, 0).and_then(|()| rest::decode::request(&target, uri, bytes)))
}

/// The body of a gRPC call: the one message in its frame.
pub fn grpc_message(headers: &HeaderMap, bytes: Bytes) -> Result<Bytes, Refusal> {
    grpc::frame::only(headers, bytes)
}

pub fn grpc_deadline(headers: &HeaderMap) -> Result<Option<Duration>, Refusal> {
    grpc::deadline::of(headers)
}

/// Where a stream is to be taken up, after what else a request's head says.
pub fn cursor(headers: &HeaderMap, uri: &Uri) -> Result<Option<Cursor>, Refusal> {
    let parameters = Parameters::of(headers, uri);
    parameters.check_version()?;
    parameters.check_key()?;
    parameters.cursor()
}

pub fn credential(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    caller::credential(headers)
}

pub fn client_address(head: &Parts, proxies: &[address::Network]) -> Option<IpAddr> {
    address::of(head, proxies)
}
