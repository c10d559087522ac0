//! Service parameters (spec 3.2.6): version, extensions, and ours for resuming and repeating.

use flotilla_core::descent::Told;
use flotilla_core::log::Cursor;
use flotilla_core::registry::Agent;
use flotilla_protocol::a2a::card::AgentExtension;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::version::Version;
use flotilla_protocol::a2a::{HUB_EXTENSIONS, STREAM_RESUME};
use flotilla_protocol::lineage::{HOPS, TRACEPARENT, TRACESTATE, Trace};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// The longest Idempotency-Key a caller may choose.
const MAX_KEY: usize = 256;

// Names made once: every request is asked for each of them.
pub static VERSION: HeaderName = HeaderName::from_static("a2a-version");
static EXTENSIONS: HeaderName = HeaderName::from_static("a2a-extensions");
static OLD_EXTENSIONS: HeaderName = HeaderName::from_static("x-a2a-extensions");
static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
static FLEET_HOPS: HeaderName = HeaderName::from_static(HOPS);
static PARENT: HeaderName = HeaderName::from_static(TRACEPARENT);
static STATE: HeaderName = HeaderName::from_static(TRACESTATE);

#[derive(Debug, Clone, Default)]
pub struct Parameters {
    version: Option<String>,
    pub extensions: Vec<String>,
    cursor: Option<String>,
    pub idempotency_key: Option<String>,
    /// What is told of the request's lineage.
    pub told: Told,
}

/// The version a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked<'a> {
    Nothing,
    For(Version),
    /// One that is not spoken here.
    Other(&'a str),
}

/// The query's pairs, decoded.
pub fn query(uri: &Uri) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    })
}

fn decode(text: &str) -> Cow<'_, str> {
    if text.contains('+') {
        let spaced = text.replace('+', " ");
        return Cow::Owned(percent_decode_str(&spaced).decode_utf8_lossy().into_owned());
    }
    percent_decode_str(text).decode_utf8_lossy()
}

impl Parameters {
    /// Headers first; what may be a query parameter instead is looked for there.
    pub fn of(headers: &HeaderMap, uri: &Uri) -> Self {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let mut parameters = Self {
            version: versions(headers),
            // 0.3 had the name with an X.
            extensions: list(headers.get_all(&EXTENSIONS).iter().chain(headers.get_all(&OLD_EXTENSIONS))),
            cursor: text(&LAST_EVENT_ID),
            idempotency_key: text(&IDEMPOTENCY_KEY),
            told: Told { trace: trace(headers), hops: text(&FLEET_HOPS) },
        };
        for (name, value) in query(uri) {
            if name.eq_ignore_ascii_case("a2a-version") {
                parameters.version.get_or_insert_with(|| value.into_owned());
            } else if name.eq_ignore_ascii_case("last-event-id") || name == "lastEventId" {
                parameters.cursor.get_or_insert_with(|| value.into_owned());
            } else if name.eq_ignore_ascii_case("a2a-extensions") {
                parameters.extensions.extend(value.split(',').map(|uri| uri.trim().to_owned()));
            }
        }
        parameters
    }

    /// The version asked for, if any: one that is empty is none (spec 3.6.2).
    pub fn version(&self) -> Asked<'_> {
        match self.version.as_deref().map(str::trim).filter(|version| !version.is_empty()) {
            None => Asked::Nothing,
            Some(text) => Version::from_name(text).map_or(Asked::Other(text), Asked::For),
        }
    }

    pub fn check_key(&self) -> Result<(), Refusal> {
        match &self.idempotency_key {
            Some(key) if key.is_empty() || key.len() > MAX_KEY => {
                Err(Refusal::invalid("Idempotency-Key", format!("must be 1 to {MAX_KEY} characters long")))
            }
            _ => Ok(()),
        }
    }

    /// An agent's required extensions must be named by the caller (spec 3.3.4).
    pub fn check_extensions(&self, agent: &Agent) -> Result<(), Refusal> {
        let required = agent.capabilities.extensions.iter().filter(|extension| extension.required);
        let missing: Vec<&str> = required
            .map(|extension| extension.uri.as_str())
            .filter(|uri| !self.extensions.iter().any(|named| named == uri))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let text = format!(
            "The agent '{}' requires extensions this request does not name. Send 'A2A-Extensions: {}'.",
            agent.name,
            missing.join(",")
        );
        Err(Refusal::new(Reason::ExtensionSupportRequired, text).fact("requiredExtensions", missing.join(",")))
    }

    /// The extensions that are in force for this request, for the response's header. Of those of an agent elsewhere,
    /// the ones it says it activated; where it has said nothing yet, as when a stream begins, the ones it declares.
    pub fn activated(
        &self,
        declared: impl FnOnce() -> Vec<AgentExtension>,
        by_agent: Option<&[String]>,
    ) -> Option<HeaderValue> {
        if self.extensions.is_empty() && self.cursor.is_none() {
            return None;
        }
        let declared = declared();
        let is_in_force = |uri: &str| match by_agent {
            Some(all) if !uri.starts_with(HUB_EXTENSIONS) => all.iter().any(|one| one == uri),
            _ => declared.iter().any(|extension| extension.uri == uri),
        };
        let mut active: Vec<&str> = Vec::new();
        let resuming = self.cursor.is_some().then_some(STREAM_RESUME);
        for uri in self.extensions.iter().map(String::as_str).chain(resuming) {
            if is_in_force(uri) && !active.contains(&uri) {
                active.push(uri);
            }
        }
        if active.is_empty() { None } else { HeaderValue::from_str(&active.join(",")).ok() }
    }

    /// Where a stream is to be taken up again.
    pub fn cursor(&self) -> Result<Option<Cursor>, Refusal> {
        let Some(text) = &self.cursor else { return Ok(None) };
        let wrong = || Refusal::invalid("Last-Event-ID", "must be the id of an event of this hub's stream");
        Cursor::parse(text).map(Some).ok_or_else(wrong)
    }
}

/// The version a request names. Where it names several, all of them, which is a version nobody speaks: neither is more
/// its caller's than the other.
fn versions(headers: &HeaderMap) -> Option<String> {
    let named = headers.get_all(&VERSION).iter().filter_map(|value| value.to_str().ok());
    let mut named = named.map(str::trim).filter(|version| !version.is_empty());
    let first = named.next()?;
    let mut versions = first.to_owned();
    for other in named.filter(|other| *other != first) {
        versions.push_str(", ");
        versions.push_str(other);
    }
    Some(versions)
}

/// The trace a request belongs to. Of a header that may be there once, two are none (W3C trace context 3.2).
fn trace(headers: &HeaderMap) -> Option<Trace> {
    let mut parents = headers.get_all(&PARENT).iter();
    let (parent, None) = (parents.next()?.to_str().ok()?, parents.next()) else { return None };
    let states: Vec<&str> = headers.get_all(&STATE).iter().filter_map(|value| value.to_str().ok()).collect();
    Trace::parse(parent, Some(&states.join(",")))
}

fn list<'a>(values: impl Iterator<Item = &'a HeaderValue>) -> Vec<String> {
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .map(|uri| uri.trim().to_owned())
        .filter(|uri| !uri.is_empty())
        .collect()
}
