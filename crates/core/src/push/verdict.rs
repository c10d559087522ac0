//! What follows from what came of an attempt.

use super::{HookState, Schedule};
use crate::ids::HookId;
use std::time::Duration;

/// What came of an attempt at a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    /// The receiver answered.
    Answer { status: u16, retry_after: Option<Duration> },
    /// There was no answer; why.
    Failure(String),
    /// Nothing was sent, because the hub lacks the key of the webhook's secrets; why.
    Locked(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    /// Try again after this time.
    Again(Duration),
    /// Nobody was called: wait until the hub can, however long that takes.
    Wait,
    /// Stop here.
    Stop(HookState),
}

const GONE: u16 = 410;
/// Too many requests, and unavailable: the two that may say when to come back.
const LATER: [u16; 2] = [429, 503];

/// `failures` counts this attempt too, if it failed.
pub fn verdict(came: &Came, schedule: &Schedule, hook: HookId, failures: u32) -> (Verdict, String) {
    let (reason, asked) = match came {
        Came::Answer { status: 200..=299, .. } => return (Verdict::Delivered, String::new()),
        Came::Answer { status: GONE, .. } => {
            let reason = "the receiver says that it is gone for good (HTTP 410)";
            return (Verdict::Stop(HookState::Disabled), reason.into());
        }
        Came::Answer { status, .. } if (300..400).contains(status) => {
            (format!("HTTP {status}: redirects are not followed; give the final URL"), None)
        }
        Came::Answer { status, retry_after } => {
            (format!("HTTP {status}"), retry_after.filter(|_| LATER.contains(status)))
        }
        Came::Failure(reason) => (reason.clone(), None),
        Came::Locked(reason) => return (Verdict::Wait, reason.clone()),
    };
    match schedule.after(failures, hook, asked) {
        Some(delay) => (Verdict::Again(delay), reason),
        None if failures == 1 => (Verdict::Stop(HookState::Parked), format!("{reason}; there was only this attempt")),
        None => (Verdict::Stop(HookState::Parked), format!("{reason}; the last of {failures} attempts in a row")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Came, Verdict, verdict};
    use crate::ids::HookId;
    use crate::push::{HookState, Schedule};
    use std::time::Duration;

    fn of(status: u16, retry_after: Option<u64>, failures: u32) -> (Verdict, String) {
        let came = Came::Answer { status, retry_after: retry_after.map(Duration::from_secs) };
        verdict(&came, &Schedule::default(), HookId::fresh(), failures)
    }

    #[test]
    fn statuses_and_what_follows() {
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(of(status, None, 1).0, Verdict::Delivered, "{status}");
        }
        for status in [100, 300, 301, 302, 307, 308, 400, 401, 403, 404, 408, 413, 500, 502, 504, 599] {
            let (verdict, reason) = of(status, Some(7200), 1);
            let soon = matches!(verdict, Verdict::Again(delay) if delay < Duration::from_secs(6));
            assert!(soon && reason.contains(&status.to_string()), "{status}: {verdict:?} {reason}");
        }
        assert_eq!(of(410, None, 1).0, Verdict::Stop(HookState::Disabled));
        for status in [429, 503] {
            assert_eq!(of(status, Some(7200), 1).0, Verdict::Again(Duration::from_secs(7200)), "{status}");
        }
    }

    #[test]
    fn what_the_hub_cannot_open_is_never_the_last_attempt() {
        let came = Came::Locked("another key".into());
        for failures in [1, 10, 100] {
            let (verdict, reason) = verdict(&came, &Schedule::default(), HookId::fresh(), failures);
            assert_eq!((verdict, reason.as_str()), (Verdict::Wait, "another key"));
        }
    }

    #[test]
    fn after_the_last_attempt_the_letter_is_kept() {
        let (verdict, reason) = of(500, None, 10);
        assert_eq!(verdict, Verdict::Stop(HookState::Parked));
        assert_eq!(reason, "HTTP 500; the last of 10 attempts in a row");
        assert!(matches!(of(500, None, 9).0, Verdict::Again(_)));
    }
}
