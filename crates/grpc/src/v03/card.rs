//! Agent cards of 0.3: ours to the wire, and those of others from it, as the JSON a card of that version is.

use crate::a2a_v03::{self as pb, o_auth_flows::Flow, security_scheme::Scheme};
use crate::card::{bare, opaque};
use crate::write::object;
use flotilla_protocol::a2a::card::{AgentCard, AgentInterface, AgentSkill, SecurityRequirement, SecurityScheme};
use flotilla_protocol::v03::{CARD_VERSION, VERSION};
use serde_json::{Map, Value, json};

/// Our own card, with the interfaces it has in this version.
pub fn card(card: &AgentCard) -> pb::AgentCard {
    let spoken = card.supported_interfaces.iter().filter(|interface| interface.protocol_version == VERSION);
    let mut interfaces = spoken.map(interface);
    let first = interfaces.next().unwrap_or_default();
    pb::AgentCard {
        name: card.name.clone(),
        description: card.description.clone(),
        url: first.url,
        preferred_transport: first.transport,
        additional_interfaces: interfaces.collect(),
        protocol_version: CARD_VERSION.to_owned(),
        provider: card.provider.as_ref().map(|provider| pb::AgentProvider {
            url: provider.url.clone(),
            organization: provider.organization.clone(),
        }),
        version: card.version.clone(),
        documentation_url: card.documentation_url.clone().unwrap_or_default(),
        capabilities: Some(pb::AgentCapabilities {
            streaming: card.capabilities.streaming,
            push_notifications: card.capabilities.push_notifications,
            extensions: card
                .capabilities
                .extensions
                .iter()
                .map(|extension| pb::AgentExtension {
                    uri: extension.uri.clone(),
                    description: extension.description.clone(),
                    required: extension.required,
                    params: object(extension.params.as_ref()),
                })
                .collect(),
        }),
        security_schemes: card.security_schemes.iter().map(|(name, scheme)| (name.clone(), shown(scheme))).collect(),
        security: card.security_requirements.iter().map(requirement).collect(),
        default_input_modes: card.default_input_modes.clone(),
        default_output_modes: card.default_output_modes.clone(),
        skills: card.skills.iter().map(skill).collect(),
        supports_authenticated_extended_card: card.capabilities.extended_agent_card,
        signatures: Vec::new(),
        icon_url: card.icon_url.clone().unwrap_or_default(),
    }
}

fn interface(interface: &AgentInterface) -> pb::AgentInterface {
    pb::AgentInterface { url: interface.url.clone(), transport: interface.protocol_binding.clone() }
}

fn skill(skill: &AgentSkill) -> pb::AgentSkill {
    pb::AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: skill.input_modes.clone(),
        output_modes: skill.output_modes.clone(),
        security: Vec::new(),
    }
}

fn requirement(requirement: &SecurityRequirement) -> pb::Security {
    let schemes = requirement.schemes.iter();
    let list = |scopes: &flotilla_protocol::a2a::card::Scopes| pb::StringList { list: scopes.list.clone() };
    pb::Security { schemes: schemes.map(|(name, scopes)| (name.clone(), list(scopes))).collect() }
}

fn shown(scheme: &SecurityScheme) -> pb::SecurityScheme {
    let scheme = match scheme {
        SecurityScheme::ApiKeySecurityScheme { location, name } => {
            let (location, name) = (location.clone(), name.clone());
            Scheme::ApiKeySecurityScheme(pb::ApiKeySecurityScheme { location, name, ..Default::default() })
        }
        SecurityScheme::HttpAuthSecurityScheme { scheme } => {
            let scheme = scheme.clone();
            Scheme::HttpAuthSecurityScheme(pb::HttpAuthSecurityScheme { scheme, ..Default::default() })
        }
    };
    pb::SecurityScheme { scheme: Some(scheme) }
}

