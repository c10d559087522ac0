//! JSON Schemas of the three messages, made from the types that read them.

use super::{Announce, Dispatch, Kind, TaskResult};
use serde_json::Value;

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
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

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
