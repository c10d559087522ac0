//! A stream of events on an HTTP/1 connection that hyper has let go of: the head, then chunks as they come.

use super::activity::{Held, Watched};
use hyper::Response;
use hyper::body::{Body as _, Bytes};
use hyper::header::{CONNECTION, DATE, HeaderName, TRANSFER_ENCODING};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;
use tokio::io::AsyncWriteExt as _;

/// What a client may send ahead while it is read to; more waits in the system's buffers.
const AHEAD: usize = 16 * 1024;

enum Next {
    Chunk(Bytes),
    End,
    /// The client is.
    Gone,
}

/// Writes an answer to its end; whether the connection is good for another request. `last` says that it is not to be.
pub async fn pour(io: &mut Watched, answer: Response<Held>, last: bool) -> io::Result<bool> {
    let (head, mut body) = answer.into_parts();
    let mut head = Some(written(&head, last));
    loop {
        // The head goes with the first chunk if that is ready.
        let next = poll_fn(|context| match poll_next(io, &mut body, context) {
            Poll::Pending if head.is_some() => Poll::Ready(Ok(None)),
            next => next.map_ok(Some),
        });
        let next = next.await?;
        let mut out = head.take().unwrap_or_default();
        match next {
            None => {}
            Some(Next::Chunk(chunk)) => {
                out.reserve(chunk.len() + 16);
                out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                out.extend_from_slice(&chunk);
                out.extend_from_slice(b"\r\n");
            }
            Some(Next::End) => {
                out.extend_from_slice(b"0\r\n\r\n");
                write(io, &out).await?;
                return Ok(!last);
            }
            Some(Next::Gone) => return Ok(false),
        }
        write(io, &out).await?;
    }
}

async fn write(io: &mut Watched, out: &[u8]) -> io::Result<()> {
    io.write_all(out).await?;
    io.flush().await
}

fn poll_next(io: &mut Watched, body: &mut Held, context: &mut Context<'_>) -> Poll<io::Result<Next>> {
    loop {
        match Pin::new(&mut *body).poll_frame(context) {
            Poll::Ready(None) => return Poll::Ready(Ok(Next::End)),
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(io::Error::other(error))),
            Poll::Ready(Some(Ok(frame))) => {
                // An empty chunk would be the last one.
                if let Some(chunk) = frame.into_data().ok().filter(|chunk| !chunk.is_empty()) {
                    return Poll::Ready(Ok(Next::Chunk(chunk)));
                }
            }
            Poll::Pending => return io.poll_gone(AHEAD, context).map(|()| Ok(Next::Gone)),
        }
    }
}

fn written(answer: &hyper::http::response::Parts, last: bool) -> Vec<u8> {
    let mut head = Vec::with_capacity(512);
    let status = answer.status;
    let reason = status.canonical_reason().unwrap_or_default();
    head.extend_from_slice(format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).as_bytes());
    let mut line = |name: &HeaderName, value: &[u8]| {
        for part in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
            head.extend_from_slice(part);
        }
    };
    for (name, value) in &answer.headers {
        line(name, value.as_bytes());
    }
    line(&DATE, httpdate::fmt_http_date(SystemTime::now()).as_bytes());
    line(&TRANSFER_ENCODING, b"chunked");
    if last {
        line(&CONNECTION, b"close");
    }
    head.extend_from_slice(b"\r\n");
    head
}
