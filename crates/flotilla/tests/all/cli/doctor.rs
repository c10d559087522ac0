//! `doctor`: finds what is wrong, says what to do, and says nothing is wrong when nothing is.

use super::agent::{Agent, Says, card};
use super::program::{Place, Ran};
use crate::cast::{CONFIG, hub};
use flotilla_testkit::process::OWNER;
use flotilla_testkit::{HubProcess, until};
use serde_json::{Value, json};
use std::net::TcpListener;

fn examined(place: &Place, hub: &HubProcess, args: &[&str]) -> Ran {
    let data = hub.data().display().to_string();
    let file = place.file("hub.yaml", CONFIG.replace("hub:\n", "hub:\n  listen: 127.0.0.1:0\n"));
    place.run(&[&["doctor", "--data-dir", &data, "--config", &file], args].concat())
}

/// All problems about something, with the advice.
fn advice(ran: &Ran, about: &str) -> String {
    let all = ran.json()["findings"].clone();
    let problem = |found: &&Value| found["level"] == "problem" && found["about"] == about;
    let found: Vec<&Value> = all.as_array().into_iter().flatten().filter(problem).collect();
    assert!(!found.is_empty(), "no problem about {about}: {ran:?}");
    assert!(found.iter().all(|found| found["do"].as_str().is_some_and(|advice| !advice.is_empty())), "{ran:?}");
    found.iter().map(|found| format!("{}: {}\n", found["what"], found["do"])).collect()
}

/// A port that a program uses which is no hub, and its address.
fn taken_port() -> (TcpListener, String) {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    (taken, address)
}

#[test]
fn a_healthy_hub_has_no_problems() {
    let hub = hub();
    let ran = examined(&Place::at(&hub), &hub, &[]).ok();
    assert_eq!(ran.field("Problems"), "0");
    for words in [
        "Ok: settings",
        "Ok: configuration",
        "Ok: clock",
        "Ok: store",
        "in use by a hub",
        "Ok: keys: FLOTILLA_KEY is the key 'owner'",
        "Ok: hub",
        "agent mock answers over JSONRPC, HTTP+JSON, GRPC",
        "agent still answers",
    ] {
        assert!(ran.out.contains(words), "no {words:?} in {}", ran.out);
    }
}

#[test]
fn each_thing_that_is_wrong_is_found_with_what_to_do() {
    let hub = hub();
    let wrong = Place::at(&hub).env("FLOTILLA_KEY", "flk_short").env("A2ACLI_BEARRER", "x");
    let ran = examined(&wrong, &hub, &["-o", "json"]);
    assert_eq!(ran.code, 1);
    assert!(advice(&ran, "keys").contains("64 hex digits"), "{ran:?}");
    assert!(advice(&ran, "settings").contains("A2ACLI_BEARER"), "{ran:?}");
    assert!(advice(&ran, "agents").contains("not valid here"), "{ran:?}");

    let place = Place::at(&hub);
    let bad = place.file("bad.yaml", "hub: {lisen: x}");
    let ran = place.run(&["doctor", "--config", &bad, "-o", "json"]);
    assert!(ran.code == 1 && advice(&ran, "configuration").contains("lisen"), "{ran:?}");

    let (_other_program, address) = taken_port();
    let taken = place.file("taken.yaml", format!("hub: {{listen: {address}}}"));
    let ran = place.run(&["doctor", "--config", &taken, "--hub", "http://127.0.0.1:1", "-o", "json"]);
    assert_eq!(ran.code, 1);
    assert!(advice(&ran, "port").contains("--listen"), "{ran:?}");
    assert!(advice(&ran, "hub").contains("flotilla serve"), "{ran:?}");
}

#[test]
fn a_broken_store_and_a_revoked_key_are_found() {
    let hub = hub();
    let key = hub.key("alice", &[]);
    hub.cli_ok(&["keys", "revoke", "alice"]);
    let ran = examined(&Place::at(&hub).env("FLOTILLA_KEY", &key), &hub, &["-o", "json"]);
    assert!(ran.code == 1 && advice(&ran, "keys").contains("revoked"), "{ran:?}");

    let place = Place::new();
    place.file("data/flotilla.db", "this is not a database, and long enough to be taken for one ".repeat(20));
    let ran = place.run(&["doctor", "--data-dir", "data", "-o", "json"]);
    assert!(ran.code == 1 && advice(&ran, "store").contains("flotilla restore"), "{ran:?}");
    assert!(advice(&ran, "store").contains("chmod 700"), "{ran:?}");
}

