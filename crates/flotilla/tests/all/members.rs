//! The hub's own programs: members of its fleet, looked at before work under a contract, and known after a reload.

use crate::cast::{id, reached, setup, state};
use crate::worker::agents::{repository, writing};
use flotilla_testkit::{Binding, Client, HubProcess, until};
use flotilla_worker::reaper::{MARK, tree};
use serde_json::{Value, json};

fn agent(hub: &HubProcess, name: &str) -> Client {
    hub.owner(Binding::JsonRpc).agent(name)
}

fn shown(hub: &HubProcess, name: &str) -> Value {
    hub.owner(Binding::HttpJson).get(&format!("/api/fleet/{name}")).json()
}

fn program(name: &str, script: &str, more: &str) -> String {
    format!(
        "  {name}:\n    kind: command\n    command: {{program: sh, arguments: [-c, {}], grace: 300ms{more}}}\n",
        json!(script)
    )
}

#[test]
fn a_program_is_announced_and_looked_at_again_when_work_comes() {
    let folder = tempfile::tempdir().expect("a folder");
    let work = folder.path().join("work");
    repository(&work);
    let script = format!("echo began > {}/began; echo x > new; echo done", folder.path().display());
    let place = format!(", folder: '{}'", work.display());
    let hub = setup().config(&format!("agents:\n{}", program("coder", &script, &place))).start();
    let clean = |shown: &Value| shown["announce"]["session"]["repo_state"]["clean"].clone();
    let first = until("it is announced", || Some(shown(&hub, "coder")).filter(|shown| clean(shown) == true));
    assert_eq!((&first["health"], &first["via"]), (&json!("AVAILABLE"), &json!("here")));
    std::fs::write(work.join("draft"), "x").expect("a file");
    let task = agent(&hub, "coder").call("SendMessage", &writing(1)).expect("an answer")["task"].clone();
    assert_eq!(state(&task), "TASK_STATE_REJECTED", "{task}");
    // It says that the hub decided on what is not so any more, and the hub may have looked again by then.
    let told = ["stale_profile", "dirty_tree"].iter().any(|reason| task.to_string().contains(reason));
    assert!(told && !folder.path().join("began").exists(), "{task}");
    std::fs::remove_file(work.join("draft")).expect("it can be removed");
    // What a run changed is announced at once, with a new epoch.
    assert_eq!(state(&agent(&hub, "coder").say("m", "x")), "TASK_STATE_COMPLETED");
    let later = until("what the run changed is seen", || {
        Some(shown(&hub, "coder")).filter(|shown| clean(shown) == false && folder.path().join("began").exists())
    });
    assert!(later["epoch"].as_u64() > first["epoch"].as_u64());
}

#[test]
fn two_programs_do_not_change_one_repository_at_once_unless_each_task_has_its_own_tree() {
    let folder = tempfile::tempdir().expect("a folder");
    let work = folder.path().join("work");
    repository(&work);
    let place = format!(", folder: '{}'", work.display());
    let (shared, apart) = (place.clone(), format!("{place}, git: {{worktree: per-task}}"));
    let agents = ["one", "two"].map(|name| program(name, "sleep 600", &shared)).concat()
        + &["three", "four"].map(|name| program(name, "sleep 600", &apart)).concat();
    let hub = setup().config(&format!("agents:\n{agents}")).start();
    let name_of = |name: &str| {
        let looked_at = |shown: &Value| shown["announce"]["session"]["repo_state"]["clean"] == true;
        let shown = until("it is looked at", || Some(shown(&hub, name)).filter(looked_at));
        shown["announce"]["session"]["repo_state"]["repository"].clone()
    };
    assert!(name_of("one").is_string() && name_of("one") == name_of("two"), "{}", name_of("one"));
    assert!(name_of("three").is_null() && name_of("four").is_null(), "those with trees of their own do not meet");
    let given = |name: &str, number: u32| {
        let mut request = writing(number);
        request["configuration"] = json!({"returnImmediately": true});
        let task = agent(&hub, name).call("SendMessage", &request).expect("an answer")["task"].clone();
        id(&task).to_owned()
    };
    let first = given("one", 1);
    reached(&agent(&hub, "one"), &first, "TASK_STATE_WORKING");
    let refused = reached(&agent(&hub, "two"), &given("two", 2), "TASK_STATE_REJECTED");
    assert!(refused.to_string().contains("over_capacity"), "{refused}");
    for (name, number) in [("three", 3), ("four", 4)] {
        reached(&agent(&hub, name), &given(name, number), "TASK_STATE_WORKING");
    }
}

#[test]
fn a_probe_turn_of_the_hub_s_own_program_is_a_task_like_any_other() {
    let script = r#"read line; echo '{"type":"block","block":{"type":"usage","input_tokens":3}}'; echo '{"type":"status","state":"completed"}'"#;
    let config = program("probed", script, ", talk: json-lines, probe: {every: 1h}") + &program("free", "cat", "");
    let hub = setup().config(&format!("agents:\n{config}")).start();
    until("a turn that ended well", || shown(&hub, "probed")["lastSuccess"].is_string().then_some(()));
    let owner = hub.owner(Binding::HttpJson);
    assert_eq!(owner.get("/api/usage?agent=probed").json()["total"]["inputTokens"], 3);
    until("the other is looked at too", || (shown(&hub, "free")["health"] == "AVAILABLE").then_some(()));
    assert!(shown(&hub, "free")["lastSuccess"].is_null(), "nothing is paid for that was not asked for");
}

#[test]
fn a_run_is_known_after_the_configuration_was_read_again() {
    let script = "trap '' TERM HUP; (setsid sh -c 'trap \"\" TERM; sleep 600' &); echo ready; sleep 600";
    let hub = setup().config(&format!("agents:\n{}", program("s", script, ""))).start();
    let client = agent(&hub, "s");
    let task = client.start("m", "x");
    let alive = || tree::marked(MARK, |mark| mark.starts_with(&format!("{}.", id(&task)))).len();
    reached(&client, id(&task), "TASK_STATE_WORKING");
    until("its processes", || (alive() >= 3).then_some(()));
    hub.signal("HUP");
    until("it is read again", || hub.log().contains("configuration read again").then_some(()));
    assert_eq!(state(&client.task(id(&task))), "TASK_STATE_WORKING");
    let canceled = client.call("CancelTask", &json!({"id": id(&task)})).expect("it can be canceled");
    assert_eq!((state(&canceled), alive()), ("TASK_STATE_CANCELED", 0), "canceled is said when nothing is left");
}

#[test]
fn a_long_message_and_one_that_looks_like_an_option_go_to_standard_input() {
    let hub = setup().config(&format!("agents:\n{}", program("count", "wc -c", ""))).start();
    for words in [format!("--help {}", "x".repeat(300_000)), "-- -rf /".into()] {
        let task = agent(&hub, "count").say(&format!("m{}", words.len()), &words);
        let text = task["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default().trim().to_owned();
        assert_eq!(text, words.len().to_string());
    }
}
