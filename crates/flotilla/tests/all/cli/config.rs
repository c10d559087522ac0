//! Settings: flag, environment, nearest file, global file, default; and nothing else is kept.

use super::agent::{Agent, Says, card, task};
use super::program::Place;
use serde_json::{Value, json};

fn shown<'a>(settings: &'a Value, name: &str) -> (&'a str, &'a str) {
    let settings = settings["settings"].as_array().expect("settings");
    let found = settings.iter().find(|setting| setting["name"] == name).expect("the setting");
    (found["value"].as_str().unwrap_or_default(), found["source"].as_str().expect("a source"))
}

#[test]
fn the_nearest_word_counts_and_its_source_is_told() {
    let place = Place::new();
    let show =
        |place: &Place, args: &[&str]| place.run(&[&["config", "show", "-o", "json"], args].concat()).ok().json();
    assert_eq!(shown(&show(&place, &[]), "agent-card"), ("the hub (--hub)", "default"));
    let global = place.file("home/.config/a2a-cli/.env", "A2ACLI_AGENT_CARD=global\nA2ACLI_TIMEOUT=1s\n");
    assert_eq!(shown(&show(&place, &[]), "agent-card"), ("global", format!("file {global}").as_str()));
    let local = place.file(".env", "OTHER=1\nA2ACLI_AGENT_CARD='local'\n");
    let all = show(&place, &[]);
    assert_eq!(shown(&all, "agent-card"), ("local", format!("file {local}").as_str()));
    assert_eq!(shown(&all, "timeout"), ("1s", format!("file {global}").as_str()));
    let named = place.file("agents/x.env", "A2ACLI_AGENT_CARD=named\n");
    assert_eq!(shown(&show(&place, &["--config", &named]), "agent-card").0, "named");
    let place = place.env("A2ACLI_AGENT_CARD", "environment");
    let all = show(&place, &["--config", &named]);
    assert_eq!(shown(&all, "agent-card"), ("environment", "environment A2ACLI_AGENT_CARD"));
    assert_eq!(shown(&show(&place, &["-a", "flag"]), "agent-card"), ("flag", "flag"));
}

#[test]
fn a_file_can_be_chosen_for_an_agent() {
    let agent = Agent::start(
        card(json!({"securitySchemes": {"b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}}})),
        |_, _| Says::Result(json!({"task": task("COMPLETED")})),
    );
    let place = Place::new();
    let file =
        place.file("odd.env", format!("A2ACLI_AGENT_CARD={}\nA2ACLI_BEARER=tok-9\nA2ACLI_OUTPUT=json\n", agent.url));
    place.run(&["send", "hi", "--config", &file]).ok().json();
    assert_eq!(agent.asked()[0].header("authorization"), Some("Bearer tok-9"));
    let ran = place.run(&["send", "hi", "--config", "nowhere.env"]);
    assert!(ran.code == 2 && ran.err.contains("nowhere.env"), "{ran:?}");
}

#[test]
fn a_file_is_found_above_the_working_directory() {
    let place = Place::new();
    place.file(".env", "A2ACLI_OUTPUT=json\n");
    place.file("deep/er/x", "");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_flotilla"));
    let output = command.args(["config", "show"]).current_dir(place.dir().join("deep/er")).output().expect("it runs");
    serde_json::from_slice::<Value>(&output.stdout).expect("JSON, because the file above says so");
}

#[test]
fn secrets_are_masked_and_a_file_others_can_read_is_warned_of() {
    let place = Place::new();
    place.file(".env", "A2ACLI_BEARER=tok-secret\nA2ACLI_CLIENT_SECRET=cs-secret\n");
    let ran = place.run(&["config", "show", "--api-key", "key-secret", "--svc-param", "a:svc-secret"]).ok();
    for secret in ["tok-secret", "cs-secret", "key-secret", "svc-secret"] {
        assert!(!ran.out.contains(secret) && !ran.err.contains(secret), "{ran:?}");
    }
    assert!(ran.out.contains("bearer: [redacted] (file"), "{ran:?}");
    assert!(ran.err.contains("chmod 600"), "{ran:?}");
}

#[test]
fn settings_are_shown_and_never_changed() {
    let place = Place::new();
    place.file(".env", "A2ACLI_TIMEOUT=5s\n");
    place.run(&["config", "show"]).ok();
    assert_eq!(std::fs::read_to_string(place.dir().join(".env")).expect("the file"), "A2ACLI_TIMEOUT=5s\n");
    assert_eq!(std::fs::read_dir(place.dir()).expect("a directory").count(), 1, "nothing is written");
    assert_eq!(place.run(&["config", "set", "x"]).code, 2);
}

#[test]
fn nonsense_in_the_environment_is_a_usage_error() {
    for (name, value) in [
        ("A2ACLI_OUTPUT", "xml"),
        ("A2ACLI_TIMEOUT", "x"),
        ("A2ACLI_DEBUG", "perhaps"),
        ("A2ACLI_SVC_PARAM", "a=b"),
        ("A2ACLI_METADATA", "["),
    ] {
        let ran = Place::new().env(name, value).run(&["send", "hi"]);
        assert!(ran.code == 2 && ran.err.contains(&format!("Message: {name}")), "it says where it was said: {ran:?}");
    }
}

#[test]
fn every_setting_can_be_tried_out_as_a_flag() {
    let place = Place::new();
    for (flag, value) in [
        ("--poll-interval", "7s"),
        ("--context-id", "c"),
        ("--task-id", "t"),
        ("--metadata", "{\"a\": \"b@c\"}"),
        ("--client-id", "i"),
        ("--client-secret", "s3cr3t"),
        ("--timeout", "1m"),
    ] {
        let settings = place.run(&["config", "show", "-o", "json", flag, value]).ok().json();
        let expected = match flag {
            "--client-secret" => "[redacted]",
            "--metadata" => "{\"a\":\"[redacted]\"}",
            _ => value,
        };
        assert_eq!(shown(&settings, flag.trim_start_matches('-')), (expected, "flag"));
    }
    let settings = place.run(&["config", "show", "-o", "json", "--async"]).ok().json();
    assert_eq!(shown(&settings, "async"), ("true", "flag"));
}

#[test]
fn the_hub_and_its_key_are_among_the_settings() {
    let place = Place::new().env("FLOTILLA_URL", "hub.example").env("FLOTILLA_KEY", "flk_secret");
    let settings = place.run(&["config", "show", "-o", "json"]).ok().json();
    assert_eq!(shown(&settings, "hub"), ("hub.example", "environment FLOTILLA_URL"));
    assert_eq!(shown(&settings, "hub-key"), ("[redacted]", "environment FLOTILLA_KEY"));
    let settings = place.run(&["config", "show", "-o", "json", "--hub", "other"]).ok().json();
    assert_eq!(shown(&settings, "hub"), ("other", "flag"));
    let settings = Place::new().run(&["config", "show", "-o", "json"]).ok().json();
    assert_eq!(shown(&settings, "hub-key"), ("", "default"));
}
