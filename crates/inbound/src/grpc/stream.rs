//! Streams: a follower's frames as messages. Their numbers are dense, so the first tells them all.

use super::speech::Speech;
use super::{GRPC, deadline, trailers};
use crate::answer;
use crate::reading::{CHUNK, Reading, Turn};
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use flotilla_grpc::{Code, Status};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use std::convert::Infallible;
use std::time::Instant;

/// Where a reader stands, in the metadata of a stream's beginning and end.
const CURSOR: &str = "last-event-id";

struct Sender {
    reading: Reading,
    speech: Speech,
    deadline: Option<Instant>,
    done: bool,
    /// The frame was sent that ends a stream in this version, though the task may go on.
    last: bool,
}

pub fn respond(reading: Reading, speech: Speech, deadline: Option<Instant>) -> Response<Body> {
    let cursor = header(&reading);
    let sender = Sender { reading, speech, deadline, done: false, last: false };
    let frames = stream::unfold(sender, |mut sender| async move {
        if sender.done {
            return None;
        }
        let next = sender.next().await;
        Some((Ok::<_, Infallible>(next), sender))
    });
    let mut response = answer::with_type(StatusCode::OK, GRPC, Body::new(StreamBody::new(frames)));
    if let Some(cursor) = cursor {
        response.headers_mut().insert(CURSOR, cursor);
    }
    response
}

fn header(reading: &Reading) -> Option<HeaderValue> {
    HeaderValue::from_str(&reading.position().to_string()).ok()
}

impl Sender {
    async fn next(&mut self) -> Frame<Bytes> {
        if self.last {
            return self.end(&Status::new(Code::Ok, ""));
        }
        loop {
            let patience = self.reading.app.settings().keep_alive;
            let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match self.reading.next(left.map_or(patience, |left| left.min(patience))).await {
                Ok(Turn::Frames) => return self.write(),
                // Signs of life are the connection's own business here.
                Ok(Turn::Quiet) if self.deadline.is_none_or(|deadline| Instant::now() < deadline) => {}
                Ok(Turn::Quiet) => return self.refuse(&deadline::exceeded()),
                Ok(Turn::End) => return self.end(&Status::new(Code::Ok, "")),
                Ok(Turn::Stopping) => {
                    let text = "The hub is stopping; subscribe again with the last-event-id of these trailers.";
                    return self.refuse(&Refusal::new(Reason::Unavailable, text));
                }
                Err(error) => {
                    let refusal = self.reading.app.refusal(error);
                    return self.refuse(&refusal);
                }
            }
        }
    }

    fn refuse(&mut self, refusal: &Refusal) -> Frame<Bytes> {
        self.end(&self.speech.status(refusal, self.reading.app.now()))
    }

    fn end(&mut self, status: &Status) -> Frame<Bytes> {
        self.done = true;
        let mut trailers = trailers::of(status);
        if let Some(cursor) = header(&self.reading) {
            trailers.insert(CURSOR, cursor);
        }
        Frame::trailers(trailers)
    }

    /// Writes as many frames as make a chunk; the others wait for the connection to take it.
    fn write(&mut self) -> Frame<Bytes> {
        let mut bytes = BytesMut::new();
        while bytes.len() < CHUNK
            && let Some(framed) = self.reading.take()
        {
            self.speech.append(&mut bytes, &framed.frame);
            if self.speech.dialect().ends_with(&framed.frame) {
                self.last = true;
                break;
            }
        }
        Frame::data(bytes.freeze())
    }
}
