//! What an HTTP/1 connection becomes with an answer: a stream or a socket, which are quiet for long. What is made for
//! requests is given back then, hyper's buffers most of all.

use super::activity::Held;
use flotilla_inbound::Upgrade;
use hyper::body::{Body as _, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, CONTENT_TYPE, EXPECT};
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Version};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

pub enum Becomes {
    /// A stream of events, and a connection for requests again when it has ended, unless that is to be its end.
    Stream {
        answer: Response<Held>,
        last: bool,
    },
    Socket(Upgrade),
}

/// Between what serves a connection's requests and what drives it. HTTP/1 has one request at a time.
#[derive(Default)]
pub struct Becoming {
    /// Whether the request at hand was read to its end.
    whole: AtomicBool,
    becomes: Mutex<Option<Becomes>>,
}

/// What is to be known of a request when its answer is there.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    may_stream: bool,
    last: bool,
}

impl Asked {
    pub fn of<B>(request: &Request<B>) -> Self {
        let headers = request.headers();
        // Others are rare, and hyper knows how to answer them.
        let may_stream =
            request.version() == Version::HTTP_11 && request.method() != Method::HEAD && !headers.contains_key(EXPECT);
        Self { may_stream, last: says_close(headers) }
    }
}

fn says_close(headers: &HeaderMap) -> bool {
    let words = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    words.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case("close"))
}

impl Becoming {
    /// Gives the answer back if it is hyper's to write.
    pub async fn answer(&self, asked: Asked, answer: Response<Held>) -> Response<Held> {
        if let Some(upgrade) = answer.extensions().get::<Upgrade>() {
            self.set(Becomes::Socket(upgrade.clone()));
        } else if asked.may_stream && self.whole.load(Ordering::Relaxed) && is_stream(&answer) {
            self.set(Becomes::Stream { answer, last: asked.last });
            // The connection is taken from hyper before anybody asks again.
            return std::future::pending().await;
        }
        answer
    }

    fn set(&self, becomes: Becomes) {
        *self.becomes.lock().unwrap_or_else(PoisonError::into_inner) = Some(becomes);
    }

    pub fn take(&self) -> Option<Becomes> {
        self.becomes.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn is_stream(&self) -> bool {
        matches!(*self.becomes.lock().unwrap_or_else(PoisonError::into_inner), Some(Becomes::Stream { .. }))
    }
}

fn is_stream(answer: &Response<Held>) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE);
    answer.status() == StatusCode::OK && kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// A request's body that tells when it was read to its end: what comes after that is another request.
pub struct Heard {
    body: Incoming,
    becoming: Arc<Becoming>,
}

impl Heard {
    pub fn new(body: Incoming, becoming: Arc<Becoming>) -> Self {
        becoming.whole.store(body.is_end_stream(), Ordering::Relaxed);
        Self { body, becoming }
    }
}

impl hyper::body::Body for Heard {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.becoming.whole.store(true, Ordering::Relaxed);
        }
        frame
    }
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
