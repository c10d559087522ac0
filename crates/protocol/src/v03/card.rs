//! Cards: the 0.3 form, the form that readers of either version understand, and 0.3 cards read as 1.0.

use super::{CARD_VERSION, VERSION};
use crate::a2a::card::{AgentCard, AgentInterface, SecurityScheme};
use serde_json::{Map, Value, json};

/// The card in its 0.3 form. Only interfaces of 0.3 are in it; none at all if there are none.
pub fn write(card: &AgentCard) -> Option<Value> {
    let mut old = Map::new();
    old.insert("protocolVersion".into(), json!(CARD_VERSION));
    for (name, value) in [("name", &card.name), ("description", &card.description), ("version", &card.version)] {
        old.insert(name.into(), json!(value));
    }
    connections(card, &mut old)?;
    old.insert("capabilities".into(), capabilities(card));
    old.insert("defaultInputModes".into(), json!(card.default_input_modes));
    old.insert("defaultOutputModes".into(), json!(card.default_output_modes));
    old.insert("skills".into(), json!(card.skills));
    old.insert("supportsAuthenticatedExtendedCard".into(), json!(card.capabilities.extended_agent_card));
    security(card, &mut old);
    for (name, value) in [("documentationUrl", &card.documentation_url), ("iconUrl", &card.icon_url)] {
        if let Some(value) = value {
            old.insert(name.into(), json!(value));
        }
    }
    if let Some(provider) = &card.provider {
        old.insert("provider".into(), json!(provider));
    }
    Some(Value::Object(old))
}

/// One card for readers of both versions: every member of either, and schemes that hold both spellings.
pub fn hybrid(card: &AgentCard) -> Result<Value, serde_json::Error> {
    let mut both = serde_json::to_value(card)?;
    let Some(Value::Object(old)) = write(card) else { return Ok(both) };
    for (name, value) in old {
        match (name.as_str(), both.get_mut(&name)) {
            ("securitySchemes", Some(Value::Object(schemes))) => {
                for (scheme, members) in value.as_object().into_iter().flatten() {
                    let known = schemes.get_mut(scheme).and_then(Value::as_object_mut);
                    if let (Some(known), Some(members)) = (known, members.as_object()) {
                        known.extend(members.clone());
                    }
                }
            }
            (_, Some(_)) => {}
            (_, None) => both[name.as_str()] = value,
        }
    }
    Ok(both)
}

fn connections(card: &AgentCard, old: &mut Map<String, Value>) -> Option<()> {
    let spoken: Vec<&AgentInterface> =
        card.supported_interfaces.iter().filter(|interface| interface.protocol_version == VERSION).collect();
    let first = spoken.first()?;
    old.insert("url".into(), json!(first.url));
    old.insert("preferredTransport".into(), json!(first.protocol_binding));
    let all: Vec<Value> =
        spoken.iter().map(|interface| json!({"transport": interface.protocol_binding, "url": interface.url})).collect();
    old.insert("additionalInterfaces".into(), all.into());
    Some(())
}

fn capabilities(card: &AgentCard) -> Value {
    let capabilities = &card.capabilities;
    let mut old = json!({
        "streaming": capabilities.streaming,
        "pushNotifications": capabilities.push_notifications,
        "stateTransitionHistory": false,
    });
    if !capabilities.extensions.is_empty() {
        old["extensions"] = json!(capabilities.extensions);
    }
    old
}

fn security(card: &AgentCard, old: &mut Map<String, Value>) {
    let scheme = |scheme: &SecurityScheme| match scheme {
        SecurityScheme::ApiKeySecurityScheme { location, name } => {
            json!({"type": "apiKey", "in": location, "name": name})
        }
        SecurityScheme::HttpAuthSecurityScheme { scheme } => json!({"type": "http", "scheme": scheme}),
    };
    if !card.security_schemes.is_empty() {
        let schemes: Map<String, Value> =
            card.security_schemes.iter().map(|(name, value)| (name.clone(), scheme(value))).collect();
        old.insert("securitySchemes".into(), schemes.into());
    }
    if !card.security_requirements.is_empty() {
        let requirement = |schemes: &std::collections::BTreeMap<String, crate::a2a::card::Scopes>| -> Value {
            schemes.iter().map(|(name, scopes)| (name.clone(), json!(scopes.list))).collect::<Map<_, _>>().into()
        };
        let all: Vec<Value> = card.security_requirements.iter().map(|one| requirement(&one.schemes)).collect();
        old.insert("security".into(), all.into());
    }
}

