//! Agent cards from the wire, as the JSON a card is everywhere else.

mod write;

pub use write::card;

use crate::a2a::{self as pb, o_auth_flows::Flow, security_scheme::Scheme};
use crate::json;
use serde_json::{Map, Value, json as object};

/// A card as JSON: what is not set is left out.
pub fn card_json(card: pb::AgentCard) -> Value {
    let schemes: Map<String, Value> =
        card.security_schemes.into_iter().map(|(name, scheme)| (name, security_scheme(scheme))).collect();
    bare(object!({
        "name": card.name,
        "description": card.description,
        "supportedInterfaces": card.supported_interfaces.into_iter().map(interface).collect::<Vec<_>>(),
        "provider": card.provider.map(|provider| object!({"url": provider.url, "organization": provider.organization})),
        "version": card.version,
        "documentationUrl": card.documentation_url,
        "capabilities": card.capabilities.map(capabilities),
        "securitySchemes": schemes,
        "securityRequirements": card.security_requirements.into_iter().map(requirement).collect::<Vec<_>>(),
        "defaultInputModes": card.default_input_modes,
        "defaultOutputModes": card.default_output_modes,
        "skills": card.skills.into_iter().map(skill).collect::<Vec<_>>(),
        "signatures": card.signatures.into_iter().map(signature).collect::<Vec<_>>(),
        "iconUrl": card.icon_url,
    }))
}

/// Without members that say nothing.
pub(crate) fn bare(value: Value) -> Value {
    let Value::Object(members) = value else { return value };
    let says = |member: &Value| match member {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(all) => !all.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    };
    Value::Object(members.into_iter().filter(|(_, member)| says(member)).collect())
}

fn interface(interface: pb::AgentInterface) -> Value {
    bare(object!({
        "url": interface.url,
        "protocolBinding": interface.protocol_binding,
        "tenant": interface.tenant,
        "protocolVersion": interface.protocol_version,
    }))
}

fn capabilities(capabilities: pb::AgentCapabilities) -> Value {
    bare(object!({
        "streaming": capabilities.streaming,
        "pushNotifications": capabilities.push_notifications,
        "extensions": capabilities.extensions.into_iter().map(extension).collect::<Vec<_>>(),
        "extendedAgentCard": capabilities.extended_agent_card,
    }))
}

pub(crate) fn opaque(members: Option<prost_types::Struct>) -> Option<Value> {
    let text = json::from_struct(members?, usize::MAX).ok()?;
    serde_json::from_str(text.0.text()).ok()
}

fn extension(extension: pb::AgentExtension) -> Value {
    bare(object!({
        "uri": extension.uri,
        "description": extension.description,
        "required": extension.required,
        "params": opaque(extension.params),
    }))
}

fn skill(skill: pb::AgentSkill) -> Value {
    bare(object!({
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "tags": skill.tags,
        "examples": skill.examples,
        "inputModes": skill.input_modes,
        "outputModes": skill.output_modes,
        "securityRequirements": skill.security_requirements.into_iter().map(requirement).collect::<Vec<_>>(),
    }))
}

fn signature(signature: pb::AgentCardSignature) -> Value {
    bare(object!({
        "protected": signature.protected,
        "signature": signature.signature,
        "header": opaque(signature.header),
    }))
}

fn requirement(requirement: pb::SecurityRequirement) -> Value {
    let schemes: Map<String, Value> =
        requirement.schemes.into_iter().map(|(name, scopes)| (name, object!({"list": scopes.list}))).collect();
    object!({ "schemes": schemes })
}

fn security_scheme(scheme: pb::SecurityScheme) -> Value {
    match scheme.scheme {
        None => object!({}),
        Some(Scheme::ApiKeySecurityScheme(key)) => object!({"apiKeySecurityScheme": bare(object!({
            "description": key.description, "location": key.location, "name": key.name,
        }))}),
        Some(Scheme::HttpAuthSecurityScheme(http)) => object!({"httpAuthSecurityScheme": bare(object!({
            "description": http.description, "scheme": http.scheme, "bearerFormat": http.bearer_format,
        }))}),
        Some(Scheme::Oauth2SecurityScheme(oauth)) => object!({"oauth2SecurityScheme": bare(object!({
            "description": oauth.description,
            "flows": oauth.flows.and_then(|flows| flows.flow).map(flow),
            "oauth2MetadataUrl": oauth.oauth2_metadata_url,
        }))}),
        Some(Scheme::OpenIdConnectSecurityScheme(connect)) => object!({"openIdConnectSecurityScheme": bare(object!({
            "description": connect.description, "openIdConnectUrl": connect.open_id_connect_url,
        }))}),
        Some(Scheme::MtlsSecurityScheme(tls)) => {
            object!({"mtlsSecurityScheme": bare(object!({"description": tls.description}))})
        }
    }
}

fn flow(flow: Flow) -> Value {
    match flow {
        Flow::AuthorizationCode(code) => object!({"authorizationCode": bare(object!({
            "authorizationUrl": code.authorization_url,
            "tokenUrl": code.token_url,
            "refreshUrl": code.refresh_url,
            "scopes": code.scopes,
            "pkceRequired": code.pkce_required,
        }))}),
        Flow::ClientCredentials(client) => object!({"clientCredentials": bare(object!({
            "tokenUrl": client.token_url, "refreshUrl": client.refresh_url, "scopes": client.scopes,
        }))}),
        Flow::Implicit(implicit) => object!({"implicit": bare(object!({
            "authorizationUrl": implicit.authorization_url,
            "refreshUrl": implicit.refresh_url,
            "scopes": implicit.scopes,
        }))}),
        Flow::Password(password) => object!({"password": bare(object!({
            "tokenUrl": password.token_url, "refreshUrl": password.refresh_url, "scopes": password.scopes,
        }))}),
        Flow::DeviceCode(device) => object!({"deviceCode": bare(object!({
            "deviceAuthorizationUrl": device.device_authorization_url,
            "tokenUrl": device.token_url,
            "refreshUrl": device.refresh_url,
            "scopes": device.scopes,
        }))}),
    }
}