#[test]
fn an_agent_elsewhere_is_looked_at_too() {
    let hub = hub();
    let place = Place::at(&hub);
    let sick = Agent::start(card(json!({"version": ""})), |_, _| Says::Json(json!("no")));
    let ran = examined(&place, &hub, &["-o", "json", "--agent-card", &sick.url]);
    assert!(ran.code == 1 && advice(&ran, "agents").contains("version must be"), "{ran:?}");
    let well = Agent::start(card(json!({})), |_, _| Says::Error(-32601, "no lists here"));
    examined(&place, &hub, &["--agent-card", &well.url]).ok();
    let configured = Place::at(&hub).env("A2ACLI_AGENT_CARD", &sick.url);
    assert_eq!(examined(&configured, &hub, &[]).code, 1, "also where the environment names it");
    let ran = examined(&place, &hub, &["-o", "json", "--agent-card", "http://127.0.0.1:1"]);
    assert!(ran.code == 1 && advice(&ran, "agents").contains("cannot reach"), "{ran:?}");
}

#[test]
fn an_agent_that_the_hub_does_not_reach_and_a_port_of_another_program_are_found() {
    let far = "  far: {kind: a2a, url: \"http://127.0.0.1:1\"}\n";
    let hub = crate::cast::hub_with(far);
    let place = Place::at(&hub);
    let (_other_program, address) = taken_port();
    let file = place.file("hub.yaml", format!("hub: {{listen: {address}}}\nagents:\n{far}"));
    until("it was looked at", || {
        let ran = place.run(&["doctor", "--config", &file, "-o", "json"]);
        assert!(advice(&ran, "port").contains("stop the program that uses it"), "{ran:?}");
        ran.out.contains("finds the agent far unreachable").then_some(())
    });
    let ran = place.run(&["doctor", "--config", &file]);
    assert_eq!(ran.out.matches("agent far").count(), 1, "told once, and not as one that answers: {ran:?}");
    let nowhere = place.run(&["doctor", "--config", &file, "--data-dir", "/proc/nope", "-o", "json"]);
    assert!(advice(&nowhere, "store").contains("cannot be made"), "{nowhere:?}");
}

#[test]
fn the_hubs_door_is_not_taken_for_the_agent_behind_it() {
    let (there, near) = (hub(), "  near: {kind: socket}\n");
    let far = format!("  far: {{kind: a2a, url: \"{}/agents/mock\"}}\n", there.url().trim_end_matches('/'));
    let hub = crate::cast::hub_with(&format!("{far}{near}"));
    let place = Place::at(&hub);
    let file = place.file("hub.yaml", format!("hub: {{listen: '127.0.0.1:0'}}\nagents:\n{far}{near}"));
    until("it was looked at", || {
        let ran = place.run(&["doctor", "--config", &file, "--data-dir", "nowhere"]);
        let absent = "Note: agents: agent near dials in, and is not connected";
        assert!(ran.out.contains(absent) && !ran.out.contains("agent near answers"), "{ran:?}");
        ran.out.contains("agent far answers over JSONRPC, HTTP+JSON, GRPC, and the hub reaches it").then_some(())
    });
}

#[test]
fn a_hub_that_is_reached_in_another_way_has_its_own_port() {
    let (hub, other) = (hub(), hub());
    let place = Place::at(&other);
    let listen = hub.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let far = "agents:\n  far: {kind: a2a, url: \"http://127.0.0.1:1\"}\n";
    let file = place.file("hub.yaml", format!("hub: {{listen: {listen}}}\n{far}"));
    let ran = place.run(&["doctor", "--config", &file]);
    assert!(ran.out.contains(&format!("Ok: port: {listen} is taken, and a hub answers")), "{ran:?}");
    let alone = place.run(&["doctor", "--config", &file, "--hub", "http://127.0.0.1:1"]);
    assert!(alone.out.contains("whether the agent far can be reached is not known"), "{alone:?}");
}

#[test]
fn another_program_is_not_taken_for_the_hub() {
    let other = Agent::start(card(json!({})), |_, _| Says::Json(json!({"status": "ok"})));
    let place = Place::new();
    let listen = other.url.trim_start_matches("http://");
    let file = place.file("hub.yaml", format!("hub: {{listen: {listen}}}"));
    let ran = place.run(&["doctor", "--config", &file, "--data-dir", "nowhere", "-o", "json"]);
    assert!(advice(&ran, "port").contains("is taken by another program"), "{ran:?}");
    assert!(ran.out.contains("is another program and no hub"), "{ran:?}");
    assert!(!ran.out.contains("is ready") && !ran.out.contains("a hub answers"), "{ran:?}");
    let ran = place.run(&["doctor", "--data-dir", "nowhere", "--hub", &other.url, "-o", "json"]);
    assert!(advice(&ran, "hub").contains("no hub (HTTP 200)"), "{ran:?}");
}

