//! `card get`: from every kind of reference, and against the schema.

use super::agent::{Agent, Says, card};
use super::program::Place;
use crate::cast::hub;
use serde_json::json;

#[test]
fn a_card_is_found_by_host_url_and_file() {
    let hub = hub();
    let place = Place::new();
    let whole = place.json(&["card", "get", "-a", &hub.url()]);
    assert_eq!(whole["name"], "Flotilla");
    let address = hub.address().to_string();
    let file = place.file("card.json", whole.to_string());
    let url = format!("{}/agents/echo/.well-known/agent-card.json", hub.url());
    for reference in [&address, &file, &format!("file://{file}")] {
        assert_eq!(place.json(&["card", "get", "--agent-card", reference]), whole, "{reference}");
    }
    assert_eq!(place.json(&["card", "get", "-a", &url])["name"], "echo");
    let agent = format!("{}/agents/echo", hub.url());
    assert_eq!(place.json(&["card", "get", "-a", &agent])["name"], "echo", "the address of an agent leads to its card");
    assert_eq!(place.env("FLOTILLA_URL", &hub.url()).json(&["card", "get", "--agent", "echo"])["name"], "echo");
}

#[test]
fn a_card_is_shown_with_all_that_a_caller_wants_to_know() {
    let hub = hub();
    let shown = Place::at(&hub).run(&["card", "get", "--validate"]).ok();
    assert_eq!(shown.field("Name"), "Flotilla");
    assert_eq!(shown.field("Streaming"), "yes");
    assert_eq!(shown.field("Push notifications"), "yes");
    assert_eq!(shown.field("Extended card"), "no");
    assert_eq!(shown.field("Transport"), "JSONRPC");
    let preferred =
        |place: Place, args: &[&str]| place.run(&[&["card", "get"], args].concat()).ok().field("Transport").to_owned();
    assert_eq!(preferred(Place::at(&hub), &["--transport", "GRPC"]), "GRPC");
    assert_eq!(preferred(Place::at(&hub).env("A2ACLI_TRANSPORT", "HTTP+JSON"), &[]), "HTTP+JSON");
    assert_eq!(shown.field("Valid"), "yes");
    for label in ["Description", "Version", "Interface", "Security scheme", "Requires", "Input modes", "Skill"] {
        shown.field(label);
    }
}

#[test]
fn a_card_is_shown_as_it_came_with_what_we_do_not_know() {
    let more = json!({"hologram": {"n": 1.0}, "provider": null, "securitySchemes": null, "signatures": null});
    let odd = Agent::start(card(more), |_, _| Says::Json(json!({})));
    let shown = Place::new().run(&["card", "get", "-a", &odd.url, "-o", "json"]).ok();
    assert!(shown.out.contains("\"n\": 1.0"), "{shown:?}");
}

#[test]
fn what_is_wrong_with_a_card_is_told_with_its_place() {
    let place = Place::new();
    let mut bad = card(json!({"version": 1}));
    bad["supportedInterfaces"][0]["url"] = json!("nowhere");
    let file = place.file("bad.json", bad.to_string());
    let ran = place.run(&["card", "get", "--validate", "-a", &file, "-o", "json"]);
    assert_eq!((ran.code, ran.error().as_str()), (1, "A2ACLI_ERR_CARD_INVALID"));
    let file = place.file("bad.json", card(json!({"skills": [{"id": "x"}]})).to_string());
    let ran = place.run(&["card", "get", "--validate", "-a", &file]);
    assert!(ran.code == 1 && ran.err.contains("skills[0].name is missing"), "{ran:?}");
    place.run(&["card", "get", "-a", &file]).ok();
}

#[test]
fn a_card_that_is_not_there_or_not_one_is_told_apart() {
    let hub = hub();
    let place = Place::new();
    let error = |reference: &str| {
        let ran = place.run(&["card", "get", "-a", reference, "-o", "json"]);
        (ran.code, ran.error())
    };
    assert_eq!(error("./nowhere.json"), (3, "A2ACLI_ERR_CARD_NOT_FOUND".into()));
    assert_eq!(error(&format!("{}/nowhere", hub.url())), (3, "A2ACLI_ERR_CARD_NOT_FOUND".into()));
    assert_eq!(error(&place.file("x.json", "not json")), (1, "A2ACLI_ERR_CARD_INVALID".into()));
    assert_eq!(error(&place.file("y.json", [0xff, 0xfe])), (1, "A2ACLI_ERR_CARD_INVALID".into()), "not UTF-8");
    assert_eq!(error("http://127.0.0.1:1"), (3, "A2ACLI_ERR_UNREACHABLE".into()));
}

#[test]
fn an_extended_card_is_asked_for_only_where_the_card_declares_one() {
    let hub = hub();
    let ran = Place::at(&hub).run(&["card", "get", "--extended", "-o", "json"]);
    assert_eq!((ran.code, ran.error().as_str()), (1, "UnsupportedOperationError"), "as the hub says itself");
    assert!(ran.out.contains("without --extended"), "{ran:?}");
}

