//! The version of a handshake message: a major number both sides must share, a minor one that only adds.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

/// The version this program speaks.
pub const CURRENT: Version = Version { major: 2, minor: 0 };

impl Version {
    /// A newer minor version is understood as far as it is known; its new fields are kept.
    pub fn is_spoken(self) -> bool {
        self.major == CURRENT.major
    }

    /// The highest of another side's versions that is spoken here; none means plain A2A text.
    pub fn common(theirs: &[Self]) -> Option<Self> {
        theirs.iter().copied().filter(|version| version.is_spoken()).map(|version| version.min(CURRENT)).max()
    }
}

impl Default for Version {
    fn default() -> Self {
        CURRENT
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no version; write one such as 2.0");
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        let number = |part: &str| part.parse::<u32>().map_err(|_| wrong());
        Ok(Self { major: number(major)?, minor: number(minor)? })
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Version {
    fn schema_name() -> Cow<'static, str> {
        "Version".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?$", "examples": ["2.0"] })
    }
}
