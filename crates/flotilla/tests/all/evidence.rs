//! What an agent says it changed is held against what git saw, for programs of every kind, in a hub and in a worker.

use crate::cast::{id, setup, state};
use crate::socket::agent_key;
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess, WorkerProcess, scratch, until};
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

/// A repository with one commit.
fn repository() -> TempDir {
    let folder = scratch();
    std::fs::create_dir(folder.path().join("src")).expect("a folder");
    std::fs::write(folder.path().join("src/kept.txt"), "first\n").expect("a file");
    git(folder.path(), &["init", "-q", "-b", "main", "."]);
    git(folder.path(), &["config", "user.name", "A"]);
    git(folder.path(), &["config", "user.email", "a@b.example"]);
    git(folder.path(), &["add", "--all"]);
    git(folder.path(), &["commit", "-q", "-m", "first"]);
    folder
}

fn git(folder: &Path, words: &[&str]) {
    let run = std::process::Command::new("git").args(words).current_dir(folder).output().expect("git");
    assert!(run.status.success(), "{words:?}: {}", String::from_utf8_lossy(&run.stderr));
}

/// Agents that are shell scripts in a folder.
fn agents(folder: &Path, more: &str, scripts: &[(&str, &str)]) -> String {
    let agent = |(name, script): &(&str, &str)| {
        format!(
            "  {name}:\n    kind: command\n    command:\n      program: sh\n      arguments: [-c, {}]\n      folder: {}\n{more}",
            json!(script.replace("${", "$${")),
            folder.display(),
        )
    };
    format!("agents:\n  echo: {{kind: echo}}\n{}", scripts.iter().map(agent).collect::<String>())
}

/// Work under a contract, to its end.
fn dispatched(client: &Client, name: &str) -> Value {
    let mut request = message(name, "Do it");
    request["message"]["metadata"] = json!({"urn:flotilla:ext:fleet-handshake:2.0": {
        "type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": "Do it",
        "task": {"task_id": name, "reply_schema": "structured"}}});
    client.call("SendMessage", &request).expect("an answer")["task"].clone()
}

/// The hub's own word on a result: what it is, and how it stands.
fn judged(task: &Value) -> (Value, Value) {
    let artifacts = task["artifacts"].as_array().unwrap_or_else(|| panic!("no artifact in {task}"));
    let result = artifacts.iter().find(|artifact| artifact["name"] == "task-result");
    let result = result.unwrap_or_else(|| panic!("no result in {task}"));
    let standing = result["metadata"]["urn:flotilla:ext:fleet-handshake:2.0"].clone();
    (result["parts"][0]["data"].clone(), standing)
}

fn log(hub: &HubProcess, task: &Value) -> String {
    hub.owner(Binding::HttpJson).get(&format!("/api/tasks/{}/log", id(task))).text().to_owned()
}

/// Says it changed a file that it did not, after a while and in two pieces.
const LIAR: &str = r#"cat > /dev/null; printf 'Done. {"type":"TASK_RESULT","protocol_version":"2.0","status":'
sleep 0.2; echo '"done","artifacts":{"files_changed":["lie.py"],"branch":"fix"}}'"#;
/// Changes a file, adds one and commits it, and says so.
const HONEST: &str = r#"cat > /dev/null; echo more >> src/kept.txt; echo new > src/new.txt; git add --all
git commit -q -m second
echo '{"type":"TASK_RESULT","protocol_version":"2.0","status":"done","artifacts":{"files_changed":["src/kept.txt","src/new.txt"],"commits":1}}'"#;
/// Changes a file, and says nothing of the kind.
const SILENT: &str = "cat > $HOME/brief; echo x > src/silent.txt; echo Well done.";

