//! Bounded counts, in all and per caller or agent: a place is taken before the work and given back after it.

use crate::map::IdMap;
use std::hash::Hash;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

/// Exact: the count is checked and raised under one lock, which is held for nothing else.
pub struct Tally<K> {
    counts: Mutex<Counts<K>>,
    /// Wakes who waits for the last place to be given back.
    empty: Notify,
}

struct Counts<K> {
    each: IdMap<K, usize>,
    all: usize,
}

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self { counts: Mutex::new(Counts { each: IdMap::default(), all: 0 }), empty: Notify::new() }
    }
}

/// Which count has no place left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    Each,
    All,
}

impl<K: Copy + Eq + Hash> Tally<K> {
    fn counts(&self) -> MutexGuard<'_, Counts<K>> {
        self.counts.lock().expect("no panic while holding a tally")
    }

    /// Counts one more under a key, unless there are as many as may be.
    pub fn enter(&self, key: K, most_each: usize, most: usize) -> Result<(), Full> {
        let mut counts = self.counts();
        if counts.all >= most {
            return Err(Full::All);
        }
        let count = counts.each.entry(key).or_default();
        if *count >= most_each {
            return Err(Full::Each);
        }
        *count += 1;
        counts.all += 1;
        Ok(())
    }

    /// Counts what was there before this process.
    pub fn add(&self, key: K, more: usize) {
        let mut counts = self.counts();
        *counts.each.entry(key).or_default() += more;
        counts.all += more;
    }

    pub fn leave(&self, key: K) {
        let mut counts = self.counts();
        let Some(count) = counts.each.get_mut(&key).filter(|count| **count > 0) else { return };
        *count -= 1;
        counts.all -= 1;
        let empty = counts.all == 0;
        drop(counts);
        if empty {
            self.empty.notify_waiters();
        }
    }

    /// The same as `enter`, given back when it is dropped.
    pub fn place(self: &Arc<Self>, key: K, most_each: usize, most: usize) -> Result<Place<K>, Full> {
        self.enter(key, most_each, most)?;
        Ok(Place { tally: Arc::clone(self), key })
    }

    pub fn all(&self) -> usize {
        self.counts().all
    }

    /// Waits until every place was given back.
    pub async fn emptied(&self) {
        loop {
            let mut empty = pin!(self.empty.notified());
            empty.as_mut().enable();
            if self.all() == 0 {
                return;
            }
            empty.await;
        }
    }
}

/// One counted thing that is under way.
pub struct Place<K: Copy + Eq + Hash> {
    tally: Arc<Tally<K>>,
    key: K,
}

impl<K: Copy + Eq + Hash> Place<K> {
    pub fn key(&self) -> &K {
        &self.key
    }
}

impl<K: Copy + Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        self.tally.leave(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::{Full, Tally};
    use std::sync::Arc;

    #[test]
    fn places_are_bounded_each_and_in_all() {
        let tally: Arc<Tally<u8>> = Arc::default();
        let first = tally.place(1, 1, 2).ok();
        assert_eq!(tally.place(1, 1, 2).err(), Some(Full::Each));
        let second = tally.place(2, 1, 2).ok();
        assert_eq!(tally.place(3, 1, 2).err(), Some(Full::All));
        assert!(first.is_some() && second.is_some());
        drop(first);
        assert!(tally.place(1, 1, 2).is_ok(), "a place given back is there again");
    }

    #[test]
    fn what_was_there_before_counts() {
        let tally: Tally<u8> = Tally::default();
        tally.add(1, 2);
        assert_eq!(tally.enter(1, 2, usize::MAX), Err(Full::Each));
        tally.leave(1);
        assert_eq!(tally.enter(1, 2, usize::MAX), Ok(()));
        tally.leave(2);
        assert_eq!(tally.all(), 2, "nothing to give back under a key that holds nothing");
    }

    #[test]
    fn many_at_once_get_exactly_the_places_there_are() {
        let tally: Arc<Tally<u8>> = Arc::default();
        let takers: Vec<_> = (0..8)
            .map(|_| {
                let tally = Arc::clone(&tally);
                std::thread::spawn(move || (0..100).filter(|_| tally.enter(1, 50, usize::MAX).is_ok()).count())
            })
            .collect();
        let taken: usize = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        assert_eq!((taken, tally.all()), (50, 50));
    }
}
