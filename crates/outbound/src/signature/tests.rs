//! Cards that are what they seem, and cards that are not.

use super::jwk::KeySet;
use super::origin::Pins;
use super::ring::{Entry, Ring, SigningKey};
use super::sign::Signing;
use super::signing_input;
use super::verify::{OutOfReach, Outcome, Trust, Word, verify};
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flotilla_core::ports::{Clock, Signer as _};
use flotilla_protocol::a2a::reading::Reading;
use flotilla_protocol::canonical;
use flotilla_protocol::time::Millis;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use url::Url;

const HOME: &str = "https://agent.example";
const KEYS_AT: &str = "https://agent.example/.well-known/jwks.json";

#[derive(Default)]
struct Now(AtomicI64);

impl Clock for Now {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::Relaxed))
    }
}

fn key(number: u8) -> SigningKey {
    SigningKey::new(&[number; 32], &Entry { seed: "s".into(), made: Millis(0), until: None }).unwrap()
}

/// The key under another name.
fn named(key: &SigningKey, kid: &str) -> Value {
    let mut jwk = key.jwk.clone();
    jwk["kid"] = json!(kid);
    jwk
}

fn set(keys: &[Value]) -> KeySet {
    KeySet::read(&json!({ "keys": keys }).to_string()).unwrap()
}

fn card() -> Value {
    json!({
        "name": "Ünïcode €", "description": "d", "version": "1.0.0",
        "supportedInterfaces": [{"url": "https://agent.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true, "extensions": [{"uri": "urn:x", "params": {"n": 1, "ü": [0.5, 1e21]}}]},
        "securityRequirements": [{"schemes": {"k": {"list": []}}}],
        "defaultInputModes": ["*/*"], "defaultOutputModes": ["*/*"],
        "skills": [{"id": "s", "name": "s", "description": "s", "tags": []}],
    })
}

/// A signature over the card as it is, made by hand.
fn signature(card: &Value, key: &SigningKey, header: &Value) -> Value {
    let mut unsigned = card.clone();
    unsigned.as_object_mut().unwrap().remove("signatures");
    let protected = URL_SAFE_NO_PAD.encode(header.to_string());
    let made = key.sign(signing_input(&protected, &canonical::write(&unsigned)).as_bytes()).unwrap();
    json!({"protected": protected, "signature": URL_SAFE_NO_PAD.encode(made)})
}

fn with(card: &Value, signatures: &[Value]) -> Value {
    let mut signed = card.clone();
    signed["signatures"] = json!(signatures);
    signed
}

fn header(kid: &str) -> Value {
    json!({"alg": "ES256", "typ": "JOSE", "kid": kid})
}

fn by_origin(json: &str, keys: &KeySet) -> Outcome {
    verify(json, Trust::Origin(keys, &Url::parse(HOME).unwrap()))
}

/// A card, and the word that pinned keys and keys of the origin come to, with what the reason says.
type Row = (&'static str, String, Word, Word, &'static str);

fn hold(rows: Vec<Row>, trusted: &KeySet) {
    for (trick, json, pinned, origin, told) in rows {
        let outcome = verify(&json, Trust::Pinned(trusted, OutOfReach::default()));
        assert_eq!(outcome.word, pinned, "{trick}, pinned: {}", outcome.reason);
        let outcome = by_origin(&json, trusted);
        assert_eq!(outcome.word, origin, "{trick}, by origin: {}", outcome.reason);
        assert!(outcome.reason.contains(told), "{trick}: {}", outcome.reason);
        assert_eq!(outcome.proof.is_some(), outcome.word == Word::Verified, "{trick}");
        let unknown = verify(&json, Trust::None("nobody knows")).word;
        assert_ne!(unknown, Word::Verified, "{trick}");
    }
}

/// A signature that takes the public key for a shared secret.
fn confused(ours: &SigningKey) -> Value {
    let secret = format!("{}", ours.jwk);
    let protected = URL_SAFE_NO_PAD.encode(json!({"alg": "HS256", "kid": "k1"}).to_string());
    let input = signing_input(&protected, &canonical::write(&card()));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), input.as_bytes());
    json!({"protected": protected, "signature": URL_SAFE_NO_PAD.encode(tag)})
}

