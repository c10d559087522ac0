//! The hub's own keys, all from one secret: one seals what callers entrust to it, one signs webhooks.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// 256 random bits from which everything else is derived.
pub type Master = [u8; 32];

const NONCE: usize = 12;
/// The first byte of what is sealed: which way it was done.
const FORM: u8 = 1;

/// Why something sealed cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unopened {
    #[error(
        "the credentials were sealed with another secret key; put that one back and start the hub again, or make the \
         push config again"
    )]
    OtherKey,
    #[error("the sealed credentials are damaged; make the push config again")]
    Damaged,
}

pub struct Keys {
    sealing: LessSafeKey,
    signing: Ed25519KeyPair,
    /// Tells what was sealed with another secret from what is broken.
    mark: [u8; 4],
}

impl Keys {
    pub fn new(master: &Master) -> Result<Self, String> {
        let broken = |_| "the secret key cannot be used".to_owned();
        let sealing = UnboundKey::new(&AES_256_GCM, &derive(master, "webhook credentials")?).map_err(broken)?;
        let seed = derive(master, "webhook signatures")?;
        let signing = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| broken(aws_lc_rs::error::Unspecified))?;
        let [a, b, c, d, ..] = derive(master, "mark")?;
        Ok(Self { sealing: LessSafeKey::new(sealing), signing, mark: [a, b, c, d] })
    }

    /// Seals bytes so that they open only together with what they belong to.
    pub fn seal(&self, plain: &[u8], belongs_to: &[u8]) -> Result<Vec<u8>, String> {
        let mut nonce = [0u8; NONCE];
        getrandom::fill(&mut nonce).map_err(|error| format!("random numbers: {error}"))?;
        let mut body = plain.to_vec();
        let aad = Aad::from(belongs_to);
        let sealed = self.sealing.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut body);
        sealed.map_err(|_| "the credentials cannot be sealed".to_owned())?;
        let mut all = vec![FORM];
        all.extend_from_slice(&self.mark);
        all.extend_from_slice(&nonce);
        all.append(&mut body);
        Ok(all)
    }

    pub fn open(&self, sealed: &[u8], belongs_to: &[u8]) -> Result<Vec<u8>, Unopened> {
        let broken = || Unopened::Damaged;
        let rest = sealed.strip_prefix(&[FORM]).ok_or_else(broken)?;
        let (mark, rest) = rest.split_at_checked(self.mark.len()).ok_or_else(broken)?;
        if mark != self.mark {
            return Err(Unopened::OtherKey);
        }
        let (nonce, body) = rest.split_at_checked(NONCE).ok_or_else(broken)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| broken())?;
        let mut body = body.to_vec();
        let plain = self.sealing.open_in_place(nonce, Aad::from(belongs_to), &mut body).map_err(|_| broken())?;
        Ok(plain.to_vec())
    }

    /// The signature of a webhook for which its caller gave no secret.
    pub fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let signature = self.signing.sign(&super::sign::content(id, seconds, body));
        format!("v1a,{}", STANDARD.encode(signature))
    }

    /// The public part, as a JSON Web Key.
    pub fn jwk(&self) -> Value {
        let public = self.signing.public_key().as_ref();
        let x = URL_SAFE_NO_PAD.encode(public);
        let kid: String = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, public).as_ref()[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": kid, "x": x})
    }
}

pub(crate) fn derive(master: &Master, purpose: &str) -> Result<[u8; 32], String> {
    let mut key = [0u8; 32];
    let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, b"flotilla").extract(master);
    let info = [purpose.as_bytes()];
    let expanded = secret.expand(&info, hkdf::HKDF_SHA256).and_then(|material| material.fill(&mut key));
    expanded.map_err(|_| "the secret key cannot be used".to_owned())?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::{Keys, Unopened};
    use crate::webhook::sign::{Proof, Signed, Verifier, keys_in};

    #[test]
    fn what_is_sealed_opens_with_the_same_key_and_the_same_url_only() {
        let keys = Keys::new(&[1; 32]).unwrap();
        let sealed = keys.seal(b"tok-secret", b"https://a").unwrap();
        assert!(!sealed.windows(10).any(|window| window == b"tok-secret"));
        assert_eq!(keys.open(&sealed, b"https://a").as_deref(), Ok(b"tok-secret".as_slice()));
        assert_ne!(sealed, keys.seal(b"tok-secret", b"https://a").unwrap(), "never the same twice");
        assert!(keys.open(&sealed, b"https://b").unwrap_err() == Unopened::Damaged);
        for at in [0, 6, 20, sealed.len() - 1] {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(keys.open(&changed, b"https://a").is_err(), "byte {at}");
        }
        assert!(keys.open(&sealed[..10], b"https://a").is_err());
        let other = Keys::new(&[2; 32]).unwrap();
        assert!(other.open(&sealed, b"https://a").unwrap_err() == Unopened::OtherKey);
    }

    fn set(keys: &Keys) -> String {
        serde_json::json!({"keys": [keys.jwk()]}).to_string()
    }

    #[test]
    fn the_published_key_verifies_what_the_hub_signs() {
        let keys = Keys::new(&[3; 32]).unwrap();
        let signature = keys.sign("msg_1", 1_700_000_000, b"{}");
        let verifier = Verifier { secrets: Vec::new(), keys: keys_in(&set(&keys)).unwrap() };
        let signed = Signed { id: "msg_1", timestamp: "1700000000", signature: &signature };
        assert_eq!(verifier.verify(signed, b"{}", 1_700_000_000), Ok(Proof::HubKey));
        assert!(verifier.verify(signed, b"{ }", 1_700_000_000).is_err());
        let stranger = Verifier { secrets: Vec::new(), keys: keys_in(&set(&Keys::new(&[4; 32]).unwrap())).unwrap() };
        assert!(stranger.verify(signed, b"{}", 1_700_000_000).is_err());
        assert_eq!(keys.jwk(), Keys::new(&[3; 32]).unwrap().jwk(), "the same after a restart");
    }
}