#[test]
fn a_configuration_that_is_refused_leads_to_no_other_hub() {
    let hub = hub();
    let place = Place::new();
    let bad = place.file("bad.yaml", "hub: {lisen: x, data_dir: elsewhere}");
    let ran = place.run(&["doctor", "--config", &bad]);
    assert!(ran.code == 1 && ran.out.contains("not looked at, as it says where they are: store, hub, port"), "{ran:?}");
    for unseen in ["hub: ", "store: ", "port: ", "keys: "] {
        assert!(!ran.out.contains(unseen), "{ran:?}");
    }
    let data = hub.data().display().to_string();
    let ran = place.run(&["doctor", "--config", &bad, "--data-dir", &data, "--hub", &hub.url()]);
    assert!(ran.out.contains("not looked at, as it says where they are: port"), "{ran:?}");
    assert!(ran.out.contains("in use by a hub") && ran.out.contains("is ready"), "what is named is looked at: {ran:?}");
}

#[test]
fn a_machine_without_a_hub_is_no_patient() {
    let place = Place::new();
    let file = place.file("hub.yaml", "hub: {listen: \"127.0.0.1:0\"}");
    let ran = place.run(&["doctor", "--config", &file, "--data-dir", "nowhere"]);
    // A hub of somebody else's may answer at the usual port; it is not this test's business.
    assert!(ran.out.contains("nowhere does not exist yet"), "{ran:?}");
    assert!(!place.dir().join("nowhere").exists(), "looking changes nothing");
}

#[test]
fn the_environment_counts_as_it_does_for_serve() {
    let (_other_program, address) = taken_port();
    let elsewhere = |name: &str, value: &str| {
        let place = Place::new().env(name, value);
        place.run(&["doctor", "--data-dir", "nowhere", "--hub", "http://127.0.0.1:1", "-o", "json"])
    };
    let ran = elsewhere("FLOTILLA_LISTEN", &address);
    assert!(ran.code == 1 && advice(&ran, "port").contains(&address), "{ran:?}");
    assert!(advice(&ran, "port").contains("FLOTILLA_LISTEN"), "{ran:?}");
    let ran = elsewhere("FLOTILLA_LISTEN", "everywhere");
    assert!(advice(&ran, "configuration").contains("FLOTILLA_LISTEN is 'everywhere'"), "{ran:?}");
    let ran = elsewhere("FLOTILLA_PUBLIC_URL", "example.com");
    assert!(advice(&ran, "configuration").contains("public-url"), "{ran:?}");
    let ran = elsewhere("FLOTILLA_OWNER_KEY", "flk_short");
    assert!(advice(&ran, "keys").contains("FLOTILLA_OWNER_KEY"), "{ran:?}");
    assert!(!ran.out.contains("flk_short"), "{ran:?}");
}

#[test]
fn a_preset_key_that_is_not_in_use_yet_is_no_problem() {
    let hub = hub();
    let other = format!("flk_{}", "b".repeat(64));
    let ran = examined(&Place::at(&hub).env("FLOTILLA_OWNER_KEY", &other), &hub, &[]).ok();
    assert!(ran.out.contains("Note: keys: the preset owner's key"), "{ran:?}");
    let ran = examined(&Place::at(&hub).env("FLOTILLA_OWNER_KEY", OWNER), &hub, &[]).ok();
    assert!(!ran.out.contains("preset"), "{ran:?}");
}

#[test]
fn what_the_advice_names_can_be_done() {
    let hub = hub();
    let place = Place::at(&hub);
    let ran = examined(&place, &hub, &["-o", "json", "--agent-card", "http://127.0.0.1:1"]);
    assert!(advice(&ran, "agents").contains("--debug"), "{ran:?}");
    let ran = examined(&place, &hub, &["-o", "json", "--agent-card", "http://127.0.0.1:1", "--debug"]);
    assert!(ran.code == 1 && ran.err.contains("> GET http://127.0.0.1:1/"), "{ran:?}");
}

#[test]
fn a_program_that_is_not_there_is_told_once() {
    let place = Place::new();
    let agents =
        "agents: {y: {kind: command, command: {program: /nope}}, z: {kind: command, command: {program: nope}}}";
    let file = place.file("hub.yaml", format!("hub: {{listen: '127.0.0.1:0'}}\n{agents}\n"));
    let args = ["doctor", "--config", &file, "--data-dir", "data", "--hub", "http://127.0.0.1:1"];
    let ran = place.run(&args);
    assert!(ran.out.contains("there is no file /nope that may be run"), "{ran:?}");
    assert!(ran.out.contains("there is no 'nope' in ") && ran.out.matches("the whole path").count() == 1, "{ran:?}");
    assert!(!ran.out.contains("Announces"), "{ran:?}");
    let told = place.run(&[&args[..], &["-o", "json"]].concat()).json();
    assert!(told["announcements"]["y"]["session"]["broken"].is_string(), "{told}");
}

