//! Backups, the lock on the data directory, and memory.

use crate::cast::{CONFIG, hub, id, setup, state};
use crate::cli::program::Place;
use flotilla_testkit::Binding;
use serde_json::json;

#[test]
fn a_backup_taken_while_the_hub_runs_is_restored_elsewhere() {
    let hub = hub();
    let key = hub.key("alice", &[]);
    let alice = hub.stranger(Binding::HttpJson).key(&key);
    let mut stream =
        alice.stream("SendStreamingMessage", &flotilla_testkit::client::message("m", "chunks 50")).expect("a stream");
    let events = stream.rest();
    let task = events[0].frame()["task"]["id"].as_str().expect("an id").to_owned();
    let asked = alice.say("q", "ask");
    let backup = hub.dir().join("backup.db").display().to_string();
    hub.cli_ok(&["backup", &backup]);
    alice.say("later", "complete");
    let mut other = self::hub();
    other.terminate();
    assert!(!other.cli(&["restore", &backup]).status.success(), "there is a store already");
    other.cli_ok(&["restore", "--force", &backup]);
    other.restart();
    let restored = other.stranger(Binding::HttpJson).key(&key);
    assert_eq!(restored.task(&task), alice.task(&task));
    assert_eq!(restored.task(id(&asked)), asked);
    assert_eq!(restored.call("ListTasks", &json!({})).expect("a list")["totalSize"], 2, "as of the backup");
    // Numbers may be given out again after a restore, so old cursors must not be believed.
    let client = restored.header("last-event-id", events[3].cursor());
    let replayed = client.stream("SubscribeToTask", &json!({"id": task})).expect("a stream").rest();
    assert_eq!(replayed.len(), 1);
    assert_eq!(replayed[0].frame()["task"]["metadata"][crate::streams::RESUME]["gap"], true);
    assert_ne!(replayed[0].epoch(), events[0].epoch());
}

#[test]
fn a_restore_under_a_running_hub_is_refused() {
    let hub = hub();
    let task = hub.owner(Binding::HttpJson).say("m", "complete");
    let backup = hub.dir().join("backup.db").display().to_string();
    hub.cli_ok(&["backup", &backup]);
    let output = hub.cli(&["restore", "--force", &backup]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("another hub is using"));
    assert_eq!(hub.owner(Binding::HttpJson).task(id(&task)), task);
}

#[test]
fn a_backup_overwrites_nothing_and_a_restore_takes_only_backups() {
    let mut hub = hub();
    let file = hub.dir().join("precious.txt");
    std::fs::write(&file, "precious").expect("a file");
    let name = file.display().to_string();
    assert!(!hub.cli(&["backup", &name]).status.success());
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "precious");
    let task = hub.owner(Binding::HttpJson).say("m", "complete");
    hub.terminate();
    assert!(!hub.cli(&["restore", "--force", &name]).status.success());
    assert!(!hub.cli(&["restore", "--force", "/nowhere/at/all"]).status.success());
    hub.restart();
    assert_eq!(hub.owner(Binding::HttpJson).task(id(&task)), task, "a failed restore leaves the store");
}

#[test]
fn a_second_hub_on_the_same_data_is_refused() {
    let hub = hub();
    let said = hub.second_refused();
    assert!(said.contains("another hub is using"), "{said}");
    assert_eq!(state(&hub.owner(Binding::HttpJson).say("m", "complete")), "TASK_STATE_COMPLETED");
}

#[test]
fn a_wrong_file_is_told_with_what_to_name_instead() {
    let (hub, place) = (hub(), Place::new());
    let text = place.file("t.txt", "only a text");
    let ran = place.run(&["restore", &text, "--data-dir", "data"]);
    assert!(ran.code == 1 && ran.err.contains("name one that 'flotilla backup' wrote"), "{ran:?}");
    let ran = place.run(&["backup", "nowhere/y", "--data-dir", &hub.data().display().to_string()]);
    assert!(ran.code == 1 && ran.err.contains("there is no directory nowhere; make it"), "{ran:?}");
}

#[test]
fn a_hub_in_memory_leaves_nothing_behind() {
    let mut hub = setup().config(CONFIG).arg("--memory").start();
    let owner = hub.owner(Binding::HttpJson);
    let task = owner.say("m", "complete");
    assert_eq!(owner.task(id(&task)), task);
    hub.restart();
    assert!(!hub.data().join("flotilla.db").exists());
    let refusal = hub.owner(Binding::HttpJson).call("GetTask", &json!({"id": id(&task)})).expect_err("gone");
    assert_eq!(refusal.reason, "TASK_NOT_FOUND");
}

#[cfg(unix)]
#[test]
fn the_data_is_readable_by_its_user_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let hub = hub();
    let mode = std::fs::metadata(hub.data()).expect("the data directory").permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[cfg(unix)]
#[test]
fn so_is_each_file_in_a_directory_that_others_may_look_into() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut hub = hub();
    hub.terminate();
    std::fs::remove_dir_all(hub.data()).expect("the data can be removed");
    std::fs::create_dir(hub.data()).expect("a directory can be made");
    std::fs::set_permissions(hub.data(), std::fs::Permissions::from_mode(0o755)).expect("its mode can be set");
    hub.restart();
    hub.owner(Binding::HttpJson).say("m", "complete");
    let files: Vec<_> = std::fs::read_dir(hub.data()).expect("a directory").map(|file| file.expect("a file")).collect();
    assert!(files.iter().any(|file| file.file_name() == "flotilla.db-wal"), "{files:?}");
    for file in files {
        let mode = file.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o} {file:?}");
    }
}