#[test]
fn an_extended_card_is_fetched_with_a_scheme_of_the_public_one() {
    let odd = card(json!({
        "capabilities": {"extendedAgentCard": true},
        "securitySchemes": {"b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
    }));
    let extended = card(json!({"name": "Odd, extended"}));
    let agent = Agent::start(odd, move |_, _| Says::Result(extended.clone()));
    let place = Place::new();
    let args = ["card", "get", "--extended", "-a", &agent.url, "--bearer", "tok-1", "--api-key", "key-1"];
    let ran = place.run(&[&args[..], &["-o", "json"]].concat()).ok();
    assert_eq!(ran.json()["name"], "Odd, extended");
    let asked = &agent.asked()[0];
    assert_eq!(
        (asked.method().as_str(), asked.header("authorization")),
        ("GetExtendedAgentCard", Some("Bearer tok-1"))
    );
    assert!(!format!("{asked:?}").contains("key-1"), "no scheme takes an API key: {asked:?}");
    assert!(ran.err.contains("API key") && ran.err.contains("not sent"), "{ran:?}");
}

/// How often the card was fetched in three runs, and how often as new.
fn fetched(headers: &'static str) -> (usize, usize) {
    let agent = Agent::start_cached(card(json!({})), headers, |_, _| Says::Json(json!({})));
    let place = Place::new();
    for _ in 0..3 {
        assert_eq!(place.json(&["card", "get", "-a", &agent.url])["name"], "Odd");
    }
    let asked = agent.cards();
    (asked.len(), asked.iter().filter(|asked| asked.header("if-none-match").is_none()).count())
}

#[test]
fn cards_are_kept_as_long_as_their_server_allows() {
    assert_eq!(fetched(""), (3, 3));
    assert_eq!(fetched("cache-control: max-age=60\r\n"), (1, 1));
    assert_eq!(fetched("cache-control: no-cache\r\netag: \"1\"\r\n"), (3, 1));
    assert_eq!(fetched("cache-control: no-store, max-age=60\r\netag: \"1\"\r\n"), (3, 3));
}

#[test]
fn all_that_is_wrong_with_a_card_is_told_at_once() {
    let place = Place::new();
    let mut bad = card(json!({"version": 1, "capabilities": {"streaming": "yes"}, "skills": [{"id": 7, "tags": "x"}]}));
    bad["supportedInterfaces"][0]["url"] = json!(["nowhere"]);
    bad["securitySchemes"] = json!({"o": {"oauth2SecurityScheme": {"flows": {"deviceCode": {"tokenUrl": 1}}}}});
    bad["securityRequirements"] = json!([{"schemes": {"o": []}}]);
    let file = place.file("bad.json", bad.to_string());
    for args in [&["card", "get", "--validate"][..], &["card", "get"], &["send", "hi"]] {
        let ran = place.run(&[args, &["-a", &file, "-o", "json"]].concat());
        assert_eq!((ran.code, ran.error().as_str()), (1, "A2ACLI_ERR_CARD_INVALID"), "{ran:?}");
        let error = &ran.json()["error"];
        for words in [
            "version must be",
            "capabilities.streaming must be",
            "skills[0].id must be",
            "skills[0].name is missing",
            "skills[0].tags must be",
            "supportedInterfaces[0].url must be",
            "securitySchemes.o.oauth2SecurityScheme.flows.deviceCode.tokenUrl must be",
            "securityRequirements[0].schemes.o must be",
        ] {
            assert!(error["message"].as_str().is_some_and(|text| text.contains(words)), "no {words:?} in {error}");
        }
        assert!(error["hint"].as_str().is_some_and(|hint| !hint.contains("--validate")), "no circles: {error}");
    }
    let unforeseen = place.file("odd.json", card(json!({"default_input_modes": []})).to_string());
    let ran = place.run(&["card", "get", "-a", &unforeseen]);
    assert!(ran.code == 1 && ran.err.contains("duplicate field `defaultInputModes`"), "{ran:?}");
}

#[test]
fn an_interface_that_cannot_be_called_makes_a_card_invalid() {
    let place = Place::new();
    for (binding, url) in [("JSONRPC", "ftp://h"), ("HTTP+JSON", "not a url"), ("JSONRPC", ""), ("GRPC", "dns:///h")] {
        let interface = json!([{"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}]);
        let file = place.file("card.json", card(json!({"supportedInterfaces": interface})).to_string());
        for args in [&["send", "hi"][..], &["card", "get", "--validate"]] {
            let ran = place.run(&[args, &["-a", &file, "-o", "json"]].concat());
            assert_eq!((ran.code, ran.error().as_str()), (1, "A2ACLI_ERR_CARD_INVALID"), "{args:?} {binding} {url}");
        }
    }
}

#[test]
fn what_is_no_card_at_all_is_not_shown_as_one() {
    let place = Place::new();
    for (text, code) in [(r#"{"a":1}"#, 1), (r#"{"name":"a","description":"b","url":"http://h","version":"1"}"#, 0)] {
        let file = place.file("card.json", text);
        let ran = place.run(&["card", "get", "-a", &file, "-o", "json"]);
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(code == 0 || ran.error() == "A2ACLI_ERR_CARD_INVALID", "{ran:?}");
    }
}
