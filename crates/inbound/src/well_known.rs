//! Agent cards and the hub's public keys at their well-known paths, cacheable (spec 8).

use crate::answer::{JSON, with_type};
use crate::app::{App, CardForm, Settings};
use crate::dialect::Dialect;
use crate::parameters::{Asked, Parameters};
use crate::{answer, caller, rest, signed};
use axum::body::Body;
use bytes::Bytes;
use flotilla_core::caller::Caller;
use flotilla_core::error::Error;
use flotilla_core::key::sha256;
use flotilla_core::registry::{Agent, Visibility};
use flotilla_core::rights::Right;
use flotilla_protocol::a2a::card::{AgentCard, AgentInterface, Scopes, SecurityRequirement, SecurityScheme};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::version::Version;
use flotilla_protocol::channel;
use flotilla_protocol::time::Millis;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const CACHE: HeaderValue = HeaderValue::from_static("public, max-age=60");
/// For a card that only some may see.
const CACHE_PRIVATE: HeaderValue = HeaderValue::from_static("private, max-age=60");

/// Where the key counts.
const VARIES: HeaderValue = HeaderValue::from_static("a2a-version, authorization, x-api-key");

/// Where a card is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// The hub's own: that of its default agent, under the hub's name.
    Root,
    Agent(&'a str),
    /// `agent.json`, which only readers from before 1.0 ask for.
    OldRoot,
    OldAgent(&'a str),
    /// `/v1/card`, which is of 0.3.
    Api(Option<&'a str>),
}

impl<'a> Place<'a> {
    fn agent(self) -> Option<&'a str> {
        match self {
            Self::Root | Self::OldRoot => None,
            Self::Agent(agent) | Self::OldAgent(agent) => Some(agent),
            Self::Api(agent) => agent,
        }
    }

    /// The form for this reader: the version they name, else what is set, else what suits most who come here.
    fn form(self, settings: &Settings, request: &Parts) -> CardForm {
        if let Self::Api(_) = self {
            return CardForm::V03;
        }
        match Parameters::of(&request.headers, &request.uri).version() {
            Asked::For(Version::V10) => return CardForm::V10,
            Asked::For(Version::V03) => return CardForm::V03,
            Asked::Nothing | Asked::Other(_) => {}
        }
        settings.card_form.unwrap_or(if matches!(self, Self::Agent(_)) { CardForm::V10 } else { CardForm::Hybrid })
    }
}

/// The card of one agent, or the hub's own.
pub async fn serve(app: &App, place: Place<'_>, request: &Parts) -> Response<Body> {
    if let Place::Api(agent) = place {
        return match for_03(app, request, agent).await {
            Ok(card) => respond(app, request, card, CardForm::V03, VARIES),
            Err(error) => rest::refuse_in_03(app, &app.refusal(error)),
        };
    }
    let registry = app.hub.registry();
    let agent = place.agent();
    let found = match agent {
        Some(name) => registry.by_name(name),
        None => registry.default_agent(),
    };
    let public = found.is_some_and(|agent| agent.visibility == Visibility::Public);
    // A public card is for all, whatever they show. What is not there and what is not theirs cost the same.
    let caller = if public { None } else { caller::identify(app, request).await.ok() };
    let reads = |caller: &Caller, agent: &Agent| caller.rights.has(Right::AgentsRead) && agent.is_seen_by(caller);
    let seen = found.filter(|seen| public || caller.as_ref().is_some_and(|caller| reads(caller, seen)));
    match seen {
        Some(seen) => {
            let card = Shown { card: signed::public(app, seen, agent.is_some()), public };
            let vary = HeaderValue::from_static("a2a-version");
            respond(app, request, card, place.form(&app.settings(), request), vary)
        }
        None => rest::refuse(app, &no_card(agent)),
    }
}

fn no_card(agent: Option<&str>) -> Refusal {
    let text = match agent {
        Some(name) => format!("There is no agent '{name}' here."),
        None => "There is no default agent here; fetch /agents/NAME/.well-known/agent-card.json.".into(),
    };
    Refusal::new(Reason::AgentNotFound, text)
}

/// A card, and whether everybody is shown the same.
pub struct Shown {
    pub card: AgentCard,
    public: bool,
}

fn respond(app: &App, request: &Parts, shown: Shown, form: CardForm, vary: HeaderValue) -> Response<Body> {
    match signed::write(app, shown.card, form) {
        Ok(body) => {
            let cache = if shown.public { CACHE } else { CACHE_PRIVATE };
            let mut response = cacheable(&request.headers, body, app.changed_at(), cache);
            response.headers_mut().insert(VARY, vary);
            let dialect = if form == CardForm::V03 { Dialect::V03(rest::form::DEFAULT) } else { Dialect::V10 };
            answer::finish(response, dialect, None)
        }
        Err(fault) => rest::refuse(app, &app.refusal(fault.into())),
    }
}

/// The card where 0.3 asks for it by a call: to whoever shows a key all it says to them, else what everybody sees.
pub async fn for_03(app: &App, request: &Parts, agent: Option<&str>) -> Result<Shown, Error> {
    let registry = app.hub.registry();
    let found = match agent {
        Some(name) => registry.by_name(name),
        None => registry.default_agent(),
    };
    let public = found.filter(|agent| agent.visibility == Visibility::Public);
    let everybody = |found: &Agent| Shown { card: signed::public(app, found, agent.is_some()), public: true };
    match (caller::credential(&request.headers)?, public) {
        (None, Some(found)) => return Ok(everybody(found)),
        // Without a key, what is not there and what is not theirs are the same.
        (None, None) if !app.settings().anonymous => return Err(no_card(agent).into()),
        _ => {}
    }
    let caller = caller::identify(app, request).await?;
    if let (Some(found), false) = (public, caller.rights.has(Right::AgentsRead)) {
        return Ok(everybody(found));
    }
    caller.check(Right::AgentsRead)?;
    let found = registry.resolve(&caller, agent, "")?;
    let card = signed::fullest(app, &caller, found, agent.is_some())?;
    Ok(Shown { card, public: found.extended.is_none() && found.visibility == Visibility::Public })
}

/// An extended card, kept by nobody but the one who asked.
pub fn extended(app: &App, request: &Parts, json: Vec<u8>, media_type: HeaderValue) -> Response<Body> {
    let mut response = cacheable(&request.headers, json, app.changed_at(), CACHE_PRIVATE);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, media_type);
    headers.insert(VARY, VARIES);
    response
}

