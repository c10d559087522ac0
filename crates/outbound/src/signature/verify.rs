//! What a card's signatures are worth, given keys somebody decided to trust. Nothing is fetched here.

use super::jwk::{ALGORITHMS, KeySet, PublicKey};
use super::origin::is_thumbprint;
use super::signing_input;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flotilla_core::registry::Signed;
pub use flotilla_core::registry::Word;
use flotilla_protocol::a2a::reading::{Payload, Reading, payloads, uncovered};
use flotilla_protocol::canonical;
use serde_json::Value;
use url::Url;

/// A card with more is not worth the work.
const MOST_SIGNATURES: usize = 16;

/// Members that are not covered, as far as they are named.
const MOST_NAMED: usize = 5;

/// How a card was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    pub kid: Option<String>,
    pub alg: String,
    /// The key itself (RFC 7638).
    pub thumbprint: String,
    pub reading: Reading,
    /// What was signed, as canonical JSON. Whoever wants to use nothing else uses this.
    pub payload: String,
    /// Members of the card the signature says nothing about, by their places.
    pub uncovered: Vec<String>,
}

/// The word, why, and the proof if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub word: Word,
    pub reason: String,
    pub proof: Option<Box<Proof>>,
    /// Whether all keys of the card's origin were read for it: what is not among them is not its key, or not any more.
    pub is_informed: bool,
}

impl Outcome {
    pub fn new(word: Word, reason: impl Into<String>) -> Self {
        Self { word, reason: reason.into(), proof: None, is_informed: false }
    }

    /// As it is told of an agent.
    pub fn signed(&self) -> Signed {
        let uncovered = self.proof.as_ref().map(|proof| proof.uncovered.clone()).unwrap_or_default();
        Signed { word: self.word, reason: self.reason.clone(), uncovered }
    }
}

/// Whose keys count. What a card says of its own keys is never among it.
#[derive(Debug, Clone, Copy)]
pub enum Trust<'a> {
    /// Keys that were agreed on before: a card signed by no other is not the one expected. Beside them what else was
    /// agreed on.
    Pinned(&'a KeySet, OutOfReach<'a>),
    /// Keys found at the origin the card is from. They say that the card is that origin's, and no more.
    Origin(&'a KeySet, &'a Url),
    /// No keys, and why.
    None(&'a str),
}

/// Keys that were agreed on by their thumbprints, and are not to be had; and those that are served in their place.
#[derive(Debug, Clone, Copy, Default)]
pub struct OutOfReach<'a> {
    pub thumbprints: &'a [&'a str],
    pub served: &'a [PublicKey],
}

impl OutOfReach<'_> {
    /// Whether a signature that no key at hand made may be by one of them. A thumbprint is the name of one key alone, and
    /// any other name that of whoever serves it.
    fn may_be(&self, kid: Option<&str>) -> bool {
        let is_served = |name: &str| self.served.iter().any(|key| key.kid.as_deref() == Some(name));
        !self.thumbprints.is_empty()
            && kid.is_none_or(|name| self.thumbprints.contains(&name) || !is_thumbprint(name) && !is_served(name))
    }
}

/// One signature, as it is checked.
struct Seal<'a> {
    kid: Option<&'a str>,
    alg: &'a str,
    protected: &'a str,
    bytes: &'a [u8],
}

impl Seal<'_> {
    /// The payload it was made of, by this key.
    fn made_by<'p>(&self, key: &PublicKey, payloads: &'p [Payload]) -> Option<&'p Payload> {
        let fits = |payload: &&Payload| {
            key.verifies(self.alg, signing_input(self.protected, &payload.json).as_bytes(), self.bytes)
        };
        key.fits(self.alg).then(|| payloads.iter().find(fits)).flatten()
    }

    fn proof(&self, key: &PublicKey, payloads: &[Payload]) -> Option<Box<Proof>> {
        let Payload { reading, json } = self.made_by(key, payloads)?;
        Some(Box::new(Proof {
            kid: self.kid.map(str::to_owned),
            alg: self.alg.to_owned(),
            thumbprint: key.thumbprint.clone(),
            reading: *reading,
            payload: json.clone(),
            uncovered: Vec::new(),
        }))
    }
}

