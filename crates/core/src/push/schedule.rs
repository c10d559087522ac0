//! When a failed delivery is tried again.

use crate::ids::HookId;
use flotilla_protocol::time::Millis;
use std::time::Duration;

/// Nobody is made to wait longer than this, whatever they ask for.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How much of a delay is left to chance, in percent to either side.
const JITTER: u64 = 10;

/// The delays between attempts; the first attempt is made at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule(pub Vec<Duration>);

impl Default for Schedule {
    /// Ten attempts over a little more than three days.
    fn default() -> Self {
        const HOUR: u64 = 3600;
        let seconds = [5, 5 * 60, 30 * 60, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];
        Self(seconds.map(Duration::from_secs).to_vec())
    }
}

impl Schedule {
    /// How long to wait after so many failures in a row; none when they were the last ones. Each hook has its own
    /// jitter, so that those who failed together do not come back together.
    pub fn after(&self, failures: u32, hook: HookId, asked: Option<Duration>) -> Option<Duration> {
        let delay = *self.0.get(usize::try_from(failures).ok()?.checked_sub(1)?)?;
        let spread = hook.spread(failures) % (2 * JITTER + 1);
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let jittered = Duration::from_millis(millis / 100 * (100 - JITTER + spread) + millis % 100);
        // Never sooner than the receiver asks for.
        Some(asked.map_or(jittered, |asked| jittered.max(asked)).min(LONGEST.max(delay)))
    }

    /// How long to wait for a time that was written down earlier: a clock that was set back since must not make
    /// that longer than any delay can be.
    pub fn left(&self, next_at: Millis, now: Millis) -> Duration {
        let left = Duration::from_millis(u64::try_from(next_at.0.saturating_sub(now.0)).unwrap_or(0));
        left.min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Schedule};
    use crate::ids::HookId;
    use flotilla_protocol::time::Millis;
    use std::time::Duration;

    #[test]
    fn ten_attempts_over_three_days_each_a_little_off() {
        let schedule = Schedule::default();
        let hook = HookId::fresh();
        let nominal = [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400];
        for (failures, seconds) in (1..).zip(nominal) {
            let delay = schedule.after(failures, hook, None).expect("another attempt").as_secs_f64();
            let seconds = f64::from(seconds);
            assert!((0.9 * seconds..=1.1 * seconds).contains(&delay), "{failures}: {delay} for {seconds}");
        }
        assert_eq!(schedule.after(10, hook, None), None, "the tenth attempt was the last");
        assert_eq!(Schedule(Vec::new()).after(1, hook, None), None, "no schedule, one attempt");
        let delays: std::collections::HashSet<_> = (0..50).map(|_| schedule.after(2, HookId::fresh(), None)).collect();
        assert!(delays.len() > 5, "hooks that fail together come back apart: {delays:?}");
    }

    #[test]
    fn a_receiver_may_ask_for_more_time_but_not_for_ever() {
        let schedule = Schedule::default();
        let after = |asked| schedule.after(1, HookId::fresh(), Some(Duration::from_secs(asked))).expect("another");
        assert_eq!(after(60), Duration::from_secs(60));
        assert!(after(1) >= Duration::from_millis(4500), "not sooner than the schedule");
        assert_eq!(after(u64::MAX / 2000), LONGEST);
    }

    #[test]
    fn a_clock_that_jumps_neither_hangs_nor_hurries_beyond_reason() {
        let schedule = Schedule::default();
        let left = |next, now| schedule.left(Millis(next), Millis(now));
        assert_eq!(left(10_000, 4_000), Duration::from_secs(6));
        assert_eq!(left(10_000, 20_000), Duration::ZERO, "ahead: due at once");
        assert_eq!(left(10_000, i64::MIN / 2), LONGEST, "back: a day at the most");
        assert_eq!(left(i64::MIN, i64::MAX), Duration::ZERO);
    }
}
