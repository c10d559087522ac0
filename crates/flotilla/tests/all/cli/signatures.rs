//! `card get` says what a card's signatures are worth: four words, each with its reason.

use super::agent::{Agent, Says, card};
use super::program::Place;
use crate::cast::hub;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flotilla_outbound::signature::ring::{Entry, SigningKey};
use flotilla_protocol::canonical;
use flotilla_protocol::time::Millis;
use flotilla_testkit::Binding;
use serde_json::{Value, json};

pub fn key(number: u8) -> SigningKey {
    SigningKey::new(&[number; 32], &Entry { seed: "s".into(), made: Millis(0), until: None }).expect("a key")
}

/// A card of a place that does not change, so that it can be signed before its server has a port.
pub fn plain() -> Value {
    let interface = json!({"url": "http://127.0.0.1:1/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    card(json!({ "supportedInterfaces": [interface] }))
}

pub fn signed(key: &SigningKey, more: Value) -> Value {
    signed_card(plain(), key, more)
}

/// A card with a signature.
pub fn signed_card(mut card: Value, key: &SigningKey, more: Value) -> Value {
    let mut header = json!({"alg": "ES256", "typ": "JOSE", "kid": "k"});
    for (name, value) in more.as_object().cloned().unwrap_or_default() {
        header[name] = value;
    }
    let protected = URL_SAFE_NO_PAD.encode(header.to_string());
    let input = format!("{protected}.{}", URL_SAFE_NO_PAD.encode(canonical::write(&card)));
    let made = URL_SAFE_NO_PAD.encode(key.sign(input.as_bytes()).expect("a signature"));
    card["signatures"] = json!([{"protected": protected, "signature": made}]);
    card
}

/// Serves a card, and a key under the name every card here is signed by.
fn agent(card: Value, key: Option<&SigningKey>) -> Agent {
    let jwk = key.map(|key| {
        let mut jwk = key.jwk.clone();
        jwk["kid"] = json!("k");
        jwk
    });
    Agent::start(card, move |asked, _| match &jwk {
        Some(jwk) if asked.path == "/.well-known/jwks.json" => Says::Json(json!({ "keys": [jwk] })),
        _ => Says::Status(404, json!({})),
    })
}

/// What is said of a card, in each of the three ways it can be said.
fn word(place: &Place, reference: &str, more: &[&str]) -> (String, String) {
    let args = |rest: &[&'static str]| [&["card", "get", "-a", reference][..], more, rest].concat();
    let shown = place.run(&args(&[])).ok();
    let (word, reason) = shown.field("Signature").split_once(' ').expect("a word and a reason");
    let beside = place.run(&args(&["-o", "json"])).ok();
    assert_eq!(beside.json()["name"], "Odd", "the card alone is the payload: {beside:?}");
    assert!(beside.err.contains(&format!("Signature: {word} ")), "{beside:?}");
    let alone = place.run(&args(&["--signature", "-o", "json"])).ok().json();
    assert_eq!(alone["signature"], word);
    assert_eq!(format!("({})", alone["reason"].as_str().expect("a reason")), reason);
    assert_eq!(alone["kid"].is_string(), word == "verified", "{alone}");
    (word.to_owned(), reason.to_owned())
}

#[test]
fn each_of_the_four_words_is_said_with_its_reason() {
    let place = Place::new();
    let (ours, other) = (key(1), key(2));
    let mut tampered = signed(&ours, json!({}));
    tampered["description"] = json!("Another.");
    let file = place.file("card.json", signed(&ours, json!({})).to_string());
    for (agent, expected, told) in [
        (agent(signed(&ours, json!({})), Some(&ours)), "verified", "a key of http://127.0.0.1"),
        (agent(plain(), Some(&ours)), "absent", "not signed"),
        (agent(tampered, Some(&ours)), "failed", "it was changed"),
        (agent(signed(&ours, json!({})), Some(&other)), "failed", "another key of that name"),
        (agent(signed(&ours, json!({})), None), "unverifiable", "HTTP 404"),
        (agent(signed(&ours, json!({"kid": "unknown"})), Some(&ours)), "unverifiable", "'unknown'"),
    ] {
        let (word, reason) = word(&place, &agent.url, &[]);
        assert_eq!(word, expected, "{reason}");
        assert!(reason.contains(told), "{word} {reason}");
    }
    let (word, reason) = word(&place, &file, &[]);
    assert!(word == "unverifiable" && reason.contains("pin one"), "{word} {reason}");
}

#[test]
fn keys_are_never_fetched_from_where_the_signer_says() {
    let thief = key(3);
    let elsewhere = agent(plain(), Some(&thief));
    let jku = format!("{}/.well-known/jwks.json", elsewhere.url);
    for (own, expected) in [(None, "unverifiable"), (Some(key(1)), "unverifiable")] {
        let agent = agent(signed(&thief, json!({ "jku": jku })), own.as_ref());
        let (word, _) = word(&Place::new(), &agent.url, &[]);
        assert_eq!(word, expected);
    }
    assert!(elsewhere.asked().is_empty(), "{:?}", elsewhere.asked());
}

#[test]
fn a_pinned_key_is_the_only_one_that_counts() {
    let place = Place::new();
    let (ours, other) = (key(1), key(2));
    let file = place.file("card.json", signed(&ours, json!({})).to_string());
    let pin = |key: &SigningKey, kid: &str| {
        let mut jwk = key.jwk.clone();
        jwk["kid"] = json!(kid);
        place.file(&format!("{kid}-{}.json", &key.kid[..8]), json!({ "keys": [jwk] }).to_string())
    };
    let (good, wrong) = (pin(&ours, "k"), pin(&other, "k"));
    assert_eq!(word(&place, &file, &["--pin", &good]).0, "verified");
    let here = agent(signed(&ours, json!({})), Some(&ours));
    assert_eq!(word(&place, &here.url, &["--pin", &ours.kid]).0, "verified", "by its thumbprint");
    let unsigned = agent(plain(), Some(&ours));
    for (reference, pin) in [(&file, &wrong), (&here.url, &wrong), (&here.url, &other.kid), (&unsigned.url, &good)] {
        let ran = place.run(&["card", "get", "-a", reference, "--pin", pin, "-o", "json"]);
        assert_eq!((ran.code, ran.error().as_str()), (1, "FLOTILLA_ERR_CARD_UNVERIFIED"), "{ran:?}");
    }
    let ran = place.run(&["card", "get", "-a", &file, "--pin", "nowhere"]);
    assert!(ran.code == 2 && ran.err.contains("thumbprint"), "{ran:?}");
}

#[test]
fn the_hubs_own_cards_are_verified_over_every_binding() {
    let config = "agents: {echo: {kind: echo, extended: {contact: Ask olga}}}";
    let hub = crate::cast::setup().config(config).start();
    let place = Place::at(&hub);
    assert!(place.run(&["card", "get"]).ok().field("Signature").starts_with("verified "));
    for transport in ["JSONRPC", "HTTP+JSON", "GRPC"] {
        let args = ["card", "get", "--extended", "--agent", "echo", "--transport", transport, "--signature"];
        let ran = place.run(&[&args[..], &["-o", "json"]].concat()).ok();
        assert_eq!(ran.json()["signature"], "verified", "{transport}: {ran:?}");
        assert_eq!(ran.json()["uncovered"], json!([]), "{transport}: {ran:?}");
    }
}

#[test]
fn a_card_of_another_hub_is_not_this_ones() {
    let (one, other) = (hub(), hub());
    let theirs = other.stranger(Binding::HttpJson).get("/agents/echo/.well-known/agent-card.json").json();
    let keys = one.stranger(Binding::HttpJson).get("/.well-known/jwks.json").json();
    let swapped = Agent::start(theirs, move |_, _| Says::Json(keys.clone()));
    let ran = Place::new().run(&["card", "get", "-a", &swapped.url]).ok();
    assert!(ran.field("Signature").starts_with("unverifiable "), "{ran:?}");
}
