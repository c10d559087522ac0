//! Opaque JSON as `google.protobuf.Struct` and `Value`. Numbers become doubles there: that is all protobuf has.

mod mend;

use flotilla_protocol::wire::{Json, Object};
use mend::mend;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use serde_json::Value as Parsed;

/// Up to here every whole number has a double of its own.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// Messages in one another that readers of protobuf take, and how many there may be around a value.
const LEVELS: usize = 100;
const AROUND: usize = 8;

pub fn to_struct(object: &Object) -> Struct {
    match parse(&object.0).kind {
        Some(Kind::StructValue(members)) => members,
        _ => Struct::default(),
    }
}

pub fn to_value(json: &Json) -> Value {
    parse(json)
}

fn parse(json: &Json) -> Value {
    let parsed = serde_json::from_str::<Parsed>(json.text()).or_else(|_| serde_json::from_str(&mend(json.text())));
    // It was checked when it came in; what cannot be read all the same is shown as the text it is.
    value(parsed.unwrap_or_else(|_| Parsed::from(json.text())), LEVELS - AROUND)
}

/// A value that takes at most so many levels. What is nested deeper is the text of its JSON: a reader of protobuf would
/// refuse all of the answer.
fn value(parsed: Parsed, left: usize) -> Value {
    let levels = match &parsed {
        Parsed::Array(_) => 2,
        Parsed::Object(_) => 3,
        _ => 0,
    };
    let parsed = if levels > 0 && left <= levels { Parsed::String(parsed.to_string()) } else { parsed };
    let value = |inner| value(inner, left - levels);
    let kind = match parsed {
        Parsed::Null => Kind::NullValue(0),
        Parsed::Bool(flag) => Kind::BoolValue(flag),
        Parsed::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        Parsed::String(text) => Kind::StringValue(text),
        Parsed::Array(all) => Kind::ListValue(ListValue { values: all.into_iter().map(value).collect() }),
        Parsed::Object(members) => Kind::StructValue(Struct {
            fields: members.into_iter().map(|(name, member)| (name, value(member))).collect(),
        }),
    };
    Value { kind: Some(kind) }
}

/// Why a value is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    TooDeep,
    NotJson(String),
}

pub fn from_struct(members: Struct, depth: usize) -> Result<Object, Problem> {
    from_value(Value { kind: Some(Kind::StructValue(members)) }, depth).map(Object)
}

/// The JSON of a value nested at most `depth` levels.
pub fn from_value(value: Value, depth: usize) -> Result<Json, Problem> {
    let mut text = String::new();
    write(&mut text, value, depth)?;
    Json::new(text).map_err(|error| Problem::NotJson(format!("cannot be written as JSON: {error}")))
}

fn write(out: &mut String, value: Value, depth: usize) -> Result<(), Problem> {
    match value.kind {
        None | Some(Kind::NullValue(_)) => out.push_str("null"),
        Some(Kind::BoolValue(flag)) => out.push_str(if flag { "true" } else { "false" }),
        Some(Kind::NumberValue(number)) => write_number(out, number)?,
        Some(Kind::StringValue(text)) => write_text(out, &text),
        Some(Kind::ListValue(list)) => {
            let depth = deeper(depth)?;
            out.push('[');
            for (index, value) in list.values.into_iter().enumerate() {
                separate(out, index);
                write(out, value, depth)?;
            }
            out.push(']');
        }
        Some(Kind::StructValue(members)) => {
            let depth = deeper(depth)?;
            out.push('{');
            for (index, (name, value)) in members.fields.into_iter().enumerate() {
                separate(out, index);
                write_text(out, &name);
                out.push(':');
                write(out, value, depth)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn deeper(depth: usize) -> Result<usize, Problem> {
    depth.checked_sub(1).ok_or(Problem::TooDeep)
}

fn separate(out: &mut String, index: usize) {
    if index > 0 {
        out.push(',');
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push_str(&Parsed::from(text).to_string());
}

/// A whole number is written as one, so that 42 stays 42.
fn write_number(out: &mut String, number: f64) -> Result<(), Problem> {
    if !number.is_finite() {
        return Err(Problem::NotJson(format!("holds {number}, which JSON has no number for")));
    }
    let negative_zero = number == 0.0 && number.is_sign_negative();
    if number.fract() == 0.0 && number.abs() <= EXACT && !negative_zero {
        out.push_str(&(number as i64).to_string());
    } else {
        out.push_str(&Parsed::from(number).to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Problem, from_value, to_value};
    use flotilla_protocol::wire::Json;
    use prost_types::Value;
    use prost_types::value::Kind;

    fn round(text: &str) -> String {
        let json = Json::new(text.to_owned()).expect("JSON");
        from_value(to_value(&json), 64).expect("JSON again").text().to_owned()
    }

    #[test]
    fn numbers_survive_as_far_as_doubles_go() {
        for text in [
            "42",
            "-7",
            "0.1",
            "7.5806547475620545e+227",
            "9007199254740992",
            "-9007199254740992",
            "1.5e+300",
            "true",
            "null",
            "\"a\\n\"",
        ] {
            assert_eq!(round(text), text);
        }
        assert_eq!(round("42.0"), "42", "a double does not know how it was written");
        assert_eq!(round("9007199254740993"), "9007199254740992", "beyond 2^53 whole numbers share doubles");
        assert_eq!(round(r#"{"b":[1,{"c":null}],"a":2}"#), r#"{"a":2,"b":[1,{"c":null}]}"#);
    }

    #[test]
    fn what_does_not_fit_takes_nothing_else_with_it() {
        assert_eq!(round(r#"{"a":1e309,"b":2}"#), r#"{"a":1.7976931348623157e+308,"b":2}"#);
        assert_eq!(round(r#"{"a":"x\ud800y","b":2}"#), "{\"a\":\"x\u{fffd}y\",\"b\":2}");
        for (open, close, levels) in [("[", "]", 2), ("{\"a\":", "}", 3)] {
            let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let most = (super::LEVELS - super::AROUND - 1) / levels;
            assert_eq!(round(&nested(most)), nested(most));
            let deeper = round(&nested(most + 1));
            assert!(deeper.contains('"') && deeper.len() > nested(most).len(), "the innermost is a text: {deeper}");
        }
    }

    #[test]
    fn what_json_cannot_say_is_refused() {
        let not_a_number = Value { kind: Some(Kind::NumberValue(f64::NAN)) };
        assert!(matches!(from_value(not_a_number, 64), Err(Problem::NotJson(text)) if text.contains("NaN")));
        let nested = to_value(&Json::new("[[[]]]".into()).expect("JSON"));
        assert!(from_value(nested.clone(), 3).is_ok());
        assert_eq!(from_value(nested, 2), Err(Problem::TooDeep));
    }
}