#[test]
fn a_claim_that_git_did_not_see_is_flagged_and_not_believed() {
    let repository = repository();
    let scripts = [("liar", LIAR), ("honest", HONEST), ("silent", SILENT)];
    let config = agents(repository.path(), "", &scripts);
    let here = setup().config(&config).start();
    checked(&here, "here", here.data());
    drop(here);
    git(repository.path(), &["reset", "-q", "--hard", "HEAD~1"]);
    git(repository.path(), &["clean", "-fdq"]);
    // The same through a worker.
    let hub = setup().config("agents: {echo: {kind: echo}}\n").start();
    let worker = attached(&hub, &config.replace("  echo: {kind: echo}\n", ""));
    checked(&hub, "there", worker.state());
}

fn attached(hub: &HubProcess, config: &str) -> WorkerProcess {
    let mut worker = hub.worker("one", &hub.url(), &agent_key(hub, "station"), config);
    worker.start();
    let fleet = hub.owner(Binding::HttpJson);
    for name in ["liar", "honest", "silent"] {
        let path = format!("/api/fleet/{name}");
        until("it is announced", || (fleet.get(&path).json()["health"] == "AVAILABLE").then_some(()));
    }
    worker
}

fn checked(hub: &HubProcess, place: &str, state_folder: &Path) {
    let agent = |name: &str| hub.owner(Binding::JsonRpc).agent(name);
    let task = dispatched(&agent("liar"), &format!("{place}-1"));
    let (result, standing) = judged(&task);
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{place}: {task}");
    assert_eq!((&result["artifacts"]["files_changed"], &standing["standing"]), (&Value::Null, &json!("reported")));
    let flags: Vec<&str> = result["artifacts"]["flags"]
        .as_array()
        .expect("flags")
        .iter()
        .filter_map(|flag| flag["flag"].as_str())
        .collect();
    assert_eq!(flags, ["claimed_not_changed", "branch_differs"]);
    let held = |check: &&Value| check["name"] == "git";
    let check = standing["checks"].as_array().expect("checks").iter().find(held).expect("a check").clone();
    assert_eq!(check["ok"], false);

    let task = dispatched(&agent("honest"), &format!("{place}-2"));
    let (result, standing) = judged(&task);
    assert_eq!(standing["standing"], "accepted", "{place}: {standing} {result}");
    assert_eq!(result["other_results"], Value::Null, "what it claimed is told once: {result}");
    let made = &result["artifacts"];
    assert_eq!((&made["branch"], made["commits"].as_array().map(Vec::len)), (&json!("main"), Some(1)));
    assert_eq!((&made["diff"]["insertions"], &made["diff"]["deletions"]), (&json!(2), &json!(0)));
    let seen = log(hub, &task);
    assert!(seen.contains(r#""type":"evidence""#) && seen.contains(r#""subject":"second""#), "{seen}");

    let task = dispatched(&agent("silent"), &format!("{place}-3"));
    let (result, standing) = judged(&task);
    assert_eq!((&result["inferred"], &standing["standing"]), (&json!(true), &json!("reported")), "{task}");
    assert_eq!(result["artifacts"]["files_changed"], json!(["src/silent.txt"]));
    assert!(result["detail"].as_str().is_some_and(|detail| detail.contains("Well done.")), "{result}");
    // It was told how to end, in words: a program sees no contract.
    let brief = std::fs::read_to_string(state_folder.join("agents/silent/home/brief")).expect("its brief");
    assert!(brief.contains("Do it") && brief.contains("\"type\":\"TASK_RESULT\""), "{brief}");
}

/// Leaves nothing that git could look at, in each of several ways, and says what it likes.
const BLINDS: [(&str, &str); 5] = [
    ("pipe", "rm src/kept.txt; mkfifo src/kept.txt"),
    ("bare", "git config core.bare true"),
    ("moved", "mv .git .git2"),
    ("head", "echo garbage > .git/HEAD"),
    ("gone", "rm -rf .git/objects/*"),
];
const CLAIM: &str = r#"{"type":"TASK_RESULT","protocol_version":"2.0","status":"done","artifacts":{"files_changed":["lie.py"],"branch":"fix","commits":["0123456"]}}"#;

#[test]
fn a_run_that_has_git_see_nothing_is_not_believed() {
    for (name, blind) in BLINDS {
        let repository = repository();
        let script = format!("cat > /dev/null; {blind}; echo '{CLAIM}'");
        let hub = setup().config(&agents(repository.path(), "", &[(name, &script)])).start();
        let task = dispatched(&hub.owner(Binding::JsonRpc).agent(name), name);
        let (result, standing) = judged(&task);
        assert_eq!(standing["standing"], "reported", "{name}: {task}");
        let checks = standing["checks"].as_array().expect("checks");
        assert!(checks.iter().any(|check| check["name"] == "git" && check["ok"] == false), "{name}: {standing}");
        assert_eq!(result["artifacts"]["flags"], json!([{"flag": "not_seen", "places": ["."]}]), "{name}");
        let claims = json!(["artifacts.files_changed", "artifacts.branch", "artifacts.commits"]);
        assert_eq!((&result["unverified"], &result["other_results"]), (&claims, &Value::Null), "{name}: {result}");
    }
}

#[test]
fn a_program_below_the_root_may_name_files_from_where_it_is() {
    let repository = repository();
    let script = format!("cat > /dev/null; echo more >> kept.txt; echo '{}'", CLAIM.replace("lie.py", "kept.txt"))
        .replace(r#","branch":"fix","commits":["0123456"]"#, "");
    let hub = setup().config(&agents(&repository.path().join("src"), "", &[("below", &script)])).start();
    let (result, standing) = judged(&dispatched(&hub.owner(Binding::JsonRpc).agent("below"), "below"));
    assert_eq!(standing["standing"], "accepted", "{result}");
    assert_eq!(result["artifacts"]["files_changed"], json!(["src/kept.txt"]));
}

#[test]
fn a_program_may_have_a_tree_of_its_own_for_each_task() {
    let repository = repository();
    let folder = repository.path().join("src");
    let merged = "      git: {worktree: per-task, afterwards: merge}\n";
    let hub = setup()
        .config(&agents(
            &folder,
            merged,
            &[("worker", "pwd; echo x > made.txt"), ("broken", "echo y > broken.txt; exit 3")],
        ))
        .start();
    let agent = |name: &str| hub.owner(Binding::JsonRpc).agent(name);
    let task = agent("worker").say("m", "go");
    let worked_in = task["artifacts"][0]["parts"][0]["text"].as_str().expect("its folder").trim().to_owned();
    assert!(
        worked_in.contains("trees") && worked_in.ends_with("/src"),
        "the same place in a tree of its own: {worked_in}"
    );
    assert!(
        folder.join("made.txt").exists() && log(&hub, &task).contains(r#""worktree":"merged""#),
        "{}",
        log(&hub, &task)
    );
    assert!(!Path::new(&worked_in).exists(), "the tree is gone");
    // What did not come to its end is kept, and never merged.
    let task = agent("broken").say("m", "go");
    assert_eq!(state(&task), "TASK_STATE_FAILED");
    let seen = log(&hub, &task);
    assert!(seen.contains(r#""worktree":"kept""#) && !folder.join("broken.txt").exists(), "{seen}");
}

#[test]
fn a_folder_without_a_repository_and_one_that_nobody_wants_to_know_of_are_left_alone() {
    let (repository, plain) = (repository(), scratch());
    for (folder, more) in [(plain.path(), ""), (repository.path(), "      git: {evidence: false}\n")] {
        let hub = setup().config(&agents(folder, more, &[("silent", "echo x > made.txt; echo done")])).start();
        let task = hub.owner(Binding::JsonRpc).agent("silent").say("m", "go");
        assert_eq!(state(&task), "TASK_STATE_COMPLETED");
        assert!(!log(&hub, &task).contains("evidence"));
    }
}
