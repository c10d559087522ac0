//! A stream under way, whatever the binding: what its reader is given next, for as long as its key is good.

use crate::app::App;
use flotilla_core::access::Leave;
use flotilla_core::error::Error;
use flotilla_core::hub::{Follow, Framed, Next};
use flotilla_core::log::Cursor;
use std::sync::Arc;
use std::time::Duration;

/// What is written for a reader before it has taken what came before.
pub const CHUNK: usize = 256 * 1024;

/// What there is for a reader.
pub enum Turn {
    /// Frames to take.
    Frames,
    Quiet,
    Stopping,
    End,
}

/// The follower is only asked for more when what it gave is taken: a slow reader costs nothing.
pub struct Reading {
    pub app: Arc<App>,
    /// The reader may go on for as long as this holds.
    leave: Leave,
    follow: Box<Follow>,
    /// Frames that are not taken yet.
    waiting: std::vec::IntoIter<Framed>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.app.meters.streams.decrement(1.0);
    }
}

impl Reading {
    pub fn new(app: &Arc<App>, leave: Leave, follow: Box<Follow>) -> Self {
        app.meters.streams.increment(1.0);
        Self { app: Arc::clone(app), leave, follow, waiting: Vec::new().into_iter() }
    }

    /// Waits for the next turn, a quiet one after `patience`.
    pub async fn next(&mut self, patience: Duration) -> Result<Turn, Error> {
        let turn = if self.waiting.len() > 0 {
            Turn::Frames
        } else {
            let next = tokio::select! {
                biased;
                next = self.follow.next(patience) => next?,
                // The follower may have been cut off in the middle: it is not asked again.
                refusal = self.leave.ended() => return Err(refusal.into()),
            };
            match next {
                Next::Frames(frames) => {
                    self.waiting = frames.into_iter();
                    Turn::Frames
                }
                Next::Quiet => Turn::Quiet,
                Next::Stopping => Turn::Stopping,
                Next::End => Turn::End,
            }
        };
        // A key that was revoked meanwhile sees nothing more, also of what was found before.
        self.leave.check()?;
        Ok(turn)
    }

    pub fn take(&mut self) -> Option<Framed> {
        let taken = self.waiting.next();
        if self.waiting.len() == 0 {
            self.follow.taken();
        }
        if taken.is_none() {
            // A stream is quiet for long: it holds no room for frames meanwhile.
            self.waiting = Vec::new().into_iter();
        }
        taken
    }

    pub fn epoch(&self) -> String {
        self.follow.epoch()
    }

    /// Where the reader stands: what was not taken was not seen, whoever ends the stream.
    pub fn position(&self) -> Cursor {
        let unseen = self.waiting.as_slice().first().map(|next| next.peer_seq.saturating_sub(1));
        Cursor { epoch: self.follow.epoch(), peer_seq: unseen.unwrap_or_else(|| self.follow.position()) }
    }
}
