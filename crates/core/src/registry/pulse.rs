//! Whether an agent elsewhere is there: what the checks of it came to, and in which word that is told.

use super::face::Signed;
use crate::ports::Missed;
use flotilla_protocol::time::Millis;
use std::time::Duration;

/// Checks in a row that fail before an agent counts as unreachable, and intervals without one before it is stale.
pub const PATIENCE: u32 = 3;
/// The pause after the first check that failed; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// Whether an agent can be counted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// It answered when it was last looked at, or works in the hub, or is connected.
    Live,
    /// It answered before, but not the last time, or that is too long ago; or what is known of it is old, as its card
    /// cannot be read any more.
    Stale,
    /// It did not answer several times in a row, or never has. Calls are not even tried.
    Unreachable,
    /// Nobody has looked yet.
    Unchecked,
    /// It dials in, and is not connected.
    Absent,
    /// It was announced, and nobody says any more that it is there.
    Gone,
}

impl Liveness {
    pub const ALL: [Self; 6] = [Self::Live, Self::Stale, Self::Unreachable, Self::Unchecked, Self::Absent, Self::Gone];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Stale => "stale",
            Self::Unreachable => "unreachable",
            Self::Unchecked => "unchecked",
            Self::Absent => "absent",
            Self::Gone => "gone",
        }
    }
}

/// What the checks of one agent came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pulse {
    pub last_success: Option<Millis>,
    pub last_error: Option<(Millis, String)>,
    /// How long the last check that succeeded took.
    pub latency: Option<Duration>,
    /// Checks in a row that failed.
    pub failures: u32,
    /// Those in a row at the end of which nobody answered where the agent is called either.
    pub unanswered: u32,
    /// What its card's signatures are worth, as of the last time it was read.
    pub signed: Option<Signed>,
    /// What is wrong with its card, each with its place.
    pub findings: Vec<String>,
}

impl Pulse {
    pub fn succeeded(&mut self, at: Millis, latency: Duration, signed: Signed, findings: Vec<String>) {
        self.last_success = Some(at);
        self.latency = Some(latency);
        self.failures = 0;
        self.unanswered = 0;
        self.signed = Some(signed);
        self.findings = findings;
    }

    pub fn failed(&mut self, at: Millis, missed: Missed) {
        self.last_error = Some((at, missed.problem));
        self.unanswered = if missed.answers { 0 } else { self.unanswered.saturating_add(1) };
        self.failures = self.failures.saturating_add(1);
    }

    /// `every` is how often it is looked at.
    pub fn liveness(&self, now: Millis, every: Duration) -> Liveness {
        let Some(success) = self.last_success else {
            return if self.failures == 0 { Liveness::Unchecked } else { Liveness::Unreachable };
        };
        let age = Duration::from_millis(u64::try_from(now.0.saturating_sub(success.0)).unwrap_or(0));
        match self.failures {
            0 if age <= every.saturating_mul(PATIENCE) => Liveness::Live,
            _ if self.unanswered < PATIENCE => Liveness::Stale,
            _ => Liveness::Unreachable,
        }
    }

    /// How long until the next check: sooner where the last one failed, and never of all agents at the same moment.
    pub fn pause(&self, every: Duration, seed: u64) -> Duration {
        let pause = match self.failures {
            0 => every,
            failures => FIRST_PAUSE.saturating_mul(2u32.saturating_pow(failures - 1)).min(every),
        };
        // Between nine and eleven tenths.
        pause.mul_f64(0.9 + (seed % 1_000) as f64 / 5_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::face::{Signed, Word};
    use super::{Liveness, Missed, Pulse};
    use flotilla_protocol::time::Millis;
    use std::time::Duration;

    const EVERY: Duration = Duration::from_secs(60);

    /// One letter is a check: `+` succeeds, `-` fails, `~` too, but somebody answers; a second passes before each.
    fn after(checks: &str) -> (Pulse, Millis) {
        let (mut pulse, mut now) = (Pulse::default(), Millis(0));
        for check in checks.chars() {
            now.0 += 1_000;
            let signed = Signed { word: Word::Absent, reason: String::new(), uncovered: Vec::new() };
            match check {
                '+' => pulse.succeeded(now, Duration::from_millis(5), signed, Vec::new()),
                letter => pulse.failed(now, Missed { problem: "down".into(), answers: letter == '~' }),
            }
        }
        (pulse, now)
    }

    #[test]
    fn a_word_says_how_an_agent_is() {
        for (checks, word) in [
            ("", "unchecked"),
            ("+", "live"),
            ("-", "unreachable"),
            ("+-", "stale"),
            ("+--", "stale"),
            ("+---", "unreachable"),
            ("+---+", "live"),
            ("+~~~~", "stale"),
            ("+~~~--", "stale"),
            ("+~~~---", "unreachable"),
            ("+--~-", "stale"),
            ("~", "unreachable"),
        ] {
            let (pulse, now) = after(checks);
            assert_eq!(pulse.liveness(now, EVERY).name(), word, "{checks}");
        }
        let (pulse, now) = after("+");
        assert_eq!(pulse.liveness(Millis(now.0 + 181_000), EVERY), Liveness::Stale, "nobody looked for long");
    }

    #[test]
    fn what_failed_is_looked_at_sooner_and_not_all_at_once() {
        let pause = |checks: &str, seed| after(checks).0.pause(EVERY, seed).as_millis();
        assert_eq!((pause("+", 0), pause("+", 500), pause("+", 999)), (54_000, 60_000, 65_988));
        assert_eq!((pause("-", 500), pause("---", 500), pause("---------", 500)), (2_000, 8_000, 60_000));
    }
}
