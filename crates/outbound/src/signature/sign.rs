//! The hub's own signatures: each card signed once by every key in use, in every reading a verifier may have of it.

use super::ring::{Ring, SigningKey};
use super::signing_input;
use crate::webhook::keys::{Keys, Master};
use aws_lc_rs::digest::{Context, SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flotilla_core::error::Fault;
use flotilla_core::ports::{Clock, Signer};
use flotilla_protocol::a2a::card::AgentCardSignature;
use flotilla_protocol::a2a::reading::payloads;
use flotilla_protocol::canonical;
use flotilla_protocol::time::Millis;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};

/// Cards whose signatures are remembered; beyond that all are signed anew.
const REMEMBERED: usize = 10_000;

type Signatures = Arc<[AgentCardSignature]>;

pub struct Signing {
    master: Master,
    /// The key webhooks are signed with: its public half is in the key set too.
    webhooks: Value,
    clock: Arc<dyn Clock>,
    keys: RwLock<Held>,
    /// By what was signed, and with which keys.
    signed: Mutex<HashMap<[u8; 32], Signatures>>,
}

struct Held {
    keys: Arc<[SigningKey]>,
    since: Millis,
}

impl Signing {
    pub fn new(master: &Master, ring: &Ring, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let webhooks = Keys::new(master)?.jwk();
        let keys = RwLock::new(Held { keys: made(master, ring)?, since: clock.now() });
        Ok(Self { master: *master, webhooks, clock, keys, signed: Mutex::default() })
    }

    /// Goes on with other keys.
    pub fn replace(&self, ring: &Ring) -> Result<(), String> {
        let held = Held { keys: made(&self.master, ring)?, since: self.clock.now() };
        *self.keys.write().expect("no panic while holding the keys") = held;
        Ok(())
    }

    /// The keys there are, and since when they are these.
    fn held(&self) -> (Arc<[SigningKey]>, Millis) {
        let held = self.keys.read().expect("no panic while holding the keys");
        (Arc::clone(&held.keys), held.since)
    }

    /// Newest first: that is the one a reader tries first.
    fn live(keys: &[SigningKey], now: Millis) -> impl Iterator<Item = &SigningKey> {
        keys.iter().rev().filter(move |key| key.entry.is_live(now))
    }
}

fn made(master: &Master, ring: &Ring) -> Result<Arc<[SigningKey]>, String> {
    ring.keys.iter().map(|entry| SigningKey::new(master, entry)).collect()
}

impl Signer for Signing {
    fn sign(&self, card: &str, keys_at: &str) -> Result<Signatures, Fault> {
        let (keys, _) = self.held();
        let now = self.clock.now();
        let mut name = Context::new(&SHA256);
        for part in Self::live(&keys, now).map(|key| key.kid.as_str()).chain([keys_at, card]) {
            name.update(&part.len().to_be_bytes());
            name.update(part.as_bytes());
        }
        let mut digest = [0u8; 32];
        digest.copy_from_slice(name.finish().as_ref());
        let remembered = || self.signed.lock().expect("no panic while holding the signatures");
        if let Some(known) = remembered().get(&digest) {
            return Ok(Arc::clone(known));
        }
        let failed = |problem: String| Fault::new(format!("signing a card: {problem}"));
        let payloads = canonical::read(card).and_then(|card| payloads(&card)).map_err(failed)?;
        let mut signatures = Vec::new();
        for key in Self::live(&keys, now) {
            let header = json!({"alg": "ES256", "jku": keys_at, "kid": key.kid, "typ": "JOSE"}).to_string();
            let protected = URL_SAFE_NO_PAD.encode(header);
            for payload in &payloads {
                let signature = key.sign(signing_input(&protected, &payload.json).as_bytes()).map_err(failed)?;
                let signature = URL_SAFE_NO_PAD.encode(signature);
                signatures.push(AgentCardSignature { protected: protected.clone(), signature, header: None });
            }
        }
        let signatures: Signatures = signatures.into();
        let mut signed = remembered();
        if signed.len() >= REMEMBERED {
            signed.clear();
        }
        // Two that signed at once serve the same: whoever came first stays.
        Ok(Arc::clone(signed.entry(digest).or_insert(signatures)))
    }

    fn key_set(&self) -> String {
        let (keys, _) = self.held();
        let cards = Self::live(&keys, self.clock.now()).map(|key| &key.jwk);
        let all: Vec<&Value> = cards.chain([&self.webhooks]).collect();
        json!({ "keys": all }).to_string()
    }

    fn changed_at(&self) -> Millis {
        let (keys, since) = self.held();
        let now = self.clock.now();
        let ended = keys.iter().filter_map(|key| key.entry.until).filter(|until| *until <= now);
        ended.chain([since]).max().unwrap_or(since)
    }
}
