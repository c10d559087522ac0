//! The keywords of schemas: which are known, and what form their values must have.

use serde_json::Value;

/// Keywords that say nothing about what is valid; `format` among them (JSON Schema 2020-12, 7.2.1).
const NOTES: [&str; 18] = [
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
    "format",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    // Where to look first among the schemas of a choice.
    "discriminator",
    "$anchor",
];
/// Keywords that are checked.
const CHECKED: [&str; 37] = [
    "$ref",
    "type",
    "enum",
    "const",
    "required",
    "properties",
    "patternProperties",
    "propertyNames",
    "additionalProperties",
    "unevaluatedProperties",
    "dependentRequired",
    "dependentSchemas",
    "minProperties",
    "maxProperties",
    "items",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
];
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "integer", "string"];
/// Keywords that hold one schema.
pub(super) const SCHEMAS: [&str; 9] = [
    "items",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
];

/// Fails for a value that is none of its keyword's, and for a keyword that is not known. Others may know more.
pub(super) fn check(word: &str, value: &Value, is_others: bool) -> Result<(), String> {
    match word {
        "type" => types(value)?,
        "required" if value.as_array().is_some_and(|names| names.iter().any(Value::is_boolean)) => {
            return Err("'required' must be a list of names, and one of them is read as true or false: in YAML, put \
                        names such as n, y, no, yes, off and on into quotes"
                .into());
        }
        "required" if !is_names(value) => return Err("'required' must be a list of names".into()),
        "dependentRequired" if !value.as_object().is_some_and(|all| all.values().all(is_names)) => {
            return Err("'dependentRequired' must hold lists of names".into());
        }
        "enum" if !value.is_array() => return Err("'enum' must be a list".into()),
        "uniqueItems" if !value.is_boolean() => return Err("'uniqueItems' must be true or false".into()),
        "minProperties" | "maxProperties" | "minItems" | "maxItems" | "minLength" | "maxLength" | "minContains"
        | "maxContains"
            if whole(value).is_none() =>
        {
            return Err(format!("'{word}' must be a whole number"));
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" if !value.is_number() => {
            return Err(format!("'{word}' must be a number"));
        }
        "multipleOf" if value.as_f64().is_none_or(|bound| bound <= 0.0) => {
            return Err("'multipleOf' must be a number above 0".into());
        }
        _ if is_others => {}
        own if own.starts_with("x-") => {}
        known if CHECKED.contains(&known) || NOTES.contains(&known) => {}
        other => return Err(format!("'{other}' is not checked here; write the schema without it")),
    }
    Ok(())
}

/// A whole number from 0 on, however it is written: 2.0 is one too.
pub(super) fn whole(value: &Value) -> Option<u64> {
    let number = || value.as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0);
    value.as_u64().or_else(|| number().map(|number| number as u64))
}

fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}

fn types(value: &Value) -> Result<(), String> {
    let named = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    let fits = named(value) || value.as_array().is_some_and(|names| !names.is_empty() && names.iter().all(named));
    if fits { Ok(()) } else { Err(format!("'type' must be one or more of {}", TYPES.join(", "))) }
}
