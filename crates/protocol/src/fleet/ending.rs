//! The result a text ends with: where it begins, what stands before it, and whether one was begun and is cut off.

use super::{Found, Kind, read};
use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value};

/// So many objects that may hold the beginning of a result are looked at.
const OPENINGS: usize = 8;

/// The handshake message a text is, or the result it ends with.
pub fn ending(text: &str) -> Found {
    ending_and_words(text).0
}

/// The same, and the words before it, without the fence that people and models put around JSON. A result that other words
/// follow is only quoted, and content as they are.
pub fn ending_and_words(text: &str) -> (Found, String) {
    match read(text) {
        Found::Nothing => {}
        found => return (found, String::new()),
    }
    let nothing = || (Found::Nothing, text.to_owned());
    if !text.contains(Kind::Result.name()) {
        return nothing();
    }
    let whole = text.trim_end();
    let bare = whole.trim_end_matches('`').trim_end();
    let fence = whole[bare.len()..].trim_start();
    let fenced = bare.trim_start().strip_prefix(fence).filter(|_| !fence.is_empty());
    if lists_result(fenced.map_or(bare, |inner| inner.trim_start_matches(char::is_alphanumeric))) {
        return (Found::Wrong(NO_OBJECT.into()), String::new());
    }
    let Some(start) = last_object(bare) else { return nothing() };
    let object = &bare[start..];
    let found = match read(object) {
        Found::Nothing if names_result(object) && serde_json::from_str::<IgnoredAny>(object).is_err() => {
            Found::Wrong(CUT.into())
        }
        found => found,
    };
    match found {
        Found::Nothing => nothing(),
        found => (found, words(&bare[..start], fence)),
    }
}

/// What is wrong with a result that is begun, and cannot be read to its end.
pub const CUT: &str = "TASK_RESULT: its JSON cannot be read";
/// What is wrong with one that is in a list, or has no type.
pub const NO_OBJECT: &str = "TASK_RESULT: must be one JSON object whose type is \"TASK_RESULT\"";

/// Whether a text speaks of a result as one is written: `"type": "TASK_RESULT"`.
pub fn names_result(text: &str) -> bool {
    named(text).next().is_some()
}

/// Whether a result is begun in a text, and the text ends before it does.
pub fn is_cut_off(text: &str) -> bool {
    let Some(at) = named(text).last() else { return false };
    for (start, _) in text[..at].rmatch_indices('{').take(OPENINGS) {
        let mut values = Deserializer::from_str(&text[start..]).into_iter::<IgnoredAny>();
        match values.next() {
            Some(Err(error)) if error.is_eof() => return true,
            Some(Ok(_)) if start + values.byte_offset() > at => return false,
            _ => {}
        }
    }
    false
}

/// Whether JSON is a list with a result in it.
pub fn lists_result(json: &str) -> bool {
    let listed = json.trim_start().starts_with('[').then(|| serde_json::from_str::<Vec<Value>>(json).ok()).flatten();
    listed.is_some_and(|values| values.iter().any(|value| value["type"] == Kind::Result.name()))
}

fn named(text: &str) -> impl Iterator<Item = usize> + '_ {
    let places = text.match_indices("\"TASK_RESULT\"").map(|(at, _)| at);
    places.filter(|at| {
        let before = text[..*at].trim_end().strip_suffix(':').map(str::trim_end);
        before.is_some_and(|before| before.ends_with("\"type\""))
    })
}

/// Where the object begins that a text ends with. Read from its end: what stands before it may be anything.
fn last_object(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.last() != Some(&b'}') {
        return None;
    }
    let (mut depth, mut in_string) = (0_usize, false);
    for (at, byte) in bytes.iter().enumerate().rev() {
        match byte {
            b'"' => {
                let slashes = bytes[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
                in_string ^= slashes % 2 == 0;
            }
            b'}' if !in_string => depth += 1,
            b'{' if !in_string && depth == 1 => return Some(at),
            b'{' if !in_string => depth -= 1,
            _ => {}
        }
    }
    None
}

/// A text without the fence at its end that is closed by this one; all of it if there is none.
fn opened<'a>(before: &'a str, fence: &str) -> &'a str {
    let before = before.trim_end();
    if fence.is_empty() {
        return before;
    }
    match before.rsplit_once(fence) {
        Some((words, info)) if info.chars().all(char::is_alphanumeric) => words.trim_end(),
        _ => before,
    }
}

fn words(before: &str, fence: &str) -> String {
    let words = opened(before, fence);
    // A fence that was opened before other words is closed after them.
    if words.len() < before.trim_end().len() || fence.is_empty() || words.is_empty() {
        return words.to_owned();
    }
    format!("{words}\n{fence}")
}
