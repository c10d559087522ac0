//! Public keys as JSON Web Keys (RFC 7517): read from a key set, and used to check a signature.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// A set with more keys is read as far as this.
const MOST_KEYS: usize = 100;

/// The algorithms a signature may name. Those with a shared secret are no proof of who signed, so they are not here.
pub const ALGORITHMS: [&str; 10] =
    ["ES256", "ES384", "EdDSA", "Ed25519", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
    Rsa { n: Vec<u8>, e: Vec<u8> },
}

/// A key that can check signatures and make none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    pub kid: Option<String>,
    /// The only algorithm it is for, if it says so.
    alg: Option<String>,
    material: Material,
    /// The SHA-256 of the key itself (RFC 7638), in base64url: a name nobody can choose.
    pub thumbprint: String,
}

impl PublicKey {
    fn read(jwk: &Value) -> Option<Self> {
        let text = |name: &str| jwk[name].as_str();
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        if text("use").is_some_and(|used| used != "sig") {
            return None;
        }
        let point = |size: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            (x.len() == size && y.len() == size).then(|| [&[4], x.as_slice(), y.as_slice()].concat())
        };
        // The members of a thumbprint, in the order the RFC wants them.
        let (material, members): (_, &[&str]) = match (text("kty")?, text("crv").unwrap_or_default()) {
            ("EC", "P-256") => (Material::P256(point(32)?), &["crv", "kty", "x", "y"]),
            ("EC", "P-384") => (Material::P384(point(48)?), &["crv", "kty", "x", "y"]),
            ("OKP", "Ed25519") => (Material::Ed25519(bytes("x").filter(|x| x.len() == 32)?), &["crv", "kty", "x"]),
            ("RSA", _) => (Material::Rsa { n: bytes("n")?, e: bytes("e")? }, &["e", "kty", "n"]),
            _ => return None,
        };
        let named: Vec<String> = members.iter().map(|name| format!("\"{name}\":{}", jwk[*name])).collect();
        let thumbprint = digest(&SHA256, format!("{{{}}}", named.join(",")).as_bytes());
        Some(Self {
            kid: text("kid").map(str::to_owned),
            alg: text("alg").map(str::to_owned),
            material,
            thumbprint: URL_SAFE_NO_PAD.encode(thumbprint),
        })
    }

    /// What it is, for people.
    pub fn kind(&self) -> &'static str {
        match self.material {
            Material::P256(_) => "EC P-256",
            Material::P384(_) => "EC P-384",
            Material::Ed25519(_) => "Ed25519",
            Material::Rsa { .. } => "RSA",
        }
    }

    /// Whether it may be used with an algorithm: the key decides, not whoever wrote the signature.
    pub fn fits(&self, alg: &str) -> bool {
        const ED: [&str; 2] = ["EdDSA", "Ed25519"];
        let own = self.alg.as_deref();
        let possible = match self.material {
            Material::P256(_) => alg == "ES256",
            Material::P384(_) => alg == "ES384",
            // The older name and the newer one (RFC 9864) of the same algorithm.
            Material::Ed25519(_) => return ED.contains(&alg) && own.is_none_or(|own| ED.contains(&own)),
            Material::Rsa { .. } => rsa(alg).is_some(),
        };
        possible && own.is_none_or(|own| own == alg)
    }

    pub fn verifies(&self, alg: &str, message: &[u8], signature: &[u8]) -> bool {
        if !self.fits(alg) {
            return false;
        }
        match &self.material {
            Material::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
            Material::P384(point) => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(message, signature).is_ok()
            }
            Material::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok(),
            Material::Rsa { n, e } => rsa(alg)
                .is_some_and(|parameters| PublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()),
        }
    }
}

fn rsa(alg: &str) -> Option<&'static RsaParameters> {
    Some(match alg {
        "RS256" => &RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &RSA_PSS_2048_8192_SHA256,
        "PS384" => &RSA_PSS_2048_8192_SHA384,
        "PS512" => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

/// Keys somebody is trusted for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeySet(pub Vec<PublicKey>);

impl KeySet {
    /// Reads a key set or a single key. Keys of kinds we do not know, and those not for signatures, are passed over.
    pub fn read(json: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(json).map_err(|error| format!("it is not JSON: {error}"))?;
        let keys = match &value["keys"] {
            Value::Array(keys) => keys.as_slice(),
            _ if value["kty"].is_string() => std::slice::from_ref(&value),
            _ => return Err("it is neither a JSON Web Key nor a set of them".into()),
        };
        Ok(Self(keys.iter().take(MOST_KEYS).filter_map(PublicKey::read).collect()))
    }

    /// The keys a signature may be by.
    pub fn named<'a>(&'a self, kid: Option<&'a str>) -> impl Iterator<Item = &'a PublicKey> {
        self.0.iter().filter(move |key| match (kid, &key.kid) {
            (Some(kid), Some(own)) => kid == own,
            _ => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::KeySet;

    /// The example of RFC 7638, section 3.1.
    #[test]
    fn a_thumbprint_is_the_one_the_rfc_shows() {
        let jwk = concat!(
            r#"{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECP"#,
            r#"ebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0"#,
            r#"zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8aw"#,
            r#"apJzKnqDKgw","e":"AQAB","alg":"RS256","kid":"2011-04-29"}"#
        );
        let set = KeySet::read(jwk).unwrap();
        assert_eq!(set.0[0].thumbprint, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
        assert!(set.0[0].fits("RS256") && !set.0[0].fits("PS256"), "the key names its algorithm");
    }

    #[test]
    fn keys_of_no_use_are_passed_over() {
        let set = r#"{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"a"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},
            {"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"},
            {"kty":"OKP","crv":"Ed25519","use":"enc","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},7,null]}"#;
        assert_eq!(KeySet::read(set).unwrap().0, []);
        for wrong in ["", "[]", "{}", r#"{"keys":1}"#] {
            assert!(KeySet::read(wrong).is_err(), "{wrong}");
        }
    }
}
