//! Addresses that hold a secret: a password in one is refused, a secret in its query is used and never shown.

use super::agent::{Agent, Says, card, task};
use super::program::{Place, Ran};
use flotilla_testkit::until;
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;

const SECRET: &str = "s3cr3t-w0rd";

fn agent() -> Agent {
    let headers = "cache-control: max-age=60\r\netag: \"1\"\r\n";
    Agent::start_cached(card(json!({})), headers, |asked, before| match before {
        _ if asked.path.starts_with("/nothing") => Says::Status(404, json!({})),
        0 => Says::Result(json!({"task": task("INPUT_REQUIRED")})),
        _ => Says::Error(-32602, "no"),
    })
}

/// The address with a password in it, in the forms people write.
fn with_password(agent: &Agent) -> [String; 6] {
    let host = agent.url.trim_start_matches("http://");
    [
        format!("http://user:{SECRET}@{host}"),
        format!("http://{SECRET}@{host}/card"),
        format!("user:{SECRET}@{host}"),
        format!("http://user:{SECRET}/@{host}"),
        format!("http://user:{SECRET}\\@{host}"),
        format!("http://user:{SECRET} {SECRET}@{host}"),
    ]
}

#[track_caller]
fn hides(ran: Ran) -> Ran {
    for secret in [SECRET, "of-the-header"] {
        assert!(!ran.out.contains(secret) && !ran.err.contains(secret), "a secret is shown: {ran:?}");
    }
    ran
}

#[test]
fn a_password_in_an_address_is_refused_saying_what_to_do_instead() {
    let agent = agent();
    let place = Place::new();
    let [whole, ..] = with_password(&agent);
    for flag in ["--agent-card", "--hub"] {
        let ran = hides(place.run(&["send", "hi", flag, &whole, "-o", "json", "--debug"]));
        assert_eq!((ran.code, ran.error().as_str()), (2, "A2ACLI_ERR_USAGE"), "{ran:?}");
        let hint = ran.json()["error"]["hint"].as_str().expect("a hint").to_owned();
        assert!(hint.contains("A2ACLI_BEARER") && hint.contains("A2ACLI_API_KEY"), "{hint}");
    }
    assert!(agent.cards().is_empty() && agent.asked().is_empty(), "nothing is sent");
}

#[test]
fn a_password_in_an_address_is_shown_nowhere() {
    let agent = agent();
    let place = Place::new();
    for address in with_password(&agent) {
        let named = Place::new().env("A2ACLI_AGENT_CARD", &address).env("FLOTILLA_URL", &address);
        for command in [
            &["card", "get", "--debug"][..],
            &["send", "hi", "--debug"],
            &["task", "get", "t"],
            &["task", "log", "t"],
            &["auth", "logout"],
            &["auth", "login", "--client-id", "c"],
            &["config", "show"],
            &["doctor"],
            &["send", "--help"],
        ] {
            hides(named.run(command));
            hides(named.run(&[command, &["-o", "json"]].concat()));
            hides(place.run(&[command, &["-a", &address]].concat()));
        }
        hides(place.run(&["card", "get", &address]));
        hides(place.run(&["card", "get", &address, "-o", "json"]));
        hides(place.run(&["task", "list", "--hub", &address, "-a", &address]));
    }
    assert!(agent.cards().is_empty(), "nothing was sent: {:?}", agent.cards());
}

#[test]
fn a_secret_in_a_query_is_used_and_shown_nowhere() {
    let agent = agent();
    let address = format!("{}/agent-card.json?token={SECRET}&x=1", agent.url);
    let place = Place::new();
    let got = hides(place.run(&["card", "get", "-a", &address, "--debug"]).ok());
    assert!(got.field("Card").ends_with("/agent-card.json?token=[redacted]&x=1"), "{got:?}");
    assert!(got.err.contains("/agent-card.json?token=[redacted]&x=1"), "{got:?}");
    assert!(agent.cards()[0].path.contains(SECRET), "it is sent");
    let sent = hides(place.run(&["send", "hi", "-a", &address]).ok());
    assert!(sent.field("Resume").contains("token=[redacted]"), "{sent:?}");
    hides(place.run(&["send", "hi", "-a", &address, "-o", "json", "--debug"]));
    let named = Place::new().env("A2ACLI_AGENT_CARD", &address);
    for command in [&["config", "show"][..], &["config", "show", "-o", "json"], &["send", "-h"], &["auth", "logout"]] {
        hides(named.run(command).ok());
    }
    let away = format!("http://127.0.0.1:1/card?token={SECRET}");
    let ran = hides(place.run(&["card", "get", "-a", &away, "--debug"]));
    assert_eq!(ran.code, 3);
    let missing = format!("{}/nothing?api_key={SECRET}", agent.url);
    let ran = hides(place.run(&["card", "get", "-a", &missing]));
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("api_key=[redacted]"), "{ran:?}");
}

