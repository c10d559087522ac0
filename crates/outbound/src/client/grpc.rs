//! The gRPC binding (spec 10), over the same HTTP client as the others: the same certificates, limits and wire log.

pub mod message;
pub mod old;

use super::error::{ClientError, Told};
use super::frame::{Frame, Frames};
use super::operation;
use super::{Client, Dialect};
use crate::net::{Net, innermost};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::{Buf as _, Bytes, BytesMut};
use flotilla_core::log::Cursor;
use flotilla_grpc::{Code, SERVICE, details_json, rpc, v03};
use flotilla_protocol::a2a::STREAM_RESUME;
use flotilla_protocol::a2a::request::Request;
use flotilla_protocol::proto03::file::Files;
use http::HeaderMap;
use http_body_util::BodyExt as _;
use percent_encoding::percent_decode_str;
use prost::Message as _;
use std::time::Duration;

/// A flag for compression and the message's length.
const PREFIX: usize = 5;

/// An answer's body as messages, then the status.
struct Incoming {
    body: reqwest::Body,
    framed: Framed,
    credentials: bool,
    net: Net,
}

impl Incoming {
    /// The next message; none after the last one, if the status is good.
    async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            if let Some(message) = self.framed.take()? {
                return Ok(Some(message));
            }
            let Some(frame) = self.body.frame().await else {
                return Err(ClientError::Broken("the agent closed the call without a status".into()));
            };
            let frame = frame.map_err(|error| ClientError::Broken(innermost(&error.without_url())))?;
            match frame.into_data() {
                Ok(data) => self.framed.push(&data),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    self.net.log_headers(&trailers);
                    return status(&trailers, self.credentials).unwrap_or(Ok(())).map(|()| None);
                }
            }
        }
    }
}

/// Turns bytes into messages, whatever pieces they come in.
pub struct Framed {
    buffer: BytesMut,
    limit: usize,
}

impl Framed {
    pub fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), limit }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message among what was pushed.
    pub fn take(&mut self) -> Result<Option<Bytes>, ClientError> {
        if self.buffer.len() < PREFIX {
            return Ok(None);
        }
        let length = u32::from_be_bytes([self.buffer[1], self.buffer[2], self.buffer[3], self.buffer[4]]) as usize;
        if length > self.limit {
            return Err(ClientError::TooLarge { limit: self.limit });
        }
        if self.buffer[0] != 0 {
            return Err(ClientError::malformed("a compressed message, which was not asked for"));
        }
        if self.buffer.len() < PREFIX + length {
            return Ok(None);
        }
        self.buffer.advance(PREFIX);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }
}

/// What headers or trailers say of the call's fate; none if they say nothing.
pub fn status(headers: &HeaderMap, credentials: bool) -> Option<Result<(), ClientError>> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let number: usize = text("grpc-status")?.parse().ok()?;
    if number == 0 {
        return Some(Ok(()));
    }
    let name = Code::ALL.get(number).map_or("UNKNOWN", |code| code.name());
    let message = percent_decode_str(text("grpc-message").unwrap_or_default()).decode_utf8_lossy().into_owned();
    if name == "UNAVAILABLE" {
        return Some(Err(ClientError::Broken(format!("{message} (UNAVAILABLE)"))));
    }
    let details = text("grpc-status-details-bin").and_then(details).unwrap_or_default();
    let named = detail::<rpc::ErrorInfo>(&details, "ErrorInfo").map(|info| info.reason);
    let (reason, message) = match named {
        Some(reason) => (Some(reason), message),
        None => old::reason_in(message),
    };
    let delay = detail::<rpc::RetryInfo>(&details, "RetryInfo").and_then(|retry| retry.retry_delay);
    let retry = delay.map(|delay| format!("in {} s", delay.seconds.max(1)));
    let told = Told { message, reason, retry, grpc: Some(name.to_owned()), ..Told::default() };
    Some(Err(told.into_error(credentials)))
}

