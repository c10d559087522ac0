//! Signed cards: every form that is served can be verified with what is published, over rotations and restarts.

use crate::cast::{hub, setup};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flotilla_outbound::signature::jwk::KeySet;
use flotilla_outbound::signature::verify::{OutOfReach, Outcome, Trust, Word, verify};
use flotilla_protocol::a2a::reading::Reading;
use flotilla_testkit::{Binding, Client, HubProcess, until};
use serde_json::{Value, json};

const AGENT: &str = "/agents/echo/.well-known/agent-card.json";
const CONFIG: &str = r#"
hub: {default_agent: echo}
agents:
  echo:
    kind: echo
    description: Ünïcode, €, 😀 and "quotes".
    extended: {description: More of it., skills: [{id: x, name: X, description: Further}]}
    extensions:
      - {uri: "urn:test:odd", params: {"€": 1.50, "\ufb33": 1, "😀": [1.0e30, 0.000001, null, {}, ""]}}
"#;

fn keys(hub: &HubProcess) -> KeySet {
    KeySet::read(hub.stranger(Binding::HttpJson).get("/.well-known/jwks.json").text()).expect("a key set")
}

fn pinned(json: &str, keys: &KeySet) -> Outcome {
    verify(json, Trust::Pinned(keys, OutOfReach::default()))
}

fn card(client: &Client, target: &str) -> String {
    let response = client.get(target);
    assert_eq!(response.status, 200, "{target}");
    response.text().to_owned()
}

#[test]
fn every_form_of_a_card_is_signed_as_it_is_served() {
    let hub = setup().config(CONFIG).start();
    let keys = keys(&hub);
    let plain = hub.stranger(Binding::HttpJson).without("a2a-version");
    let owner = hub.owner(Binding::HttpJson);
    let versions = ["0.3", "1.0"].map(|version| hub.stranger(Binding::HttpJson).header("a2a-version", version));
    let root = "/.well-known/agent-card.json";
    let mut seen = vec![
        ("hybrid", card(&plain, root)),
        ("old path", card(&plain, "/agents/echo/.well-known/agent.json")),
        ("agent", card(&plain, AGENT)),
        ("0.3", card(&versions[0], root)),
        ("1.0", card(&versions[1], root)),
        ("0.3 below /v1", card(&versions[0], "/v1/card")),
        ("extended", card(&owner, "/extendedAgentCard")),
        ("extended, below the agent", card(&owner, "/agents/echo/extendedAgentCard")),
    ];
    let extended = hub.owner(Binding::JsonRpc).call("GetExtendedAgentCard", &json!({})).expect("a card");
    seen.push(("extended over JSON-RPC", extended.to_string()));
    for (form, json) in &seen {
        let outcome = pinned(json, &keys);
        assert_eq!(outcome.word, Word::Verified, "{form}: {}", outcome.reason);
        let proof = outcome.proof.expect("a proof");
        assert_eq!((proof.reading, proof.uncovered.len()), (Reading::Whole, 0), "{form}: all of it is covered");
        let changed = json.replacen("echo", "ecko", 1);
        assert_eq!(pinned(&changed, &keys).word, Word::Failed, "{form}: changed");
    }
    let forms: std::collections::BTreeSet<&String> = seen.iter().map(|(_, json)| json).collect();
    assert!(forms.len() >= 6, "they are not all the same card");
}

#[test]
fn a_card_over_grpc_can_be_put_together_again_as_it_was_signed() {
    let hub = setup().config(CONFIG).start();
    let card = hub.owner(Binding::Grpc).call("GetExtendedAgentCard", &json!({})).expect("a card");
    let outcome = pinned(&card.to_string(), &keys(&hub));
    assert_eq!(outcome.word, Word::Verified, "{}: {card}", outcome.reason);
}

#[test]
fn a_card_is_signed_once_and_its_tag_stays() {
    let hub = hub();
    let client = hub.stranger(Binding::HttpJson);
    let (first, second) = (client.get(AGENT), client.get(AGENT));
    assert_eq!(first.body, second.body);
    assert_eq!(first.header("etag"), second.header("etag"));
    let header: Value = first.json()["signatures"][0]["protected"].clone();
    let header = URL_SAFE_NO_PAD.decode(header.as_str().expect("a header")).expect("base64url");
    let header: Value = serde_json::from_slice(&header).expect("JSON");
    assert_eq!((&header["alg"], &header["typ"]), (&json!("ES256"), &json!("JOSE")));
    assert_eq!(header["jku"], format!("{}/.well-known/jwks.json", hub.url()));
}

#[test]
fn keys_are_rotated_with_an_overlap_and_stay_over_a_restart() {
    let mut hub = hub();
    let first = keys(&hub);
    hub.restart();
    let old = keys(&hub);
    assert_eq!(old, first, "the same after a restart");
    let client = hub.stranger(Binding::HttpJson);
    let tag = client.get(AGENT).header("etag").map(str::to_owned);

    assert!(hub.cli_ok(&["keys", "rotate-signing"]).contains("new key"));
    let both = until("the hub has both keys", || Some(keys(&hub)).filter(|keys| keys.0.len() == old.0.len() + 1));
    let json = card(&client, AGENT);
    assert_ne!(client.get(AGENT).header("etag").map(str::to_owned), tag, "it is another card");
    let newest = pinned(&json, &both).proof.expect("verified").kid;
    assert!(!old.0.iter().any(|key| key.kid == newest), "the new key comes first");
    assert_eq!(pinned(&json, &old).word, Word::Verified, "the old one signs along");

    hub.cli_ok(&["keys", "rotate-signing", "--overlap", "0s"]);
    until("the old keys are gone", || Some(keys(&hub)).filter(|keys| keys.0.len() == old.0.len()));
    let json = card(&client, AGENT);
    assert_eq!(pinned(&json, &old).word, Word::Failed);
    assert_eq!(pinned(&json, &both).word, Word::Failed);
    assert_eq!(pinned(&json, &keys(&hub)).word, Word::Verified);
}

#[test]
fn a_number_that_cannot_be_signed_is_told_with_the_configuration() {
    let told =
        setup().config("agents: {a: {kind: echo, extensions: [{uri: u, params: {n: 9007199254740993}}]}}").refused();
    assert!(told.contains("beyond 2^53"), "{told}");
}
