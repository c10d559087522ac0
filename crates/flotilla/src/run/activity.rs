//! What goes on on a connection: requests under way, heads begun, and for how long nothing.

use super::secure::Socket;
use axum::body::Body;
use bytes::BytesMut;
use hyper::body::{Bytes, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// How long a client may be silent.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// With part of a request's head.
    pub head: Duration,
    /// Between requests.
    pub idle: Duration,
}

/// Which time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    Head,
    Idle,
}

/// Only atomics are touched per request; the watch looks at them now and then.
pub struct Activity {
    opened: Instant,
    busy: AtomicUsize,
    /// When the last request ended, or the client last took some of an answer; in milliseconds since the opening.
    quiet_since: AtomicU64,
    /// When a head was begun that is not complete yet; `NO_HEAD` if there is none.
    head_since: AtomicU64,
}

const NO_HEAD: u64 = u64::MAX;
/// What is smaller keeps a connection alive and is no part of an answer: pings, windows, settings.
const OF_AN_ANSWER: usize = 64;

impl Activity {
    /// A connection owes a head from its first moment.
    pub fn since(opened: Instant) -> Arc<Self> {
        Arc::new(Self {
            opened,
            busy: AtomicUsize::new(0),
            quiet_since: AtomicU64::new(0),
            head_since: AtomicU64::new(0),
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(NO_HEAD - 1)
    }

    fn at(&self, millis: u64) -> Instant {
        self.opened + Duration::from_millis(millis)
    }

    /// Whether a head is waited for.
    pub fn owes_head(&self) -> bool {
        self.head_since.load(Ordering::Relaxed) != NO_HEAD
    }

    fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) > 0
    }

    /// A request's head is complete.
    pub fn begin(activity: &Arc<Self>) -> Busy {
        activity.busy.fetch_add(1, Ordering::Relaxed);
        activity.head_since.store(NO_HEAD, Ordering::Relaxed);
        Busy(Arc::clone(activity))
    }

    /// Bytes came: outside a request, they begin a head.
    fn came(&self) {
        if !self.is_busy() && !self.owes_head() {
            self.head_since.store(self.now(), Ordering::Relaxed);
        }
    }

    /// Bytes were taken: an answer that is handed over as a whole is still under way while it is being read.
    fn took(&self, count: usize) {
        if count >= OF_AN_ANSWER {
            self.quiet_since.store(self.now(), Ordering::Relaxed);
        }
    }

    /// Whether anything went on within this time.
    pub fn is_active(&self, within: Duration) -> bool {
        self.is_busy() || self.at(self.quiet_since.load(Ordering::Relaxed)) + within > Instant::now()
    }

    /// Resolves when the client has been silent for too long. Looks at least once in every head time, so that no head
    /// begun between two looks is missed.
    pub async fn silent(&self, times: Times) -> Silence {
        loop {
            let now = Instant::now();
            let head_since = self.head_since.load(Ordering::Relaxed);
            let mut look_again = now + times.head.min(times.idle);
            if !self.is_busy() {
                let (deadline, silence) = if head_since == NO_HEAD {
                    (self.at(self.quiet_since.load(Ordering::Relaxed)) + times.idle, Silence::Idle)
                } else {
                    (self.at(head_since) + times.head, Silence::Head)
                };
                if now >= deadline {
                    return silence;
                }
                look_again = look_again.min(deadline);
            }
            tokio::time::sleep_until(look_again).await;
        }
    }
}

/// A request under way, to the last byte of its answer.
pub struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.quiet_since.store(self.0.now(), Ordering::Relaxed);
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An answer's body that keeps its connection busy: a stream is a request under way as long as it is read.
pub struct Held {
    body: Body,
    _busy: Busy,
}

impl Held {
    pub fn new(body: Body, busy: Busy) -> Self {
        Self { body, _busy: busy }
    }
}