#[test]
fn a_card_that_names_an_address_with_a_password_is_not_used() {
    let interfaces = json!([{"url": format!("http://user:{SECRET}@127.0.0.1:1"), "protocolBinding": "JSONRPC",
        "protocolVersion": "1.0"}]);
    let agent = Agent::start(card(json!({"supportedInterfaces": interfaces})), |_, _| Says::Json(json!({})));
    let place = Place::new();
    let ran = hides(place.run(&["send", "hi", "-a", &agent.url, "--debug"]));
    assert!(ran.code == 1 && ran.err.contains("A2ACLI_ERR_CARD_INVALID"), "{ran:?}");
    hides(place.run(&["card", "get", "-a", &agent.url]).ok());
}

#[test]
fn kept_cards_are_for_their_owner_and_their_names_say_nothing() {
    let agent = agent();
    let place = Place::new();
    let address = format!("{}/agent-card.json?token={SECRET}", agent.url);
    let directory = place.dir().join("home/.cache/a2a-cli/cards");
    std::fs::create_dir_all(&directory).expect("a directory");
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    place.run(&["card", "get", "-a", &address]).ok();
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    let kept: Vec<_> = std::fs::read_dir(&directory).expect("a directory").map(|file| file.expect("a file")).collect();
    let [file] = kept.as_slice() else { panic!("one card is kept: {kept:?}") };
    assert_eq!(mode(&file.path()), 0o600);
    let name = file.file_name().into_string().expect("a name");
    assert!(!name.contains(SECRET) && !name.contains("127.0"), "{name}");
    let text = std::fs::read_to_string(file.path()).expect("a card");
    assert!(!text.contains(SECRET), "{text}");
    place.run(&["card", "get", "-a", &address]).ok();
    until("the card is taken from where it is kept", || (agent.cards().len() == 1).then_some(()));
}

#[test]
fn secrets_in_metadata_and_service_parameters_are_sent_and_shown_nowhere() {
    let agent = agent();
    let metadata = format!(r#"{{"Authorization":"{SECRET}","deep":{{"note":"Bearer {SECRET}-2"}},"k":1}}"#);
    let parameter = "authorization:Bearer of-the-header";
    let secret = ["--metadata", &metadata, "--svc-param", parameter];
    let place = Place::new();
    let shown = hides(place.run(&[&["config", "show"][..], &secret].concat()).ok());
    assert_eq!(
        shown.field("metadata"),
        r#"{"Authorization":"[redacted]","deep":{"note":"[redacted]"},"k":"[redacted]"} (flag)"#
    );
    hides(place.run(&[&["config", "show", "-o", "json"][..], &secret].concat()).ok());
    let sent = [&["send", "hi", "-a", &agent.url][..], &secret].concat();
    let ran = hides(place.run(&[&sent[..], &["--debug"]].concat()).ok());
    assert!(ran.err.contains(r#""Authorization":"[redacted]","deep":{"note":"Bearer [redacted]"},"k":1"#), "{ran:?}");
    assert!(ran.field("Resume").contains("--svc-param 'authorization:<value>'"), "{ran:?}");
    assert_eq!(agent.asked()[0].json()["params"]["metadata"]["Authorization"], SECRET);
    hides(place.run(&[&sent[..], &["--debug", "-o", "json"]].concat()));
    let named = Place::new().env("A2ACLI_METADATA", &metadata).env("A2ACLI_SVC_PARAM", parameter);
    for command in [&["config", "show"][..], &["send", "--help"], &["help", "send"]] {
        hides(named.run(command).ok());
    }
}
