//! The keys our cards are signed with: one in use, and older ones that still are for an overlap.

use crate::webhook::keys::{Master, derive};
use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flotilla_protocol::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// A key without the key: what it is derived from, beside the hub's secret, and how long it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Random; says nothing without the hub's secret.
    pub seed: String,
    pub made: Millis,
    /// None for the key that stays in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
}

/// What is kept of the keys. There is no secret in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ring {
    pub keys: Vec<Entry>,
}

impl Ring {
    /// Puts a new key in use. The others sign along for the overlap, and no longer than they were to before.
    pub fn rotate(&mut self, now: Millis, overlap: Duration) -> Result<(), String> {
        let mut seed = [0u8; 16];
        getrandom::fill(&mut seed).map_err(|error| format!("random numbers: {error}"))?;
        let end = Millis(now.0.saturating_add(i64::try_from(overlap.as_millis()).unwrap_or(i64::MAX)));
        for entry in &mut self.keys {
            entry.until = Some(entry.until.map_or(end, |until| until.min(end)));
        }
        self.keys.retain(|entry| entry.is_live(now));
        self.keys.push(Entry { seed: URL_SAFE_NO_PAD.encode(seed), made: now, until: None });
        Ok(())
    }
}

impl Entry {
    pub fn is_live(&self, now: Millis) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

/// A key that can sign.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    /// The key's thumbprint, so that two keys never share a name.
    pub kid: String,
    pub jwk: Value,
    pub entry: Entry,
}

impl SigningKey {
    pub fn new(master: &Master, entry: &Entry) -> Result<Self, String> {
        let broken = "a signing key cannot be used";
        // Not every number is a key of the curve; one in four billion is not, and the next one is.
        let derived = (0..4).find_map(|attempt| {
            let scalar = derive(master, &format!("card signatures {} {attempt}", entry.seed)).ok()?;
            let public = PrivateKey::from_private_key(&ECDH_P256, &scalar).ok()?.compute_public_key().ok()?;
            let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
            EcdsaKeyPair::from_private_key_and_public_key(algorithm, &scalar, public.as_ref()).ok()
        });
        let pair = derived.ok_or(broken)?;
        let point = pair.public_key().as_ref().get(1..).filter(|point| point.len() == 64).ok_or(broken)?;
        let (x, y) = point.split_at(32);
        let mut jwk = json!({
            "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig",
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        });
        let public = super::jwk::KeySet::read(&jwk.to_string())?;
        let kid = public.0.first().ok_or(broken)?.thumbprint.clone();
        jwk["kid"] = json!(kid);
        Ok(Self { pair, kid, jwk, entry: entry.clone() })
    }

    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let signature = self.pair.sign(&SystemRandom::new(), message);
        signature.map(|signature| signature.as_ref().to_vec()).map_err(|_| "signing failed".to_owned())
    }
}