#[test]
fn every_trick_has_its_word() {
    use Word::{Absent, Failed, Unverifiable, Verified};
    let (ours, other) = (key(1), key(2));
    let trusted = set(&[named(&ours, "k1")]);
    let good = signature(&card(), &ours, &header("k1"));
    let signed = with(&card(), std::slice::from_ref(&good));
    let by = |key: &SigningKey, header: Value| with(&card(), &[signature(&card(), key, &header)]).to_string();
    let mut tampered = signed.clone();
    tampered["supportedInterfaces"][0]["url"] = json!("https://evil.example/a2a");
    let mut swapped = card();
    swapped["name"] = json!("somebody else");
    let away = json!({"alg": "ES256", "kid": "k1", "jku": "https://evil.example/jwks.json"});
    let twice = signed.to_string().replacen('{', "{\"name\":\"evil\",", 1);
    let unicode = signed.to_string().replace("Ünïcode", "U\u{308}nïcode");
    let broken = json!({"protected": "!", "signature": "AA"});
    let mut beside = signature(&card(), &other, &header("k1"));
    beside["header"] = json!({"alg": "none", "kid": "k1"});
    let mut cut = good.clone();
    cut["signature"] = json!(&good["signature"].as_str().unwrap()[..40]);
    let many: Vec<Value> = std::iter::repeat_n(good.clone(), 17).collect();

    let rows: Vec<Row> = vec![
        ("signed", signed.to_string(), Verified, Verified, "k1"),
        ("laid out otherwise", serde_json::to_string_pretty(&signed).unwrap(), Verified, Verified, ""),
        ("escaped otherwise", signed.to_string().replace('€', "\\u20ac"), Verified, Verified, ""),
        ("numbers written otherwise", signed.to_string().replace("\"n\":1", "\"n\":1.0e0"), Verified, Verified, ""),
        ("without signatures", card().to_string(), Absent, Absent, "not signed"),
        ("an empty list", with(&card(), &[]).to_string(), Absent, Absent, "not signed"),
        ("no list", json!({"signatures": {"a": 1}}).to_string(), Failed, Failed, "not a list"),
        ("tampered", tampered.to_string(), Failed, Failed, "changed"),
        ("composed otherwise", unicode, Failed, Failed, "changed"),
        ("another number", signed.to_string().replace("\"n\":1", "\"n\":2"), Failed, Failed, "changed"),
        ("a member more", signed.to_string().replacen('{', "{\"name2\":1,", 1), Failed, Failed, "changed"),
        ("a member twice", twice, Failed, Failed, "'name' is there twice"),
        (
            "another card's signature",
            with(&swapped, std::slice::from_ref(&good)).to_string(),
            Failed,
            Failed,
            "changed",
        ),
        ("signed again under our name", by(&other, header("k1")), Failed, Failed, "another key of that name"),
        ("signed again under a new name", by(&other, header("k2")), Failed, Unverifiable, "'k2'"),
        ("our key under another name", by(&ours, header("k2")), Verified, Unverifiable, "'k2'"),
        ("keys elsewhere", by(&other, away.clone()), Failed, Unverifiable, ""),
        ("from another origin", by(&ours, away), Verified, Unverifiable, ""),
        ("alg none", by(&ours, json!({"alg": "none", "kid": "k1"})), Failed, Failed, "'none'"),
        ("alg nOnE", by(&ours, json!({"alg": "nOnE", "kid": "k1"})), Failed, Failed, "'nOnE'"),
        ("the public key as a secret", with(&card(), &[confused(&ours)]).to_string(), Failed, Failed, "'HS256'"),
        ("an algorithm of another key", by(&ours, json!({"alg": "RS256", "kid": "k1"})), Failed, Failed, "EC P-256"),
        ("a newer algorithm", by(&ours, json!({"alg": "ML-DSA-44", "kid": "k1"})), Failed, Unverifiable, "ML-DSA-44"),
        ("no algorithm", by(&ours, json!({"kid": "k1"})), Failed, Failed, "no algorithm"),
        ("a demand", by(&ours, json!({"alg": "ES256", "kid": "k1", "crit": ["x"]})), Failed, Failed, "crit"),
        ("no name for the key", by(&ours, json!({"alg": "ES256"})), Verified, Verified, "ES256"),
        ("the open header is not read", with(&card(), &[beside]).to_string(), Failed, Failed, "k1"),
        ("cut", with(&card(), &[cut]).to_string(), Failed, Failed, ""),
        ("no base64", with(&card(), std::slice::from_ref(&broken)).to_string(), Failed, Failed, "base64url"),
        ("a broken one first", with(&card(), &[broken, good.clone()]).to_string(), Verified, Verified, ""),
        ("too many", with(&card(), &many).to_string(), Failed, Failed, "17 signatures"),
        ("a number beyond", signed.to_string().replace("1e+21", "9007199254740993"), Failed, Failed, "2^53"),
    ];
    hold(rows, &trusted);
}