/// A card from the wire: what is not set is left out.
pub fn card_json(card: pb::AgentCard) -> Value {
    let schemes: Map<String, Value> =
        card.security_schemes.into_iter().map(|(name, scheme)| (name, scheme_json(scheme))).collect();
    let interfaces = card.additional_interfaces.into_iter();
    bare(json!({
        "protocolVersion": card.protocol_version,
        "name": card.name,
        "description": card.description,
        "url": card.url,
        "preferredTransport": card.preferred_transport,
        "additionalInterfaces": interfaces.map(|i| json!({"url": i.url, "transport": i.transport})).collect::<Vec<_>>(),
        "provider": card.provider.map(|provider| json!({"url": provider.url, "organization": provider.organization})),
        "version": card.version,
        "documentationUrl": card.documentation_url,
        "capabilities": card.capabilities.map(capabilities),
        "securitySchemes": schemes,
        "security": card.security.into_iter().map(requirement_json).collect::<Vec<_>>(),
        "defaultInputModes": card.default_input_modes,
        "defaultOutputModes": card.default_output_modes,
        "skills": card.skills.into_iter().map(skill_json).collect::<Vec<_>>(),
        "supportsAuthenticatedExtendedCard": card.supports_authenticated_extended_card,
        "signatures": card.signatures.into_iter().map(signature).collect::<Vec<_>>(),
        "iconUrl": card.icon_url,
    }))
}

fn capabilities(capabilities: pb::AgentCapabilities) -> Value {
    let extension = |extension: pb::AgentExtension| {
        bare(json!({
            "uri": extension.uri,
            "description": extension.description,
            "required": extension.required,
            "params": opaque(extension.params),
        }))
    };
    bare(json!({
        "streaming": capabilities.streaming,
        "pushNotifications": capabilities.push_notifications,
        "extensions": capabilities.extensions.into_iter().map(extension).collect::<Vec<_>>(),
    }))
}

fn skill_json(skill: pb::AgentSkill) -> Value {
    bare(json!({
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "tags": skill.tags,
        "examples": skill.examples,
        "inputModes": skill.input_modes,
        "outputModes": skill.output_modes,
        "security": skill.security.into_iter().map(requirement_json).collect::<Vec<_>>(),
    }))
}

fn signature(signature: pb::AgentCardSignature) -> Value {
    bare(json!({
        "protected": signature.protected,
        "signature": signature.signature,
        "header": opaque(signature.header),
    }))
}

fn requirement_json(requirement: pb::Security) -> Value {
    let scopes = requirement.schemes.into_iter().map(|(name, scopes)| (name, json!(scopes.list)));
    Value::Object(scopes.collect())
}

/// In JSON a scheme says its type, and an API key where it goes by `in`.
fn scheme_json(scheme: pb::SecurityScheme) -> Value {
    match scheme.scheme {
        None => json!({}),
        Some(Scheme::ApiKeySecurityScheme(key)) => bare(json!({
            "type": "apiKey", "description": key.description, "in": key.location, "name": key.name,
        })),
        Some(Scheme::HttpAuthSecurityScheme(http)) => bare(json!({
            "type": "http", "description": http.description, "scheme": http.scheme, "bearerFormat": http.bearer_format,
        })),
        Some(Scheme::Oauth2SecurityScheme(oauth)) => bare(json!({
            "type": "oauth2",
            "description": oauth.description,
            "flows": oauth.flows.and_then(|flows| flows.flow).map(flow),
            "oauth2MetadataUrl": oauth.oauth2_metadata_url,
        })),
        Some(Scheme::OpenIdConnectSecurityScheme(connect)) => bare(json!({
            "type": "openIdConnect",
            "description": connect.description,
            "openIdConnectUrl": connect.open_id_connect_url,
        })),
        Some(Scheme::MtlsSecurityScheme(tls)) => bare(json!({"type": "mutualTLS", "description": tls.description})),
    }
}

fn flow(flow: Flow) -> Value {
    match flow {
        Flow::AuthorizationCode(code) => json!({"authorizationCode": bare(json!({
            "authorizationUrl": code.authorization_url,
            "tokenUrl": code.token_url,
            "refreshUrl": code.refresh_url,
            "scopes": code.scopes,
        }))}),
        Flow::ClientCredentials(client) => json!({"clientCredentials": bare(json!({
            "tokenUrl": client.token_url, "refreshUrl": client.refresh_url, "scopes": client.scopes,
        }))}),
        Flow::Implicit(implicit) => json!({"implicit": bare(json!({
            "authorizationUrl": implicit.authorization_url,
            "refreshUrl": implicit.refresh_url,
            "scopes": implicit.scopes,
        }))}),
        Flow::Password(password) => json!({"password": bare(json!({
            "tokenUrl": password.token_url, "refreshUrl": password.refresh_url, "scopes": password.scopes,
        }))}),
    }
}
