//! The keys of the place a card is from, and the judgement of a card that was fetched.

use super::jwk::{KeySet, PublicKey};
use super::verify::{OutOfReach, Outcome, Trust, Word, is_of, said_places, signatures, verify};
use crate::guard::Guard;
use crate::net::{Net, Outgoing};
use reqwest::{Method, StatusCode};
use url::Url;

const WELL_KNOWN: &str = "/.well-known/jwks.json";
/// Key sets asked for on behalf of one card.
const MOST_SETS: usize = 3;
/// The largest key set, in bytes.
const MOST_BYTES: usize = 1024 * 1024;
/// The length of a thumbprint.
const THUMBPRINT: usize = 43;

/// What was agreed on before: keys, or the thumbprints of keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins {
    keys: KeySet,
    thumbprints: Vec<String>,
}

impl Pins {
    /// Adds a pin: a thumbprint (RFC 7638), or the text of a key or a key set.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let text = text.trim();
        if is_thumbprint(text) {
            self.thumbprints.push(text.to_owned());
            return Ok(());
        }
        let KeySet(keys) = KeySet::read(text)?;
        if keys.is_empty() {
            return Err("there is no key in it that can check a signature".into());
        }
        self.keys.0.extend(keys);
        Ok(())
    }

    /// The thumbprints of all of them, in one order: the same pins, the same names.
    pub fn names(&self) -> Vec<&str> {
        let own = self.keys.0.iter().map(|key| key.thumbprint.as_str());
        let mut names: Vec<&str> = own.chain(self.thumbprints.iter().map(String::as_str)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    pub fn is_empty(&self) -> bool {
        self.keys.0.is_empty() && self.thumbprints.is_empty()
    }

    /// The thumbprints whose keys are not among those that were found.
    pub(super) fn missing(&self, found: &[PublicKey]) -> Vec<&str> {
        let unserved = |print: &&str| !found.iter().any(|key| key.thumbprint == *print);
        self.thumbprints.iter().map(String::as_str).filter(unserved).collect()
    }
}

pub fn is_thumbprint(text: &str) -> bool {
    text.len() == THUMBPRINT && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// How keys are fetched.
#[derive(Clone, Copy)]
pub struct Fetch<'a> {
    pub net: &'a Net,
    /// Asked before each call, where the address comes from a caller. Whoever names an address of their own needs none.
    pub guard: Option<&'a Guard>,
}

/// Judges a card that came from `source`, an address or anything else. Keys are fetched from that address's origin and
/// from nowhere else.
pub async fn judge(by: Fetch<'_>, json: &str, source: &str, pins: &Pins) -> Outcome {
    if signatures(json).is_empty() {
        return verify(json, Trust::None(""));
    }
    if pins.thumbprints.is_empty() && !pins.is_empty() {
        return verify(json, Trust::Pinned(&pins.keys, OutOfReach::default()));
    }
    let origin = match Url::parse(source) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => url,
        _ => return without(json, pins, "the card is not from an address, so no keys are known for it; pin one"),
    };
    if pins.is_empty() && !is_private(by.net, &origin) {
        let why = "keys that come over a connection nobody checked prove nothing; pin one";
        return without(json, pins, why);
    }
    match fetch(by, json, &origin).await {
        Ok((found, is_informed)) if pins.is_empty() => {
            Outcome { is_informed, ..verify(json, Trust::Origin(&found, &origin)) }
        }
        Ok((KeySet(found), _)) => {
            let missing = pins.missing(&found);
            let pinned = found.iter().filter(|key| pins.thumbprints.contains(&key.thumbprint));
            let keys = KeySet(pins.keys.0.iter().chain(pinned).cloned().collect());
            verify(json, Trust::Pinned(&keys, OutOfReach { thumbprints: &missing, served: &found }))
        }
        Err(problem) => without(json, pins, &problem),
    }
}

/// With the pinned keys alone, or with none.
fn without(json: &str, pins: &Pins, why: &str) -> Outcome {
    let outcome = verify(json, Trust::Pinned(&pins.keys, OutOfReach::default()));
    match outcome.word {
        Word::Verified => outcome,
        _ => verify(json, Trust::None(why)),
    }
}

/// Whether nobody on the way can put other keys in the place of these.
fn is_private(net: &Net, origin: &Url) -> bool {
    match origin.host() {
        _ if origin.scheme() == "https" => !net.is_insecure(),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// All keys the origin has: where the signatures say they are, if that is the origin too, and at the well-known path.
/// Beside them whether there was an answer at each of these places.
async fn fetch(by: Fetch<'_>, json: &str, origin: &Url) -> Result<(KeySet, bool), String> {
    let own = format!("{}{WELL_KNOWN}", origin.origin().ascii_serialization());
    let mut places: Vec<String> = Vec::new();
    for place in said_places(json).into_iter().filter(|place| is_of(place, origin)).chain([own]) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let (mut found, mut problem) = (None::<KeySet>, String::new());
    for place in places.into_iter().rev().take(MOST_SETS) {
        match fetch_one(by, &place).await {
            Ok(keys) => found.get_or_insert_default().0.extend(keys.0),
            Err(error) => problem = format!("its keys at {place} cannot be had: {error}"),
        }
    }
    let is_all = problem.is_empty();
    found.map(|keys| (keys, is_all)).ok_or(problem)
}

async fn fetch_one(Fetch { net, guard }: Fetch<'_>, place: &str) -> Result<KeySet, String> {
    if let Some(guard) = guard {
        guard.check(place).await.map_err(|refused| refused.to_string())?;
    }
    let headers = vec![("Accept".to_owned(), "application/json".to_owned())];
    let outgoing = Outgoing { method: Method::GET, url: place.to_owned(), headers, ..Outgoing::default() };
    let response = net.send(outgoing, Some(net.limits.answer)).await.map_err(|error| error.to_string())?;
    if response.status() != StatusCode::OK {
        return Err(format!("HTTP {}", response.status().as_u16()));
    }
    let text = net.text(response).await.map_err(|error| error.to_string())?;
    if text.len() > MOST_BYTES {
        return Err(format!("the key set is larger than {MOST_BYTES} bytes"));
    }
    KeySet::read(&text)
}
