//! Framing: each message goes behind a flag for compression and its length.

use super::{GRPC, trailers};
use crate::answer;
use axum::body::Body;
use bytes::{BufMut as _, Bytes, BytesMut};
use flotilla_grpc::{Code, Status};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use http::{HeaderMap, Response, StatusCode};
use http_body::{Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

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
    let body = Whole { message: Some(message), is_over: false };
    answer::with_type(StatusCode::OK, GRPC, Body::new(body))
}

struct Whole {
    message: Option<Bytes>,
    is_over: bool,
}

impl http_body::Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.message.take() {
            Some(message) => Frame::data(message),
            None if self.is_over => return Poll::Ready(None),
            None => {
                self.is_over = true;
                Frame::trailers(trailers::of(&Status::new(Code::Ok, "")))
            }
        };
        Poll::Ready(Some(Ok(next)))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }

    /// Known, so that its bytes are held for the caller before they are sent.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.message.as_ref().map_or(0, |message| message.len() as u64))
    }
}
