//! How an agent elsewhere is called: what its configuration comes to.

use crate::client::choose::{Binding, Versions};
use crate::net::origin;
use crate::net::redact::{SHORTEST, is_open};
use crate::oauth::Requester;
use crate::signature::origin::Pins;
use flotilla_protocol::a2a::VERSION;
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::v03;
use flotilla_protocol::wire::Base64;
use std::path::PathBuf;
use std::time::Duration;

/// Where cards are, and where they were before.
pub const WELL_KNOWN: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// Where an agent is, in its operator's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The agent's own address; its card is at the well-known path below it.
    Base(String),
    /// The card's address.
    Card(String),
    /// A card that is here.
    File(PathBuf),
}

/// What proves who calls.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Auth {
    #[default]
    None,
    /// A header as it is sent: a token, a key, a name with a password.
    Header { name: String, value: String },
    /// Tokens by client credentials; without an address, from the one the card names.
    OAuth2 { token_url: Option<String>, requester: Requester },
}

impl Auth {
    /// A credential in all forms it may be repeated in: as it is sent, without its scheme, and a password alone.
    fn secrets(&self) -> Vec<String> {
        let value = match self {
            Self::None => return Vec::new(),
            Self::Header { value, .. } => value,
            Self::OAuth2 { requester, .. } => {
                let basic = requester.basic().and_then(|value| value.strip_prefix("Basic ").map(str::to_owned));
                return requester.secret.iter().cloned().chain(basic).collect();
            }
        };
        let mut secrets = vec![value.clone()];
        let Some((scheme, credential)) = value.split_once(' ') else { return secrets };
        secrets.push(credential.to_owned());
        let pair = Base64::parse(credential).ok().filter(|_| scheme == "Basic");
        if let Some(pair) = pair.and_then(|pair| String::from_utf8(pair.decode()).ok()) {
            secrets.extend(pair.split_once(':').map(|(_, password)| password.to_owned()));
            secrets.push(pair);
        }
        secrets
    }
}

/// The version of A2A that is spoken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Protocol {
    /// The highest both sides know.
    #[default]
    Highest,
    /// One of 1.x, as it is signalled.
    Current(String),
    /// 0.3.
    Old,
}

impl Protocol {
    pub fn parse(text: &str) -> Option<Self> {
        let is =
            |version: &str| text == version || text.strip_prefix(version).is_some_and(|rest| rest.starts_with('.'));
        if is(v03::VERSION) {
            return Some(Self::Old);
        }
        is("1").then(|| Self::Current(text.to_owned()))
    }

    pub fn versions(&self) -> Versions {
        match self {
            Self::Highest => Versions::Any,
            Self::Current(_) => Versions::Current,
            Self::Old => Versions::Old,
        }
    }

    /// What is signalled, where that is not left to the card.
    pub fn version(&self) -> Option<String> {
        if let Self::Current(version) = self { Some(version.clone()) } else { None }
    }

    /// The version in whose form the card is asked for.
    pub fn card_version(&self) -> &'static str {
        if *self == Self::Old { v03::VERSION } else { VERSION }
    }
}

/// How long is waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// For a connection.
    pub connect: Duration,
    /// For an answer that has no reason to wait for the work.
    pub answer: Duration,
    /// For the next event of a stream, before the task is asked for.
    pub idle: Duration,
    /// For an agent that took work up and cannot be reached any more.
    pub lost: Duration,
    /// For the whole of a run.
    pub whole: Duration,
}

impl Default for Times {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connect: seconds(10),
            answer: seconds(30),
            idle: seconds(120),
            lost: seconds(300),
            whole: seconds(24 * 3600),
        }
    }
}

/// How often and how soon a call is made again that did not get through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// After the first.
    pub most: u32,
    pub first: Duration,
    pub longest: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { most: 3, first: Duration::from_millis(200), longest: Duration::from_secs(10) }
    }
}

impl Retries {
    /// The pause before the try of this number, the first being 1: twice as long each time.
    pub fn pause(&self, number: u32) -> Duration {
        self.first.saturating_mul(2u32.saturating_pow(number.saturating_sub(1))).min(self.longest)
    }
}

/// When an agent is left alone for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerRules {
    /// After so many calls in a row that did not reach it.
    pub failures: u32,
    pub pause: Duration,
}

