//! Discovery: from an address somebody names to an agent's card, and what that is worth. The guard stands before every call.

mod report;
#[cfg(test)]
mod tests;

use crate::client::card::Card;
use crate::client::check::{self, Form};
use crate::client::choose::{Binding, Choice, choose};
use crate::client::error::ClientError;
use crate::guard::{Guard, Refused};
use crate::net::redact::Redactor;
use crate::net::{Limits, Net, Outgoing, address, origin, redirect};
use crate::remote::options::{Auth, Protocol, WELL_KNOWN};
use crate::remote::permitted;
use crate::signature::origin::{Fetch, Pins, judge};
use crate::signature::verify::{Outcome, Word};
use reqwest::StatusCode;
use std::time::Duration;

/// The largest card, in bytes.
const MOST_BYTES: usize = 1024 * 1024;
/// How deep its JSON may be nested.
const DEEPEST: usize = 64;
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(10);
/// How long a card is looked for, at all places together.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// For judging it: its keys may be elsewhere.
const JUDGED: Duration = Duration::from_secs(20);

/// Where a card was found, as an agent's settings say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// At a well-known path below this address.
    Base(String),
    /// At an address of its own.
    Card(String),
}

/// An address that was tried, and why there is no card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    pub address: String,
    pub problem: String,
}

/// A card, and all there is to say about it.
pub struct Found {
    pub at: At,
    /// Where the card is.
    pub address: String,
    pub card: Card,
    pub form: Form,
    /// What is wrong with the card, each with its place.
    pub findings: Vec<String>,
    pub outcome: Outcome,
    /// How the agent would be called, or why it cannot be.
    pub choice: Result<Choice, String>,
}

/// What came of looking.
pub struct Search {
    pub asked: String,
    pub found: Option<Box<Found>>,
    pub tried: Vec<Tried>,
}

pub struct Discovery<'a> {
    pub guard: &'a Guard,
    pub auth: &'a Auth,
    pub pins: &'a Pins,
    /// What is to be spoken with it.
    pub protocol: Protocol,
    pub transports: Vec<Binding>,
    /// How long a card is looked for, however slowly one comes.
    pub patience: Duration,
}

impl Discovery<'_> {
    /// Looks for a card at an address, at the well-known paths below it, and at those of its origin.
    pub async fn search(&self, url: &str) -> Result<Search, Refused> {
        self.guard.check(url).await?;
        let mut search = Search { asked: address::shown(url), found: None, tried: Vec::new() };
        let net = match self.net(url) {
            Ok(net) => net,
            Err(error) => {
                search.note(url, error.to_string());
                return Ok(search);
            }
        };
        let mut at = url.to_owned();
        let looked = tokio::time::timeout(self.patience, self.look(&net, url, &mut search, &mut at)).await;
        let late = |patience: Duration| format!("it was not all there within {} s", patience.as_secs());
        match looked {
            Err(_) => search.note(&at, late(self.patience)),
            Ok(None) => {}
            Ok(Some((card, at, address))) => {
                let judged = self.judged(&net, card, at, (url, address.clone()));
                match tokio::time::timeout(JUDGED, judged).await {
                    Ok(found) => search.found = Some(Box::new(found)),
                    Err(_) => search.note(&address, format!("its signature: {}", late(JUDGED))),
                }
            }
        }
        Ok(search)
    }

    fn net(&self, url: &str) -> Result<Net, ClientError> {
        let secrets = match self.auth {
            Auth::Header { value, .. } => vec![value.clone()],
            Auth::None | Auth::OAuth2 { .. } => Vec::new(),
        };
        let limits = Limits { connect: CONNECT, answer: ANSWER, bytes: MOST_BYTES, depth: DEEPEST };
        let resolver = self.guard.resolver(url.starts_with("https://"));
        Net::between(limits, Redactor::new(secrets), Some(resolver))
    }

    /// A card, how it was found, and where it is. `now` is the place that is looked at.
    async fn look(&self, net: &Net, url: &str, search: &mut Search, now: &mut String) -> Option<(Card, At, String)> {
        for (place, at) in places(url) {
            now.clone_from(&place);
            match self.get(net, &place, url).await {
                Ok((card, address)) => return Some((card, at, address)),
                // All of them are at one origin: where nobody is, nobody is at another path either.
                Err(Missed::Nobody(problem)) => {
                    search.note(&place, problem);
                    return None;
                }
                Err(Missed::NoCard(problem)) => search.note(&place, problem),
            }
        }
        None
    }

    /// A card, and the address it was at in the end. What proves who asks is for the address that was named, and what is
    /// below it: others of its origin may be somebody else's.
    async fn get(&self, net: &Net, place: &str, named: &str) -> Result<(Card, String), Missed> {
        let mut place = place.to_owned();
        let missing = Missed::NoCard;
        for _ in 0..=redirect::MOST {
            self.guard.check(&place).await.map_err(|refused| Missed::NoCard(refused.to_string()))?;
            let mut headers = vec![
                ("A2A-Version".to_owned(), self.protocol.card_version().to_owned()),
                ("Accept".to_owned(), "application/json".to_owned()),
            ];
            let is_named = is_below(&place, named);
            if let (Auth::Header { name, value }, true) = (self.auth, is_named) {
                headers.push((name.clone(), value.clone()));
            }
            let outgoing = Outgoing { url: place.clone(), headers, ..Outgoing::default() };
            let response = net.send(outgoing, Some(ANSWER)).await?;
            let status = response.status();
            if status.is_redirection() {
                let to = redirect::within_origin(&place, response.headers(), "name that address if you trust it");
                place = to.map_err(missing)?.into();
                continue;
            }
            if crate::net::refused(status).is_some() {
                let hint = match self.auth {
                    Auth::Header { .. } if !is_named => {
                        "and 'auth' is for the address that was named alone; name this one"
                    }
                    _ => "give 'auth'",
                };
                return Err(missing(format!("HTTP {}: it is not shown to everyone; {hint}", status.as_u16())));
            }
            if status != StatusCode::OK {
                return Err(missing(format!("HTTP {}", status.as_u16())));
            }
            let text = net.text(response).await.map_err(|error| missing(error.to_string()))?;
            let card = Card::parse(&text, &place).map_err(|problem| missing(format!("it is no card: {problem}")))?;
            return Ok((card, place));
        }
        Err(missing(format!("it redirects more than {} times", redirect::MOST)))
    }

    async fn judged(&self, net: &Net, card: Card, at: At, (named, address): (&str, String)) -> Found {
        let (form, mut findings) = check::findings(&card.json);
        let by = Fetch { net, guard: Some(self.guard) };
        let outcome = judge(by, &card.json, &address, self.pins).await;
        let (card, unread) = match &outcome.proof {
            Some(proof) => match card.clone().proven(&proof.payload) {
                Ok(proven) => (proven, None),
                Err(problem) => (card, Some(problem)),
            },
            None => (card, None),
        };
        findings.extend(card.unproven());
        findings.extend(speaks_of_another(&card, &at));
        let choice = match unread.or_else(|| self.distrusted(&outcome)) {
            Some(problem) => Err(problem),
            None => self.choice(&card, named, &address).await,
        };
        Found { at, address: address::shown(&address), card, form, findings, outcome, choice }
    }

    /// Why a card is not used, if that is for its signature.
    fn distrusted(&self, Outcome { word, reason, .. }: &Outcome) -> Option<String> {
        match word {
            Word::Verified => None,
            Word::Failed => Some(format!("its signature does not hold (failed: {reason})")),
            _ if !self.pins.is_empty() => {
                Some(format!("no pinned key is known to have signed its card ({word}: {reason})"))
            }
            Word::Absent | Word::Unverifiable => None,
        }
    }

    async fn choice(&self, card: &Card, named: &str, address: &str) -> Result<Choice, String> {
        let card = permitted(self.guard, card.clone(), None).await.map_err(|error| error.to_string())?;
        if !matches!(self.auth, Auth::None) && !is_below(address, named) {
            let (card, named) = (shown(address), shown(named));
            return Err(format!(
                "its card is at {card}, and 'auth' is for {named} alone; name the card's address if it may go there"
            ));
        }
        let version = self.protocol.version();
        choose(&card, &self.transports, version.as_deref(), self.protocol.versions()).map_err(|error| error.to_string())
    }
}

