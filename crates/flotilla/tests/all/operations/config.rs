//! `flotilla config` and the file it is about.

use crate::cast::{CONFIG, hub, setup};
use crate::cli::program::Place;
use flotilla_testkit::HubProcess;
use flotilla_testkit::process::OWNER;
use serde_json::Value;

/// Writes a file beside the hub's own and gives its path.
fn file(hub: &HubProcess, text: &str) -> String {
    let path = hub.dir().join("other.yaml");
    std::fs::write(&path, text).expect("the file can be written");
    path.display().to_string()
}

/// What `config check` says of a file with a mistake.
fn complaint(hub: &HubProcess, text: &str) -> String {
    let output = hub.cli(&["config", "check", "--config", &file(hub, text)]);
    assert!(!output.status.success(), "accepted: {text}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn a_right_file_is_said_to_be_right() {
    let hub = hub();
    let said = hub.cli_ok(&["config", "check", "--config", &file(&hub, CONFIG)]);
    assert!(said.contains("ok") && said.contains("mock") && said.contains("echo"), "{said}");
    assert!(hub.cli_ok(&["config", "check"]).contains("ok"), "and so are the defaults");
}

#[test]
fn an_unknown_key_is_told_with_its_line_and_what_was_meant() {
    let hub = hub();
    let said = complaint(&hub, "# first line\nhub:\n  name: Fleet\n  lisen: 127.0.0.1:1\n");
    for word in ["lisen", "did you mean 'listen'", "line 4"] {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
    let said = complaint(&hub, "agents:\n  echo:\n    kind: ecko\n");
    assert!(said.contains("ecko") && said.contains("did you mean 'echo'") && said.contains("line 3"), "{said}");
    let said = complaint(&hub, "retention:\n  evnts: 1h\n");
    assert!(said.contains("did you mean 'events'"), "{said}");
}

#[test]
fn other_mistakes_are_told_with_their_place() {
    let hub = hub();
    for (text, word) in [
        ("hub: {default_agent: nobody}", "nobody"),
        ("hub: {public_url: example.com}", "public_url"),
        ("hub: {keep_alive: soon}", "soon"),
        ("agents: {tasks: {kind: echo}}", "tasks"),
        ("agents: {'a b': {kind: echo}}", "a b"),
        ("agents: {x: {kind: script}}", "agents.x"),
        ("agents: {x: {kind: script, script: {rules: [{do: [completed, working]}]}}}", "rules[0].do[1]"),
        ("hub: {listen: nowhere}", "listen"),
        ("hub: [", "line 1"),
        ("hub: {name: \"${SURELY_NOT_SET_ANYWHERE}\"}", "SURELY_NOT_SET_ANYWHERE"),
    ] {
        let said = complaint(&hub, text);
        assert!(said.contains(word), "no {word:?} for {text:?}: {said}");
    }
}

#[test]
fn a_program_that_is_not_there_is_told_as_a_hub_does_that_starts() {
    let hub = hub();
    let text = "agents: {x: {kind: command, command: {program: /surely/not/there}}}";
    let refused = setup().config(text).refused();
    for said in [complaint(&hub, text), refused] {
        assert!(said.contains("agents.x") || said.contains("'x'"), "{said}");
        assert!(said.contains("there is no file /surely/not/there that may be run"), "{said}");
    }
    let there = file(&hub, &text.replace("/surely/not/there", "sh"));
    assert!(hub.cli_ok(&["config", "check", "--config", &there]).contains("ok, agents: x"));
}

#[test]
fn a_hub_does_not_start_with_a_mistake_in_its_file() {
    let said = setup().config("hub:\n  lisen: x\n").refused();
    assert!(said.contains("did you mean 'listen'"), "{said}");
}

#[test]
fn the_whole_configuration_is_shown_with_its_secrets_masked() {
    let hub = hub();
    let text = format!("hub: {{owner_key: {OWNER}, name: Fleet}}\nagents: {{echo: {{kind: echo}}}}");
    let shown = hub.cli_ok(&["config", "hub", "--config", &file(&hub, &text)]);
    assert!(shown.contains("Fleet") && shown.contains("***"), "{shown}");
    assert!(!shown.contains(OWNER) && !shown.contains("00aa"), "{shown}");
    for default in ["keep_alive: 15s", "127.0.0.1:7420", "window: 1d", "json_depth: 64", "sync: full"] {
        assert!(shown.contains(default), "no {default:?} in {shown}");
    }
}

#[test]
fn the_environment_counts_as_it_does_for_serve() {
    let place = || {
        let place = Place::new();
        place.file("flotilla.yaml", "agents: {echo: {kind: echo}}");
        place
    };
    let shown = place()
        .env("FLOTILLA_LISTEN", "127.0.0.1:9")
        .env("FLOTILLA_ALLOW_TARGET", "10.0.0.0/8,192.168.0.0/16")
        .env("FLOTILLA_PUBLIC_URL", "https://hub.example.com")
        .env("FLOTILLA_OWNER_KEY", OWNER)
        .run(&["config", "hub"])
        .ok()
        .out;
    for word in ["127.0.0.1:9", "192.168.0.0/16", "https://hub.example.com", "owner_key: '***'"] {
        assert!(shown.replace('"', "'").contains(word), "no {word} in {shown}");
    }
    assert!(!shown.contains(OWNER), "{shown}");
    for (name, value, told) in [
        ("FLOTILLA_OWNER_KEY", "flk_BAD", "64 hex digits"),
        ("FLOTILLA_SECRET_KEY", "short", "64 hex digits"),
        ("FLOTILLA_ALLOW_TARGET", "10.0.0.0/8,bad", "bad"),
        ("FLOTILLA_PUBLIC_URL", "hub.example.com", "http://"),
        ("FLOTILLA_LISTEN", "nowhere", "nowhere"),
    ] {
        for command in [&["config", "check"][..], &["serve", "--memory"]] {
            let ran = place().env(name, value).run(command);
            assert!(ran.code != 0 && ran.err.contains(told), "{name}, {command:?}: {ran:?}");
        }
    }
    let listen = place().run(&["config", "hub", "--listen", "127.0.0.1:9"]).ok();
    assert!(listen.out.contains("127.0.0.1:9"), "flags count too: {listen:?}");
}

#[test]
fn the_schema_describes_every_section() {
    let schema: Value = serde_json::from_str(&hub().cli_ok(&["config", "schema"])).expect("JSON");
    assert!(schema["$schema"].as_str().is_some_and(|uri| uri.contains("json-schema.org")));
    for section in ["hub", "store", "log", "limits", "retention", "idempotency", "agents"] {
        assert!(schema["properties"].get(section).is_some(), "{section}");
    }
    assert_eq!(schema["additionalProperties"], false, "unknown keys are errors for editors too");
}

#[test]
fn references_to_the_environment_are_filled_in() {
    let config = "hub: {name: \"${FLEET_NAME}\", description: \"${FLEET_TEXT:-of ships}\"}";
    let hub = setup().config(config).env("FLEET_NAME", "Armada").start();
    let card = hub.stranger(flotilla_testkit::Binding::HttpJson).get("/.well-known/agent-card.json").json();
    assert_eq!((&card["name"], &card["description"]), (&"Armada".into(), &"of ships".into()));
}

#[test]
fn logs_can_be_json() {
    let mut hub = setup().config("log: {format: json, level: debug}").start();
    hub.owner(flotilla_testkit::Binding::HttpJson).say("m", "hello");
    hub.terminate();
    let log = hub.log();
    assert!(!log.trim().is_empty(), "stopping is worth a line");
    for line in log.lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

#[test]
fn what_a_file_only_names_is_read_and_what_an_address_holds_is_not_shown() {
    let hub = hub();
    let agent = |more: &str| format!("agents:\n  far: {{kind: a2a, url: 'https://h.example/a?key=hunter2'{more}}}\n");
    let said = complaint(&hub, &agent(", auth: {bearer: 'env:FAR_NOT_SET'}"));
    assert!(said.contains("agents.far") && said.contains("FAR_NOT_SET"), "{said}");
    let said = complaint(&hub, &agent(", headers: {X-Team-Key: 'file:/nowhere/key'}"));
    assert!(said.contains("headers.X-Team-Key") && said.contains("/nowhere/key"), "{said}");
    let shown = hub.cli_ok(&["config", "hub", "--config", &file(&hub, &agent(""))]);
    assert!(shown.contains("https://h.example/a?") && !shown.contains("hunter2"), "{shown}");
}
