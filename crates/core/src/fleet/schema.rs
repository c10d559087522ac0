//! JSON Schemas that orchestrators send: whether one can be checked against here, and what of a reply is not as it says.

mod circle;
mod parts;
mod pattern;
mod rest;
mod same;
mod shape;

use fancy_regex::Regex;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::cell::{Cell, RefCell};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// So many violations are told; a reply that is all wrong has more.
const TOLD: usize = 20;
/// How deep schemas may lie in each other, and how many references may be followed in a row.
const DEPTH: usize = 64;
/// How many schemas are held against parts of one reply.
const STEPS: u32 = 100_000;
/// How many patterns one may hold.
const PATTERNS: usize = 200;

/// What is wrong with a schema, if anything is. One that holds what is not checked here is refused: a reply must not be
/// called valid that nobody looked at.
pub fn problem(schema: &Value) -> Option<String> {
    usable((schema, Reader::Hub), schema, 0, &mut Looked::default()).err()
}

/// What makes it no JSON Schema, for one that somebody else checks against.
pub fn malformed(schema: &Value) -> Option<String> {
    usable((schema, Reader::Other), schema, 0, &mut Looked::default()).err()
}

/// Who holds a reply against a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Hub,
    /// An agent's program, which may know more keywords.
    Other,
}

/// What was looked at of a schema.
#[derive(Default)]
struct Looked {
    done: HashSet<*const Value>,
    patterns: usize,
}

impl Looked {
    /// Whether a pattern can be matched; each takes its time to read.
    fn pattern(&mut self, pattern: &str) -> Result<(), String> {
        self.patterns += 1;
        if self.patterns > PATTERNS {
            return Err(format!("it holds more than {PATTERNS} patterns; write it more simply"));
        }
        pattern::compiled(pattern).map(|_| ())
    }
}

fn usable(from: (&Value, Reader), schema: &Value, depth: usize, looked: &mut Looked) -> Result<(), String> {
    let (root, is_others) = (from.0, from.1 == Reader::Other);
    let Value::Object(members) = schema else {
        return if schema.is_boolean() { Ok(()) } else { Err("a schema must be an object, true or false".into()) };
    };
    if depth > DEPTH {
        return Err(format!("it is nested deeper than {DEPTH} levels"));
    }
    for (word, value) in members {
        match word.as_str() {
            "$ref" if is_others && value.as_str().is_some_and(|text| !text.starts_with("#/")) => {}
            "$ref" => {
                target(root, value)?;
                circle::none(root, schema, &mut looked.done)?;
            }
            "pattern" if !is_others => {
                let text = value.as_str().ok_or("'pattern' must be a text")?;
                looked.pattern(text)?;
            }
            "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions" => {
                let inner = value.as_object().ok_or_else(|| format!("'{word}' must be an object"))?;
                if word == "patternProperties" && !is_others {
                    inner.keys().try_for_each(|name| looked.pattern(name))?;
                }
                inner.values().try_for_each(|inner| usable(from, inner, depth + 1, looked))?;
            }
            // As older drafts have it.
            "items" if is_others && value.is_array() => {}
            inner if shape::SCHEMAS.contains(&inner) => usable(from, value, depth + 1, looked)?,
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                let inner = value.as_array().ok_or_else(|| format!("'{word}' must be a list of schemas"))?;
                inner.iter().try_for_each(|inner| usable(from, inner, depth + 1, looked))?;
            }
            word => shape::check(word, value, is_others)?,
        }
    }
    Ok(())
}

/// A schema refers to itself only: nothing is fetched, and no file is read.
fn target<'a>(root: &'a Value, reference: &Value) -> Result<&'a Value, String> {
    let text = reference.as_str().ok_or("'$ref' must be a text")?;
    let place = text.strip_prefix('#').filter(|place| place.is_empty() || place.starts_with('/'));
    let place =
        place.ok_or_else(|| format!("'{text}' is elsewhere; put what it holds into the schema, under $defs"))?;
    // It is part of an address: letters that have none there are written as %20.
    let place = percent_decode_str(place).decode_utf8().map_err(|_| format!("'{text}' is no reference"))?;
    root.pointer(&place).ok_or_else(|| format!("'{text}' leads to nothing in the schema"))
}