/// The keys cards and webhooks are signed with.
pub fn jwks(app: &App, request: &Parts) -> Response<Body> {
    let body = app.signer.key_set().into_bytes();
    cacheable(&request.headers, body, app.changed_at(), CACHE)
}

/// A document that everybody may read and keep for a while. It changes at any time, so only its content tells whether it
/// has.
pub fn public(app: &App, request: &Parts, body: impl Into<Bytes>) -> Response<Body> {
    cacheable(&request.headers, body, app.now(), CACHE)
}

fn cacheable(asked: &HeaderMap, body: impl Into<Bytes>, changed_at: Millis, cache: HeaderValue) -> Response<Body> {
    let body = body.into();
    let digest: String = sha256(&body)[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let etag = format!("\"{digest}\"");
    let modified = http_date(changed_at);
    let text = |name| asked.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let fresh = match text(IF_NONE_MATCH) {
        Some(tags) => {
            tags.split(',').any(|tag| matches!(tag.trim().trim_start_matches("W/"), t if t == etag || t == "*"))
        }
        None => {
            text(IF_MODIFIED_SINCE).and_then(|since| httpdate::parse_http_date(since).ok()) >= Some(moment(changed_at))
        }
    };
    let mut response = if fresh {
        with_type(StatusCode::NOT_MODIFIED, JSON, Body::empty())
    } else {
        with_type(StatusCode::OK, JSON, body)
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, cache);
    for (name, value) in [(ETAG, etag), (LAST_MODIFIED, modified)] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    response
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(at: Millis) -> String {
    httpdate::fmt_http_date(moment(at))
}

/// HTTP dates have no fractions of a second.
fn moment(at: Millis) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(at.0 / 1000).unwrap_or(0))
}

pub fn agent_card(settings: &Settings, agent: &Agent, is_default: bool) -> AgentCard {
    let base = format!("{}/agents/{}", settings.public_url, agent.name);
    let address = Address { base: &base, tenant: &agent.name, is_default };
    card(settings, agent, agent.name.clone(), agent.description.clone(), address)
}

