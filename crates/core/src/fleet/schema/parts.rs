//! What a schema says of the parts of a value: the members of an object, the items of a list.

use super::{Root, check as check_one, fits, rest, shape};
use serde_json::{Map, Value};
use std::collections::HashSet;

pub(super) fn check(
    root: &Root<'_>,
    members: &Map<String, Value>,
    value: &Value,
    at: &str,
    depth: usize,
    told: &mut Vec<String>,
) {
    match value {
        Value::Object(inner) => {
            missing(members, inner, at, told);
            let others = rest::unevaluated(root, members, value, depth);
            names(root, members, (inner, &others), at, depth, told);
        }
        Value::Array(items) => list(root, members, items, at, depth, told),
        _ => {}
    }
}

fn whole(at: &str) -> &str {
    if at.is_empty() { "the reply" } else { at }
}

fn missing(members: &Map<String, Value>, inner: &Map<String, Value>, at: &str, told: &mut Vec<String>) {
    let always = members.get("required").into_iter();
    let dependent = members.get("dependentRequired").and_then(Value::as_object).into_iter().flatten();
    let dependent = dependent.filter(|(name, _)| inner.contains_key(*name)).map(|(_, names)| names);
    for name in always.chain(dependent).filter_map(Value::as_array).flatten() {
        if name.as_str().is_some_and(|name| !inner.contains_key(name)) {
            told.push(format!("{}: {name} is missing", whole(at)));
        }
    }
}

fn names(
    root: &Root<'_>,
    members: &Map<String, Value>,
    (inner, others): (&Map<String, Value>, &HashSet<&str>),
    at: &str,
    depth: usize,
    told: &mut Vec<String>,
) {
    for (name, value) in inner {
        let place = format!("{at}/{name}");
        if let Some(schema) = members.get("propertyNames") {
            let mut wrong = Vec::new();
            check_one(root, schema, &Value::String(name.clone()), &place, depth + 1, &mut wrong);
            told.extend(wrong.into_iter().map(|what| format!("{what} (its name)")));
        }
        let mut schemas = named(root, members, name);
        if schemas.is_empty() {
            schemas.extend(members.get("additionalProperties"));
        }
        schemas.extend(members.get("unevaluatedProperties").filter(|_| others.contains(name.as_str())));
        for schema in schemas {
            check_one(root, schema, value, &place, depth + 1, told);
        }
    }
}

/// The schemas that a member has by its name.
pub(super) fn named<'a>(root: &Root<'_>, members: &'a Map<String, Value>, name: &str) -> Vec<&'a Value> {
    let known = members.get("properties").and_then(|known| known.get(name));
    let patterns = members.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
    let matching = patterns.filter(|(pattern, _)| root.matches(pattern, name)).map(|(_, schema)| schema);
    known.into_iter().chain(matching).collect()
}

fn list(
    root: &Root<'_>,
    members: &Map<String, Value>,
    items: &[Value],
    at: &str,
    depth: usize,
    told: &mut Vec<String>,
) {
    let first = members.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (index, item) in items.iter().enumerate() {
        if let Some(schema) = first.get(index).or_else(|| members.get("items")) {
            check_one(root, schema, item, &format!("{at}/{index}"), depth + 1, told);
        }
    }
    let Some(schema) = members.get("contains") else { return };
    let count = items.iter().filter(|item| fits(root, schema, item, depth + 1)).count() as u64;
    let bound = |word: &str| members.get(word).and_then(shape::whole);
    if count < bound("minContains").unwrap_or(1) || bound("maxContains").is_some_and(|most| count > most) {
        told.push(format!("{}: {count} of its items are as 'contains' says", whole(at)));
    }
}
