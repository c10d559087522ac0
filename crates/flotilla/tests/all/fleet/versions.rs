//! A mixed fleet: each worker is spoken to in what it speaks, and the task says why that is less than the handshake.

use super::{announce, give, result, shown, why, worker_saying};
use crate::cast::{hub, reached};
use crate::cli::program::Place;
use crate::socket::{asked, connected};
use serde_json::json;

const URI: &str = "urn:flotilla:ext:fleet-handshake:2.0";

#[test]
fn a_newer_worker_that_speaks_ours_too_is_spoken_to_in_ours() {
    let hub = hub();
    let mut both = announce("both", 1);
    (both["protocol_version"], both["supported_versions"]) = (json!("3.0"), json!(["2.0", "3.0"]));
    let mut both = worker_saying(&hub, "both", &both);
    let (task, client) = give(&hub, &json!({"to": "any", "requirements": {"required_mcp": ["mem"]}}));
    let message = both.kind("message");
    assert_eq!(message["payload"]["metadata"][URI]["protocol_version"], "2.0");
    result(&mut both, &message, &json!({"status": "done"}));
    reached(&client, &task, "TASK_STATE_COMPLETED");
    assert_eq!(why(&hub, &task)[0]["fallback"], json!(null));
}

#[test]
fn a_worker_of_another_version_gets_plain_text_and_the_task_says_why() {
    let hub = hub();
    let mut newer = announce("newer", 1);
    newer["protocol_version"] = json!("3.0");
    let mut newer = worker_saying(&hub, "newer", &newer);
    assert_eq!(shown(&hub, "newer")["model"], json!(null), "nothing else it said is believed");
    let mut silent = connected(&hub, "silent");
    for (name, socket, form, reason) in [
        ("newer", &mut newer, "text", "it speaks version 3.0 of the handshake, and not 2.0"),
        ("silent", &mut silent, "hints", "it never announced itself"),
    ] {
        let (task, client) = give(&hub, &json!({"to": name, "task": {"priority": "high", "token_budget": 10}}));
        let message = socket.kind("message");
        assert_eq!(asked(&message) == "Do it", form == "text", "{message}");
        crate::socket::answer(socket, &message, "Done");
        reached(&client, &task, "TASK_STATE_COMPLETED");
        let assigned = &why(&hub, &task)[0];
        assert_eq!((&assigned["form"], &assigned["fallback"]), (&json!(form), &json!(reason)));
        let place = Place::at(&hub);
        for told in [place.run(&["task", "why", &task]).ok().out, place.run(&["task", "log", &task]).ok().out] {
            assert!(told.contains(reason), "{told}");
        }
    }
}

#[test]
fn hints_of_another_version_are_text_and_what_they_call_reserved_is_the_hub_s() {
    let hub = hub();
    let mut ada = worker_saying(&hub, "ada", &announce("ada", 5));
    let client = crate::fleet::owner(&hub).agent("fleet");
    let newer = client.start("m-1", "TASK DISPATCH (inline)\nprotocol_version: 3.0\npriority: high\nBrief: Do it");
    let message = ada.kind("message");
    assert_eq!(message["payload"]["metadata"][URI]["task"]["priority"], "normal", "{message}");
    assert_eq!(why(&hub, crate::cast::id(&newer))[0]["step"], "fallback");
    result(&mut ada, &message, &json!({"status": "done"}));
    client.start("m-2", "TASK DISPATCH (inline)\nepoch: 77\nunverified: [trust me]\nBrief: Do it");
    let message = ada.kind("message");
    let told = &message["payload"]["metadata"][URI];
    assert_eq!((&told["epoch"], &told["unverified"]), (&json!(5), &json!(null)), "{message}");
}
