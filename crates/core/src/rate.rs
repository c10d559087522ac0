//! How often something may happen, per caller, agent or address: so many at once, and then at a steady pace.

use crate::map::IdMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// Keys beyond this are forgotten, those that are not owed anything first.
const KEPT: usize = 100_000;

/// A pace: this many in this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    pub most: u32,
    pub per: Duration,
}

/// The generic cell rate algorithm: per key, one moment at which all it did would be paid off at its pace.
pub struct Rate<K> {
    paid_off: Mutex<IdMap<K, Instant>>,
}

impl<K> Default for Rate<K> {
    fn default() -> Self {
        Self { paid_off: Mutex::default() }
    }
}

impl<K: Copy + Eq + Hash> Rate<K> {
    /// Whether one more may happen now; if not, how long until it may.
    pub fn check(&self, key: K, pace: Pace) -> Result<(), Duration> {
        let now = Instant::now();
        after(self.paid_off.lock().expect("no panic while holding a rate").get(&key), pace, now).map(|_| ())
    }

    /// The same, and it happens.
    pub fn take(&self, key: K, pace: Pace) -> Result<(), Duration> {
        let now = Instant::now();
        let mut paid_off = self.paid_off.lock().expect("no panic while holding a rate");
        if let Some(moment) = paid_off.get_mut(&key) {
            *moment = after(Some(moment), pace, now)?;
            return Ok(());
        }
        if paid_off.len() >= KEPT {
            paid_off.retain(|_, moment| *moment > now);
            if paid_off.len() >= KEPT {
                paid_off.clear();
            }
        }
        paid_off.insert(key, after(None, pace, now)?);
        Ok(())
    }

    /// What was taken did not happen after all.
    pub fn give_back(&self, key: K, pace: Pace) {
        let mut paid_off = self.paid_off.lock().expect("no panic while holding a rate");
        if let Some(moment) = paid_off.get_mut(&key) {
            *moment = moment.checked_sub(pace.per / pace.most.max(1)).unwrap_or(*moment);
        }
    }
}

/// The moment at which all would be paid off with one more; how long to wait if that is too far away.
fn after(paid_off: Option<&Instant>, pace: Pace, now: Instant) -> Result<Instant, Duration> {
    let one = pace.per / pace.most.max(1);
    let after = paid_off.map_or(now, |moment| (*moment).max(now)) + one;
    let owed = after - now;
    if owed > pace.per { Err(owed - pace.per) } else { Ok(after) }
}

#[cfg(test)]
mod tests {
    use super::{Pace, Rate};
    use std::time::Duration;
    use tokio::time::advance;

    const PACE: Pace = Pace { most: 4, per: Duration::from_secs(2) };

    #[tokio::test(start_paused = true)]
    async fn so_many_at_once_and_then_at_a_pace() {
        let rate: Rate<u8> = Rate::default();
        for _ in 0..4 {
            assert_eq!(rate.take(1, PACE), Ok(()));
        }
        assert_eq!(rate.take(1, PACE), Err(Duration::from_millis(500)), "says when to come again");
        assert_eq!(rate.take(2, PACE), Ok(()), "others have a pace of their own");
        advance(Duration::from_millis(499)).await;
        assert!(rate.check(1, PACE).is_err(), "what was refused is not owed");
        advance(Duration::from_millis(1)).await;
        assert_eq!((rate.check(1, PACE), rate.check(1, PACE)), (Ok(()), Ok(())), "a look costs nothing");
        assert_eq!(rate.take(1, PACE), Ok(()));
        assert!(rate.take(1, PACE).is_err());
        rate.give_back(1, PACE);
        assert_eq!(rate.take(1, PACE), Ok(()), "what did not happen is not owed");
        assert!(rate.take(1, PACE).is_err());
        advance(Duration::from_secs(60)).await;
        let taken = (0..10).filter(|_| rate.take(1, PACE).is_ok()).count();
        assert_eq!(taken, 4, "a long rest is worth no more than a burst");
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_keys_does_not_grow_without_bound() {
        let rate: Rate<u32> = Rate::default();
        for key in 0..super::KEPT as u32 + 10 {
            assert_eq!(rate.take(key, PACE), Ok(()));
        }
        assert!(rate.paid_off.lock().unwrap().len() <= super::KEPT);
    }
}