#[test]
fn the_hub_that_is_looked_at_is_the_one_the_configuration_describes() {
    let far = "  far: {kind: a2a, url: \"http://127.0.0.1:1\"}\n";
    let hub = crate::cast::hub_with(far);
    let place = Place::new().env("FLOTILLA_KEY", OWNER);
    let config = format!("{CONFIG}\n{far}").replace("hub:\n", &format!("hub:\n  listen: {}\n", hub.address()));
    let file = place.file("hub.yaml", config);
    until("the agent that is away is found", || {
        let ran = place.run(&["doctor", "--config", &file]);
        assert!(ran.out.contains(&format!("Ok: hub: {} is ready", hub.url())), "{ran:?}");
        ran.out.contains("finds the agent far unreachable").then_some(())
    });
    let ran = place.env("FLOTILLA_URL", "http://127.0.0.1:1").run(&["doctor", "--config", &file]);
    assert!(ran.out.contains("no hub answers at http://127.0.0.1:1"), "what is named counts more: {ran:?}");
}

#[test]
fn a_variable_that_is_no_setting_leads_to_none_that_is_unlike_it() {
    let place = Place::new().env("A2ACLI_STREAM", "1").env("A2ACLI_ZZZ", "1");
    let ran = place.run(&["doctor", "--hub", "http://127.0.0.1:1", "-o", "json"]);
    let told = advice(&ran, "settings");
    assert!(told.contains("--stream is only ever written on the command line"), "{told}");
    assert!(told.contains("config show lists") && !told.contains("did you mean"), "{told}");
}

#[test]
fn what_a_start_would_be_refused_for_is_found_by_doctor_and_check() {
    let lost = "hub: {secret_key_file: /nonexist/k}";
    let unset = "agents: {far: {kind: a2a, url: 'http://a.test', auth: {bearer: 'env:NOT_SET'}}}";
    for (file, variable, settings, about, words) in [
        ("secret.key", "", "", "secret", "put the file back from a copy"),
        ("signing-keys.json", "", "", "signing keys", "put the file back from a copy"),
        ("other", "zz", "", "secret", "correct FLOTILLA_SECRET_KEY"),
        ("other", "", lost, "secret", "hub.secret_key_file"),
        ("other", "", unset, "agent", "NOT_SET"),
    ] {
        let place = Place::new().env("FLOTILLA_SECRET_KEY", variable).env("FLOTILLA_LISTEN", "127.0.0.1:0");
        place.file(&format!("data/{file}"), "nonsense");
        place.file("flotilla.yaml", settings);
        let ran = place.run(&["doctor", "--data-dir", "data", "-o", "json"]);
        assert!(ran.code == 1 && advice(&ran, about).contains(words), "{ran:?}");
        let checked = place.run(&["config", "check", "--data-dir", "data"]);
        let served = place.run(&["serve", "--data-dir", "data"]);
        assert_eq!((served.code, served.err), (1, checked.err), "both say the same");
    }
}

#[test]
fn the_advice_is_for_the_agent_that_refused() {
    let scheme = json!({"b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}});
    let locked = card(json!({"securitySchemes": scheme, "securityRequirements": [{"schemes": {"b": {"list": []}}}]}));
    let agent = Agent::start(locked, |_, _| Says::Status(401, json!({})));
    let place = Place::new().env("A2ACLI_BEARER", "wrong").env("FLOTILLA_LISTEN", "127.0.0.1:0");
    let ran = place.run(&["doctor", "-a", &agent.url, "-o", "json"]);
    let told = advice(&ran, "agents");
    assert!(told.contains("whoever runs the agent") && told.contains("A2ACLI_BEARER"), "{told}");
    assert!(!told.contains("keys create"), "a key of the hub is nothing there: {told}");
}

#[test]
fn a_store_without_an_owners_key_is_no_problem_as_a_start_makes_one() {
    let place = Place::new().env("FLOTILLA_LISTEN", "127.0.0.1:0");
    let (_other_program, address) = taken_port();
    let failed = place.run(&["serve", "--data-dir", "data", "--listen", &address]);
    assert!(failed.code == 1 && failed.err.contains("listening on"), "{failed:?}");
    let ran = place.run(&["doctor", "--data-dir", "data"]).ok();
    assert!(ran.out.contains("Note: keys: there is no owner's key in use"), "{ran:?}");
    assert!(ran.out.contains("flotilla serve makes one and prints it"), "{ran:?}");
}

#[test]
fn a_hub_that_runs_without_an_owners_key_is_started_again_for_one() {
    let hub = hub();
    let refused = hub.cli(&["keys", "revoke", "owner"]);
    assert!(refused.status.success(), "{refused:?}");
    let ran = examined(&Place::at(&hub), &hub, &["-o", "json"]);
    assert!(advice(&ran, "keys").contains("start the hub again"), "{ran:?}");
}
