//! A stream under way, whatever the binding: what its reader is given next, for as long as its key is good.

use crate::app::App;
use crate::caller;
use flotilla_core::error::Error;
use flotilla_core::hub::{Follow, Framed, Next};
use flotilla_core::log::Cursor;
use http::HeaderMap;
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
    /// The credential the stream was opened with.
    credential: Option<String>,
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
    pub fn new(app: &Arc<App>, asked: &HeaderMap, follow: Box<Follow>) -> Self {
        app.meters.streams.increment(1.0);
        let credential = caller::credential(asked).ok().flatten().map(str::to_owned);
        Self { app: Arc::clone(app), credential, follow, waiting: Vec::new().into_iter() }
    }

    /// Waits for the next turn, a quiet one after `patience`.
    pub async fn next(&mut self, patience: Duration) -> Result<Turn, Error> {
        let next = if self.waiting.len() > 0 { None } else { Some(self.follow.next(patience).await) };
        let turn = match next {
            None => Ok(Turn::Frames),
            Some(Ok(Next::Frames(frames))) => {
                self.waiting = frames.into_iter();
                Ok(Turn::Frames)
            }
            Some(Ok(Next::Quiet)) => Ok(Turn::Quiet),
            Some(Ok(Next::Stopping)) => Ok(Turn::Stopping),
            Some(Ok(Next::End)) => Ok(Turn::End),
            Some(Err(error)) => Err(error),
        };
        // A key that was revoked meanwhile sees nothing more.
        self.app.access.caller(self.credential.as_deref()).await?;
        turn
    }

    pub fn take(&mut self) -> Option<Framed> {
        let taken = self.waiting.next();
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