impl Default for BreakerRules {
    fn default() -> Self {
        Self { failures: 5, pause: Duration::from_secs(15) }
    }
}

/// How often a task is asked for whose agent does not stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    pub first: Duration,
    pub longest: Duration,
}

impl Default for Poll {
    fn default() -> Self {
        Self { first: Duration::from_millis(200), longest: Duration::from_secs(5) }
    }
}

/// All of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// The agent's name at this hub.
    pub name: String,
    pub place: Place,
    pub transports: Vec<Binding>,
    pub protocol: Protocol,
    /// How it has files in the proto of 0.3; found out if absent.
    pub files: Option<Files>,
    pub auth: Auth,
    /// The same in words that may be shown: the kind, and the place of the secret.
    pub credential: Option<String>,
    pub headers: Vec<(String, String)>,
    /// Where they may go beside the agent's own origin.
    pub credentials_for: Vec<String>,
    pub times: Times,
    pub retries: Retries,
    pub breaker: BreakerRules,
    pub poll: Poll,
    /// How long a card is believed.
    pub refresh: Duration,
    /// Whether a message whose fate is unknown may be sent again.
    pub send_again: bool,
    /// The largest answer, and the largest event of a stream.
    pub bytes: usize,
    /// How deep its JSON may be nested.
    pub depth: usize,
    /// Whether its place was named over the API, and not by the hub's operator: then the guard judges it too.
    pub guarded: bool,
    /// Keys one of which must have signed its card; none if any card will do.
    pub pins: Pins,
}

impl Options {
    /// What the hub's operator named: it is called without asking the guard.
    pub fn named(&self) -> Option<&Place> {
        (!self.guarded).then_some(&self.place)
    }

    /// Whether there is something that not everybody may be shown.
    pub fn has_credentials(&self) -> bool {
        !matches!(self.auth, Auth::None) || !self.headers.is_empty()
    }

    /// Whether credentials and headers may go to an address: where the agent is by its operator's word. A card that is a
    /// file is the operator's.
    pub fn entrusts(&self, url: &str) -> bool {
        match &self.place {
            Place::File(_) => true,
            Place::Base(own) | Place::Card(own) => {
                std::iter::once(own).chain(&self.credentials_for).any(|named| origin(named) == origin(url))
            }
        }
    }

    /// The address as it may be shown.
    pub fn address(&self) -> String {
        match &self.place {
            Place::Base(url) | Place::Card(url) => crate::net::address::shown(url),
            Place::File(path) => path.display().to_string(),
        }
    }

    /// What a proof of its card is good for: the agent's address, however that is written, and the keys that count there.
    pub fn proof(&self) -> String {
        let address = match &self.place {
            Place::File(path) => path.display().to_string(),
            Place::Base(url) | Place::Card(url) => {
                // What follows may be a secret, and says nothing of whose the card is.
                let whole = reqwest::Url::parse(url).map_or_else(|_| url.clone(), String::from);
                let path = whole.split(['?', '#']).next().unwrap_or_default();
                let base = WELL_KNOWN.iter().find_map(|known| path.strip_suffix(known)).unwrap_or(path);
                base.trim_end_matches('/').to_owned()
            }
        };
        self.pins.names().iter().fold(address, |proof, name| format!("{proof} {name}"))
    }

    /// What must not be seen in a log or an error. A header may hold anything: of a few letters it is no secret, and would
    /// mask words.
    pub fn secrets(&self) -> Vec<String> {
        let headers = self.headers.iter().filter(|(name, value)| !is_open(name) && value.len() >= SHORTEST);
        self.auth.secrets().into_iter().chain(headers.map(|(_, value)| value.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::net::redact::Redactor;

    #[test]
    fn a_password_is_a_secret_in_every_form() {
        let value = "Basic bWU6czNjcmV0LXB3".to_owned();
        let auth = super::Auth::Header { name: "Authorization".into(), value };
        let redactor = Redactor::new(auth.secrets());
        for said in ["bWU6czNjcmV0LXB3", "me:s3cret-pw", "s3cret-pw"] {
            assert!(!redactor.clean(&format!("not {said}!")).contains(said), "{said}");
        }
    }
}
