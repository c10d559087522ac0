//! How many connections are busy at about the same time.
//!
//! A connection that wakes itself goes on at once while few others are busy: to be put into the queue, and to have another
//! thread woken for it, takes longer than what it has to do. Among many it had better wait for its turn, for by then its
//! client has sent the next request, and nobody needs to be told of it.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

/// So many milliseconds are about the same time.
const WINDOW: u128 = 8;
/// So many connections are few.
const FEW: u32 = 2;

/// That of this process: its threads are what is busy.
static RUSH: Rush = Rush::new();
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Guesses that cost next to nothing: what is counted twice, or not at all, does no harm.
struct Rush {
    window: AtomicU64,
    /// Connections with a request in this window, and in the one before.
    now: AtomicU32,
    before: AtomicU32,
}

impl Rush {
    const fn new() -> Self {
        Self { window: AtomicU64::new(0), now: AtomicU32::new(0), before: AtomicU32::new(0) }
    }

    fn join(&self, seen: &AtomicU64, window: u64) {
        if seen.swap(window, Ordering::Relaxed) == window {
            return;
        }
        let last = self.window.swap(window, Ordering::Relaxed);
        if last == window {
            self.now.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let count = self.now.swap(1, Ordering::Relaxed);
        self.before.store(if last + 1 == window { count } else { 0 }, Ordering::Relaxed);
    }

    fn is_calm(&self) -> bool {
        self.now.load(Ordering::Relaxed).max(self.before.load(Ordering::Relaxed)) <= FEW
    }
}

/// One connection among them.
#[derive(Debug, Default)]
pub struct Busyness {
    /// The window of its last request.
    seen: AtomicU64,
}

impl Busyness {
    /// A request begins on it.
    pub fn request(&self) {
        // The first window is 1: 0 is none.
        let window = BEGAN.elapsed().as_millis() / WINDOW + 1;
        RUSH.join(&self.seen, u64::try_from(window).unwrap_or(u64::MAX));
    }
}

/// Whether few connections are busy.
pub fn is_calm() -> bool {
    RUSH.is_calm()
}

#[cfg(test)]
mod tests {
    use super::Rush;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn few_connections_are_calm_and_many_are_not() {
        let (rush, connections) = (Rush::new(), [const { AtomicU64::new(0) }; 5]);
        assert!(rush.is_calm(), "nobody is there");
        for _ in 0..1000 {
            rush.join(&connections[0], 7);
        }
        assert!(rush.is_calm(), "one that asks often is one");
        for connection in &connections {
            rush.join(connection, 7);
        }
        assert!(!rush.is_calm());
        rush.join(&connections[0], 8);
        assert!(!rush.is_calm(), "they were there a moment ago");
        rush.join(&connections[0], 9);
        assert!(rush.is_calm());
        connections.iter().for_each(|connection| rush.join(connection, 20));
        rush.join(&connections[0], 30);
        assert!(rush.is_calm(), "that was long ago");
    }
}