#[test]
fn what_a_signature_leaves_out_is_told() {
    let ours = key(1);
    let trusted = set(std::slice::from_ref(&ours.jwk));
    let bare = r#"{"capabilities":{"streaming":true},"name":"a","supportedInterfaces":[{"url":"u"}]}"#;
    let protected = URL_SAFE_NO_PAD.encode(header(&ours.kid).to_string());
    let made = URL_SAFE_NO_PAD.encode(ours.sign(signing_input(&protected, bare).as_bytes()).unwrap());
    let mut card: Value = serde_json::from_str(bare).unwrap();
    card["signatures"] = json!([{"protected": protected, "signature": made}]);
    card["url"] = json!("https://evil.example");
    card["skills"] = json!([]);
    let outcome = by_origin(&card.to_string(), &trusted);
    let proof = outcome.proof.unwrap();
    assert_eq!((outcome.word, proof.reading, proof.payload.as_str()), (Word::Verified, Reading::Bare, bare));
    assert_eq!(proof.uncovered, ["url"]);
    assert!(outcome.reason.ends_with("not covered: url"), "{}", outcome.reason);
    for number in 1..8 {
        card[format!("a{number}")] = json!(number);
    }
    let told = by_origin(&card.to_string(), &trusted).reason;
    assert!(told.ends_with("not covered: url, a1, a2, a3, a4 and 3 more"), "where it leads is always named: {told}");
}

