//! Bytes from outside become typed messages here: one depth scan at the door, then one parsing pass.

use crate::a2a::error::{Reason, Refusal};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// Whether JSON is nested deeper than `limit`: opaque values are kept unparsed, so nothing later would notice.
pub fn is_deeper(bytes: &[u8], limit: usize) -> bool {
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    for &byte in bytes {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// What JSON of one request may hold: each object and value takes much more memory than the two bytes it may be written in.
const MOST_OBJECTS: usize = 100_000;
const MOST_VALUES: usize = 1_000_000;

/// Whether JSON holds more objects or values than a request may.
pub fn is_crowded(bytes: &[u8]) -> bool {
    // An object or value takes two bytes at least.
    if bytes.len() <= MOST_OBJECTS * 2 {
        return false;
    }
    let (mut objects, mut values, mut in_string, mut escaped) = (0, 0, false, false);
    for &byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' => objects += 1,
            b',' => values += 1,
            _ => {}
        }
    }
    objects > MOST_OBJECTS || values > MOST_VALUES
}

pub fn too_crowded() -> Refusal {
    let text = format!(
        "The JSON holds more than {MOST_OBJECTS} objects or {MOST_VALUES} values. Send large data as a file: a raw or a \
         url part."
    );
    Refusal::new(Reason::PayloadTooLarge, text)
}

/// The refusal of JSON that is nested too deep, in whatever form it came.
pub fn too_deep(limit: usize) -> Refusal {
    let text = format!("The JSON is nested deeper than {limit} levels; flatten it.");
    Refusal::new(Reason::InvalidRequest, text).fact("limit", "json_depth").fact("limitValue", limit.to_string())
}

/// Parses one message; a fault in the JSON itself and a wrong field are different refusals.
pub fn message<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    match serde_json::from_slice(bytes) {
        Ok(value) => Ok(value),
        Err(error) => Err(explain::<T>(bytes, &error)),
    }
}

/// The slow path: parse again with the path tracked, to name the field at fault.
fn explain<T: DeserializeOwned>(bytes: &[u8], error: &serde_json::Error) -> Refusal {
    if error.classify() != Category::Data {
        return Refusal::new(Reason::ParseError, format!("The body is not valid JSON: {error}."));
    }
    let deserializer = &mut serde_json::Deserializer::from_slice(bytes);
    match serde_path_to_error::deserialize::<_, T>(deserializer) {
        Ok(_) => Refusal::invalid("", error.to_string()),
        Err(located) => {
            let path = located.path().to_string();
            let path = if path == "." { String::new() } else { path };
            let problem = plain(&located.into_inner().to_string());
            match problem.strip_prefix("duplicate field ").map(|name| name.trim_matches('`')) {
                Some(name) if path.is_empty() => Refusal::invalid(name, "is given twice"),
                Some(name) => Refusal::invalid(&format!("{path}.{name}"), "is given twice"),
                None => Refusal::invalid(&path, problem),
            }
        }
    }
}

/// Drops the "at line L column C" that means nothing to a caller who sent one line, and the value that was found: it
/// may be a secret in the wrong place.
pub fn plain(text: &str) -> String {
    let text = text.rsplit_once(" at line ").map_or(text, |(text, _)| text);
    let Some((found, expected)) = text.rsplit_once(", expected ") else { return text.to_owned() };
    match found.split_once([' ', ':']).map(|(first, _)| first) {
        Some("invalid") => {
            let kind = found.split(['"', '`']).next().unwrap_or_default().trim_end();
            let too_large = found.starts_with("invalid value: integer") && !found.contains("`-");
            let expected = most(expected).filter(|_| too_large).unwrap_or_else(|| wanted(expected));
            format!("{kind}, expected {expected}")
        }
        _ => text.to_owned(),
    }
}

/// The same where a whole number is too large.
fn most(expected: &str) -> Option<&'static str> {
    Some(match expected {
        "u8" => "a whole number of at most 255",
        "u16" => "a whole number of at most 65535",
        "u32" => "a whole number of at most 4294967295",
        "i32" => "a whole number of at most 2147483647",
        _ => return None,
    })
}

