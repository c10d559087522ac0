//! What a fuzzer calls: the readers of what agents answer and of what was sealed, with no connection behind them.

use crate::client::error::ClientError;
use crate::client::{dialect, grpc, jsonrpc, rest};
use crate::webhook::secrets::Secrets;
use bytes::Bytes;
use flotilla_core::log::Cursor;
use flotilla_grpc::v03::Reader;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::push::PushOptions;
use flotilla_protocol::a2a::request::{PushConfig, Request};
use flotilla_protocol::proto03::file::Files;
use http::HeaderMap;

/// How deep opaque JSON may be nested, as a hub has it without a setting.
const DEPTH: usize = 64;

/// The result in an event of a JSON-RPC stream.
pub fn json_rpc_event(text: &str) -> Result<String, ClientError> {
    jsonrpc::event(text).map(Option::unwrap_or_default)
}

/// An event of an HTTP+JSON stream.
pub fn http_json_event(text: &str) -> Result<String, ClientError> {
    rest::unrefused(text.to_owned())
}

/// A request as it is sent over gRPC, in its frame.
pub fn grpc_request(request: &Request) -> Vec<u8> {
    grpc::message::encode(request)
}

/// The answer to a request as JSON.
pub fn grpc_answer(request: &Request, bytes: &[u8]) -> Result<String, ClientError> {
    grpc::message::decode(request, bytes, DEPTH)
}

/// A request as it is sent over gRPC of 0.3, in its frame.
pub fn grpc_request_03(request: &Request) -> Vec<u8> {
    grpc::old::encode(request, Files::Text)
}

/// The answer to an operation of 0.3 over gRPC, as the JSON of 1.0.
pub fn grpc_answer_03(method: Method, bytes: &[u8]) -> Result<String, ClientError> {
    grpc::old::decode(method, bytes, Reader { json_depth: DEPTH, files: Files::Text })
}

/// The answer to an operation of 0.3 in any of its JSON forms, as that of 1.0.
pub fn answer_03(method: Method, json: &str) -> Result<String, ClientError> {
    dialect::upgraded(method, json, Files::Text)
}

/// The messages in the pieces of a body, up to the first that is none.
pub fn grpc_messages<'a>(pieces: impl Iterator<Item = &'a [u8]>, limit: usize) -> Vec<Result<Bytes, ClientError>> {
    let mut framed = grpc::Framed::new(limit);
    let mut messages = Vec::new();
    for piece in pieces {
        framed.push(piece);
        while let Some(message) = framed.take().transpose() {
            let ends = message.is_err();
            messages.push(message);
            if ends {
                return messages;
            }
        }
    }
    messages
}

pub fn grpc_status(trailers: &HeaderMap) -> Option<Result<(), ClientError>> {
    grpc::status(trailers, true)
}

/// The id of a frame of a gRPC stream, from that of the one before it.
pub fn grpc_cursor(before: Option<Cursor>, frame: &str) -> Result<Option<Cursor>, ClientError> {
    grpc::after(before, frame)
}

/// The headers a webhook shows its credentials in: as they were given, and after they were put away and read again.
pub fn credentials(config: &PushConfig, options: PushOptions) -> Result<[Vec<(String, String)>; 2], Refusal> {
    let given = Secrets::of(config, options)?;
    let again = Secrets::from_bytes(&given.to_bytes()).map_err(|problem| Refusal::invalid("", problem))?;
    let shown = |secrets: &Secrets| {
        let headers = secrets.headers().into_iter();
        headers.map(|(name, value)| (name.as_str().to_owned(), value)).collect()
    };
    Ok([shown(&given), shown(&again)])
}
