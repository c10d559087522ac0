//! Statuses as gRPC sends them: in trailers, or in the headers of an answer that is nothing else.

use super::GRPC;
use crate::answer;
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use flotilla_grpc::{Code, Status};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

static STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");
/// What `grpc-message` escapes: all but the printable characters of ASCII, and the escape itself.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

pub fn of(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(3);
    if status.code == Code::Ok {
        trailers.insert(&STATUS, OK);
        return trailers;
    }
    trailers.insert(&STATUS, HeaderValue::from(status.code as u16));
    let message = utf8_percent_encode(&status.message, ESCAPED).to_string();
    if let Ok(message) = HeaderValue::from_str(&message) {
        trailers.insert("grpc-message", message);
    }
    if !status.details.is_empty()
        && let Ok(details) = HeaderValue::from_str(&STANDARD_NO_PAD.encode(&status.details))
    {
        trailers.insert("grpc-status-details-bin", details);
    }
    trailers
}

/// An answer without any message.
pub fn only(status: &Status) -> Response<Body> {
    let mut response = answer::with_type(StatusCode::OK, GRPC, Body::empty());
    response.headers_mut().extend(of(status));
    response
}
