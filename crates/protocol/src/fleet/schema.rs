//! JSON Schemas of the three messages, made from the types that read them.

use super::version::CURRENT;
use super::{Announce, Dispatch, Kind, TaskResult};
use serde_json::{Value, json};

impl Kind {
    /// The name of its schema in addresses.
    pub fn slug(self) -> &'static str {
        match self {
            Self::Announce => "session-announce",
            Self::Dispatch => "task-dispatch",
            Self::Result => "task-result",
        }
    }

    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.slug() == slug)
    }

    /// Its schema. Fields that are not in it are kept as they came, so it forbids none.
    pub fn schema(self) -> Value {
        let schema = match self {
            Self::Announce => schemars::schema_for!(Announce),
            Self::Dispatch => schemars::schema_for!(Dispatch),
            Self::Result => schemars::schema_for!(TaskResult),
        };
        let mut schema = Value::from(schema);
        schema["$id"] = format!("urn:flotilla:schema:fleet:2.0:{}", self.slug()).into();
        schema["title"] = self.name().into();
        // Another major version is another message.
        schema["properties"]["protocol_version"] =
            json!({"type": "string", "pattern": format!("^{}(\\.[0-9]+)?$", CURRENT.major), "examples": [CURRENT]});
        bound(&mut schema);
        let definitions = schema["$defs"].as_object_mut().map(std::mem::take).unwrap_or_default();
        schema["$defs"] = definitions.into_iter().map(|(name, inner)| (name, with_nulls(inner))).collect();
        with_nulls(schema)
    }
}

/// What may be left out may be null.
fn with_nulls(mut schema: Value) -> Value {
    let required: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
    let members = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (_, member) in members.into_iter().flatten().filter(|(name, _)| !required.contains(&json!(name))) {
        let nothing = json!("null");
        match member.get("type").cloned() {
            Some(Value::String(kind)) => member["type"] = json!([kind, nothing]),
            Some(Value::Array(kinds)) if !kinds.contains(&nothing) => {
                member["type"] = [kinds, vec![nothing]].concat().into()
            }
            None if member.get("$ref").is_some() => *member = json!({"anyOf": [member.take(), {"type": nothing}]}),
            _ => {}
        }
    }
    schema
}

/// Whole numbers end somewhere, which their format says in words of ours alone.
fn bound(schema: &mut Value) {
    match schema {
        Value::Array(several) => several.iter_mut().for_each(bound),
        Value::Object(members) => {
            let most = match members.get("format").and_then(Value::as_str) {
                Some("uint32") => Some(u64::from(u32::MAX)),
                Some("uint64") => Some(u64::MAX),
                _ => None,
            };
            if let Some(most) = most {
                members.insert("maximum".into(), most.into());
            }
            members.values_mut().for_each(bound);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;
    use serde_json::json;

    /// What they mean is tried by a validator that is not ours (tests/interop/python/test_schemas.py).
    #[test]
    fn what_is_refused_is_in_the_schema() {
        for (kind, place, expected) in [
            (Kind::Announce, "/$defs/Worker/properties/agent_id/pattern", json!("\\S")),
            (Kind::Announce, "/$defs/Worker/properties/usd_per_million_tokens/minimum", json!(0)),
            (Kind::Announce, "/$defs/Capabilities/properties/max_concurrent/minimum", json!(1)),
            (Kind::Announce, "/$defs/Capabilities/properties/max_concurrent/maximum", json!(u32::MAX)),
            (Kind::Announce, "/properties/protocol_version/pattern", json!("^2(\\.[0-9]+)?$")),
            (Kind::Announce, "/$defs/McpStatus/anyOf/1", json!({})),
            (Kind::Announce, "/properties/mcp_health/maxProperties", json!(1_000)),
            (Kind::Announce, "/properties/supported_versions/maxItems", json!(1_000)),
            (Kind::Announce, "/$defs/Capabilities/properties/tools/maxItems", json!(1_000)),
            (Kind::Announce, "/$defs/Capabilities/properties/mcp_servers/maxItems", json!(1_000)),
            (Kind::Announce, "/$defs/Worker/properties/labels/maxItems", json!(1_000)),
            (Kind::Announce, "/$defs/Worker/properties/agent_id/maxLength", json!(4_096)),
            (Kind::Announce, "/$defs/Worker/properties/version/maxLength", json!(4_096)),
            (Kind::Announce, "/$defs/Session/properties/broken/maxLength", json!(4_096)),
            (Kind::Announce, "/$defs/RepoState/properties/repository/maxLength", json!(4_096)),
            (Kind::Dispatch, "/properties/brief/pattern", json!("\\S")),
            (Kind::Dispatch, "/$defs/Terms/properties/token_budget/minimum", json!(1)),
            (Kind::Dispatch, "/$defs/Terms/then/properties/reply_schema/const", json!("json")),
            (Kind::Dispatch, "/$defs/Budget/properties/max_total_tokens/minimum", json!(1)),
            (Kind::Dispatch, "/$defs/Budget/properties/max_output_tokens/minimum", json!(1)),
            (Kind::Dispatch, "/$defs/Budget/properties/max_cost_usd/exclusiveMinimum", json!(0)),
            (Kind::Result, "/allOf/0/then/required/0", json!("blocked_reason")),
            (Kind::Result, "/allOf/1/then/required/0", json!("error")),
            (Kind::Result, "/allOf/2/then/properties/remaining/minItems", json!(1)),
            (Kind::Result, "/$defs/BlockedReason/anyOf/1/pattern", json!("^[A-Za-z][A-Za-z0-9_-]{0,63}$")),
            (Kind::Result, "/$defs/Usage/properties/cost_usd/minimum", json!(0)),
            (Kind::Result, "/properties/next_steps/type", json!(["array", "null"])),
            (Kind::Result, "/properties/artifacts/anyOf/1/type", json!("null")),
            (Kind::Result, "/$defs/Made/properties/files_changed/type", json!(["array", "null"])),
            (Kind::Result, "/properties/status", json!({"$ref": "#/$defs/Status"})),
        ] {
            let schema = kind.schema();
            assert_eq!(schema.pointer(place), Some(&expected), "{place} of {schema:#}");
        }
    }

    #[test]
    fn every_message_has_a_schema_under_its_name() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_slug(kind.slug()), Some(kind));
            let schema = kind.schema();
            assert_eq!(schema["type"], "object", "{schema}");
            assert!(schema["required"].as_array().unwrap().iter().any(|name| name == "protocol_version"), "{schema}");
            assert_ne!(schema["additionalProperties"], false);
        }
        assert_eq!(Kind::from_slug("task"), None);
    }
}
