//! The writer's courtesy: before it takes a batch, those who are at work on the same processor may go on first.
//!
//! Among many callers they are about to bring more commits, and a flush costs the same for many as for few. The writer
//! is woken by the disk, so it would otherwise cut in on them, again and again. But the processor may also be with
//! somebody who brings nothing and is long about it: only a small share of the time may be lost that way.

use std::time::{Duration, Instant};

/// A batch before of at least this many: there are enough callers for more to come.
const CALLERS: usize = 4;
/// Whoever brings commits is done sooner than this; what is beyond it is lost.
const LONG: Duration = Duration::from_millis(1);
/// One part of the time in so many may be lost,
const SHARE: u32 = 32;
/// and so much at once.
const MOST: Duration = Duration::from_millis(10);

pub struct Courtesy {
    /// How many commits it held.
    pub last_batch: usize,
    /// What was lost and is not made up for yet,
    lost: Duration,
    /// as of then.
    since: Instant,
}

impl Courtesy {
    pub fn new(now: Instant) -> Self {
        Self { last_batch: 0, lost: Duration::ZERO, since: now }
    }

    /// Lets others go first, if the last batch was so large that it pays.
    pub fn give_way(&mut self) {
        if self.last_batch < CALLERS {
            return;
        }
        let asked = Instant::now();
        if self.is_due(asked) {
            std::thread::yield_now();
            self.took(asked.elapsed());
        }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        self.lost = self.lost.saturating_sub(now.duration_since(self.since) / SHARE);
        self.since = now;
        self.lost <= MOST
    }

    fn took(&mut self, time: Duration) {
        self.lost += time.saturating_sub(LONG);
    }
}

#[cfg(test)]
mod tests {
    use super::{CALLERS, Courtesy, LONG, MOST, SHARE};
    use std::time::{Duration, Instant};

    const MOMENT: Duration = Duration::from_nanos(1);

    #[test]
    fn only_a_share_of_the_time_is_lost_to_those_who_are_long_about_it() {
        let start = Instant::now();
        let mut courtesy = Courtesy::new(start);
        for _ in 0..1000 {
            courtesy.took(LONG);
        }
        courtesy.took(LONG + MOST);
        assert!(courtesy.is_due(start), "not too long, or not too often");
        courtesy.took(LONG + MOMENT * 2);
        assert!(!courtesy.is_due(start));
        assert!(!courtesy.is_due(start + MOMENT * SHARE), "half of it is made up for");
        assert!(courtesy.is_due(start + MOMENT * SHARE * 2));
        courtesy.took(LONG + MOMENT);
        assert!(!courtesy.is_due(start + MOMENT * SHARE * 2));
        let much_later = start + MOST * SHARE * 10;
        assert!(courtesy.is_due(much_later));
        courtesy.took(LONG + MOST + MOMENT);
        assert!(!courtesy.is_due(much_later), "what was not lost for long cannot be saved up");
    }

    #[test]
    fn few_callers_are_not_waited_for() {
        let start = Instant::now();
        let mut courtesy = Courtesy::new(start);
        courtesy.last_batch = CALLERS - 1;
        courtesy.give_way();
        assert_eq!(courtesy.since, start, "it was not looked at");
        courtesy.last_batch = CALLERS;
        courtesy.give_way();
        assert!(courtesy.since > start, "it was");
    }
}