pub fn hub_card(settings: &Settings, agent: &Agent) -> AgentCard {
    let description = if settings.description.is_empty() { &agent.description } else { &settings.description };
    let address = Address { base: &settings.public_url, tenant: "", is_default: true };
    card(settings, agent, settings.name.clone(), description.clone(), address)
}

/// Where an agent is: below a path, or, where there are no paths, under a name.
struct Address<'a> {
    base: &'a str,
    tenant: &'a str,
    /// Whether calls that name no agent reach this one.
    is_default: bool,
}

/// Those of 1.0 first: many readers take the first of a binding.
fn interfaces(settings: &Settings, address: &Address) -> Vec<AgentInterface> {
    let interface = |url: String, binding: &str, tenant: &str, version: Version| AgentInterface {
        url,
        protocol_binding: binding.into(),
        tenant: tenant.into(),
        protocol_version: version.name().into(),
    };
    let in_version = |version| {
        [
            interface(format!("{}/a2a", address.base), "JSONRPC", "", version),
            interface(address.base.to_owned(), "HTTP+JSON", "", version),
        ]
    };
    let mut all = in_version(Version::V10).to_vec();
    all.extend(authority(&settings.public_url).map(|place| interface(place, "GRPC", address.tenant, Version::V10)));
    all.extend(socket(&settings.public_url).map(|url| interface(url, channel::BINDING, address.tenant, Version::V10)));
    all.extend(in_version(Version::V03));
    // Clients of 0.3 know no tenant, so their gRPC calls reach the default agent: only its card lists gRPC of 0.3. The
    // published SDKs hand the address to their channel as it is, and no channel dials `http://`.
    if let Some(place) = authority(&settings.public_url).filter(|_| address.is_default) {
        let url = if settings.card_grpc_scheme { settings.public_url.clone() } else { place };
        all.push(interface(url, "GRPC", address.tenant, Version::V03));
    }
    all
}

/// Where the socket is; its scheme is as safe as that of the hub's other addresses.
fn socket(public_url: &str) -> Option<String> {
    let (scheme, rest) = public_url.split_once("://")?;
    let scheme = if scheme == "https" { "wss" } else { "ws" };
    Some(format!("{scheme}://{rest}/ws"))
}

/// `host:port`, which is how gRPC names a place; none behind a path, where gRPC cannot go.
fn authority(public_url: &str) -> Option<String> {
    let url: Uri = public_url.parse().ok()?;
    if url.path() != "/" {
        return None;
    }
    let default = if url.scheme_str() == Some("https") { 443 } else { 80 };
    Some(format!("{}:{}", url.host()?, url.port_u16().unwrap_or(default)))
}

fn card(settings: &Settings, agent: &Agent, name: String, description: String, address: Address) -> AgentCard {
    let requires =
        |scheme: &str| SecurityRequirement { schemes: BTreeMap::from([(scheme.to_owned(), Scopes::default())]) };
    AgentCard {
        name,
        description,
        supported_interfaces: interfaces(settings, &address),
        provider: None,
        version: agent.version.clone(),
        documentation_url: None,
        capabilities: agent.capabilities.clone(),
        security_schemes: BTreeMap::from([
            ("bearer".into(), SecurityScheme::HttpAuthSecurityScheme { scheme: "Bearer".into() }),
            (
                "apiKey".into(),
                SecurityScheme::ApiKeySecurityScheme { location: "header".into(), name: "X-API-Key".into() },
            ),
        ]),
        security_requirements: if settings.anonymous && agent.visibility == Visibility::Public {
            Vec::new()
        } else {
            vec![requires("bearer"), requires("apiKey")]
        },
        default_input_modes: agent.input_modes.clone(),
        default_output_modes: agent.output_modes.clone(),
        skills: agent.skills.clone(),
        icon_url: None,
        signatures: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::authority;

    #[test]
    fn grpc_is_named_by_host_and_port() {
        assert_eq!(authority("http://127.0.0.1:7420").as_deref(), Some("127.0.0.1:7420"));
        assert_eq!(authority("https://hub.example.com").as_deref(), Some("hub.example.com:443"));
        assert_eq!(authority("http://[::1]:7420").as_deref(), Some("[::1]:7420"));
        assert_eq!(authority("https://example.com/hub"), None);
    }
}
