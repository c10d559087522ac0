//! Credentials: where the card says, from flag or environment, and never in anything that is shown.

use super::agent::{Agent, Asked, Says, card, task};
use super::program::Place;
use crate::cast::{hub, setup};
use flotilla_testkit::process::OWNER;
use serde_json::{Value, json};

fn agent(schemes: Value, required: &str) -> Agent {
    let requirements = if required.is_empty() { json!([]) } else { json!([{"schemes": {required: {"list": []}}}]) };
    let card = card(json!({"securitySchemes": schemes, "securityRequirements": requirements}));
    Agent::start(card, |_, _| Says::Result(json!({"task": task("COMPLETED")})))
}

fn bearer() -> Value {
    json!({"b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}})
}

fn api_key(location: &str) -> Value {
    json!({"k": {"apiKeySecurityScheme": {"location": location, "name": "x-odd-key"}}})
}

fn asked(place: &Place, agent: &Agent, args: &[&str]) -> Asked {
    place.run(&[&["send", "hi", "-a", &agent.url], args].concat()).ok();
    agent.asked().pop().expect("a request")
}

#[test]
fn a_credential_goes_where_the_card_says() {
    let place = Place::new();
    let got = asked(&place, &agent(bearer(), "b"), &["--bearer", "tok-1"]);
    assert_eq!(got.header("authorization"), Some("Bearer tok-1"));
    let got = asked(&place, &agent(api_key("header"), "k"), &["--api-key", "key-1"]);
    assert_eq!((got.header("x-odd-key"), got.header("authorization")), (Some("key-1"), None));
    let got = asked(&place, &agent(api_key("query"), "k"), &["--api-key", "key 1"]);
    assert_eq!(got.path, "/rpc?x-odd-key=key+1");
    let got = asked(&place, &agent(api_key("cookie"), "k"), &["--api-key", "key-1"]);
    assert_eq!(got.header("cookie"), Some("x-odd-key=key-1"));
}

#[test]
fn the_environment_has_an_equivalent_and_the_flag_wins() {
    let agent = agent(bearer(), "b");
    let place = Place::new().env("A2ACLI_BEARER", "from-env");
    assert_eq!(asked(&place, &agent, &[]).header("authorization"), Some("Bearer from-env"));
    assert_eq!(asked(&place, &agent, &["--bearer", "flag"]).header("authorization"), Some("Bearer flag"));
    let keyed = self::agent(api_key("header"), "k");
    let place = Place::new().env("A2ACLI_API_KEY", "key-env");
    assert_eq!(asked(&place, &keyed, &[]).header("x-odd-key"), Some("key-env"));
}

#[test]
fn a_missing_credential_is_told_before_anything_is_sent() {
    let agent = agent(api_key("header"), "k");
    let ran = Place::new().run(&["send", "hi", "-a", &agent.url, "-o", "json"]);
    assert_eq!((ran.code, ran.error().as_str()), (4, "A2ACLI_ERR_CREDENTIALS_MISSING"));
    assert!(ran.json()["error"]["hint"].as_str().is_some_and(|hint| hint.contains("A2ACLI_API_KEY")), "{ran:?}");
    assert_eq!(agent.asked().len(), 0);
}

#[test]
fn a_credential_no_scheme_takes_stays_here() {
    let agent = agent(json!({}), "");
    let place = Place::new();
    let ran = place.run(&["send", "hi", "-a", &agent.url, "--bearer", "tok-1"]).ok();
    assert!(ran.err.contains("takes a bearer token, so it is not sent"), "{ran:?}");
    assert_eq!(agent.asked()[0].header("authorization"), None);
    let declared = self::agent(bearer(), "b");
    asked(&place, &declared, &["--bearer", "tok-1"]);
    assert_eq!(declared.cards()[0].header("authorization"), None, "nothing is shown to where the card comes from");
}

#[test]
fn a_header_is_a_credential_or_a_parameter() {
    let declared = agent(bearer(), "b");
    let args = ["send", "hi", "-a", &declared.url, "--bearer", "tok-1", "--svc-param", "authorization:Bearer other-2"];
    let ran = Place::new().run(&args);
    assert!(ran.code == 2 && ran.err.contains("authorization") && !ran.err.contains("other-2"), "{ran:?}");
    assert_eq!(declared.asked().len(), 0, "of two, none is lost without a word");
}

#[test]
fn the_hub_s_key_goes_to_the_hub_alone() {
    let stranger = agent(bearer(), "b");
    let hub = hub();
    let place = Place::at(&hub);
    place.run(&["send", "complete"]).ok();
    let ran = place.run(&["send", "hi", "-a", &stranger.url]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert_eq!(stranger.asked().len(), 0);
}

const HIDDEN: &str = "
hub: {default_agent: open, listen: '127.0.0.1:0'}
agents:
  open: {kind: echo}
  hid: {kind: echo, visibility: private}
";

#[test]
fn agents_that_are_not_public_are_there_for_those_whose_key_sees_them() {
    let hub = setup().config(HIDDEN).start();
    let nobody = Place::new().env("FLOTILLA_URL", &hub.url());
    let args = |more: &[&'static str]| [&["send", "hi", "--agent", "hid", "-o", "json"], more].concat();
    let place = Place::at(&hub);
    for (variable, flag) in [("A2ACLI_BEARER", "--bearer"), ("A2ACLI_API_KEY", "--api-key")] {
        let by_variable = Place::new().env("FLOTILLA_URL", &hub.url()).env(variable, OWNER);
        by_variable.run(&args(&[])).ok();
        nobody.run(&args(&[flag, OWNER])).ok();
    }
    place.run(&args(&[])).ok();
    assert!(place.run(&["card", "get", "--agent", "hid", "--debug"]).ok().err.contains("still fresh"), "it is kept");
    let ran = nobody.run(&args(&[]));
    assert_eq!((ran.code, ran.error().as_str()), (3, "A2ACLI_ERR_CARD_NOT_FOUND"), "but not for others: {ran:?}");
    let alice = hub.key("alice", &[]);
    let other = nobody.env("FLOTILLA_KEY", &alice);
    let ran = other.run(&args(&[]));
    assert_eq!((ran.code, ran.error().as_str()), (3, "A2ACLI_ERR_CARD_NOT_FOUND"), "{ran:?}");
    assert!(ran.out.contains("FLOTILLA_KEY"), "says what it may be: {ran:?}");

    let examined = |place: &Place| {
        let (data, file) = (hub.data().display().to_string(), place.file("hub.yaml", HIDDEN));
        place.run(&["doctor", "--data-dir", &data, "--config", &file]).ok().out
    };
    assert!(examined(&place).contains("agent hid answers"), "{}", examined(&place));
    assert!(examined(&other).contains("Note: agents: agent hid is not public"), "{}", examined(&other));
}

#[test]
fn nothing_that_is_shown_holds_a_credential() {
    let schemes = json!({"b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}});
    let repeats = Agent::start(card(json!({"securitySchemes": schemes})), |asked, before| match before {
        0 => Says::Result(json!({"task": task("COMPLETED"), "echo": asked.header("authorization")})),
        _ => Says::Error(-32602, "bad token tok-secret-1 and svc-secret-2"),
    });
    let place = Place::new();
    let common = ["-a", &repeats.url, "--bearer", "tok-secret-1", "--svc-param", "x-auth:svc-secret-2", "--debug"];
    for (first, format) in [("--verbose", "text"), ("--verbose", "json")] {
        let ran = place.run(&[&["send", "hi", first, "-o", format][..], &common].concat());
        assert!(
            ran.err.contains("authorization: [redacted]") || ran.err.contains("Authorization: [redacted]"),
            "{ran:?}"
        );
        assert!(ran.err.contains("\"method\":\"SendMessage\""), "the wire is shown: {ran:?}");
        let shown = format!("{}{}", ran.err, if format == "text" { ran.out.as_str() } else { "" });
        for secret in ["tok-secret-1", "svc-secret-2"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
    let traced = ["card", "get", "-a", &repeats.url, "--debug"];
    assert!(place.run(&traced).ok().err.contains("A2A-Version: 1.0"), "what is no secret is shown");
    let keyed = agent(api_key("query"), "k");
    let ran = place.run(&["send", "hi", "-a", &keyed.url, "--api-key", "key-secret-3", "--debug"]).ok();
    assert!(!ran.err.contains("key-secret-3") && ran.err.contains("x-odd-key=[redacted]"), "{ran:?}");
    let hub = hub();
    let ran = Place::at(&hub).run(&["send", "complete", "--debug"]).ok();
    assert!(!ran.err.contains(OWNER) && !ran.err.contains("00aa"), "{ran:?}");
}

#[test]
fn an_unchecked_certificate_is_always_warned_of() {
    let agent = agent(bearer(), "b");
    let place = Place::new();
    let ran = place.run(&["send", "hi", "-a", &agent.url, "--bearer", "t-123", "--insecure"]).ok();
    assert!(ran.err.contains("SECURITY") && ran.err.contains("--insecure"), "{ran:?}");
    let ran = place.run(&["card", "get", "-a", &agent.url, "--insecure"]).ok();
    assert!(ran.err.contains("certificates are not checked"), "{ran:?}");
    let ran = place.run(&["card", "get", "-a", &agent.url]).ok();
    assert!(ran.err.is_empty(), "{ran:?}");
    let place = place.env("A2ACLI_INSECURE", "true");
    assert!(place.run(&["card", "get", "-a", &agent.url]).ok().err.contains("not checked"), "also when configured");
    assert!(place.run(&["card", "get", "-a", &agent.url, "--insecure=false"]).ok().err.is_empty());
}

#[test]
fn a_service_parameter_can_be_what_a_scheme_wants() {
    let basic = agent(json!({"w": {"httpAuthSecurityScheme": {"scheme": "Basic"}}}), "w");
    let got = asked(&Place::new(), &basic, &["--svc-param", "Authorization:Basic dTpw"]);
    assert_eq!(got.header("authorization"), Some("Basic dTpw"));
    let mutual = agent(json!({"m": {"mtlsSecurityScheme": {}}}), "m");
    for (agent, words) in [(&basic, "A2ACLI_SVC_PARAM='Authorization:Basic"), (&mutual, "certificates")] {
        let ran = Place::new().run(&["send", "hi", "-a", &agent.url, "-o", "json"]);
        assert_eq!((ran.code, ran.error().as_str()), (4, "A2ACLI_ERR_CREDENTIALS_MISSING"));
        let hint = ran.json()["error"]["hint"].as_str().expect("a hint").to_owned();
        assert!(hint.contains(words) && !hint.contains("A2ACLI_BEARER"), "{hint}");
    }
}

#[test]
fn who_is_kept_out_is_told_what_was_shown() {
    for status in [401, 403] {
        let strict = Agent::start(card(json!({})), move |_, _| Says::Status(status, json!({"error": "no"})));
        let refused = |args: &[&str]| {
            let ran = Place::new().run(&[&["send", "hi", "-a", &strict.url, "-o", "json"], args].concat());
            (ran.error(), ran.json()["error"]["hint"].as_str().expect("a hint").to_owned())
        };
        let (code, hint) = refused(&[]);
        assert!(code == "A2ACLI_ERR_CREDENTIALS_MISSING" && hint.contains("set A2ACLI_BEARER"), "{code}: {hint}");
        let (code, hint) = refused(&["--bearer", "tok-1"]);
        assert_eq!(code, "A2ACLI_ERR_CREDENTIALS_MISSING");
        assert!(hint.contains("declares no scheme that takes a bearer token") && !hint.contains("set "), "{hint}");
        let (code, _) = refused(&["--svc-param", "Authorization:Basic dTpw"]);
        assert_eq!(code, "A2ACLI_ERR_AUTH_FAILED", "it was shown, and is not accepted");
    }
}

#[test]
fn a_credential_that_an_agent_repeats_is_masked_however_it_is_escaped() {
    const KEY: &str = "sk-live/9f+Ab==";
    let card =
        card(json!({"securitySchemes": api_key("query"), "securityRequirements": [{"schemes": {"k": {"list": []}}}]}));
    let agent = Agent::start(card, |asked, _| {
        let escaped = KEY.replace('/', "\\/").replace('s', "\\u0073");
        Says::Status(404, json!({"error": format!("no route POST {} {escaped}", asked.path)}))
    });
    let place = Place::new().env("A2ACLI_API_KEY", KEY);
    for more in [&[][..], &["-o", "json"], &["--debug"]] {
        let ran = place.run(&[&["send", "hi", "-a", &agent.url], more].concat());
        let shown = format!("{}{}", ran.out, ran.err);
        assert!(shown.contains("no route POST /rpc?x-odd-key=[redacted] [redacted]"), "{shown}");
        assert!(!shown.contains("k-live"), "a credential is shown: {shown}");
    }
    assert!(agent.asked()[0].path.contains("sk-live%2F9f%2BAb%3D%3D"), "it is sent");
}
