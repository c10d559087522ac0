//! What is written in more than one way and means one thing: a member that is null is not there, and a whole number is one
//! whether a point stands in it or not.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

/// A member that may be left out, and may be null instead.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A whole number, if there is one: 4000 and 4000.0 are the same.
pub(super) fn whole<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let told = match Value::deserialize(deserializer)? {
        Value::Null => return Ok(None),
        Value::Number(told) => told,
        other => return Err(D::Error::custom(format!("invalid type: {}, expected a whole number", kind(&other)))),
    };
    let wrong = || D::Error::custom(format!("invalid value: {told}, expected a whole number that is not too large"));
    let number = as_whole(&told).ok_or_else(wrong)?;
    T::try_from(number).map(Some).map_err(|_| wrong())
}

fn as_whole(told: &Number) -> Option<u64> {
    /// Below it every whole number has a form of its own with a point.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let with_point = || told.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=EXACT).contains(number));
    told.as_u64().or_else(|| with_point().map(|number| number as u64))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
