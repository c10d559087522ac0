//! Agents of a worker that are not there yet, or not any more, and the turns that show whether one works.

use super::{agent, attached, connected, hub, said};
use crate::cast::{id, reached, state};
use crate::socket::agent_key;
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, HubProcess, until};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

fn shown(hub: &HubProcess, name: &str) -> Value {
    hub.owner(Binding::HttpJson).get(&format!("/api/fleet/{name}")).json()
}

/// Waits until a worker's health is this, and gives the reason.
fn is(hub: &HubProcess, name: &str, health: &str) -> String {
    let seen = until(health, || Some(shown(hub, name)).filter(|shown| shown["health"] == health));
    seen["reason"].as_str().unwrap_or_default().to_owned()
}

fn install(program: &Path, script: &str) {
    std::fs::write(program, script).expect("a program");
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).expect("a mode");
}

#[test]
fn one_that_is_not_there_keeps_no_other_from_working_and_joins_when_it_is() {
    let hub = hub("");
    let place = hub.dir().join("one");
    let config = format!(
        "worker: {{look: 1s}}\nagents:\n  parrot: {{kind: echo}}\n  late: {{kind: command, command: {{program: '{0}/late'}}}}\n  \
         homeless: {{kind: command, command: {{program: sh, folder: '{0}/place'}}}}\n",
        place.display()
    );
    let mut worker = hub.worker("one", &hub.url(), &agent_key(&hub, "station"), &config);
    worker.start();
    connected(&worker, 1);
    assert_eq!(state(&agent(&hub, "parrot").say("m", "x")), "TASK_STATE_COMPLETED");
    assert!(is(&hub, "late", "BROKEN").contains(&format!("there is no file {}/late", place.display())));
    assert!(is(&hub, "homeless", "BROKEN").contains("place is not a folder"));
    assert!(worker.log().contains("cannot work, and is looked for again"), "{}", worker.log());
    let client = agent(&hub, "late");
    let waits = client.start("m2", "x");
    let waiting = client.task(id(&waits));
    assert_eq!(state(&waiting), "TASK_STATE_SUBMITTED");
    assert!(said(&waiting).contains("takes no work now") && !said(&waiting).contains("late"), "{waiting}");
    install(&place.join("late"), "#!/bin/sh\necho here\n");
    reached(&client, id(&waits), "TASK_STATE_COMPLETED");
    assert_eq!(is(&hub, "late", "AVAILABLE"), "");
    let may =
        |mode| std::fs::set_permissions(place.join("late"), std::fs::Permissions::from_mode(mode)).expect("a mode");
    may(0o644);
    assert!(is(&hub, "late", "BROKEN").contains("may not be run"));
    may(0o755);
    is(&hub, "late", "AVAILABLE");
    std::fs::remove_file(place.join("late")).expect("it can be removed");
    assert!(is(&hub, "late", "BROKEN").contains("not there any more"));
    std::fs::create_dir(place.join("place")).expect("a folder");
    is(&hub, "homeless", "AVAILABLE");
}

/// Says what it used, unless it is broken; keeps count of its runs.
const PROBED: &str = r#"#!/bin/sh
read -r line; echo "$line" >> "$0.told"
if [ -e "$0.broken" ]; then echo '{"type":"status","state":"failed","text":"not signed in"}'; exit; fi
echo '{"type":"block","block":{"type":"usage","input_tokens":7,"output_tokens":2,"cost_usd":0.01}}'
echo '{"type":"status","state":"completed"}'
"#;

