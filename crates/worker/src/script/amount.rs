//! Numbers and times of a script, fixed or taken from the message.

use super::config::{Amount, Count};
use super::place::{Place, ScriptError};
use super::template::{Scene, Template};
use serde_json::{Number, Value};
use std::time::Duration;

/// More rounds than anyone means.
const MOST: u64 = 1_000_000;
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A value that is known, or that a message will tell.
#[derive(Debug, Clone)]
pub(super) enum Told<T> {
    Fixed(T),
    By(Template, fn(&str) -> Result<T, String>),
}

impl<T: Clone> Told<T> {
    fn new(source: &str, read: fn(&str) -> Result<T, String>, place: &Place) -> Result<Self, ScriptError> {
        let template = place.template(source)?;
        if template.is_fixed() {
            return read(source).map(Self::Fixed).map_err(|problem| place.error(problem));
        }
        Ok(Self::By(template, read))
    }

    pub fn value(&self, scene: Scene<'_>) -> Result<T, String> {
        match self {
            Self::Fixed(value) => Ok(value.clone()),
            Self::By(template, read) => read(&template.render(scene)),
        }
    }
}

/// How often something is done.
pub(super) fn rounds(count: &Count, place: &Place) -> Result<Told<u64>, ScriptError> {
    match count {
        Count::Number(number) => Told::new(&number.to_string(), read_rounds, place),
        Count::Text(text) => Told::new(text, read_rounds, place),
    }
}

/// How many chunks there are: an artifact cannot have none.
pub(super) fn chunks(count: &Count, place: &Place) -> Result<Told<u64>, ScriptError> {
    match count {
        Count::Number(number) => Told::new(&number.to_string(), read_chunks, place),
        Count::Text(text) => Told::new(text, read_chunks, place),
    }
}

pub(super) fn wait(source: &str, place: &Place) -> Result<Told<Duration>, ScriptError> {
    Told::new(source, read_duration, place)
}

pub(super) fn number(amount: &Amount, place: &Place) -> Result<Told<Value>, ScriptError> {
    match amount {
        Amount::Number(number) => Ok(Told::Fixed(Value::Number(number.clone()))),
        Amount::Text(text) => Told::new(text, read_number, place),
    }
}

fn read_rounds(text: &str) -> Result<u64, String> {
    read_whole(text, 0)
}

fn read_chunks(text: &str) -> Result<u64, String> {
    read_whole(text, 1)
}

fn read_whole(text: &str, least: u64) -> Result<u64, String> {
    let number = text.parse::<u64>().ok().filter(|number| (least..=MOST).contains(number));
    number.ok_or_else(|| format!("'{text}' is not a whole number from {least} to {MOST}"))
}

fn read_number(text: &str) -> Result<Value, String> {
    let number = serde_json::from_str::<Number>(text).map(Value::Number);
    number.map_err(|_| format!("'{text}' is not a number"))
}

fn read_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a time such as 150ms, 4s or 2m (a day at most)");
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let millis = match &text[digits..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    let time = number.checked_mul(millis).map(Duration::from_millis);
    time.filter(|time| *time <= LONGEST).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::{read_chunks, read_duration, read_number, read_rounds};
    use std::time::Duration;

    #[test]
    fn times_have_a_unit() {
        for (text, millis) in [("150ms", 150), ("4s", 4_000), ("2m", 120_000), ("1h", 3_600_000), ("0s", 0)] {
            assert_eq!(read_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for wrong in ["", "4", "s", "4 s", "-1s", "1.5s", "25h", "99999999999999999h", "4d"] {
            assert!(read_duration(wrong).unwrap_err().contains("is not a time"), "{wrong}");
        }
    }

    #[test]
    fn counts_are_bounded() {
        assert_eq!(read_rounds("0"), Ok(0));
        assert_eq!(read_rounds("1000000"), Ok(1_000_000));
        for wrong in ["", "ten", "-1", "1000001", "1.0"] {
            assert!(read_rounds(wrong).unwrap_err().contains("from 0 to 1000000"), "{wrong}");
        }
        assert!(read_chunks("0").unwrap_err().contains("from 1 to 1000000"));
        assert_eq!(read_number("0.5"), Ok(serde_json::json!(0.5)));
        assert!(read_number("half").is_err());
    }
}
