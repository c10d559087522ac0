//! JSON Schemas that orchestrators send: whether one can be checked against here, and what of a reply is not as it says.

mod circle;

use serde_json::{Map, Value};
use std::cell::Cell;
use std::collections::HashSet;

/// So many violations are told; a reply that is all wrong has more.
const TOLD: usize = 20;
/// How deep schemas may lie in each other, and how many references may be followed in a row.
const DEPTH: usize = 64;
/// How many schemas are held against parts of one reply.
const STEPS: u32 = 100_000;

/// Keywords that say nothing about what is valid.
const NOTES: [&str; 12] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];
/// Keywords that are checked.
const CHECKED: [&str; 23] = [
    "$ref",
    "type",
    "enum",
    "const",
    "required",
    "properties",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
];
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "integer", "string"];

/// What is wrong with a schema, if anything is. One that holds what is not checked here is refused: a reply must not be
/// called valid that nobody looked at.
pub fn problem(schema: &Value) -> Option<String> {
    usable((schema, Reader::Hub), schema, 0, &mut HashSet::new()).err()
}

/// What makes it no JSON Schema, for one that somebody else checks against.
pub fn malformed(schema: &Value) -> Option<String> {
    usable((schema, Reader::Other), schema, 0, &mut HashSet::new()).err()
}

/// Who holds a reply against a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Hub,
    /// An agent's program, which may know more keywords.
    Other,
}

fn usable(
    from: (&Value, Reader),
    schema: &Value,
    depth: usize,
    done: &mut HashSet<*const Value>,
) -> Result<(), String> {
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
                circle::none(root, schema, done)?;
            }
            "type" => types(value)?,
            "properties" | "$defs" | "definitions" => {
                let inner = value.as_object().ok_or_else(|| format!("'{word}' must be an object"))?;
                inner.values().try_for_each(|inner| usable(from, inner, depth + 1, done))?;
            }
            // As older drafts have it.
            "items" if is_others && value.is_array() => {}
            "items" | "additionalProperties" | "not" => usable(from, value, depth + 1, done)?,
            "allOf" | "anyOf" | "oneOf" => {
                let inner = value.as_array().ok_or_else(|| format!("'{word}' must be a list of schemas"))?;
                inner.iter().try_for_each(|inner| usable(from, inner, depth + 1, done))?;
            }
            "required" if !value.as_array().is_some_and(|names| names.iter().all(Value::is_string)) => {
                return Err("'required' must be a list of names".into());
            }
            "enum" if !value.is_array() => return Err("'enum' must be a list".into()),
            "uniqueItems" if !value.is_boolean() => return Err("'uniqueItems' must be true or false".into()),
            "minProperties" | "maxProperties" | "minItems" | "maxItems" | "minLength" | "maxLength"
                if !value.is_u64() =>
            {
                return Err(format!("'{word}' must be a whole number"));
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" if !value.is_number() => {
                return Err(format!("'{word}' must be a number"));
            }
            _ if is_others => {}
            known if CHECKED.contains(&known) || NOTES.contains(&known) => {}
            other => return Err(format!("'{other}' is not checked here; write the schema without it")),
        }
    }
    Ok(())
}

fn types(value: &Value) -> Result<(), String> {
    let named = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    let fits = named(value) || value.as_array().is_some_and(|names| !names.is_empty() && names.iter().all(named));
    if fits { Ok(()) } else { Err(format!("'type' must be one or more of {}", TYPES.join(", "))) }
}

/// A schema refers to itself only: nothing is fetched, and no file is read.
fn target<'a>(root: &'a Value, reference: &Value) -> Result<&'a Value, String> {
    let text = reference.as_str().ok_or("'$ref' must be a text")?;
    let place = text.strip_prefix('#').filter(|place| place.is_empty() || place.starts_with('/'));
    let place =
        place.ok_or_else(|| format!("'{text}' is elsewhere; put what it holds into the schema, under $defs"))?;
    root.pointer(place).ok_or_else(|| format!("'{text}' leads to nothing in the schema"))
}

