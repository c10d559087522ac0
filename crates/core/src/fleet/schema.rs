//! JSON Schemas that orchestrators send: whether one is usable, and what of a reply is not as it says.

use boon::{CompileError, Compiler, SchemaIndex, Schemas, UrlLoader};
use serde_json::Value;
use std::error::Error;

/// So many violations are told; a reply that is all wrong has more.
const TOLD: usize = 20;
/// Where the schema is said to be. Nothing is ever read from there.
const HERE: &str = "urn:flotilla:reply";

/// A schema may only refer to itself: nothing is fetched, and no file is read.
struct Nowhere;

impl UrlLoader for Nowhere {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        Err(format!("'{url}' is elsewhere; put what it holds into the schema itself, under $defs").into())
    }
}

fn compiled(schema: &Value) -> Result<(Schemas, SchemaIndex), String> {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.use_loader(Box::new(Nowhere));
    compiler.add_resource(HERE, schema.clone()).map_err(|error| error.to_string())?;
    let index = compiler.compile(HERE, &mut schemas).map_err(|error| match error {
        CompileError::LoadUrlError { src, .. } => src.to_string(),
        other => other.to_string(),
    })?;
    Ok((schemas, index))
}

/// What is wrong with a schema, if anything is.
pub fn problem(schema: &Value) -> Option<String> {
    compiled(schema).err()
}

/// What of a value is not as the schema says; none if it is valid.
pub fn violations(schema: &Value, value: &Value) -> Vec<String> {
    let (schemas, index) = match compiled(schema) {
        Ok(compiled) => compiled,
        Err(problem) => return vec![problem],
    };
    let Err(error) = schemas.validate(value, index) else { return Vec::new() };
    let mut told = Vec::new();
    leaves(&error, &mut told);
    told.truncate(TOLD);
    told
}

/// The single faults; those around them only say that there are some.
fn leaves(error: &boon::ValidationError<'_, '_>, told: &mut Vec<String>) {
    if error.causes.is_empty() {
        let place = error.instance_location.to_string();
        let place = if place.is_empty() { "the reply".to_owned() } else { place };
        told.push(format!("{place}: {}", error.kind));
    }
    for cause in &error.causes {
        leaves(cause, told);
    }
}

#[cfg(test)]
mod tests {
    use super::{problem, violations};
    use serde_json::json;

    #[test]
    fn what_is_not_as_the_schema_says_is_named() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}});
        assert_eq!(problem(&schema), None);
        assert!(violations(&schema, &json!({"a": 1})).is_empty());
        assert!(violations(&schema, &json!({}))[0].contains("missing"), "{:?}", violations(&schema, &json!({})));
        assert!(violations(&schema, &json!({"a": "x"}))[0].starts_with("/a: "));
    }

    #[test]
    fn a_schema_reaches_nowhere_else() {
        for elsewhere in ["file:///etc/passwd", "http://127.0.0.1/schema.json"] {
            let told = problem(&json!({"$ref": elsewhere})).expect("it is refused");
            assert!(told.contains(elsewhere), "{told}");
        }
        assert!(problem(&json!({"type": "nothing"})).is_some());
    }
}