fn details(encoded: &str) -> Option<rpc::Status> {
    let bytes = STANDARD_NO_PAD.decode(encoded.trim_end_matches('=')).ok()?;
    rpc::Status::decode(bytes.as_slice()).ok()
}

/// What a header that tells of the call's fate says, in words; none if it is no such header, or cannot be read.
pub fn told(name: &str, value: &str) -> Option<String> {
    match name {
        "grpc-message" => Some(percent_decode_str(value).decode_utf8_lossy().into_owned()),
        "grpc-status-details-bin" => details(value).map(|status| details_json(&status).to_string()),
        _ => None,
    }
}

/// The detail of this name in a `google.rpc.Status`.
fn detail<T: prost::Message + Default>(status: &rpc::Status, name: &str) -> Option<T> {
    let found = status.details.iter().find(|detail| detail.type_url.ends_with(name))?;
    T::decode(found.value.as_slice()).ok()
}

/// Starts a call; what comes back, and the metadata before it.
async fn start(
    client: &Client,
    request: &Request,
    after: Option<&str>,
    patience: Option<Duration>,
) -> Result<(Incoming, HeaderMap), ClientError> {
    let made = || {
        let called = match client.dialect() {
            Dialect::Current => format!("{SERVICE}/{}", request.method().name()),
            Dialect::Old => format!("{}/{}", v03::SERVICE, old::name(request)?),
        };
        let url = format!("{}/{called}", address(&client.choice.interface.url, &client.card.source));
        let (body, verb) = (Some(operation::json(request)?), reqwest::Method::POST);
        let mut outgoing = client.outgoing(verb, url, body, "application/grpc");
        outgoing.headers.push(("TE".into(), "trailers".into()));
        outgoing.headers.extend(after.map(|after| ("Last-Event-ID".into(), after.to_owned())));
        // There is no query here: what a scheme wants there goes beside the others.
        let query = std::mem::take(&mut outgoing.query);
        outgoing.headers.extend(query);
        outgoing.grpc = Some(match client.dialect() {
            Dialect::Current => message::encode(request),
            Dialect::Old => {
                // 0.3 has no tenant: a hub is told by metadata which agent is meant.
                let tenant = &client.choice.interface.tenant;
                outgoing.headers.extend((!tenant.is_empty()).then(|| ("agent-name".to_owned(), tenant.clone())));
                old::encode(request, client.files())
            }
        });
        Ok(outgoing)
    };
    let response = client.start(made, patience).await?;
    let credentials = client.shows_credential();
    if !response.status().is_success() {
        let http = response.status().as_u16();
        let retry = Told::retry_in(response.headers());
        let told = Told { message: format!("HTTP {http}"), http: Some(http), retry, ..Told::default() };
        return Err(told.into_error(credentials));
    }
    let headers = response.headers().clone();
    if let Some(Err(error)) = status(&headers, credentials) {
        return Err(error);
    }
    let body = http::Response::<reqwest::Body>::from(response).into_body();
    let framed = Framed::new(client.net.limits.bytes);
    Ok((Incoming { body, framed, credentials, net: client.net.clone() }, headers))
}

/// Where an interface of a card from `source` is. A bare HOST:PORT is spoken to as the card was fetched: with TLS or
/// without.
pub fn address(url: &str, source: &str) -> String {
    let url = url.trim_end_matches('/');
    if let Some((scheme, rest)) = url.split_once("://") {
        let scheme = match scheme {
            "grpc" => "http",
            "grpcs" => "https",
            other => other,
        };
        return format!("{scheme}://{rest}");
    }
    let from = source.split_once("://").map(|(scheme, _)| scheme);
    let scheme = from.filter(|scheme| matches!(*scheme, "http" | "https"));
    format!("{}://{url}", scheme.unwrap_or_else(|| super::resolve::scheme_for(url)))
}

