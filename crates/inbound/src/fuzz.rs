//! What a fuzzer calls: each binding's decoder, from the bytes of a request to what is asked for, with no hub behind it.

use crate::dialect::{self, Dialect};
use crate::parameters::Parameters;
use crate::rest::path;
use crate::{address, announce, body, caller, catalog, grpc, jsonrpc, rest, route};
use bytes::Bytes;
use flotilla_core::limits::Limits;
use flotilla_core::log::Cursor;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::request::Request;
use flotilla_protocol::a2a::version::Version;
use http::request::Parts;
use http::{HeaderMap, Uri};
use std::net::IpAddr;
use std::time::Duration;

/// The parameters of an operation.
pub fn parameters(method: Method, params: &str) -> Result<Request, Refusal> {
    jsonrpc::decode::request(Dialect::V10, method, params)
}

/// A JSON-RPC body; with the id it is answered under.
pub fn json_rpc(bytes: &[u8], limits: &Limits) -> Result<(String, Request), Refusal> {
    body::check_depth(bytes, limits, jsonrpc::ENVELOPE)?;
    let envelope = flotilla_protocol::jsonrpc::Envelope::parse(bytes)?;
    let id = envelope.answer_id()?.to_owned();
    let (dialect, method) = dialect::of_method(&envelope.method_name()?, &Parameters::default());
    Ok((id, jsonrpc::decode::request(dialect, method?, envelope.params_text()?)?))
}

/// An HTTP+JSON request; none where its path or verb leads nowhere.
pub fn http_json(verb: &http::Method, uri: &Uri, bytes: &[u8], limits: &Limits) -> Option<Result<Request, Refusal>> {
    let decoded = route::decoded(uri.path());
    let segments: Vec<&str> = decoded.iter().map(AsRef::as_ref).collect();
    if let Some((_, rest)) = path::in_03(&segments) {
        let target = path::target_in_03(verb, rest).ok()?;
        let form = rest::form::of(&target, uri, bytes).unwrap_or(rest::form::DEFAULT);
        return Some(body::check_depth(bytes, limits, 0).and_then(|()| rest::old::request(form, &target, uri, bytes)));
    }
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
    dialect::check(Version::V10, &parameters)?;
    parameters.check_key()?;
    parameters.cursor()
}

/// An announcement: agents by name, each with what is said of it.
pub fn announcement(bytes: &[u8]) -> Result<Vec<(String, Option<String>)>, Refusal> {
    let read = announce::read(bytes)?;
    Ok(read.agents.into_iter().map(|(name, said)| (name, said.ok().map(|said| said.to_string()))).collect())
}

/// A search of the catalog.
pub fn catalog_search(bytes: &[u8]) -> Result<usize, String> {
    catalog::request::read(bytes).map(|search| search.size)
}

pub fn credential(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    caller::credential(headers)
}

pub fn client_address(head: &Parts, proxies: &[address::Network]) -> Option<IpAddr> {
    address::of(head, proxies)
}