/// Why there is no card.
enum Missed {
    /// Nobody answers at all.
    Nobody(String),
    NoCard(String),
}

impl From<ClientError> for Missed {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Unreachable { problem, .. } | ClientError::Unconnected { problem, .. } => {
                Self::Nobody(problem)
            }
            other => Self::Nobody(other.to_string()),
        }
    }
}

impl Search {
    fn note(&mut self, address: &str, problem: String) {
        self.tried.push(Tried { address: address::shown(address), problem });
    }
}

/// The places a card may be at, the likeliest first, each once.
fn places(url: &str) -> Vec<(String, At)> {
    let base = url.split(['?', '#']).next().unwrap_or(url).trim_end_matches('/');
    let origin = origin(url);
    let itself = (url.to_owned(), At::Card(url.to_owned()));
    let mut places = Vec::new();
    if base.ends_with(".json") {
        places.push(itself.clone());
    } else {
        places.extend(WELL_KNOWN.map(|path| (format!("{base}{path}"), At::Base(base.to_owned()))));
    }
    places.extend(WELL_KNOWN.map(|path| (format!("{origin}{path}"), At::Base(origin.clone()))));
    // What is at the root of a site is hardly a card.
    if base != origin {
        places.push(itself);
    }
    let mut seen = Vec::new();
    places.retain(|(place, _)| {
        let is_new = !seen.contains(place);
        seen.push(place.clone());
        is_new
    });
    places
}

/// Whether a place is at an address or below it.
fn is_below(place: &str, address: &str) -> bool {
    let read = |url: &str| {
        reqwest::Url::parse(url).ok().map(|url| (url.origin(), url.path().trim_end_matches('/').to_owned()))
    };
    let (Some((origin, path)), Some((own, above))) = (read(place), read(address)) else { return false };
    origin == own && path.strip_prefix(&above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A signature proves who wrote a card, and not that it is this agent's: its addresses must be where it was found.
fn speaks_of_another(card: &Card, at: &At) -> Option<String> {
    let (At::Base(place) | At::Card(place)) = at;
    let own = |url: &str| origin(url) == origin(place);
    let interfaces = &card.supported_interfaces;
    if interfaces.is_empty() || interfaces.iter().any(|interface| own(&interface.url)) {
        let below = |url: &str| url.trim_end_matches('/').starts_with(place.as_str());
        let of_another = matches!(at, At::Base(_)) && place != &origin(place);
        return (of_another && !interfaces.is_empty() && !interfaces.iter().any(|i| below(&i.url))).then(|| {
            format!(
                "supportedInterfaces lead nowhere below {}: it may be the card of another agent there",
                shown(place)
            )
        });
    }
    Some(format!("supportedInterfaces lead to other origins than {}, where the card is", shown(&origin(place))))
}

fn shown(place: &str) -> String {
    address::shown(place)
}
