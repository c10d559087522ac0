//! The opening of a WebSocket (RFC 6455, 4.2): what a request must say, and the answer to it.

use super::connection::Manner;
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::channel::{SUBPROTOCOL, SUBPROTOCOL_03};
use flotilla_protocol::hub_frame::worker;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, Version};
use sha1::{Digest as _, Sha1};

/// What every key is hashed with (RFC 6455, 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A request that may become a connection.
pub struct Accepted {
    accept: String,
    pub manner: Manner,
}

/// `plain` is how a peer is spoken to that asks for no subprotocol.
pub fn check(request: &Parts, plain: Manner) -> Result<Accepted, Refusal> {
    let wrong =
        |text: &str| Err(Refusal::new(Reason::InvalidRequest, format!("{text} /ws is a WebSocket (RFC 6455).")));
    if request.method != Method::GET || request.version != Version::HTTP_11 {
        return wrong("Connect with GET over HTTP/1.1.");
    }
    let names = |header: HeaderName, token: &str| {
        let values = request.headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(token))
    };
    if !names(CONNECTION, "upgrade") || !names(UPGRADE, "websocket") {
        return wrong("Ask for an upgrade: 'Connection: Upgrade' and 'Upgrade: websocket'.");
    }
    if !names(SEC_WEBSOCKET_VERSION, "13") {
        return wrong("Send 'Sec-WebSocket-Version: 13'.");
    }
    let key = request.headers.get(SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok()).unwrap_or_default().trim();
    if STANDARD.decode(key).map_or(0, |bytes| bytes.len()) != 16 {
        return wrong("Send a Sec-WebSocket-Key of 16 bytes in base64.");
    }
    let manner = if names(SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        Manner::V10
    } else if names(SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL_03) {
        Manner::V03
    } else if names(SEC_WEBSOCKET_PROTOCOL, worker::SUBPROTOCOL) {
        Manner::Worker
    } else {
        plain
    };
    Ok(Accepted { accept: accept(key), manner })
}

/// What comes after the head is frames: a body would be taken for them.
pub fn check_bare(request: &Parts) -> Result<(), Refusal> {
    let length = request.headers.get(CONTENT_LENGTH);
    if length.is_none_or(|length| length == "0") && !request.headers.contains_key(TRANSFER_ENCODING) {
        return Ok(());
    }
    let text = "A request that opens a WebSocket has no body: leave out Content-Length and Transfer-Encoding.";
    Err(Refusal::new(Reason::InvalidRequest, text))
}

fn accept(key: &str) -> String {
    STANDARD.encode(Sha1::new().chain_update(key.as_bytes()).chain_update(GUID).finalize())
}

impl Accepted {
    pub fn response(self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        if let Ok(accept) = HeaderValue::from_str(&self.accept) {
            headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        }
        let chosen = match self.manner {
            Manner::V10 => Some(SUBPROTOCOL),
            Manner::V03 => Some(SUBPROTOCOL_03),
            Manner::Worker => Some(worker::SUBPROTOCOL),
            Manner::Frames | Manner::GopherHole => None,
        };
        if let Some(chosen) = chosen {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(chosen));
        }
        response
    }
}

/// HTTP has a status of its own for this.
pub fn not_upgraded(mut response: Response<Body>) -> Response<Body> {
    *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    response
}

#[cfg(test)]
mod tests {
    use super::accept;

    #[test]
    fn the_key_of_the_specification_has_its_answer() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
