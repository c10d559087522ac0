//! Server-sent events: a follower's frames as text, with a sign of life when there are none.

use crate::app::App;
use crate::reading::{CHUNK, Reading, Turn};
use axum::body::Body;
use bytes::Bytes;
use flotilla_core::error::{Error, Fault};
use flotilla_core::hub::Framed;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::StreamResponse;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use std::convert::Infallible;

/// How a binding dresses a frame.
pub trait Dress: Send + 'static {
    fn frame(&self, out: &mut Vec<u8>, frame: &StreamResponse) -> Result<(), serde_json::Error>;
    fn refusal(&self, app: &App, refusal: &Refusal) -> Vec<u8>;
    /// Whether a stream of this dialect ends with a frame, though the task may go on.
    fn is_last(&self, frame: &StreamResponse) -> bool;
    /// The type of an event that tells a refusal; none is an ordinary one.
    fn failure(&self) -> Option<&'static str> {
        None
    }
}

struct Reader<D> {
    reading: Reading,
    epoch: String,
    dress: D,
    done: bool,
}

pub fn respond<D: Dress>(reading: Reading, dress: D) -> Response<Body> {
    // In a box: what is unfolded has its room twice.
    let reader = Box::new(Reader { epoch: reading.epoch(), reading, dress, done: false });
    let chunks = stream::unfold(reader, |mut reader| async move {
        if reader.done {
            return None;
        }
        let chunk = reader.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), reader))
    });
    dressed(Body::from_stream(chunks))
}

/// A stream of one event.
pub fn single(data: &[u8]) -> Response<Body> {
    dressed(Body::from([b"data: ", data, b"\n\n"].concat()))
}

fn dressed(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies that buffer would turn a stream into one late answer.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl<D: Dress> Reader<D> {
    async fn next(&mut self) -> Option<Vec<u8>> {
        let patience = self.reading.app.settings().keep_alive;
        match self.reading.next(patience).await {
            Ok(Turn::Frames) => match self.write() {
                Ok(chunk) => Some(chunk),
                Err(error) => Some(self.fail(Fault::new(error.to_string()).into())),
            },
            Ok(Turn::Quiet) => Some(b": keep-alive\n\n".to_vec()),
            Ok(Turn::End) => None,
            Ok(Turn::Stopping) => {
                self.done = true;
                Some(b": the hub is stopping; reconnect with the last id as Last-Event-ID\nretry: 1000\n\n".to_vec())
            }
            Err(error) => Some(self.fail(error)),
        }
    }

    /// Writes as many frames as make a chunk; the others wait for the connection to take it.
    fn write(&mut self) -> Result<Vec<u8>, serde_json::Error> {
        let mut chunk = Vec::with_capacity(1024);
        while chunk.len() < CHUNK
            && let Some(Framed { peer_seq, frame }) = self.reading.take()
        {
            chunk.extend_from_slice(format!("id: {}.{peer_seq}\ndata: ", self.epoch).as_bytes());
            let start = chunk.len();
            self.dress.frame(&mut chunk, &frame)?;
            unfold_lines(&mut chunk, start);
            chunk.extend_from_slice(b"\n\n");
            if self.dress.is_last(&frame) {
                self.done = true;
                break;
            }
        }
        Ok(chunk)
    }

    fn fail(&mut self, error: Error) -> Vec<u8> {
        self.done = true;
        let refusal = self.reading.app.refusal(error);
        let mut chunk = self.dress.failure().map(|name| format!("event: {name}\n").into_bytes()).unwrap_or_default();
        chunk.extend_from_slice(b"data: ");
        chunk.extend_from_slice(&self.dress.refusal(&self.reading.app, &refusal));
        chunk.extend_from_slice(b"\n\n");
        chunk
    }
}

/// A caller's opaque JSON may hold line breaks between tokens; as SSE data it must be one line.
fn unfold_lines(chunk: &mut [u8], start: usize) {
    for byte in &mut chunk[start..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}
