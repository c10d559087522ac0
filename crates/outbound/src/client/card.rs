//! An agent's card as a caller reads it: what is needed to call, and the JSON exactly as it came.

use super::choose::Binding;
use crate::net::address;
use flotilla_protocol::v03;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Read leniently: only what a call needs must be there. `check` says what the specification demands beyond that.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Card {
    pub name: String,
    pub description: String,
    pub version: String,
    #[serde(alias = "supported_interfaces")]
    pub supported_interfaces: Vec<Interface>,
    pub provider: Option<Provider>,
    #[serde(alias = "documentation_url")]
    pub documentation_url: Option<String>,
    pub capabilities: Capabilities,
    #[serde(alias = "security_schemes")]
    pub security_schemes: BTreeMap<String, Scheme>,
    #[serde(alias = "security_requirements")]
    pub security_requirements: Vec<Requirement>,
    #[serde(alias = "default_input_modes")]
    pub default_input_modes: Vec<String>,
    #[serde(alias = "default_output_modes")]
    pub default_output_modes: Vec<String>,
    pub skills: Vec<Skill>,
    /// The card as it came.
    #[serde(skip)]
    pub json: String,
    /// Where it came from.
    #[serde(skip)]
    pub source: String,
    /// What of it counts is what was signed by a key that is trusted; what it names beside that is set aside.
    #[serde(skip)]
    pub is_proven: bool,
    #[serde(skip)]
    pub set_aside: Vec<Interface>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Interface {
    pub url: String,
    #[serde(alias = "protocol_binding")]
    pub protocol_binding: String,
    #[serde(alias = "protocol_version")]
    pub protocol_version: String,
    pub tenant: String,
}

impl Interface {
    /// Where it is called, as a URL: of gRPC a card may name a bare HOST:PORT. `source` is where the card came from.
    pub fn called_at(&self, source: &str) -> String {
        match Binding::parse(&self.protocol_binding) {
            Some(Binding::Grpc) => super::grpc::address(&self.url, source),
            _ => self.url.clone(),
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Provider {
    pub url: String,
    pub organization: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Capabilities {
    pub streaming: bool,
    #[serde(alias = "push_notifications")]
    pub push_notifications: bool,
    #[serde(alias = "extended_agent_card")]
    pub extended_agent_card: bool,
    pub extensions: Vec<Extension>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Extension {
    pub uri: String,
    pub description: String,
    pub required: bool,
    pub params: Option<Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Skill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub examples: Vec<String>,
    #[serde(alias = "input_modes")]
    pub input_modes: Vec<String>,
    #[serde(alias = "output_modes")]
    pub output_modes: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Requirement {
    pub schemes: BTreeMap<String, Scopes>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Scopes {
    pub list: Vec<String>,
}

/// One member is there; a scheme of a kind we do not know has none of them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Scheme {
    #[serde(alias = "api_key_security_scheme")]
    pub api_key_security_scheme: Option<ApiKey>,
    #[serde(alias = "http_auth_security_scheme")]
    pub http_auth_security_scheme: Option<HttpAuth>,
    #[serde(alias = "oauth2_security_scheme")]
    pub oauth2_security_scheme: Option<OAuth2>,
    #[serde(alias = "open_id_connect_security_scheme")]
    pub open_id_connect_security_scheme: Option<serde::de::IgnoredAny>,
    #[serde(alias = "mtls_security_scheme")]
    pub mtls_security_scheme: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ApiKey {
    pub location: String,
    pub name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct HttpAuth {
    pub scheme: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct OAuth2 {
    pub flows: Flows,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Flows {
    #[serde(alias = "client_credentials")]
    pub client_credentials: Option<Flow>,
    #[serde(alias = "device_code")]
    pub device_code: Option<Flow>,
    #[serde(alias = "authorization_code")]
    pub authorization_code: Option<Flow>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Flow {
    #[serde(alias = "token_url")]
    pub token_url: String,
    #[serde(alias = "refresh_url")]
    pub refresh_url: String,
    #[serde(alias = "device_authorization_url")]
    pub device_authorization_url: String,
    pub scopes: BTreeMap<String, String>,
}

impl Card {
    /// Reads a card; `source` is where it came from, for error texts.
    pub fn parse(json: &str, source: &str) -> Result<Self, String> {
        let mut value = object(json)?;
        drop_nulls(&mut value);
        upgrade(&mut value);
        let mut card: Self = serde_path_to_error::deserialize(value).map_err(|error| {
            // Told all at once and with their places, which the first error of a decoder is not.
            let mut problems = super::check::problems(json);
            let place = error.path().to_string();
            if !problems.iter().any(|problem| problem.starts_with(&place)) {
                problems.push(error.to_string());
            }
            problems.join("; ")
        })?;
        if card.name.is_empty() && card.supported_interfaces.is_empty() {
            return Err("it has neither a name nor an interface".into());
        }
        card.json = json.to_owned();
        card.source = source.to_owned();
        card.supported_interfaces.iter_mut().for_each(|interface| interface.settle(source));
        Ok(card)
    }

    /// The card as it was signed, where that was verified: members the signature says nothing about are anyone's, and
    /// decide nothing. Its JSON stays as it came.
    pub fn proven(self, signed: &str) -> Result<Self, String> {
        let covered = Self::parse(signed, &self.source)?;
        let is_covered = |interface: &Interface| covered.supported_interfaces.contains(interface);
        let set_aside = self.supported_interfaces.into_iter().filter(|interface| !is_covered(interface)).collect();
        Ok(Self { json: self.json, is_proven: true, set_aside, ..covered })
    }

    /// What to tell of interfaces that were set aside, each with its place.
    pub fn unproven(&self) -> Vec<String> {
        let told = |interface: &Interface| {
            let Interface { url, protocol_binding, protocol_version, .. } = interface;
            let url = address::shown(url);
            format!(
                "interface {url} ({protocol_binding}, A2A {protocol_version}) is not covered by the signature: it is not used"
            )
        };
        self.set_aside.iter().map(told).collect()
    }
}

/// What is no card at all is told in words of its own: a page and a list come from wrong addresses, not from wrong cards.
fn object(json: &str) -> Result<Value, String> {
    let begin = json.trim_start().trim_start_matches('\u{feff}');
    if begin.is_empty() {
        return Err("there is nothing in it".into());
    }
    let value: Value = serde_json::from_str(json).map_err(|error| match begin.starts_with('<') {
        true => "it is a web page, and no JSON".to_owned(),
        false => format!("it is not JSON: {error}"),
    })?;
    let kind = match &value {
        Value::Object(_) => return Ok(value),
        Value::Array(_) => "a list",
        Value::String(_) => "a text",
        Value::Null => "null",
        Value::Bool(_) | Value::Number(_) => "a single value",
    };
    Err(format!("it is JSON, but {kind} and not an object"))
}

/// What a card of 0.3 says in its own way, also as 1.0 says it. A card of both may name other places for each.
fn upgrade(card: &mut Value) {
    let mut old = card.clone();
    if let Some(members) = old.as_object_mut() {
        members.remove("supportedInterfaces");
        members.remove("supported_interfaces");
    }
    v03::card::upgrade(card);
    v03::card::upgrade(&mut old);
    let Some(Value::Array(old)) = old.get_mut("supportedInterfaces").map(Value::take) else { return };
    let name = if card.get("supportedInterfaces").is_some() { "supportedInterfaces" } else { "supported_interfaces" };
    let Some(Value::Array(all)) = card.get_mut(name) else { return };
    let all_known = all.clone();
    let is_old = |interface: &Value| interface["protocolVersion"].as_str().is_some_and(|text| text.starts_with("0."));
    let is_known = |place: &Value| {
        let same = |known: &Value| ["url", "protocolBinding"].iter().all(|name| known[*name] == place[*name]);
        all_known.iter().any(|known| is_old(known) && same(known))
    };
    all.extend(old.into_iter().filter(|place| is_old(place) && !is_known(place)));
}

/// In ProtoJSON a null stands for an absent member.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

impl Interface {
    /// Some name a path alone, which is one where the card came from.
    fn settle(&mut self, source: &str) {
        let whole = if self.url.starts_with('/') { url::Url::parse(source).ok() } else { None };
        if let Some(whole) = whole.and_then(|source| source.join(&self.url).ok()) {
            self.url = whole.into();
        }
    }
}

impl Scheme {
    /// The scheme in a few words, for people.
    pub fn describe(&self) -> String {
        if let Some(key) = &self.api_key_security_scheme {
            return format!("API key ({} {})", key.location, key.name);
        }
        if let Some(http) = &self.http_auth_security_scheme {
            return format!("HTTP {}", http.scheme);
        }
        if let Some(oauth) = &self.oauth2_security_scheme {
            return format!("OAuth 2.0 ({})", oauth.flows.names().join(", "));
        }
        if self.open_id_connect_security_scheme.is_some() {
            return "OpenID Connect".into();
        }
        let mutual = self.mtls_security_scheme.is_some();
        if mutual { "mutual TLS".into() } else { "a scheme this program does not know".into() }
    }
}

impl Flows {
    fn names(&self) -> Vec<&'static str> {
        let flows = [
            (&self.client_credentials, "client credentials"),
            (&self.device_code, "device code"),
            (&self.authorization_code, "authorization code"),
        ];
        flows.into_iter().filter(|(flow, _)| flow.is_some()).map(|(_, name)| name).collect()
    }
}