/// What one signature is worth.
enum Worth {
    Good(Box<Proof>),
    /// By a key we trust, and not for this card as it is.
    Unfit(String),
    Bad(String),
    /// By a key that may be one we trust, and is not to be had.
    OutOfReach(String),
    Unknown(String),
}

/// The signatures a card carries; none if it does not say so in a form we can read.
pub fn signatures(json: &str) -> Vec<Value> {
    let card: Value = serde_json::from_str(json).unwrap_or_default();
    match &card["signatures"] {
        Value::Array(all) => all.clone(),
        Value::Null => Vec::new(),
        other => vec![other.clone()],
    }
}

/// Judges a card exactly as it came.
pub fn verify(json: &str, trust: Trust<'_>) -> Outcome {
    if signatures(json).is_empty() {
        return Outcome::new(Word::Absent, "the card is not signed");
    }
    let failed = |reason: String| Outcome::new(Word::Failed, reason);
    let card = match canonical::read(json) {
        Ok(card) => card,
        Err(problem) => return failed(format!("the card has no canonical form: {problem}")),
    };
    let Value::Array(signed) = &card["signatures"] else { return failed("'signatures' is not a list".into()) };
    if signed.len() > MOST_SIGNATURES {
        return failed(format!("it carries {} signatures; {MOST_SIGNATURES} at most are looked at", signed.len()));
    }
    let payloads = match payloads(&card) {
        Ok(payloads) => payloads,
        Err(problem) => return failed(format!("the card has no canonical form: {problem}")),
    };
    let (mut good, mut unfit, mut bad, mut open, mut unknown) = (None::<Box<Proof>>, None, None, None, None);
    for signature in signed {
        match examine(signature, &payloads, trust).unwrap_or_else(Worth::Bad) {
            Worth::Good(mut proof) => {
                proof.uncovered = uncovered(&card, &proof.payload);
                let better = |best: &Proof| proof.uncovered.len() < best.uncovered.len();
                if good.as_deref().is_none_or(better) {
                    good = Some(proof);
                }
            }
            Worth::Unfit(reason) => unfit = unfit.or(Some(reason)),
            Worth::Bad(reason) => bad = bad.or(Some(reason)),
            Worth::OutOfReach(reason) => open = open.or(Some(reason)),
            Worth::Unknown(reason) => unknown = unknown.or(Some(reason)),
        }
    }
    if let Some(proof) = good {
        return match unfit {
            // Whoever signs a card in several readings signs all of it in one: what no longer fits that was changed.
            Some(reason) if !proof.uncovered.is_empty() => failed(reason),
            _ => verified(proof, trust),
        };
    }
    match (unfit.or(bad), open.is_none().then_some(unknown).flatten(), trust) {
        (Some(reason), ..) => failed(reason),
        (None, Some(reason), Trust::Pinned(..)) => failed(format!("no pinned key signed it: {reason}")),
        (None, reason, _) => Outcome::new(Word::Unverifiable, open.or(reason).unwrap_or_default()),
    }
}

fn verified(proof: Box<Proof>, trust: Trust<'_>) -> Outcome {
    let whose = match trust {
        Trust::Origin(_, origin) => format!("a key of {}", origin.origin().ascii_serialization()),
        _ => "a pinned key".to_owned(),
    };
    let key = proof.kid.as_deref().unwrap_or(&proof.thumbprint);
    let mut reason = format!("signed by {whose} ({key}, {})", proof.alg);
    if !proof.uncovered.is_empty() {
        // Where the agent is called comes first, and is never among the rest.
        let leads = |name: &&String| name.contains("url") || name.contains("nterface");
        let (leading, others): (Vec<&String>, Vec<&String>) = proof.uncovered.iter().partition(leads);
        let room = MOST_NAMED.saturating_sub(leading.len());
        let more = others.len().saturating_sub(room);
        let shown: Vec<&str> = leading.iter().chain(others.iter().take(room)).map(|name| name.as_str()).collect();
        reason.push_str(&format!("; not covered: {}", shown.join(", ")));
        if more > 0 {
            reason.push_str(&format!(" and {more} more"));
        }
    }
    Outcome { proof: Some(proof), ..Outcome::new(Word::Verified, reason) }
}

