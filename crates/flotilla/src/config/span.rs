//! Lengths of time as people write them: 150ms, 15s, 10m, 2h, 7d.

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(with = "String")]
pub struct Span(pub Duration);

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl Span {
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is not a length of time: write a number and a unit, such as 150ms, 15s, 10m, 2h, 7d");
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(wrong)?;
        number.checked_mul(*millis).map(|total| Self(Duration::from_millis(total))).ok_or_else(wrong)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let (name, unit) = UNITS.iter().rev().find(|(_, unit)| millis.is_multiple_of(*unit)).unwrap_or(&UNITS[0]);
        if millis == 0 { f.write_str("0s") } else { write!(f, "{}{name}", millis / unit) }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::Span;
    use std::time::Duration;

    #[test]
    fn reads_and_writes_the_usual_units() {
        assert_eq!(Span::parse("150ms"), Ok(Span(Duration::from_millis(150))));
        for text in ["15s", "10m", "2h", "7d", "1500ms"] {
            assert_eq!(Span::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "s", "15", "15 weeks", "-1s", "99999999999999999999d"] {
            assert!(Span::parse(text).is_err(), "{text}");
        }
    }
}
