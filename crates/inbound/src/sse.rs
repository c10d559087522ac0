//! Server-sent events: a follower's frames as text, with a sign of life when there are none.

use crate::app::App;
use crate::caller;
use axum::body::Body;
use bytes::Bytes;
use flotilla_core::error::Error;
use flotilla_core::hub::{Follow, Framed, Next};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::StreamResponse;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response};
use std::convert::Infallible;
use std::sync::Arc;

/// What is written for a reader before it has taken what came before.
pub const CHUNK: usize = 256 * 1024;

/// How a binding dresses a frame.
pub trait Dress: Send + 'static {
    fn frame(&self, out: &mut Vec<u8>, frame: &StreamResponse) -> Result<(), serde_json::Error>;
    fn refusal(&self, app: &App, refusal: &Refusal) -> Vec<u8>;
}

struct Reader<D> {
    app: Arc<App>,
    /// The credential the stream was opened with.
    credential: Option<String>,
    follow: Box<Follow>,
    epoch: String,
    dress: D,
    /// Frames that are not written yet.
    waiting: std::vec::IntoIter<Framed>,
    done: bool,
}

impl<D> Drop for Reader<D> {
    fn drop(&mut self) {
        self.app.meters.streams.decrement(1.0);
    }
}

/// The follower is only asked for more when the connection has taken what it was given: a slow reader costs nothing.
pub fn respond<D: Dress>(app: &Arc<App>, asked: &HeaderMap, follow: Box<Follow>, dress: D) -> Response<Body> {
    app.meters.streams.increment(1.0);
    let epoch = follow.epoch();
    let credential = caller::credential(asked).ok().flatten().map(str::to_owned);
    let reader =
        Reader { app: Arc::clone(app), credential, follow, epoch, dress, waiting: Vec::new().into_iter(), done: false };
    let chunks = stream::unfold(reader, |mut reader| async move {
        if reader.done {
            return None;
        }
        let chunk = reader.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), reader))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies that buffer would turn a stream into one late answer.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl<D: Dress> Reader<D> {
    async fn next(&mut self) -> Option<Vec<u8>> {
        let next = if self.waiting.len() > 0 {
            Ok(Next::Frames(std::mem::take(&mut self.waiting).collect()))
        } else {
            self.follow.next(self.app.settings().keep_alive).await
        };
        // A key that was revoked meanwhile sees nothing more.
        if let Err(error) = self.app.access.caller(self.credential.as_deref()).await {
            return Some(self.fail(error));
        }
        match next {
            Ok(Next::Frames(frames)) => match self.write(frames) {
                Ok(chunk) => Some(chunk),
                Err(error) => Some(self.fail(flotilla_core::error::Fault::new(error.to_string()).into())),
            },
            Ok(Next::Quiet) => Some(b": keep-alive\n\n".to_vec()),
            Ok(Next::End) => None,
            Ok(Next::Stopping) => {
                self.done = true;
                Some(b": the hub is stopping; reconnect with the last id as Last-Event-ID\nretry: 1000\n\n".to_vec())
            }
            Err(error) => Some(self.fail(error)),
        }
    }

    /// Writes as many frames as make a chunk; the others wait for the connection to take it.
    fn write(&mut self, frames: Vec<Framed>) -> Result<Vec<u8>, serde_json::Error> {
        let mut chunk = Vec::with_capacity((frames.len() * 256).min(CHUNK));
        self.waiting = frames.into_iter();
        while chunk.len() < CHUNK
            && let Some(Framed { peer_seq, frame }) = self.waiting.next()
        {
            chunk.extend_from_slice(format!("id: {}.{peer_seq}\ndata: ", self.epoch).as_bytes());
            let start = chunk.len();
            self.dress.frame(&mut chunk, &frame)?;
            unfold_lines(&mut chunk, start);
            chunk.extend_from_slice(b"\n\n");
        }
        Ok(chunk)
    }

    fn fail(&mut self, error: Error) -> Vec<u8> {
        self.done = true;
        let refusal = self.app.refusal(error);
        let mut chunk = b"data: ".to_vec();
        chunk.extend_from_slice(&self.dress.refusal(&self.app, &refusal));
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