/// A card's JSON with what 0.3 says in its own way also said as 1.0 says it. What is there already stays.
pub fn upgraded(json: &str) -> Result<String, serde_json::Error> {
    let mut card: Value = serde_json::from_str(json)?;
    upgrade(&mut card);
    Ok(card.to_string())
}

pub fn upgrade(card: &mut Value) {
    let Some(card) = card.as_object_mut() else { return };
    let has = |card: &Map<String, Value>, name: &str| card.get(name).is_some_and(|value| !value.is_null());
    if !has(card, "supportedInterfaces") && !has(card, "supported_interfaces") {
        let interfaces = old_interfaces(card);
        if !interfaces.is_empty() {
            card.insert("supportedInterfaces".into(), interfaces.into());
        }
    }
    let extended = ["supportsAuthenticatedExtendedCard", "supports_authenticated_extended_card"];
    if extended.iter().any(|name| card.get(*name) == Some(&Value::Bool(true)))
        && let Some(capabilities) = card.entry("capabilities").or_insert_with(|| json!({})).as_object_mut()
    {
        capabilities.entry("extendedAgentCard").or_insert(Value::Bool(true));
    }
    if !has(card, "securityRequirements")
        && let Some(Value::Array(security)) = card.get("security")
    {
        let upgraded: Vec<Value> = security.iter().map(requirement).collect();
        card.insert("securityRequirements".into(), upgraded.into());
    }
    for schemes in ["securitySchemes", "security_schemes"] {
        let Some(Value::Object(schemes)) = card.get_mut(schemes) else { continue };
        schemes.values_mut().for_each(upgrade_scheme);
    }
}

/// The place a card of 0.3 names, and those it adds, in its order and each once.
fn old_interfaces(card: &Map<String, Value>) -> Vec<Value> {
    let text = |from: &Map<String, Value>, names: [&str; 2]| {
        names.iter().find_map(|name| from.get(*name)?.as_str()).unwrap_or_default().to_owned()
    };
    let version = text(card, ["protocolVersion", "protocol_version"]);
    // Patch numbers do not matter; a card that names no version is of the last one that had a `url`.
    let version = match version.split('.').collect::<Vec<_>>().as_slice() {
        [major, minor, ..] => format!("{major}.{minor}"),
        _ => VERSION.to_owned(),
    };
    let preferred = match text(card, ["preferredTransport", "preferred_transport"]) {
        none if none.is_empty() => "JSONRPC".to_owned(),
        named => named,
    };
    let mut places = vec![(text(card, ["url", "url"]), preferred)];
    for added in ["additionalInterfaces", "additional_interfaces"] {
        for interface in card.get(added).and_then(Value::as_array).into_iter().flatten() {
            let Some(interface) = interface.as_object() else { continue };
            let place = (text(interface, ["url", "url"]), text(interface, ["transport", "transport"]));
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    places.retain(|(url, transport)| !url.is_empty() && !transport.is_empty());
    places
        .into_iter()
        .map(|(url, binding)| json!({"url": url, "protocolBinding": binding, "protocolVersion": version}))
        .collect()
}

fn requirement(old: &Value) -> Value {
    let schemes = old.as_object().into_iter().flatten();
    let schemes: Map<String, Value> = schemes.map(|(name, scopes)| (name.clone(), json!({"list": scopes}))).collect();
    json!({"schemes": schemes})
}

/// `{"type": "http", …}` is `{"httpAuthSecurityScheme": {…}}` in 1.0.
fn upgrade_scheme(scheme: &mut Value) {
    let Some(members) = scheme.as_object_mut() else { return };
    let member = match members.get("type").and_then(Value::as_str) {
        Some("apiKey") => "apiKeySecurityScheme",
        Some("http") => "httpAuthSecurityScheme",
        Some("oauth2") => "oauth2SecurityScheme",
        Some("openIdConnect") => "openIdConnectSecurityScheme",
        Some("mutualTLS") => "mtlsSecurityScheme",
        _ => return,
    };
    if members.contains_key(member) {
        return;
    }
    let mut inner = members.clone();
    inner.remove("type");
    if let Some(place) = inner.remove("in") {
        inner.insert("location".into(), place);
    }
    members.insert(member.into(), inner.into());
}