/// What of a value is not as the schema says; none if it is valid.
pub fn violations(schema: &Value, value: &Value) -> Vec<String> {
    if let Some(problem) = problem(schema) {
        return vec![problem];
    }
    let mut told = Vec::new();
    let root = Root { schema, steps: Cell::new(0) };
    check(&root, schema, value, "", 0, &mut told);
    if root.steps.get() > STEPS {
        return vec![format!("the schema takes more than {STEPS} steps to check; write it more simply")];
    }
    told.truncate(TOLD);
    told
}

/// The whole schema, and how much was checked by it: references and choices together could go on for ever.
struct Root<'a> {
    schema: &'a Value,
    steps: Cell<u32>,
}

fn fits(root: &Root<'_>, schema: &Value, value: &Value, depth: usize) -> bool {
    let mut told = Vec::new();
    check(root, schema, value, "", depth, &mut told);
    told.is_empty()
}

fn check(root: &Root<'_>, schema: &Value, value: &Value, place: &str, depth: usize, told: &mut Vec<String>) {
    root.steps.set(root.steps.get().saturating_add(1));
    if root.steps.get() > STEPS {
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
    if list("enum").is_some_and(|known| !known.contains(value)) {
        tell(format!("must be one of {}", members["enum"]));
    }
    if members.get("const").is_some_and(|only| only != value) {
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
    sizes(members, value, &mut tell);
    for inner in list("allOf").into_iter().flatten() {
        check(root, inner, value, place, depth + 1, told);
    }
    if let Some(Ok(inner)) = members.get("$ref").map(|reference| target(root.schema, reference)) {
        check(root, inner, value, place, depth + 1, told);
    }
    inside(root, members, value, place, depth, told);
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
    let whole = |word: &str| members.get(word).and_then(Value::as_u64);
    if whole(low).is_some_and(|least| (count as u64) < least) {
        tell(format!("has {count}, and {low} is {}", members[low]));
    }
    if whole(high).is_some_and(|most| count as u64 > most) {
        tell(format!("has {count}, and {high} is {}", members[high]));
    }
    if let (Some(Value::Bool(true)), Value::Array(items)) = (members.get("uniqueItems"), value)
        && items.iter().enumerate().any(|(index, item)| items[..index].contains(item))
    {
        tell("holds the same item twice".into());
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
}

fn inside(
    root: &Root<'_>,
    members: &Map<String, Value>,
    value: &Value,
    at: &str,
    depth: usize,
    told: &mut Vec<String>,
) {
    match value {
        Value::Object(inner) => {
            for name in members.get("required").and_then(Value::as_array).into_iter().flatten() {
                if name.as_str().is_some_and(|name| !inner.contains_key(name)) {
                    told.push(format!("{}: {name} is missing", if at.is_empty() { "the reply" } else { at }));
                }
            }
            let known = members.get("properties").and_then(Value::as_object);
            for (name, value) in inner {
                let schema = known.and_then(|known| known.get(name)).or_else(|| members.get("additionalProperties"));
                if let Some(schema) = schema {
                    check(root, schema, value, &format!("{at}/{name}"), depth + 1, told);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = members.get("items") else { return };
            for (index, item) in items.iter().enumerate() {
                check(root, schema, item, &format!("{at}/{index}"), depth + 1, told);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{malformed, problem, violations};
    use serde_json::json;

    #[test]
    fn one_that_another_checks_against_may_say_more_but_not_nonsense() {
        let rich = json!({"type": "object", "patternProperties": {"^x": {}}, "properties": {"a": {"format": "date"}},
            "items": [{"type": "string"}], "$ref": "https://example.com/schema"});
        assert!(malformed(&rich).is_none() && problem(&rich).is_some());
        for wrong in [json!({"type": 5}), json!({"required": "nonsense"}), json!({"properties": {"a": {"enum": 1}}})] {
            assert!(malformed(&wrong).is_some(), "{wrong}");
        }
    }

    #[test]
    fn each_keyword_is_checked() {
        for (schema, valid, invalid) in [
            (json!({"type": ["integer", "null"]}), json!(7), json!("x")),
            (json!({"enum": [1, "a"]}), json!("a"), json!(2)),
            (json!({"const": {"a": 1}}), json!({"a": 1}), json!({})),
            (json!({"required": ["a"]}), json!({"a": 1}), json!({})),
            (json!({"properties": {"a": {"type": "string"}}}), json!({"b": 1}), json!({"a": 1})),
            (json!({"additionalProperties": false}), json!({}), json!({"a": 1})),
            (json!({"minProperties": 1}), json!({"a": 1}), json!({})),
            (json!({"maxProperties": 0}), json!({}), json!({"a": 1})),
            (json!({"items": {"type": "number"}}), json!([1, 2.5]), json!([1, "x"])),
            (json!({"minItems": 1}), json!([1]), json!([])),
            (json!({"maxItems": 1}), json!([1]), json!([1, 2])),
            (json!({"uniqueItems": true}), json!([1, 2]), json!([1, 1])),
            (json!({"minLength": 2}), json!("éé"), json!("é")),
            (json!({"maxLength": 2}), json!("éé"), json!("ééé")),
            (json!({"minimum": 2}), json!(2), json!(1)),
            (json!({"maximum": 2}), json!(2), json!(3)),
            (json!({"exclusiveMinimum": 2}), json!(3), json!(2)),
            (json!({"exclusiveMaximum": 2}), json!(1), json!(2)),
            (json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}), json!(1), json!(3)),
            (json!({"anyOf": [{"type": "string"}, {"minimum": 5}]}), json!("x"), json!(3)),
            (json!({"oneOf": [{"minimum": 1}, {"maximum": 5}]}), json!(9), json!(3)),
            (json!({"not": {"type": "string"}}), json!(1), json!("x")),
            (json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}), json!(1), json!("x")),
            (json!(true), json!(1), json!(null)),
        ] {
            assert_eq!(violations(&schema, &valid), Vec::<String>::new(), "{schema}");
            assert_eq!(violations(&schema, &invalid).is_empty(), schema == json!(true), "{schema}");
        }
        let nested = json!({"properties": {"a": {"items": {"type": "integer"}}}});
        assert_eq!(violations(&nested, &json!({"a": [1, "x"]})), [r#"/a/1: must be of type "integer""#]);
    }

    #[test]
    fn what_cannot_be_checked_is_refused() {
        for (schema, told) in [
            (json!({"pattern": "a+"}), "'pattern' is not checked here"),
            (json!({"properties": {"a": {"if": {}}}}), "'if' is not checked here"),
            (json!({"type": "nothing"}), "'type' must be one or more of"),
            (json!({"$ref": "file:///etc/passwd"}), "is elsewhere"),
            (json!({"$ref": "http://127.0.0.1/x"}), "is elsewhere"),
            (json!({"$ref": "#/$defs/n"}), "leads to nothing"),
            (json!({"required": "a"}), "'required' must be a list"),
            (json!({"minimum": "1"}), "'minimum' must be a number"),
            (json!(7), "must be an object"),
        ] {
            let problem = problem(&schema).unwrap_or_default();
            assert!(problem.contains(told), "{schema}: {problem}");
        }
        let mut defs = json!({"d17": false});
        for number in 0..17 {
            let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
            defs[format!("d{number}")] = json!({"anyOf": [next, next]});
        }
        let maze = json!({"$ref": "#/$defs/d0", "$defs": defs});
        assert!(violations(&maze, &json!(1))[0].contains("steps to check"));
    }

    #[test]
    fn a_schema_may_refer_to_itself_only_for_parts_of_a_value() {
        for ring in [
            json!({"$ref": "#"}),
            json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
            json!({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]},
                "b": {"not": {"$ref": "#/$defs/a"}}}}),
        ] {
            let problem = problem(&ring).unwrap_or_default();
            assert!(problem.contains("refers to itself"), "{ring}: {problem}");
        }
        let tree = json!({"type": "object", "properties": {"left": {"$ref": "#"}, "more": {"items": {"$ref": "#"}}}});
        assert_eq!(problem(&tree), None);
        assert_eq!(violations(&tree, &json!({"left": {"more": [{"left": 1}]}})).len(), 1);
    }
}
