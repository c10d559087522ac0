//! Signatures as Standard Webhooks has them: made for what we send, checked for what a developer receives.

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// What a signing secret begins with.
pub const PREFIX: &str = "whsec_";
/// How far a webhook's time may be off before it counts as replayed.
pub const TOLERANCE: u64 = 300;

/// A signing secret: its text, and the bytes it stands for.
#[derive(Clone)]
pub struct Secret {
    text: String,
    key: hmac::Key,
}

impl Secret {
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("must be '{PREFIX}' and the base64 of 24 to 64 bytes");
        let body = text.strip_prefix(PREFIX).ok_or_else(wrong)?;
        let bytes = STANDARD.decode(body).map_err(|_| wrong())?;
        if !(24..=64).contains(&bytes.len()) {
            return Err(wrong());
        }
        Ok(Self { text: text.to_owned(), key: hmac::Key::new(hmac::HMAC_SHA256, &bytes) })
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

/// What is signed: the id, the time and the body, so that none of them can be exchanged.
pub fn content(id: &str, seconds: i64, body: &[u8]) -> Vec<u8> {
    let mut content = format!("{id}.{seconds}.").into_bytes();
    content.extend_from_slice(body);
    content
}

pub fn v1(secret: &Secret, id: &str, seconds: i64, body: &[u8]) -> String {
    let tag = hmac::sign(&secret.key, &content(id, seconds, body));
    format!("v1,{}", STANDARD.encode(tag))
}

/// The older form that many receivers know: of the body alone, with the secret's text as the key.
pub fn hub(secret: &str, body: &[u8]) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), body);
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}

/// How a webhook proved where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// By a secret that both sides know.
    Secret,
    /// By a key of the hub.
    HubKey,
}

/// What a receiver knows of its sender.
#[derive(Clone, Default)]
pub struct Verifier {
    pub secrets: Vec<Secret>,
    /// Public Ed25519 keys.
    pub keys: Vec<Vec<u8>>,
}

/// The three headers of a webhook.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    pub id: &'a str,
    pub timestamp: &'a str,
    pub signature: &'a str,
}

impl Verifier {
    /// Checks a webhook that came at `now`, in seconds.
    pub fn verify(&self, signed: Signed<'_>, body: &[u8], now: i64) -> Result<Proof, String> {
        let seconds: i64 = signed.timestamp.parse().map_err(|_| "webhook-timestamp is not a number".to_owned())?;
        let off = now.abs_diff(seconds);
        if off > TOLERANCE {
            return Err(format!("webhook-timestamp is {off} s off: an old webhook, or a wrong clock"));
        }
        let content = content(signed.id, seconds, body);
        for one in signed.signature.split(' ') {
            let Some((version, signature)) = one.split_once(',') else { continue };
            let Ok(signature) = STANDARD.decode(signature) else { continue };
            let matches = |secret: &Secret| hmac::verify(&secret.key, &content, &signature).is_ok();
            if version == "v1" && self.secrets.iter().any(matches) {
                return Ok(Proof::Secret);
            }
            let made = |key: &Vec<u8>| UnparsedPublicKey::new(&ED25519, key).verify(&content, &signature).is_ok();
            if version == "v1a" && self.keys.iter().any(made) {
                return Ok(Proof::HubKey);
            }
        }
        Err("no signature fits the secrets and keys that are known".into())
    }
}

/// The public keys in a JSON Web Key Set.
pub fn keys_in(jwks: &str) -> Result<Vec<Vec<u8>>, String> {
    let set: serde_json::Value = serde_json::from_str(jwks).map_err(|error| format!("not a key set: {error}"))?;
    let keys = set["keys"].as_array().ok_or("not a key set: no 'keys'")?;
    let ours = keys.iter().filter(|key| key["kty"] == "OKP" && key["crv"] == "Ed25519");
    Ok(ours.filter_map(|key| URL_SAFE_NO_PAD.decode(key["x"].as_str()?).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::{Proof, Secret, Signed, Verifier, hub, v1};

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const AT: i64 = 1_614_265_330;

    #[test]
    fn the_published_vector() {
        let secret = Secret::parse(SECRET).unwrap();
        assert_eq!(v1(&secret, ID, AT, BODY), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    /// The example in GitHub's documentation of the header.
    #[test]
    fn the_older_header_as_its_inventor_documents_it() {
        let expected = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(hub("It's a Secret to Everybody", b"Hello, World!"), expected);
    }

    #[test]
    fn anything_changed_is_noticed() {
        let secret = Secret::parse(SECRET).unwrap();
        let signature = format!("v1,bm90IHRoaXM= {} v1a,bm90IHRoaXM=", v1(&secret, ID, AT, BODY));
        let verifier = Verifier { secrets: vec![secret], keys: vec![vec![7; 32]] };
        let check = |id: &str, timestamp: &str, signature: &str, body: &[u8], now: i64| {
            verifier.verify(Signed { id, timestamp, signature }, body, now)
        };
        let at = AT.to_string();
        assert_eq!(check(ID, &at, &signature, BODY, AT + 300), Ok(Proof::Secret));
        assert!(check(ID, &at, &signature, BODY, AT + 301).unwrap_err().contains("301 s off"));
        assert!(check(ID, &at, &signature, BODY, AT - 301).is_err());
        assert!(check("msg_other", &at, &signature, BODY, AT).is_err());
        assert!(check(ID, &(AT + 1).to_string(), &signature, BODY, AT).is_err());
        assert!(check(ID, &at, &signature, b"{}", AT).is_err());
        assert!(check(ID, &at, "v1,", BODY, AT).is_err());
        assert!(check(ID, &at, "", BODY, AT).is_err());
        for wrong in ["soon", "-9223372036854775808", "9223372036854775807"] {
            assert!(check(ID, wrong, &signature, BODY, AT).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_secret_that_is_none_is_told() {
        for text in ["", "whsec_", "whsec_c2hvcnQ=", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_not base64"] {
            assert!(Secret::parse(text).is_err(), "{text}");
        }
    }
}