/// What of a value is not as the schema says; none if it is valid.
pub fn violations(schema: &Value, value: &Value) -> Vec<String> {
    if let Some(problem) = problem(schema) {
        return vec![problem];
    }
    let mut told = Vec::new();
    let root = Root { schema, steps: Cell::new(0), patterns: RefCell::default() };
    check(&root, schema, value, "", 0, &mut told);
    if root.is_spent() {
        return vec![format!("the schema takes more than {STEPS} steps to check; write it more simply")];
    }
    told.truncate(TOLD);
    told
}

/// The whole schema, and how much was checked by it: references and choices together could go on for ever.
struct Root<'a> {
    schema: &'a Value,
    steps: Cell<u32>,
    patterns: RefCell<HashMap<String, Regex>>,
}

/// So many letters of a pattern times those it is held against are a step.
const LETTERS: usize = 20_000;
/// A pattern that looks around or back may try many ways, and counts as so many steps.
const WAYS: usize = 50;

impl Root<'_> {
    fn count(&self, steps: usize) {
        self.steps.set(self.steps.get().saturating_add(u32::try_from(steps).unwrap_or(u32::MAX)));
    }

    fn count_letters(&self, letters: usize, a_step: usize) {
        self.count(letters / a_step + 1);
    }

    /// Whether there was too much to check.
    fn is_spent(&self) -> bool {
        self.steps.get() > STEPS
    }

    /// Whether a text is as a pattern says; one that cannot be found out about is not.
    fn matches(&self, pattern: &str, text: &str) -> bool {
        self.count_letters(text.len().saturating_mul(pattern.len()), LETTERS);
        if pattern::tries_ways(pattern) {
            self.count(WAYS);
        }
        if self.is_spent() {
            return false;
        }
        let mut known = self.patterns.borrow_mut();
        let compiled = match known.entry(pattern.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => match pattern::compiled(pattern) {
                Ok(compiled) => new.insert(compiled),
                Err(_) => return false,
            },
        };
        compiled.is_match(text).unwrap_or(false)
    }
}

fn fits(root: &Root<'_>, schema: &Value, value: &Value, depth: usize) -> bool {
    let mut told = Vec::new();
    check(root, schema, value, "", depth, &mut told);
    told.is_empty()
}

fn check(root: &Root<'_>, schema: &Value, value: &Value, place: &str, depth: usize, told: &mut Vec<String>) {
    root.count(1);
    if root.is_spent() {
        return;
    }
    let mut tell = |what: String| told.push(format!("{}: {what}", if place.is_empty() { "the reply" } else { place }));
    let members = match schema {
        Value::Object(members) => members,
        Value::Bool(false) => return tell("nothing is allowed here".into()),
        _ => return,
    };
    if depth > DEPTH {
        return tell(format!("the schema refers to itself more than {DEPTH} times in a row"));
    }
    let within = |inner: &Value| fits(root, inner, value, depth + 1);
    let list = |word: &str| members.get(word).and_then(Value::as_array);
    if members.get("type").is_some_and(|wanted| !is_of(wanted, value)) {
        tell(format!("must be of type {}", members["type"]));
    }
    if list("enum").is_some_and(|known| !root.is_one_of(known, value)) {
        tell(format!("must be one of {}", members["enum"]));
    }
    if members.get("const").is_some_and(|only| !root.is_one_of(std::slice::from_ref(only), value)) {
        tell(format!("must be {}", members["const"]));
    }
    if list("anyOf").is_some_and(|some| !some.iter().any(within)) {
        tell("fits none of anyOf".into());
    }
    if list("oneOf").is_some_and(|some| some.iter().filter(|inner| within(inner)).count() != 1) {
        tell("must fit exactly one of oneOf".into());
    }
    if members.get("not").is_some_and(within) {
        tell("fits what it must not".into());
    }
    if let (Some(pattern), Some(text)) = (members.get("pattern").and_then(Value::as_str), value.as_str())
        && !root.matches(pattern, text)
    {
        tell(format!("does not match the pattern {}", members["pattern"]));
    }
    sizes(members, value, &mut tell);
    if let (Some(Value::Bool(true)), Value::Array(items)) = (members.get("uniqueItems"), value)
        && !root.are_different(items)
    {
        tell("holds the same item twice".into());
    }
    for inner in also(root, members, value, depth) {
        check(root, inner, value, place, depth + 1, told);
    }
    parts::check(root, members, value, place, depth, told);
}