impl hyper::body::Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A socket that tells when bytes came and went.
pub struct Watched {
    stream: Socket,
    activity: Arc<Activity>,
    /// Whether bytes outside a request begin one. In HTTP/2, frames come without any once the first has come.
    heads: bool,
    /// What came and was not used yet.
    ahead: BytesMut,
    /// Given back when the socket is closed, whatever it was used for.
    _held: Option<Box<dyn Send>>,
}

impl Watched {
    pub fn new(stream: Socket, activity: Arc<Activity>, heads: bool) -> Self {
        Self { stream, activity, heads, ahead: BytesMut::new(), _held: None }
    }

    /// The same, holding on to something.
    pub fn holding(self, held: impl Send + 'static) -> Self {
        Self { _held: Some(Box::new(held)), ..self }
    }

    /// Gives back what was read too far.
    pub fn unread(&mut self, bytes: &[u8]) {
        let rest = std::mem::take(&mut self.ahead);
        self.ahead.extend_from_slice(bytes);
        self.ahead.extend_from_slice(&rest);
    }

    /// Resolves when the client is gone. What it sends ahead is kept, up to about `most` bytes.
    pub fn poll_gone(&mut self, most: usize, context: &mut Context<'_>) -> Poll<()> {
        while self.ahead.len() < most {
            let mut bytes = [0; 512];
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => self.ahead.extend_from_slice(buffer.filled()),
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
        // It is told by what is written to it.
        Poll::Pending
    }

    fn wrote(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(count)) = &written {
            self.activity.took(*count);
        }
        written
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let count = self.ahead.len().min(buffer.remaining());
            buffer.put_slice(&self.ahead.split_to(count));
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.heads && buffer.filled().len() > before {
            self.activity.came();
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(written)
    }
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.wrote(written)
    }
    /// In HTTP/2 not: what is small is then copied, and an answer and its trailers go out together.
    fn is_write_vectored(&self) -> bool {
        self.heads && self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::{Activity, Silence, Times};
    use std::time::Duration;
    use tokio::time::Instant;

    const TIMES: Times = Times { head: Duration::from_secs(10), idle: Duration::from_secs(60) };

    async fn advance(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    async fn let_go_after(activity: &Activity) -> (Silence, u64) {
        let started = Instant::now();
        let silence = activity.silent(TIMES).await;
        (silence, started.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_owes_a_head() {
        assert_eq!(let_go_after(&Activity::since(Instant::now())).await, (Silence::Head, 10));
    }

    #[tokio::test(start_paused = true)]
    async fn between_requests_a_connection_may_be_idle_for_longer() {
        let activity = Activity::since(Instant::now());
        let busy = Activity::begin(&activity);
        advance(30).await;
        drop(busy);
        assert_eq!(let_go_after(&activity).await, (Silence::Idle, 60));
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_was_begun_is_owed_again() {
        let activity = Activity::since(Instant::now());
        drop(Activity::begin(&activity));
        advance(25).await;
        activity.came();
        advance(3).await;
        activity.came();
        assert_eq!(let_go_after(&activity).await, (Silence::Head, 7), "more of a head buys no more time");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_being_read_is_no_silence() {
        let activity = Activity::since(Instant::now());
        drop(Activity::begin(&activity));
        advance(50).await;
        activity.took(4_000);
        assert!(activity.is_active(Duration::from_secs(5)));
        advance(10).await;
        assert!(!activity.is_active(Duration::from_secs(5)));
        activity.took(17);
        assert_eq!(let_go_after(&activity).await, (Silence::Idle, 50), "a ping is no answer");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_a_request_is_not_silent() {
        let activity = Activity::since(Instant::now());
        let busy = Activity::begin(&activity);
        activity.came();
        let silent = tokio::time::timeout(Duration::from_secs(1000), activity.silent(TIMES)).await;
        assert!(silent.is_err());
        drop(busy);
        assert_eq!(let_go_after(&activity).await.0, Silence::Idle);
    }
}
