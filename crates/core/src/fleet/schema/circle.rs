//! References of a schema that lead back to where they came from before any part of a value was looked at: nothing can be
//! held against such a schema.

use super::{DEPTH, target};
use serde_json::Value;
use std::collections::HashSet;

/// Fails if a schema, held against a value, would be held against the same value again. Those that are done are not
/// looked at twice.
pub fn none(root: &Value, schema: &Value, done: &mut HashSet<*const Value>) -> Result<(), String> {
    look(root, schema, &mut Vec::new(), done)
}

fn look(
    root: &Value,
    schema: &Value,
    way: &mut Vec<*const Value>,
    done: &mut HashSet<*const Value>,
) -> Result<(), String> {
    let Value::Object(members) = schema else { return Ok(()) };
    let here = std::ptr::from_ref(schema);
    if way.contains(&here) {
        return Err(
            "the schema refers to itself without end; put what it means in between, under properties or items".into()
        );
    }
    if way.len() > DEPTH {
        return Err(format!("more than {DEPTH} schemas refer to each other in a row; write it more simply"));
    }
    if !done.insert(here) {
        return Ok(());
    }
    way.push(here);
    for (word, value) in members {
        match word.as_str() {
            "$ref" => look(root, target(root, value)?, way, done)?,
            "not" | "if" | "then" | "else" => look(root, value, way, done)?,
            "dependentSchemas" => {
                let inner = value.as_object().into_iter().flatten();
                inner.into_iter().try_for_each(|(_, inner)| look(root, inner, way, done))?;
            }
            "allOf" | "anyOf" | "oneOf" => {
                let inner = value.as_array().into_iter().flatten();
                inner.into_iter().try_for_each(|inner| look(root, inner, way, done))?;
            }
            _ => {}
        }
    }
    way.pop();
    Ok(())
}