/// What was expected, in words: callers do not know our types.
fn wanted(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        text if text.starts_with("struct ") || text == "a map" => "a JSON object",
        text if text == "a sequence" || text.starts_with("a tuple") => "a JSON array",
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_crowded, is_deeper, message};
    use crate::a2a::error::Reason;
    use crate::a2a::request::{PushConfig, SendMessageRequest};

    #[test]
    fn many_objects_and_values_are_a_crowd_and_text_is_not() {
        let list = |one: &str, count: usize| format!("[{}]", vec![one; count].join(","));
        assert!(!is_crowded(list("{}", 100_000).as_bytes()) && is_crowded(list("{}", 100_001).as_bytes()));
        assert!(!is_crowded(list("0", 1_000_001).as_bytes()) && is_crowded(list("0", 1_000_002).as_bytes()));
        assert!(!is_crowded(format!(r#"["{}\""]"#, "{,".repeat(2_000_000)).as_bytes()));
    }

    #[test]
    fn depth_ignores_brackets_in_strings() {
        assert!(!is_deeper(br#"{"a":"[[[[\"[["}"#, 1));
        assert!(is_deeper(b"[[[]]]", 2) && !is_deeper(b"[[[]]]", 3));
    }

    #[test]
    fn names_the_field_at_fault() {
        let refusal = message::<SendMessageRequest>(br#"{"message":{"parts":[{"text":1}]}}"#).unwrap_err();
        assert_eq!(refusal.violations[0].field, "message.parts[0].text");
        assert_eq!(refusal.reason, Reason::InvalidParams);
        let refusal = message::<SendMessageRequest>(b"{\"message\":").unwrap_err();
        assert_eq!(refusal.reason, Reason::ParseError);
    }

    #[test]
    fn a_value_in_the_wrong_place_is_not_repeated() {
        for (config, field, kind) in [
            (r#"{"authentication":"MALFCRED11, expected at line "}"#, "authentication", "string"),
            (r#"{"token":4711}"#, "token", "integer"),
            (r#"{"token":["MALFCRED11"]}"#, "token", "sequence"),
            (r#"{"authentication":{"credentials":{"MALFCRED11":4711}}}"#, "authentication.credentials", "map"),
        ] {
            let refusal = message::<PushConfig>(config.as_bytes()).unwrap_err();
            let told = format!("{} {:?}", refusal.message, refusal.violations);
            assert_eq!(refusal.violations[0].field, field);
            assert!(told.contains(&format!("invalid type: {kind}, expected")), "{told}");
            assert!(!told.contains("MALFCRED11") && !told.contains("4711"), "{told}");
        }
    }

    #[test]
    fn what_is_expected_is_told_without_names_of_types() {
        #[derive(Debug, serde::Deserialize)]
        #[allow(dead_code)]
        struct Given {
            seconds: u64,
            small: u32,
            config: PushConfig,
            list: Vec<u8>,
        }
        for (given, told) in [
            (r#"{"seconds": -1}"#, "invalid value: integer, expected a whole number, 0 or more"),
            (r#"{"seconds": "1"}"#, "invalid type: string, expected a whole number, 0 or more"),
            (r#"{"small": 1099511627776}"#, "invalid value: integer, expected a whole number of at most 4294967295"),
            (r#"{"list": {}}"#, "invalid type: map, expected a JSON array"),
            (r#""text""#, "invalid type: string, expected a JSON object"),
        ] {
            assert_eq!(message::<Given>(given.as_bytes()).unwrap_err().violations[0].description, told, "{given}");
        }
    }

    #[test]
    fn bad_utf8_is_a_parse_error() {
        let refusal = message::<SendMessageRequest>(b"{\"tenant\":\"\xff\"}").unwrap_err();
        assert_eq!(refusal.reason, Reason::ParseError);
    }
}