pub async fn call(client: &Client, request: &Request, patience: Option<Duration>) -> Result<String, ClientError> {
    let (mut incoming, _) = start(client, request, None, patience).await?;
    let Some(answer) = incoming.next().await? else {
        return Err(ClientError::malformed("the call ended well, but without an answer"));
    };
    // The status comes after the message, and counts.
    incoming.next().await?;
    let json = match client.dialect() {
        Dialect::Current => message::decode(request, &answer, client.net.limits.depth)?,
        Dialect::Old => {
            let reader = v03::Reader { json_depth: client.net.limits.depth, files: client.files() };
            old::decode(request.method(), &answer, reader)?
        }
    };
    client.net.note(|| format!("< {json}"));
    Ok(json)
}

pub async fn open(client: &Client, request: &Request, after: Option<&str>) -> Result<Frames, ClientError> {
    let (incoming, headers) = start(client, request, after, operation::patience(client, request)).await?;
    let cursor = headers.get("last-event-id").and_then(|value| value.to_str().ok()).and_then(Cursor::parse);
    Ok(Frames::Grpc(Box::new(GrpcStream { incoming, cursor, dialect: client.dialect(), files: client.files() })))
}

pub struct GrpcStream {
    incoming: Incoming,
    /// gRPC has no place for an event's id, so they are counted from the one before the first.
    cursor: Option<Cursor>,
    dialect: Dialect,
    files: Files,
}

impl GrpcStream {
    pub fn net(&self) -> &Net {
        &self.incoming.net
    }

    pub async fn next(&mut self) -> Result<Option<Frame>, ClientError> {
        let Some(message) = self.incoming.next().await? else { return Ok(None) };
        let net = &self.incoming.net;
        let json = match self.dialect {
            Dialect::Current => message::frame(&message, net.limits.depth)?,
            Dialect::Old => old::frame(&message, v03::Reader { json_depth: net.limits.depth, files: self.files })?,
        };
        net.note(|| format!("< {json}"));
        self.cursor = after(self.cursor.take(), &json)?;
        Frame::made(self.cursor.as_ref().map(ToString::to_string), &json).map(Some)
    }
}

/// The id of a frame, from that of the one before it. A Task that stands for events that are gone names its own place.
pub fn after(before: Option<Cursor>, frame: &str) -> Result<Option<Cursor>, ClientError> {
    let value: serde_json::Value = serde_json::from_str(frame).map_err(ClientError::malformed)?;
    let named = value["task"]["metadata"][STREAM_RESUME]["cursor"].as_str().and_then(Cursor::parse);
    // Whoever counts to the end of all numbers stays there.
    let next = |cursor: Cursor| Cursor { peer_seq: cursor.peer_seq.saturating_add(1), ..cursor };
    Ok(named.or(before.map(next)))
}

#[cfg(test)]
mod tests {
    use super::{Framed, Frames, GrpcStream, Incoming};
    use crate::client::Dialect;
    use crate::net::Net;
    use crate::net::redact::Redactor;
    use flotilla_protocol::proto03::file::Files;
    use http::HeaderMap;
    use http_body_util::{BodyExt as _, Empty};

    #[tokio::test]
    async fn a_credential_that_comes_back_at_the_end_of_a_stream_is_masked() {
        let said = [("grpc-status", "3"), ("grpc-message", "no%20key%20s3cret-1")];
        let trailers: HeaderMap =
            said.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let body = Empty::<bytes::Bytes>::new().with_trailers(async { Some(Ok(trailers)) });
        let net = Net::new(false, Redactor::new(["s3cret-1".to_owned()]), None).unwrap();
        let incoming = Incoming { body: reqwest::Body::wrap(body), framed: Framed::new(1024), credentials: true, net };
        let stream = GrpcStream { incoming, cursor: None, dialect: Dialect::Current, files: Files::Text };
        let error = Frames::Grpc(Box::new(stream)).next().await.unwrap_err();
        assert_eq!(error.to_string(), "no key [redacted]");
    }
}
