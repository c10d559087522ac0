//! Canonical JSON (RFC 8785): one text for one value, whoever wrote it, so that a signature can be made over it.

use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt::{self, Write as _};

/// Whole numbers beyond this are read differently by different readers (RFC 7493).
const SAFE: u64 = (1 << 53) - 1;

/// Reads JSON of which every reader makes the same: no member twice, no whole number that a double cannot hold.
pub fn read(text: &str) -> Result<Value, String> {
    serde_json::from_str::<Strict>(text).map(|Strict(value)| value).map_err(|error| error.to_string())
}

/// The canonical text of a value: members ordered by their UTF-16 code units, numbers as ECMAScript writes them.
pub fn write(value: &Value) -> String {
    let mut out = String::new();
    put(&mut out, value);
    out
}

fn put(out: &mut String, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                put_text(out, name);
                out.push(':');
                put(out, member);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                put(out, item);
            }
            out.push(']');
        }
        Value::String(text) => put_text(out, text),
        Value::Number(number) => out.push_str(&number_text(number.as_f64().unwrap_or_default())),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Null => out.push_str("null"),
    }
}

fn put_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// `Number::toString` of ECMAScript: the shortest digits that read back as the number, an exponent only far from one.
fn number_text(number: f64) -> String {
    if number == 0.0 {
        return "0".into();
    }
    // serde_json finds the same digits, and of two that are as near the even one, which the standard library does not.
    let shortest = Number::from_f64(number.abs()).map(|number| number.to_string()).unwrap_or_default();
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0').trim_end_matches('0');
    // Where the point stands, counted from before the first digit.
    let leading = all.len() - all.trim_start_matches('0').len();
    let place = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let point = exponent.parse::<i32>().unwrap_or_default() + place(whole.len()) - place(leading);
    let count = place(digits.len());
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or_default());
    let (whole, rest) = digits.split_at(usize::try_from(point.clamp(0, count)).unwrap_or_default());
    let text = match point {
        1..=21 if point >= count => format!("{digits}{}", zeros(point - count)),
        1..=21 => format!("{whole}.{rest}"),
        -5..=0 => format!("0.{}{digits}", zeros(-point)),
        _ => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            let sign = if point > 0 { '+' } else { '-' };
            format!("{first}{dot}{rest}e{sign}{}", (point - 1).abs())
        }
    };
    if number < 0.0 { format!("-{text}") } else { text }
}

struct Strict(Value);

impl<'de> serde::Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

fn whole<E: serde::de::Error>(size: u64, number: impl Into<Number> + fmt::Display) -> Result<Value, E> {
    if size > SAFE {
        return Err(E::custom(format!("{number} is beyond 2^53, so readers do not agree on it; write it as a text")));
    }
    Ok(Value::Number(number.into()))
}

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }
    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Value, E> {
        whole(number.unsigned_abs(), number)
    }
    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Value, E> {
        whole(number, number)
    }
    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("a number is too large"))
    }
    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((name, Strict(member))) = members.next_entry::<String, Strict>()? {
            if all.contains_key(&name) {
                return Err(A::Error::custom(format!("the member '{name}' is there twice")));
            }
            all.insert(name, member);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::{number_text, read, write};

    fn canonical(text: &str) -> String {
        write(&read(text).unwrap())
    }

    /// The samples of RFC 8785, appendix B, by their bits.
    #[test]
    fn numbers_are_written_as_the_rfc_shows() {
        for (bits, expected) in [
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            assert_eq!(number_text(f64::from_bits(bits)), expected, "{bits:x}");
        }
    }

    /// The sample of RFC 8785, section 3.2, and the order of section 3.2.3.
    #[test]
    fn texts_and_members_are_written_as_the_rfc_shows() {
        let sample = r#"{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"#;
        let expected = concat!(
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
            r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
        );
        assert_eq!(canonical(sample), expected);
        let order = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
        assert_eq!(canonical(order), "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}");
    }

    #[test]
    fn what_readers_do_not_agree_on_is_refused() {
        for (text, told) in [
            (r#"{"a":1,"b":{"c":1,"c":1}}"#, "'c' is there twice"),
            (r#"{"a":1,"\u0061":1}"#, "'a' is there twice"),
            ("9007199254740992", "beyond 2^53"),
            ("-9007199254740992", "beyond 2^53"),
            (r#""\ud800""#, "hex escape"),
            ("1e999", "number"),
            ("[1] 2", "trailing"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(told), "{text}: {problem}");
        }
        assert_eq!(canonical("[9007199254740991, 1.0, -0.0, 1e2]"), "[9007199254740991,1,0,100]");
    }
}
