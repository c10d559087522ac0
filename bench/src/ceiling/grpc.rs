//! The ceiling's gRPC door: the fields it needs are read and written by hand.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use flotilla_bench::load::grpc::framed;
use flotilla_bench::load::proto::{self, Field};
use http_body::Frame;
use http_body_util::StreamBody;

use crate::ID;

/// The response's protobuf message; None if the request is none.
fn task(request: &[u8]) -> Option<Vec<u8>> {
    let Some(Field::Bytes(message)) = proto::find(request.get(5..)?, 2) else { return None };
    let Some(Field::Bytes(part)) = proto::find(message, 5) else { return None };
    let (mut status, mut artifact, mut task, mut response) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    proto::put_number(&mut status, 1, 3);
    proto::put(&mut artifact, 1, ID.as_bytes());
    proto::put(&mut artifact, 4, part);
    proto::put(&mut task, 1, ID.as_bytes());
    proto::put(&mut task, 2, ID.as_bytes());
    proto::put(&mut task, 3, &status);
    proto::put(&mut task, 4, &artifact);
    proto::put(&mut task, 5, message);
    proto::put(&mut response, 1, &task);
    Some(response)
}

pub async fn send_message(body: Bytes) -> Response {
    let answer = task(&body);
    let mut trailers = HeaderMap::new();
    // 0 is OK, 3 is INVALID_ARGUMENT.
    let status = if answer.is_some() { "0" } else { "3" };
    trailers.insert("grpc-status", HeaderValue::from_static(status));
    let data = Frame::data(Bytes::from(framed(&answer.unwrap_or_default())));
    let frames = [Ok::<_, Infallible>(data), Ok(Frame::trailers(trailers))];
    let body = Body::new(StreamBody::new(futures_util::stream::iter(frames)));
    ([(header::CONTENT_TYPE, "application/grpc")], body).into_response()
}