fn examine(signature: &Value, payloads: &[Payload], trust: Trust<'_>) -> Result<Worth, String> {
    let text = |name: &str| signature[name].as_str().ok_or_else(|| format!("a signature has no '{name}'"));
    let protected = text("protected")?;
    // Only the protected header counts: anyone can change the other one.
    let header = header(protected)?;
    let bytes = URL_SAFE_NO_PAD.decode(text("signature")?);
    let bytes = bytes.map_err(|_| "a signature is not base64url".to_owned())?;
    if !header["crit"].is_null() {
        return Err("a signature demands extensions ('crit') that are not understood".into());
    }
    let alg = header["alg"].as_str().ok_or("a signature names no algorithm")?;
    if alg.eq_ignore_ascii_case("none") || alg.starts_with("HS") {
        return Err(format!("its algorithm is '{alg}', which proves nothing about who signed"));
    }
    if !ALGORITHMS.contains(&alg) {
        return Ok(Worth::Unknown(format!("its algorithm '{alg}' is not known here")));
    }
    let kid = header["kid"].as_str();
    let name = kid.map_or_else(|| "a key without a name".to_owned(), |kid| format!("the key '{kid}'"));
    let keys = match trust {
        Trust::None(why) => return Ok(Worth::Unknown(why.to_owned())),
        Trust::Pinned(keys, _) => keys,
        Trust::Origin(keys, origin) => {
            if let Some(jku) = header["jku"].as_str()
                && !is_of(jku, origin)
            {
                let own = origin.origin().ascii_serialization();
                return Ok(Worth::Unknown(format!("its keys are said to be at {jku}, and the card is from {own}")));
            }
            keys
        }
    };
    let seal = Seal { kid, alg, protected, bytes: &bytes };
    // What a key is called is a help to find it. One that is pinned is trusted under any name.
    let is_pinned = matches!(trust, Trust::Pinned(..));
    let others = keys.0.iter().filter(|_| is_pinned);
    if let Some(proof) = keys.named(kid).chain(others).find_map(|key| seal.proof(key, payloads)) {
        return Ok(Worth::Good(proof));
    }
    if let Trust::Pinned(_, wanting) = trust
        && (kid.is_none() || keys.named(kid).next().is_none())
        && wanting.may_be(kid)
        && !wanting.served.iter().any(|key| seal.made_by(key, payloads).is_some())
    {
        let text = format!("it is signed by {name}; that may be a pinned one, and the key itself is not to be had");
        return Ok(Worth::OutOfReach(text));
    }
    let mut named = keys.named(kid).peekable();
    let Some(first) = named.peek() else {
        return Ok(Worth::Unknown(format!("it is signed by {name}, which is not among the keys that are trusted")));
    };
    let kind = first.kind();
    if !named.any(|key| key.fits(alg)) {
        return Err(format!("it says {alg}, and {name} is not for that ({kind})"));
    }
    let reason =
        format!("{name} did not sign this card as it is: it was changed, or signed by another key of that name");
    Ok(Worth::Unfit(reason))
}

fn header(protected: &str) -> Result<Value, String> {
    let wrong = |problem: String| format!("the protected header of a signature {problem}");
    let bytes = URL_SAFE_NO_PAD.decode(protected).map_err(|_| wrong("is not base64url".into()))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8".into()))?;
    let header = canonical::read(&text).map_err(|problem| wrong(format!("is no use: {problem}")))?;
    if header.is_object() { Ok(header) } else { Err(wrong("is not a JSON object".into())) }
}

/// Whether an address is of an origin: the same scheme, host and port.
pub fn is_of(address: &str, origin: &Url) -> bool {
    Url::parse(address).is_ok_and(|url| url.has_host() && url.origin() == origin.origin())
}

/// Where the signatures of a card say their keys are.
pub fn said_places(json: &str) -> Vec<String> {
    said(json, "jku")
}

fn said(json: &str, member: &str) -> Vec<String> {
    let protected = |signature: &Value| header(signature["protected"].as_str()?).ok();
    let headers = signatures(json).into_iter().take(MOST_SIGNATURES).filter_map(|signature| protected(&signature));
    headers.filter_map(|header| header[member].as_str().map(str::to_owned)).collect()
}
