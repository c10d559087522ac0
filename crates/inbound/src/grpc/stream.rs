//! Streams: a follower's frames as messages. Their numbers are dense, so the first tells them all.

use super::{GRPC, deadline, frame, trailers};
use crate::app::App;
use crate::sse::CHUNK;
use crate::{answer, caller};
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use flotilla_core::hub::{Follow, Framed, Next};
use flotilla_core::log::Cursor;
use flotilla_grpc::{Code, Status};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

/// Where a reader stands, in the metadata of a stream's beginning and end.
const CURSOR: &str = "last-event-id";

struct Sender {
    app: Arc<App>,
    /// The credential the stream was opened with.
    credential: Option<String>,
    follow: Box<Follow>,
    deadline: Option<Instant>,
    /// Frames that are not written yet.
    waiting: std::vec::IntoIter<Framed>,
    done: bool,
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.app.meters.streams.decrement(1.0);
    }
}

/// The follower is only asked for more when the connection has taken what it was given: a slow reader costs nothing.
pub fn respond(app: &Arc<App>, asked: &HeaderMap, follow: Box<Follow>, deadline: Option<Instant>) -> Response<Body> {
    app.meters.streams.increment(1.0);
    let credential = caller::credential(asked).ok().flatten().map(str::to_owned);
    let cursor = header(&follow, follow.position());
    let waiting = Vec::new().into_iter();
    let sender = Sender { app: Arc::clone(app), credential, follow, deadline, waiting, done: false };
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

fn header(follow: &Follow, peer_seq: u64) -> Option<HeaderValue> {
    let cursor = Cursor { epoch: follow.epoch(), peer_seq };
    HeaderValue::from_str(&cursor.to_string()).ok()
}

impl Sender {
    async fn next(&mut self) -> Frame<Bytes> {
        loop {
            let patience = self.app.settings().keep_alive;
            let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let mut next = None;
            if self.waiting.len() == 0 {
                match self.follow.next(left.map_or(patience, |left| left.min(patience))).await {
                    Ok(Next::Frames(frames)) => self.waiting = frames.into_iter(),
                    other => next = Some(other),
                }
            }
            // A key that was revoked meanwhile sees nothing more.
            if let Err(error) = self.app.access.caller(self.credential.as_deref()).await {
                return self.end(&Status::of(&self.app.refusal(error), self.app.now()));
            }
            match next {
                None | Some(Ok(Next::Frames(_))) => return self.write(),
                // Signs of life are the connection's own business here.
                Some(Ok(Next::Quiet)) if self.deadline.is_none_or(|deadline| Instant::now() < deadline) => {}
                Some(Ok(Next::Quiet)) => return self.end(&deadline::exceeded()),
                Some(Ok(Next::End)) => return self.end(&Status::new(Code::Ok, "")),
                Some(Ok(Next::Stopping)) => {
                    let text = "The hub is stopping; subscribe again with the last-event-id of these trailers.";
                    return self.end(&Status::new(Code::Unavailable, text));
                }
                Some(Err(error)) => return self.end(&Status::of(&self.app.refusal(error), self.app.now())),
            }
        }
    }

    fn end(&mut self, status: &Status) -> Frame<Bytes> {
        self.done = true;
        let mut trailers = trailers::of(status);
        // What was not written was not seen, whoever ended the stream.
        let unseen = self.waiting.as_slice().first().map(|next| next.peer_seq.saturating_sub(1));
        if let Some(cursor) = header(&self.follow, unseen.unwrap_or_else(|| self.follow.position())) {
            trailers.insert(CURSOR, cursor);
        }
        Frame::trailers(trailers)
    }

    /// Writes as many frames as make a chunk; the others wait for the connection to take it.
    fn write(&mut self) -> Frame<Bytes> {
        let mut bytes = BytesMut::new();
        while bytes.len() < CHUNK
            && let Some(framed) = self.waiting.next()
        {
            frame::append(&mut bytes, &flotilla_grpc::frame(&framed.frame));
        }
        Frame::data(bytes.freeze())
    }
}
