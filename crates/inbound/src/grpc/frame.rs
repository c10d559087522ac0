//! Framing: each message goes behind a flag for compression and its length.

use super::{GRPC, trailers};
use crate::answer;
use axum::body::Body;
use bytes::{BufMut as _, Bytes, BytesMut};
use flotilla_grpc::{Code, Status};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use futures_util::stream;
use http::{HeaderMap, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use std::convert::Infallible;

const PREFIX: usize = 5;

/// The one message of a request.
pub fn only(headers: &HeaderMap, mut body: Bytes) -> Result<Bytes, Refusal> {
    let wrong = |text: &str| Refusal::new(Reason::InvalidRequest, text);
    if body.len() < PREFIX {
        return Err(wrong("The request holds no message: its body is shorter than a frame's head."));
    }
    let head = body.split_to(PREFIX);
    if head[0] != 0 {
        let coding = headers.get("grpc-encoding").and_then(|value| value.to_str().ok()).unwrap_or("unnamed");
        let text = format!("Messages compressed with '{coding}' are not read here; send them as they are (identity).");
        return Err(Refusal::new(Reason::CompressionNotSupported, text));
    }
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if length != body.len() {
        return Err(wrong("The request must hold exactly one whole message."));
    }
    Ok(body)
}

pub fn append<T: prost::Message>(out: &mut BytesMut, message: &T) {
    let length = message.encoded_len();
    out.reserve(PREFIX + length);
    out.put_u8(0);
    out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // There is room: it was reserved.
    let _ = message.encode(out);
}

/// A response of one generated message.
pub fn response<T: prost::Message>(message: &T) -> Response<Body> {
    let mut bytes = BytesMut::new();
    append(&mut bytes, message);
    whole(bytes.freeze())
}

/// A response of one message, framed already, and the word that all is well.
pub fn whole(message: Bytes) -> Response<Body> {
    let frames = [Frame::data(message), Frame::trailers(trailers::of(&Status::new(Code::Ok, "")))];
    let body = StreamBody::new(stream::iter(frames.map(Ok::<_, Infallible>)));
    answer::with_type(StatusCode::OK, GRPC, Body::new(body))
}