/// A card for readers of both versions: what only one of its signatures covers cannot be changed unnoticed either.
#[test]
fn what_only_the_fullest_signature_covers_is_covered() {
    let clock = Arc::new(Now::default());
    let mut ring = Ring::default();
    ring.rotate(Millis(0), Duration::ZERO).unwrap();
    let signing = signing(&clock, &ring);
    let keys = KeySet::read(&signing.key_set()).unwrap();
    let mut hybrid = card();
    hybrid["url"] = json!("https://agent.example/a2a");
    let json = sign(&signing, &hybrid);
    let outcome = by_origin(&json, &keys);
    assert_eq!((outcome.word, outcome.proof.unwrap().reading), (Word::Verified, Reading::Whole));
    let changed =
        json.replace(r#""url":"https://agent.example/a2a","version""#, r#""url":"https://evil.example","version""#);
    assert_ne!(changed, json);
    assert_eq!(by_origin(&changed, &keys).word, Word::Failed);
    let mut old_members_gone: Value = serde_json::from_str(&json).unwrap();
    old_members_gone.as_object_mut().unwrap().remove("url");
    let outcome = by_origin(&old_members_gone.to_string(), &keys);
    assert_eq!(
        (outcome.word, outcome.proof.unwrap().reading),
        (Word::Verified, Reading::Specified),
        "as 1.0 relays it"
    );
}

fn signing(clock: &Arc<Now>, ring: &Ring) -> Signing {
    Signing::new(&[7; 32], ring, Arc::clone(clock) as Arc<dyn Clock>).unwrap()
}

fn sign(signing: &Signing, card: &Value) -> String {
    let made = signing.sign(&card.to_string(), KEYS_AT).unwrap();
    with(card, &made.iter().map(|one| json!(one)).collect::<Vec<_>>()).to_string()
}

#[test]
fn what_we_sign_is_verified_with_what_we_publish() {
    let clock = Arc::new(Now::default());
    let mut ring = Ring::default();
    ring.rotate(Millis(0), Duration::ZERO).unwrap();
    let signing = signing(&clock, &ring);
    let json = sign(&signing, &card());
    assert_eq!(json, sign(&signing, &card()), "signed once");
    let outcome = by_origin(&json, &KeySet::read(&signing.key_set()).unwrap());
    assert_eq!(outcome.word, Word::Verified, "{}", outcome.reason);
    assert_eq!(outcome.proof.unwrap().reading, Reading::Whole, "all of it is covered");
    let again = Signing::new(&[7; 32], &ring, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
    assert_eq!(again.key_set(), signing.key_set(), "the same keys after a restart");
    let other = Signing::new(&[8; 32], &ring, clock as Arc<dyn Clock>).unwrap();
    assert_ne!(other.key_set(), signing.key_set(), "another secret, other keys");
}

#[test]
fn an_old_key_signs_along_until_the_overlap_ends() {
    let clock = Arc::new(Now::default());
    let mut ring = Ring::default();
    ring.rotate(Millis(0), Duration::ZERO).unwrap();
    let signing = signing(&clock, &ring);
    let old = KeySet::read(&signing.key_set()).unwrap();
    ring.rotate(Millis(1_000), Duration::from_secs(60)).unwrap();
    signing.replace(&ring).unwrap();
    let new = KeySet::read(&signing.key_set()).unwrap();
    let json = sign(&signing, &card());
    for (whose, keys) in [("old", &old), ("new", &new)] {
        assert_eq!(verify(&json, Trust::Pinned(keys, OutOfReach::default())).word, Word::Verified, "{whose}");
    }
    let newest = by_origin(&json, &new).proof.unwrap().kid;
    assert!(!old.0.iter().any(|key| key.kid == newest), "the new key is tried first");

    clock.0.store(61_000, Ordering::Relaxed);
    let json = sign(&signing, &card());
    assert_eq!(verify(&json, Trust::Pinned(&old, OutOfReach::default())).word, Word::Failed, "the overlap is over");
    assert_eq!(verify(&json, Trust::Pinned(&new, OutOfReach::default())).word, Word::Verified);
    assert_eq!(KeySet::read(&signing.key_set()).unwrap().0.len(), 2, "the new key, and that of webhooks");
    assert_eq!(signing.changed_at(), Millis(61_000));
    ring.rotate(Millis(61_000), Duration::ZERO).unwrap();
    assert_eq!(ring.keys.len(), 1, "keys that ended are not kept");
}

#[test]
fn a_pin_is_a_thumbprint_a_key_or_a_set() {
    let mut pins = Pins::default();
    pins.add(&format!(" {}\n", key(1).kid)).unwrap();
    pins.add(&key(2).jwk.to_string()).unwrap();
    assert!(!pins.is_empty());
    for wrong in ["", "k1", "{}", r#"{"keys":[]}"#, r#"{"kty":"oct","k":"c2VjcmV0"}"#] {
        assert!(pins.add(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_pinned_key_that_nobody_serves_is_no_proof_of_another() {
    let (ours, other) = (key(1), key(2));
    let mut pins = Pins::default();
    pins.add(&ours.kid).unwrap();
    let judged = |kid: Value, by: &SigningKey, served: &[Value]| {
        let card = card();
        let json = with(&card, &[signature(&card, by, &json!({"alg": "ES256", "kid": kid}))]).to_string();
        let KeySet(served) = set(served);
        let keys = KeySet(served.iter().filter(|key| key.thumbprint == ours.kid).cloned().collect());
        let wanting = OutOfReach { thumbprints: &pins.missing(&served), served: &served };
        verify(&json, Trust::Pinned(&keys, wanting)).word
    };
    let other_served = std::slice::from_ref(&other.jwk);
    assert_eq!(judged(json!(ours.kid), &ours, &[]), Word::Unverifiable, "it names the pinned one");
    assert_eq!(judged(json!(ours.kid), &ours, other_served), Word::Unverifiable);
    assert_eq!(judged(json!("k"), &ours, &[]), Word::Unverifiable, "nobody knows whose name that is");
    assert_eq!(judged(json!("k"), &other, &[named(&other, "k")]), Word::Failed, "it is another's");
    assert_eq!(judged(json!(other.kid), &other, &[]), Word::Failed, "a thumbprint is one key's alone");
    assert_eq!(judged(Value::Null, &ours, &[]), Word::Unverifiable, "a signature needs no name");
    assert_eq!(judged(Value::Null, &ours, other_served), Word::Unverifiable);
    assert_eq!(judged(Value::Null, &other, other_served), Word::Failed, "whose it is can be seen");
    assert_eq!(judged(json!("k"), &other, other_served), Word::Failed, "under any name");
    let both = [ours.jwk.clone(), other.jwk.clone()];
    for kid in [json!("k"), Value::Null, json!(other.kid), json!(ours.kid)] {
        assert_eq!(judged(kid.clone(), &ours, &both), Word::Verified, "a pinned key is trusted under any name: {kid}");
        assert_eq!(judged(kid.clone(), &other, &both), Word::Failed, "{kid}");
    }
}
