//! From an agent card reference to a card: a host, a URL or a file.

use super::cache::Cache;
use super::card::Card;
use super::credential::Credentials;
use super::error::{ClientError, Told};
use crate::net::{Net, Outgoing, address};
use flotilla_protocol::a2a::VERSION;
use reqwest::{Method, StatusCode};
use std::path::PathBuf;

const WELL_KNOWN: &str = "/.well-known/agent-card.json";
/// Where cards were before.
const OLD_WELL_KNOWN: &str = "/.well-known/agent.json";

/// What a reference names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The card's own address.
    Url(String),
    File(PathBuf),
}

impl Reference {
    /// A bare host or origin gets the well-known path; a URL with a path is used as it is.
    pub fn parse(text: &str) -> Self {
        if let Some(path) = text.strip_prefix("file://") {
            return Self::File(PathBuf::from(path));
        }
        // What is spoken nowhere is refused when it is called, with what it is.
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        if scheme.is_some_and(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
            let url = text.trim_end_matches('/');
            let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map(|(_, path)| path);
            return match path {
                Some(_) => Self::Url(text.to_owned()),
                None => Self::Url(format!("{url}{WELL_KNOWN}")),
            };
        }
        let is_path =
            text.starts_with(['.', '/', '~']) || text.ends_with(".json") || std::path::Path::new(text).is_file();
        if is_path {
            return Self::File(PathBuf::from(text));
        }
        Self::Url(format!("{}://{}{WELL_KNOWN}", scheme_for(text), text.trim_end_matches('/')))
    }

    /// Where the card may be if it is not at the reference itself: below the address of its agent, or where cards were
    /// before.
    pub fn others(&self) -> Vec<Self> {
        let Self::Url(url) = self else { return Vec::new() };
        if let Some(base) = url.strip_suffix(WELL_KNOWN) {
            return vec![Self::Url(format!("{base}{OLD_WELL_KNOWN}"))];
        }
        if url.ends_with(".json") || url.contains(['?', '#']) {
            return Vec::new();
        }
        let base = url.trim_end_matches('/');
        [WELL_KNOWN, OLD_WELL_KNOWN].map(|path| Self::Url(format!("{base}{path}"))).into()
    }

    /// The reference of one agent among those of a hub.
    pub fn of_agent(hub: &str, agent: &str) -> Result<Self, ClientError> {
        let agent = super::rest::segment(agent)?;
        Ok(Self::Url(format!("{}/agents/{agent}{WELL_KNOWN}", hub.trim_end_matches('/'))))
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// This machine is spoken to in the clear, every other host over TLS.
pub fn scheme_for(host: &str) -> &'static str {
    let name = host.split('/').next().unwrap_or(host);
    let local = name.starts_with("localhost") || name.starts_with("127.") || name.starts_with("[::1]");
    if local { "http" } else { "https" }
}

/// Reads or fetches a card, or takes it from the cache. A credential is shown to where it comes from only if one is
/// given: by those whose own hub that is, which shows some of its cards to nobody else.
pub async fn resolve(
    net: &Net,
    reference: &Reference,
    cache: Option<&Cache>,
    shown: &Credentials,
) -> Result<Card, ClientError> {
    resolve_in(VERSION, net, reference, cache, shown).await
}

/// The same, asking for the card in the form of a version: servers that have several choose by it.
pub async fn resolve_in(
    version: &str,
    net: &Net,
    reference: &Reference,
    cache: Option<&Cache>,
    shown: &Credentials,
) -> Result<Card, ClientError> {
    let source = reference.to_string();
    let place = || address::shown(&source);
    let json = match reference {
        Reference::File(path) => tokio::fs::read_to_string(path).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidData => {
                ClientError::CardInvalid { reference: place(), problem: "it is not UTF-8 text".to_owned() }
            }
            _ => ClientError::CardNotFound { reference: place(), problem: error.to_string() },
        })?,
        Reference::Url(url) => fetch(version, net, url, cache, shown).await?,
    };
    Card::parse(&json, &source).map_err(|problem| ClientError::CardInvalid { reference: place(), problem })
}