/// The schemas that hold for the same value: those that always do, and those that do for one like this.
fn also<'a>(root: &Root<'a>, members: &'a Map<String, Value>, value: &Value, depth: usize) -> Vec<&'a Value> {
    let mut all: Vec<&Value> = members.get("allOf").and_then(Value::as_array).into_iter().flatten().collect();
    all.extend(members.get("$ref").and_then(|reference| target(root.schema, reference).ok()));
    if let Some(condition) = members.get("if") {
        all.extend(members.get(if fits(root, condition, value, depth + 1) { "then" } else { "else" }));
    }
    let dependent = members.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten();
    all.extend(dependent.filter(|(name, _)| value.get(name.as_str()).is_some()).map(|(_, inner)| inner));
    all
}

fn is_of(wanted: &Value, value: &Value) -> bool {
    let one = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "string" => value.is_string(),
        _ => false,
    };
    let names = wanted.as_array().map_or(std::slice::from_ref(wanted), Vec::as_slice);
    names.iter().filter_map(Value::as_str).any(one)
}

/// Whether a number is within a bound.
type Holds = fn(f64, f64) -> bool;

fn sizes(members: &Map<String, Value>, value: &Value, tell: &mut impl FnMut(String)) {
    let (low, high, count) = match value {
        Value::String(text) => ("minLength", "maxLength", text.chars().count()),
        Value::Array(items) => ("minItems", "maxItems", items.len()),
        Value::Object(inner) => ("minProperties", "maxProperties", inner.len()),
        _ => ("", "", 0),
    };
    let whole = |word: &str| members.get(word).and_then(shape::whole);
    if whole(low).is_some_and(|least| (count as u64) < least) {
        tell(format!("has {count}, and {low} is {}", members[low]));
    }
    if whole(high).is_some_and(|most| count as u64 > most) {
        tell(format!("has {count}, and {high} is {}", members[high]));
    }
    let Some(number) = value.as_f64() else { return };
    let bounds: [(&str, Holds); 4] = [
        ("minimum", |number, bound| number >= bound),
        ("maximum", |number, bound| number <= bound),
        ("exclusiveMinimum", |number, bound| number > bound),
        ("exclusiveMaximum", |number, bound| number < bound),
    ];
    for (word, holds) in bounds {
        if members.get(word).and_then(Value::as_f64).is_some_and(|bound| !holds(number, bound)) {
            tell(format!("is {value}, and {word} is {}", members[word]));
        }
    }
    if members.get("multipleOf").is_some_and(|bound| !is_multiple(value, bound)) {
        tell(format!("is {value}, and no multiple of {}", members["multipleOf"]));
    }
}

/// Whole numbers are exact; of others, what is nearer than anybody writes is the same.
fn is_multiple(value: &Value, bound: &Value) -> bool {
    if let (Some(value), Some(bound)) = (value.as_i64(), bound.as_i64()) {
        return bound != 0 && value % bound == 0;
    }
    let times = value.as_f64().unwrap_or_default() / bound.as_f64().unwrap_or(1.0);
    times.is_finite() && (times - times.round()).abs() <= 1e-9 * times.abs().max(1.0)
}

#[cfg(test)]
mod tests;
