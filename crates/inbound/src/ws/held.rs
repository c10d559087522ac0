//! What an agent says of a run after a cut, before it has said what became of it: kept until then, up to a bound.

use flotilla_core::ids::TaskId;
use flotilla_protocol::channel::Failure;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Frames that are kept for one run, and their bytes; a single frame is kept whatever its size.
const MOST_FRAMES: usize = 256;
const MOST_BYTES: usize = 1024 * 1024;
/// How long an agent has for its answer. One that knows no such question is then taken at its word.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came under the id of an earlier request.
pub enum Kept {
    /// None where the answer had none.
    Result(Option<String>),
    Failed(Failure),
    Ended,
}

impl Kept {
    fn size(&self) -> usize {
        match self {
            Self::Result(text) => text.as_ref().map_or(0, String::len),
            Self::Failed(failure) => failure.message.len(),
            Self::Ended => 0,
        }
    }
}

/// In the order it came, each with the id it came under.
#[derive(Default)]
pub struct Held {
    frames: Vec<(String, Kept)>,
    bytes: usize,
    overflowed: bool,
}

impl Held {
    pub fn keep(&mut self, id: &str, frame: Kept) {
        self.bytes += frame.size();
        self.overflowed |= self.frames.len() >= MOST_FRAMES || (self.bytes > MOST_BYTES && !self.frames.is_empty());
        if self.overflowed {
            // A part of it is worth nothing: what it says in the end would seem to be all.
            self.frames.clear();
        } else {
            self.frames.push((id.to_owned(), frame));
        }
    }

    /// All of it; none if it was more than is kept.
    pub fn into_frames(self) -> Option<Vec<(String, Kept)>> {
        (!self.overflowed).then_some(self.frames)
    }
}

/// Runs whose agent was asked, in the order of the time it has for its answer.
#[derive(Default)]
pub struct Awaited(VecDeque<(Instant, (TaskId, u32, String))>);

impl Awaited {
    /// `mark` is that of the question.
    pub fn add(&mut self, task: TaskId, run: u32, mark: String) {
        self.0.push_back((Instant::now() + PATIENCE, (task, run, mark)));
    }

    /// When somebody's time is over.
    pub fn due(&self) -> Option<Instant> {
        self.0.front().map(|(at, _)| *at)
    }

    pub fn take(&mut self) -> Option<(TaskId, u32, String)> {
        self.0.pop_front().map(|(_, asked)| asked)
    }
}

#[cfg(test)]
mod tests {
    use super::{Held, Kept, MOST_BYTES, MOST_FRAMES};

    #[test]
    fn all_is_kept_or_nothing() {
        let mut held = Held::default();
        held.keep("1", Kept::Result(Some("x".repeat(MOST_BYTES * 2))));
        assert_eq!(held.into_frames().map(|frames| frames.len()), Some(1), "one, whatever its size");
        let mut held = Held::default();
        (0..2).for_each(|_| held.keep("1", Kept::Result(Some("x".repeat(MOST_BYTES)))));
        assert!(held.into_frames().is_none());
        let mut held = Held::default();
        (0..=MOST_FRAMES).for_each(|_| held.keep("1", Kept::Ended));
        held.keep("1", Kept::Ended);
        assert!(held.into_frames().is_none());
    }
}
