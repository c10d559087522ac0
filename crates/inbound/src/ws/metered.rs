//! A socket's bytes, counted from the beginning of a message to its end: a message that is never finished holds no more
//! than its caller's share, and no longer than its time.

use super::upgrade::Bytes;
use flotilla_core::held_bytes::Held;
use flotilla_protocol::a2a::error::Refusal;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Bytes are held in such steps: most messages are smaller, and cost nothing here.
const STEP: usize = 16 * 1024;

/// The head of a client's control frame: two bytes, and a mask.
const CONTROL_HEAD: usize = 6;

/// The message that is being read.
pub struct Unfinished {
    held: Held,
    /// Bytes that came since the last whole message.
    came: usize,
    counted: usize,
    since: Option<Instant>,
    refused: Option<Refusal>,
}

#[derive(Clone)]
pub struct Incoming(Arc<Mutex<Unfinished>>);

impl Incoming {
    pub fn new(held: Held) -> Self {
        Self(Arc::new(Mutex::new(Unfinished { held, came: 0, counted: 0, since: None, refused: None })))
    }

    fn state(&self) -> MutexGuard<'_, Unfinished> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message is whole, or was none that is kept.
    pub fn whole(&self) {
        let mut state = self.state();
        state.held.release();
        (state.came, state.counted, state.since) = (0, 0, None);
    }

    /// A ping or a pong, which may come in the middle of a message.
    pub fn control(&self, payload: usize) {
        let mut state = self.state();
        state.came = state.came.saturating_sub(CONTROL_HEAD + payload);
        if state.came == 0 {
            state.since = None;
        }
    }

    /// When the message that is being read must be whole: every byte buys the time it may take at the slowest pace.
    pub fn due(&self, time: std::time::Duration, rate: usize) -> Option<Instant> {
        let state = self.state();
        let bought = std::time::Duration::from_secs(1).mul_f64(state.came as f64 / rate as f64);
        state.since.map(|since| since + time + bought)
    }

    pub fn refused(&self) -> Option<Refusal> {
        self.state().refused.take()
    }

    fn read(&self, count: usize) -> io::Result<()> {
        let mut state = self.state();
        state.since.get_or_insert_with(Instant::now);
        state.came += count;
        if state.came < state.counted.saturating_add(STEP) {
            return Ok(());
        }
        let more = state.came - state.counted;
        state.counted = state.came;
        state.held.grow(more).map_err(|refusal| {
            let error = io::Error::other(refusal.message.clone());
            state.refused = Some(refusal);
            error
        })
    }
}

/// The connection below the messages.
pub struct Metered {
    pub stream: Box<dyn Bytes>,
    pub incoming: Incoming,
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let count = buffer.filled().len() - before;
        if count > 0
            && let Err(error) = self.incoming.read(count)
        {
            return Poll::Ready(Err(error));
        }
        read
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
