//! Agent cards to the wire.

use crate::a2a::{self as pb, security_scheme::Scheme};
use crate::json::to_struct;
use flotilla_protocol::a2a::card::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface, AgentSkill, SecurityRequirement,
    SecurityScheme,
};

/// A card with all it says; what is signed as JSON can be put together again from it.
pub fn card(card: &AgentCard) -> pb::AgentCard {
    let provider = card.provider.as_ref();
    pb::AgentCard {
        name: card.name.clone(),
        description: card.description.clone(),
        supported_interfaces: card.supported_interfaces.iter().map(interface).collect(),
        provider: provider.map(|provider| pb::AgentProvider {
            url: provider.url.clone(),
            organization: provider.organization.clone(),
        }),
        version: card.version.clone(),
        documentation_url: card.documentation_url.clone(),
        capabilities: Some(capabilities(&card.capabilities)),
        security_schemes: card.security_schemes.iter().map(|(name, one)| (name.clone(), scheme(one))).collect(),
        security_requirements: card.security_requirements.iter().map(requirement).collect(),
        default_input_modes: card.default_input_modes.clone(),
        default_output_modes: card.default_output_modes.clone(),
        skills: card.skills.iter().map(skill).collect(),
        signatures: card.signatures.iter().map(signature).collect(),
        icon_url: card.icon_url.clone(),
    }
}

fn interface(interface: &AgentInterface) -> pb::AgentInterface {
    pb::AgentInterface {
        url: interface.url.clone(),
        protocol_binding: interface.protocol_binding.clone(),
        tenant: interface.tenant.clone(),
        protocol_version: interface.protocol_version.clone(),
    }
}

fn capabilities(capabilities: &AgentCapabilities) -> pb::AgentCapabilities {
    pb::AgentCapabilities {
        streaming: Some(capabilities.streaming),
        push_notifications: Some(capabilities.push_notifications),
        extensions: capabilities.extensions.iter().map(extension).collect(),
        extended_agent_card: Some(capabilities.extended_agent_card),
    }
}

fn extension(extension: &AgentExtension) -> pb::AgentExtension {
    pb::AgentExtension {
        uri: extension.uri.clone(),
        description: extension.description.clone(),
        required: extension.required,
        params: extension.params.as_ref().map(to_struct),
    }
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
        security_requirements: Vec::new(),
    }
}

fn signature(signature: &AgentCardSignature) -> pb::AgentCardSignature {
    pb::AgentCardSignature {
        protected: signature.protected.clone(),
        signature: signature.signature.clone(),
        header: signature.header.as_ref().map(to_struct),
    }
}

fn requirement(requirement: &SecurityRequirement) -> pb::SecurityRequirement {
    let schemes = requirement.schemes.iter();
    let list = |list: &Vec<String>| pb::StringList { list: list.clone() };
    pb::SecurityRequirement { schemes: schemes.map(|(name, scopes)| (name.clone(), list(&scopes.list))).collect() }
}

fn scheme(scheme: &SecurityScheme) -> pb::SecurityScheme {
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