async fn fetch(
    version: &str,
    net: &Net,
    url: &str,
    cache: Option<&Cache>,
    shown: &Credentials,
) -> Result<String, ClientError> {
    let missing = |problem: String| ClientError::CardNotFound { reference: address::shown(url), problem };
    address::check(url).map_err(|error| match error {
        ClientError::Address { problem, .. } => missing(problem),
        other => other,
    })?;
    let mut headers =
        vec![("A2A-Version".to_owned(), version.to_owned()), ("Accept".to_owned(), "application/json".to_owned())];
    headers.extend(shown.for_hub());
    // A card that was shown for a credential is there for that credential alone.
    let mut name = if shown.is_empty() { url.to_owned() } else { format!("{url} {:?}", shown.for_hub()) };
    if version != VERSION {
        name.push_str(&format!(" in {version}"));
    }
    let mut outgoing = Outgoing { method: Method::GET, url: url.to_owned(), headers, ..Outgoing::default() };
    // What came over a connection nobody checked must not stand for it later.
    let cache = cache.filter(|_| !net.is_insecure());
    let kept = cache.and_then(|cache| cache.get(&name));
    match kept.as_ref() {
        Some(kept) if kept.is_fresh() => {
            net.note(|| format!("* the card of {url} is still fresh"));
            return Ok(kept.json.clone());
        }
        Some(kept) => kept.ask(&mut outgoing),
        None => {}
    }
    let response = net.send(outgoing, Some(net.limits.answer)).await?;
    let status = response.status();
    let location = response.headers().get("location").and_then(|value| value.to_str().ok()).map(str::to_owned);
    if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
        let to = location.unwrap_or_else(|| "nowhere".into());
        return Err(missing(format!("it redirects to {to}; name that address if you trust it")));
    }
    if let Some(code) = crate::net::refused(status) {
        return Err(ClientError::CredentialsMissing {
            schemes: vec![format!("{url} does not show its card to everyone (HTTP {})", status.as_u16())],
            code: Some(code),
            withheld: Vec::new(),
        });
    }
    if status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE {
        let (http, retry) = (Some(status.as_u16()), Told::retry_in(response.headers()));
        let message = format!("{} does not show its card now (HTTP {})", address::shown(url), status.as_u16());
        return Err(Told { message, http, retry, ..Told::default() }.into_error(false));
    }
    let received = response.headers().clone();
    let json = match kept {
        Some(kept) if status == StatusCode::NOT_MODIFIED => kept.json,
        _ if status == StatusCode::OK => net.text(response).await.map_err(|error| match error {
            ClientError::TooLarge { limit } => {
                let problem = format!("it is larger than {limit} bytes");
                ClientError::CardInvalid { reference: address::shown(url), problem }
            }
            other => other,
        })?,
        _ => {
            let said = net.text(response).await.unwrap_or_default();
            return Err(missing(net.clean(&Told::words(status.as_u16(), &said))));
        }
    };
    if let Some(cache) = cache {
        cache.put(&name, &received, &json);
    }
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::Reference;

    #[test]
    fn references_lead_to_cards() {
        for (text, expected) in [
            ("example.com", "https://example.com/.well-known/agent-card.json"),
            ("localhost:7420", "http://localhost:7420/.well-known/agent-card.json"),
            ("https://example.com/", "https://example.com/.well-known/agent-card.json"),
            ("https://example.com/cards/a.json", "https://example.com/cards/a.json"),
            ("https://example.com/cards/a", "https://example.com/cards/a"),
        ] {
            assert_eq!(Reference::parse(text), Reference::Url(expected.into()), "{text}");
        }
        let others = |text: &str| Reference::parse(text).others().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(others("https://h"), ["https://h/.well-known/agent.json"]);
        let below = ["https://h/a/.well-known/agent-card.json", "https://h/a/.well-known/agent.json"];
        assert_eq!(others("https://h/a/"), below);
        assert!(others("https://h/a.json").is_empty() && others("./card").is_empty());
        assert_eq!(Reference::parse("file:///a/b.json"), Reference::File("/a/b.json".into()));
        assert_eq!(Reference::parse("./card"), Reference::File("./card".into()));
        assert_eq!(Reference::parse("card.json"), Reference::File("card.json".into()));
        let agent = Reference::of_agent("http://h/", "a b").unwrap();
        assert!(Reference::of_agent("http://h/", "..").is_err());
        assert_eq!(agent.to_string(), "http://h/agents/a%20b/.well-known/agent-card.json");
    }
}
