//! Which members a card of A2A 1.0 has, and which of them are said even when they say nothing (spec 4.4, 5.7).

use serde_json::{Value, json};

/// When a member stands in the specification's reading of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Always.
    Required,
    /// If it was said, whatever was said. Messages are among them.
    Optional,
    /// If it is not what it would be unsaid.
    Plain,
}

pub enum Shape {
    /// A text, a flag, or JSON of any form.
    Value,
    List(&'static Shape),
    Map(&'static Shape),
    Object(&'static [Member]),
}

impl Shape {
    /// What stands for a required member that was left out; a message has nothing that does.
    pub fn unsaid(&self) -> Option<Value> {
        match self {
            Self::Value => Some(json!("")),
            Self::List(_) => Some(json!([])),
            Self::Map(_) => Some(json!({})),
            Self::Object(_) => None,
        }
    }
}

pub struct Member {
    pub name: &'static str,
    pub presence: Presence,
    pub shape: &'static Shape,
}

const fn required(name: &'static str, shape: &'static Shape) -> Member {
    Member { name, presence: Presence::Required, shape }
}

const fn optional(name: &'static str, shape: &'static Shape) -> Member {
    Member { name, presence: Presence::Optional, shape }
}

const fn plain(name: &'static str, shape: &'static Shape) -> Member {
    Member { name, presence: Presence::Plain, shape }
}

const VALUE: Shape = Shape::Value;
const VALUES: Shape = Shape::List(&VALUE);
const NAMED: Shape = Shape::Map(&VALUE);

/// The card itself; its signatures are no part of what they sign.
pub const CARD: Shape = Shape::Object(&[
    required("name", &VALUE),
    required("description", &VALUE),
    required("supportedInterfaces", &Shape::List(&INTERFACE)),
    optional("provider", &PROVIDER),
    required("version", &VALUE),
    optional("documentationUrl", &VALUE),
    required("capabilities", &CAPABILITIES),
    plain("securitySchemes", &Shape::Map(&SCHEME)),
    plain("securityRequirements", &REQUIREMENTS),
    required("defaultInputModes", &VALUES),
    required("defaultOutputModes", &VALUES),
    required("skills", &Shape::List(&SKILL)),
    optional("iconUrl", &VALUE),
]);

const INTERFACE: Shape = Shape::Object(&[
    required("url", &VALUE),
    required("protocolBinding", &VALUE),
    plain("tenant", &VALUE),
    required("protocolVersion", &VALUE),
]);

const PROVIDER: Shape = Shape::Object(&[required("url", &VALUE), required("organization", &VALUE)]);

const CAPABILITIES: Shape = Shape::Object(&[
    optional("streaming", &VALUE),
    optional("pushNotifications", &VALUE),
    plain("extensions", &Shape::List(&EXTENSION)),
    optional("extendedAgentCard", &VALUE),
]);

const EXTENSION: Shape = Shape::Object(&[
    plain("uri", &VALUE),
    plain("description", &VALUE),
    plain("required", &VALUE),
    optional("params", &VALUE),
]);

const SKILL: Shape = Shape::Object(&[
    required("id", &VALUE),
    required("name", &VALUE),
    required("description", &VALUE),
    required("tags", &VALUES),
    plain("examples", &VALUES),
    plain("inputModes", &VALUES),
    plain("outputModes", &VALUES),
    plain("securityRequirements", &REQUIREMENTS),
]);

const REQUIREMENTS: Shape = Shape::List(&Shape::Object(&[plain("schemes", &Shape::Map(&SCOPES))]));
const SCOPES: Shape = Shape::Object(&[plain("list", &VALUES)]);

const SCHEME: Shape = Shape::Object(&[
    optional(
        "apiKeySecurityScheme",
        &Shape::Object(&[plain("description", &VALUE), required("location", &VALUE), required("name", &VALUE)]),
    ),
    optional(
        "httpAuthSecurityScheme",
        &Shape::Object(&[plain("description", &VALUE), required("scheme", &VALUE), plain("bearerFormat", &VALUE)]),
    ),
    optional(
        "oauth2SecurityScheme",
        &Shape::Object(&[plain("description", &VALUE), required("flows", &FLOWS), plain("oauth2MetadataUrl", &VALUE)]),
    ),
    optional(
        "openIdConnectSecurityScheme",
        &Shape::Object(&[plain("description", &VALUE), required("openIdConnectUrl", &VALUE)]),
    ),
    optional("mtlsSecurityScheme", &Shape::Object(&[plain("description", &VALUE)])),
]);

const FLOWS: Shape = Shape::Object(&[
    optional(
        "authorizationCode",
        &Shape::Object(&[
            required("authorizationUrl", &VALUE),
            required("tokenUrl", &VALUE),
            plain("refreshUrl", &VALUE),
            required("scopes", &NAMED),
            plain("pkceRequired", &VALUE),
        ]),
    ),
    optional(
        "clientCredentials",
        &Shape::Object(&[required("tokenUrl", &VALUE), plain("refreshUrl", &VALUE), required("scopes", &NAMED)]),
    ),
    optional(
        "implicit",
        &Shape::Object(&[plain("authorizationUrl", &VALUE), plain("refreshUrl", &VALUE), plain("scopes", &NAMED)]),
    ),
    optional(
        "password",
        &Shape::Object(&[plain("tokenUrl", &VALUE), plain("refreshUrl", &VALUE), plain("scopes", &NAMED)]),
    ),
    optional(
        "deviceCode",
        &Shape::Object(&[
            required("deviceAuthorizationUrl", &VALUE),
            required("tokenUrl", &VALUE),
            plain("refreshUrl", &VALUE),
            required("scopes", &NAMED),
        ]),
    ),
]);
