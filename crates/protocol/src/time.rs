//! Moments on the wire: UTC, millisecond precision, RFC 3339 (spec 5.6.1).

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Millis(pub i64);

/// The beginning of the year 1, before which neither RFC 3339 nor protobuf has moments.
const FIRST: i64 = -62_135_596_800_000;

impl Millis {
    /// A moment from outside, if it can be written again.
    pub fn checked(millis: i64) -> Option<Self> {
        (millis >= FIRST && jiff::Timestamp::from_millisecond(millis).is_ok()).then_some(Self(millis))
    }

    /// Reads an RFC 3339 time; a fraction finer than a millisecond rounds up, so that "at or after" stays exact.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not an RFC 3339 time such as 2026-01-31T12:00:00.000Z");
        let parsed: jiff::Timestamp = text.parse().map_err(|_| wrong())?;
        let nanos = parsed.as_nanosecond();
        let millis = nanos.div_euclid(1_000_000) as i64 + i64::from(nanos.rem_euclid(1_000_000) != 0);
        Self::checked(millis).ok_or_else(wrong)
    }
}

impl std::fmt::Display for Millis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => write!(f, "{moment:.3}"),
            Err(_) => f.write_str("1970-01-01T00:00:00.000Z"),
        }
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
    use super::Millis;

    #[test]
    fn writes_three_digits_and_rounds_up() {
        assert_eq!(Millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Millis::parse("1970-01-01T00:00:01Z"), Ok(Millis(1000)));
        assert_eq!(Millis::parse("1970-01-01T00:00:00.0001Z"), Ok(Millis(1)));
        assert!(Millis::parse("yesterday").is_err());
    }

    #[test]
    fn what_cannot_be_written_is_not_read() {
        for edge in ["0001-01-01T00:00:00.000Z", "9999-12-30T21:59:59.999Z"] {
            assert_eq!(Millis::parse(edge).unwrap().to_string(), edge);
        }
        for beyond in ["9999-12-30T22:00:00.9999Z", "-009999-01-02T02:00:00Z", "0000-12-31T23:59:59.999Z"] {
            assert!(Millis::parse(beyond).is_err(), "{beyond}");
        }
    }
}
