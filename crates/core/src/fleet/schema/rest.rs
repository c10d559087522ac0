//! The members of an object that no schema beside `unevaluatedProperties` speaks of.

use super::{Root, also, fits, parts};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Their names; none are looked for where nobody asks.
pub(super) fn unevaluated<'v>(
    root: &Root<'_>,
    members: &Map<String, Value>,
    value: &'v Value,
    depth: usize,
) -> HashSet<&'v str> {
    let mut left = HashSet::new();
    if members.contains_key("unevaluatedProperties") {
        left.extend(value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()));
        strike(root, members, value, depth, &mut left, true);
    }
    left
}

/// Takes away what a schema that holds for the object speaks of.
fn strike(
    root: &Root<'_>,
    members: &Map<String, Value>,
    value: &Value,
    depth: usize,
    left: &mut HashSet<&str>,
    outermost: bool,
) {
    root.count(1);
    if depth > super::DEPTH || root.is_spent() {
        return;
    }
    if members.contains_key("additionalProperties") || (members.contains_key("unevaluatedProperties") && !outermost) {
        return left.clear();
    }
    left.retain(|name| parts::named(root, members, name).is_empty());
    let choices = ["anyOf", "oneOf"].into_iter().filter_map(|word| members.get(word).and_then(Value::as_array));
    let choices = choices.flatten().chain(members.get("if")).filter(|inner| fits(root, inner, value, depth + 1));
    for inner in choices.chain(also(root, members, value, depth)).filter_map(Value::as_object) {
        strike(root, inner, value, depth + 1, left, false);
    }
}