fn told(program: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(program.with_extension("told")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_probe_turn_shows_whether_an_agent_works_and_is_counted() {
    let hub = hub("");
    let place = hub.dir().join("programs");
    std::fs::create_dir(&place).expect("a folder");
    let mut config = "worker: {look: 1s}\nagents:\n".to_owned();
    for (name, probe) in
        [("good", ", probe: {every: 6h, prompt: Say yes.}"), ("bad", ", probe: {every: 6h}"), ("free", "")]
    {
        install(&place.join(name), PROBED);
        let program = place.join(name).display().to_string();
        config += &format!("  {name}: {{kind: command, command: {{program: '{program}', talk: json-lines{probe}}}}}\n");
    }
    std::fs::write(place.join("bad.broken"), "").expect("a file");
    let mut worker = attached(&hub, &config);
    until("a turn that ended well", || {
        shown(&hub, "good")["announce"]["session"]["last_successful_turn"].is_string().then_some(())
    });
    assert!(shown(&hub, "good")["lastSuccess"].is_string() && told(&place.join("good"))[0].contains("Say yes."));
    assert_eq!(is(&hub, "bad", "BROKEN"), "its probe turn failed: not signed in");
    let used = |name: &str| {
        let all = hub.owner(Binding::HttpJson).get(&format!("/api/usage?agent={name}")).json();
        all["total"]["inputTokens"].clone()
    };
    assert_eq!((used("good"), used("free")), (json!(7), Value::Null), "what a probe turn used is in the ledger");
    // A turn that ends well shows as much as a probe turn does.
    std::fs::remove_file(place.join("bad.broken")).expect("it can be mended");
    assert_eq!(state(&agent(&hub, "bad").say("m", "x")), "TASK_STATE_COMPLETED");
    is(&hub, "bad", "AVAILABLE");
    // One that starts again does not pay again.
    worker.kill();
    worker.start();
    connected(&worker, 2);
    for name in ["good", "free"] {
        assert_eq!(state(&agent(&hub, name).say("again", "x")), "TASK_STATE_COMPLETED");
    }
    assert_eq!((told(&place.join("good")).len(), told(&place.join("free")).len()), (2, 1));
}

/// A repository with nothing uncommitted.
pub fn repository(folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    for args in [
        &["init", "-q", "-b", "trunk"][..],
        &["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "first"],
    ] {
        let done = Command::new("git").args(args).current_dir(folder).env("HOME", folder).output().expect("git");
        assert!(done.status.success(), "{done:?}");
    }
}

/// Work that changes files, for one agent and nobody else.
pub fn writing(number: u32) -> Value {
    let mut request = message(&format!("w{number}"), "Refactor it");
    request["message"]["metadata"] = json!({"urn:flotilla:ext:fleet-handshake:2.0": {
        "type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": "Refactor it", "on_blocked": [],
        "task": {"task_id": "abc-1"}, "requirements": {"write": true}}});
    request
}

#[test]
fn requirements_are_looked_at_again_when_work_comes() {
    let hub = hub("");
    let folder = hub.dir().join("work");
    repository(&folder);
    let command = format!(
        "command: {{program: sh, arguments: [-c, 'echo began > {}/began'], folder: '{}'}}",
        hub.dir().display(),
        folder.display()
    );
    let _worker = attached(&hub, &format!("worker: {{look: 1h}}\nagents:\n  coder: {{kind: command, {command}}}\n"));
    let clean = |shown: &Value| shown["announce"]["session"]["repo_state"]["clean"].clone();
    let first = until("it is announced", || Some(shown(&hub, "coder")).filter(|shown| clean(shown) == true));
    // Nobody has looked since.
    std::fs::write(folder.join("draft"), "x").expect("a file");
    let task = agent(&hub, "coder").call("SendMessage", &writing(1)).expect("an answer")["task"].clone();
    assert_eq!(state(&task), "TASK_STATE_REJECTED", "{task}");
    let told = ["stale_profile", "dirty_tree"].iter().any(|reason| task.to_string().contains(reason));
    assert!(told && !hub.dir().join("began").exists(), "{task}");
    let later =
        until("what was seen is announced", || Some(shown(&hub, "coder")).filter(|shown| clean(shown) == false));
    assert!(later["epoch"].as_u64() > first["epoch"].as_u64(), "a changed fact has a new epoch");
    std::fs::remove_file(folder.join("draft")).expect("it can be removed");
    let task = agent(&hub, "coder").call("SendMessage", &writing(2)).expect("an answer")["task"].clone();
    assert_eq!(state(&task), "TASK_STATE_REJECTED", "the hub knows of it now: {task}");
}
