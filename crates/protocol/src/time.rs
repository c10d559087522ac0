//! Moments on the wire: UTC, RFC 3339 (spec 5.6.1). Ours have milliseconds, those of others what they were told with.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Millis(pub i64);

/// The beginning of the year 1 and the end of the year 9999: neither RFC 3339 nor protobuf has moments beyond.
const FIRST: i64 = -62_135_596_800_000;
const LAST: i64 = 253_402_300_799_999;
/// The calendar repeats itself after 400 years. What jiff cannot tell, the last day of all, is told as the one so many
/// seconds before it.
const CYCLE: i64 = 12_622_780_800;
/// Nanoseconds in a millisecond, and in a second.
const MILLI: i64 = 1_000_000;
const SECOND: i128 = 1_000_000_000;

impl Millis {
    /// A moment from outside, if it can be written again.
    pub fn checked(millis: i64) -> Option<Self> {
        (FIRST..=LAST).contains(&millis).then_some(Self(millis))
    }

    /// Reads an RFC 3339 time; a fraction finer than a millisecond rounds up, so that "at or after" stays exact.
    pub fn parse(text: &str) -> Result<Self, String> {
        Moment::parse(text).map(Moment::millis)
    }
}

/// A moment as exact as somebody told it. This program's own are whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    seconds: i64,
    nanos: i32,
}

impl Moment {
    /// A moment from outside, if it can be written again.
    pub fn checked(seconds: i64, nanos: i32) -> Option<Self> {
        let is_moment = (FIRST / 1_000..=LAST / 1_000).contains(&seconds) && (0..1_000_000_000).contains(&nanos);
        is_moment.then_some(Self { seconds, nanos })
    }

    /// Reads an RFC 3339 time.
    pub fn parse(text: &str) -> Result<Self, String> {
        read(text)
            .and_then(|(seconds, nanos)| Self::checked(seconds, nanos))
            .ok_or_else(|| format!("'{text}' is not an RFC 3339 time such as 2026-01-31T12:00:00.000Z"))
    }

    /// Seconds since the Unix epoch, and the nanoseconds after them.
    pub fn parts(self) -> (i64, i32) {
        (self.seconds, self.nanos)
    }

    /// What is finer than a millisecond rounds up, so that "at or after" stays exact.
    pub fn millis(self) -> Millis {
        let nanos = i64::from(self.nanos);
        Millis((self.seconds * 1_000 + nanos / MILLI + i64::from(nanos % MILLI != 0)).min(LAST))
    }
}

impl From<Millis> for Moment {
    fn from(at: Millis) -> Self {
        let nanos = at.0.rem_euclid(1_000) * MILLI;
        Self { seconds: at.0.div_euclid(1_000), nanos: i32::try_from(nanos).unwrap_or_default() }
    }
}

impl std::fmt::Display for Moment {
    /// With as many digits as it takes, and no fewer than the three of a millisecond.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = match self.nanos {
            nanos if nanos % 1_000_000 == 0 => 3,
            nanos if nanos % 1_000 == 0 => 6,
            _ => 9,
        };
        match jiff::Timestamp::new(self.seconds, self.nanos) {
            Ok(moment) => write!(f, "{moment:.digits$}"),
            Err(_) => match jiff::Timestamp::new(self.seconds.saturating_sub(CYCLE), self.nanos) {
                Ok(before) => write!(f, "9999{}", &format!("{before:.digits$}")[4..]),
                Err(_) => f.write_str("1970-01-01T00:00:00.000Z"),
            },
        }
    }
}

/// The seconds and nanoseconds of an RFC 3339 time.
fn read(text: &str) -> Option<(i64, i32)> {
    let (moment, later) = match text.parse::<jiff::Timestamp>() {
        Ok(moment) => (moment, 0),
        Err(_) => (format!("9599-{}", text.strip_prefix("9999-")?).parse().ok()?, CYCLE),
    };
    let nanos: i128 = moment.as_nanosecond();
    Some((i64::try_from(nanos.div_euclid(SECOND)).ok()? + later, i32::try_from(nanos.rem_euclid(SECOND)).ok()?))
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

impl std::fmt::Display for Millis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Moment::from(*self).fmt(f)
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::{Millis, Moment};

    #[test]
    fn a_moment_of_others_is_as_exact_as_it_was_told() {
        for (told, shown, millis) in [
            ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z", 0),
            ("2026-01-31T12:00:00.328Z", "2026-01-31T12:00:00.328Z", 328),
            ("2026-01-31T13:00:00.328108+01:00", "2026-01-31T12:00:00.328108Z", 329),
            ("2026-01-31T12:00:00.000000001Z", "2026-01-31T12:00:00.000000001Z", 1),
        ] {
            let moment = Moment::parse(told).unwrap();
            assert_eq!(moment.to_string(), shown);
            assert_eq!(moment.millis().0 % 1_000, millis);
            assert_eq!(Moment::parse(shown), Ok(moment));
        }
        let early = Moment::parse("1969-12-31T23:59:59.9995Z").unwrap();
        assert_eq!((early.parts(), early.millis()), ((-1, 999_500_000), Millis(0)));
        assert_eq!(Moment::from(Millis(-1)).to_string(), "1969-12-31T23:59:59.999Z");
        assert!(Moment::checked(0, 1_000_000_000).is_none() && Moment::checked(0, -1).is_none());
    }

    #[test]
    fn writes_three_digits_and_rounds_up() {
        assert_eq!(Millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Millis::parse("1970-01-01T00:00:01Z"), Ok(Millis(1000)));
        assert_eq!(Millis::parse("1970-01-01T00:00:00.0001Z"), Ok(Millis(1)));
        assert!(Millis::parse("yesterday").is_err());
    }

    #[test]
    fn what_cannot_be_written_is_not_read() {
        let edges = ["0001-01-01T00:00:00.000Z", "9999-12-30T22:00:00.999Z", "9999-12-31T00:00:00.000Z"];
        for edge in edges.into_iter().chain(["9999-12-31T23:59:59.999Z"]) {
            assert_eq!(Millis::parse(edge).unwrap().to_string(), edge);
        }
        let last = Moment::parse("9999-12-31T23:59:59.999999999Z").unwrap();
        assert_eq!(
            (last.to_string().as_str(), last.parts()),
            ("9999-12-31T23:59:59.999999999Z", (253_402_300_799, 999_999_999))
        );
        assert_eq!(last.millis().to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Millis::parse("9999-12-31T23:59:59+01:00").unwrap().to_string(), "9999-12-31T22:59:59.000Z");
        let beyond =
            ["9999-12-31T23:59:59-00:01", "9999-13-01T00:00:00Z", "9999-02-29T00:00:00Z", "10000-01-01T00:00:00Z"];
        for beyond in beyond.into_iter().chain(["-009999-01-02T02:00:00Z", "0000-12-31T23:59:59.999Z", "9999-"]) {
            assert!(Millis::parse(beyond).is_err(), "{beyond}");
        }
        assert!(Moment::checked(253_402_300_800, 0).is_none());
    }
}
