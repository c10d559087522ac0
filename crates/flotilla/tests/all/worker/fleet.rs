//! A worker among others: announced as it is, asked about by its owner, and careful about what it takes.

use super::{agent, alive, attached, config, connected, hub, log, made, said};
use crate::cast::{id, reached, setup, state};
use crate::socket::agent_key;
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Request, until};
use serde_json::{Value, json};
use std::process::Command;

#[test]
fn what_is_seen_of_an_agent_is_announced() {
    let hub = hub("");
    let mut worker = hub.worker(
        "one",
        &hub.url(),
        &agent_key(&hub, "station"),
        &config("max_concurrent: 3, look: 1s", &[("coder", "text", "echo $RANDOM > made; echo done")]),
    );
    let folder = worker.state().parent().expect("a folder").to_owned();
    let git = |args: &[&str]| {
        let done = Command::new("git").args(args).current_dir(&folder).env("HOME", &folder).output().expect("git");
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q", "-b", "trunk"]);
    std::fs::write(folder.join(".gitignore"), "state\nstderr\nworker.yaml\n").expect("a file");
    git(&["remote", "add", "origin", "https://me:secret@git.example/team/repo.git"]);
    git(&["add", "."]);
    git(&["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "first"]);
    worker.start();
    let shown = |name: &str| hub.owner(Binding::HttpJson).get(&format!("/api/fleet/{name}")).json();
    let is = |what: &str, fits: &dyn Fn(&Value) -> bool| {
        until(what, || Some(shown("coder")["announce"].clone()).filter(|announce| fits(announce)))
    };
    let first = is("it is announced", &|announce| announce["session"]["repo_state"]["branch"] == "trunk");
    assert_eq!((&first["capabilities"]["max_concurrent"], &first["worker"]["agent_id"]), (&json!(3), &json!("coder")));
    assert_eq!(first["session"]["repo_state"]["clean"], true);
    assert_eq!(first["session"]["repo_state"]["repository"], "https://git.example/team/repo.git");
    until("the others are too", || (shown("parrot")["health"] == "AVAILABLE").then_some(()));
    assert_eq!(state(&agent(&hub, "coder").say("m", "x")), "TASK_STATE_COMPLETED");
    let later = is("what the run changed is seen", &|announce| announce["session"]["repo_state"]["clean"] == false);
    assert!(later["epoch"].as_u64() > first["epoch"].as_u64(), "a changed fact has a new epoch");
}

#[test]
fn work_that_cannot_be_done_is_refused_before_anything_is_started() {
    let hub = hub("");
    let worker = attached(&hub, &config("", &[("coder", "text", "echo began > began; echo done")]));
    let fleet = hub.owner(Binding::HttpJson);
    until("it is announced", || (fleet.get("/api/fleet/coder").json()["health"] == "AVAILABLE").then_some(()));
    let mut request = message("m", "Refactor it");
    request["message"]["metadata"] = json!({"urn:flotilla:ext:fleet-handshake:2.0": {
        "type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": "Refactor it", "on_blocked": [],
        "task": {"task_id": "abc-1"}, "requirements": {"required_mcp": ["trek"]}}});
    let task = agent(&hub, "coder").call("SendMessage", &request).expect("an answer")["task"].clone();
    assert_eq!(state(&task), "TASK_STATE_REJECTED", "{task}");
    assert!(task.to_string().contains("missing_mcp") && task.to_string().contains("trek"), "{task}");
    assert!(!worker.state().with_file_name("began").exists(), "nothing was started");
}

const ASKING: &str = "agents:
  asker:
    kind: script
    script:
      otherwise:
        - working
        - approval: {tool: Bash, input: {command: rm}, text: May I?}
        - completed: Done
";

#[test]
fn a_question_to_the_owner_goes_through_and_is_asked_again_after_a_cut() {
    let mut hub = hub("");
    let _worker = attached(&hub, ASKING);
    let task = agent(&hub, "asker").start("m", "x");
    let open = |hub: &flotilla_testkit::HubProcess| {
        let owner = hub.owner(Binding::HttpJson);
        until("it is asked", || {
            let all = owner.get("/api/approvals?state=open").json();
            all["approvals"].as_array().and_then(|all| all.first().cloned())
        })
    };
    let asked = open(&hub);
    hub.restart();
    let again = open(&hub);
    assert_eq!(asked["id"], again["id"], "the same question");
    let path = format!("/api/approvals/{}", again["id"].as_str().expect("an id"));
    let answer = json!({"decision": "allow"}).to_string();
    let owner = hub.owner(Binding::HttpJson);
    let answered = owner.send(Request::post(&path, answer).header("content-type", "application/json"));
    assert_eq!(answered.status, 200, "{}", answered.text());
    let done = reached(&agent(&hub, "asker"), id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(said(&done), "Done");
}

#[test]
fn the_doctor_says_what_is_there_and_what_is_not() {
    let hub = hub("");
    let file = hub.dir().join("w.yaml");
    let file_name = file.display().to_string();
    std::fs::write(&file, config("", &[("coder", "text", "true")])).expect("a file");
    let well = hub.cli_ok(&["worker", "doctor", "--config", &file_name]);
    assert!(
        well.contains("parrot: needs no program") && well.contains("coder: /") && well.contains("Problems: 0"),
        "{well}"
    );
    std::fs::write(&file, "agents: {a: {kind: command, command: {program: no-such-program}}}\n").expect("a file");
    let ill = hub.cli(&["worker", "doctor", "--config", &file_name, "-o", "json"]);
    let told: Value = serde_json::from_slice(&ill.stdout).expect("JSON");
    assert_eq!((ill.status.code(), &told["problems"]), (Some(1), &json!(1)));
    assert!(told.to_string().contains("no-such-program"), "{told}");
}

#[test]
fn a_hub_behind_tls_is_reached_with_a_certificate_of_one_s_own() {
    let dir = flotilla_testkit::scratch();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).expect("made");
    let (certificate, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let tls = format!("tls: {{certificate: '{}', key: '{}'}}", certificate.display(), key.display());
    let hub = setup().config(&format!("hub: {{{tls}}}\nagents: {{echo: {{kind: echo}}}}\n")).start();
    let url = format!("https://localhost:{}", hub.address().port());
    let mut worker = hub.worker("one", &url, &agent_key(&hub, "station"), "agents:\n  parrot: {kind: echo}\n");
    worker.start();
    until("it is not trusted", || worker.log().contains("--ca FILE").then_some(()));
    worker.kill();
    worker.start_with(&["--ca", &certificate.display().to_string()]);
    connected(&worker, 1);
}

#[test]
fn claude_code_works_through_a_worker_as_it_does_in_the_hub() {
    let hub = hub("");
    let _worker = attached(&hub, &crate::claude::config("      follow_up: steer\n"));
    let client = agent(&hub, "coder");
    let completed = |task: &Value| reached(&client, id(task), "TASK_STATE_COMPLETED");
    // A permission is asked of the owner.
    let task = client.start("m", "permission");
    let owner = hub.owner(Binding::HttpJson);
    let question = until("a question to the owner", || {
        let open = owner.get("/api/approvals?state=open").json();
        open["approvals"].as_array()?.first()?["id"].as_str().map(str::to_owned)
    });
    let answer = json!({"decision": "deny", "note": "not today"}).to_string();
    owner.send(Request::post(&format!("/api/approvals/{question}"), answer).header("content-type", "application/json"));
    assert!(made(&completed(&task)).contains("not today"));
    // What is said during a run steers it.
    let task = client.start("m2", "more");
    reached(&client, id(&task), "TASK_STATE_WORKING");
    let mut request = message("m3", "and more");
    request["message"]["taskId"] = json!(id(&task));
    request["configuration"] = json!({"returnImmediately": true});
    client.call("SendMessage", &request).expect("it is taken");
    assert_eq!(made(&completed(&task)), "Go on.\n\nYou said and more.");
    let log = log(&hub, id(&task));
    assert!(log.contains("taken_up") && !log.contains(r#""run":2"#), "{log}");
    // A cancel leaves nothing.
    let task = client.start("m4", "stall");
    until("it runs", || (alive(id(&task)) > 0).then_some(()));
    let canceled = client.call("CancelTask", &json!({"id": id(&task)})).expect("it can be canceled");
    assert_eq!((state(&canceled), alive(id(&task))), ("TASK_STATE_CANCELED", 0));
    // What its session said of itself is announced.
    until("its model is announced", || {
        owner.get("/api/fleet/coder").json()["announce"]["worker"]["model"].is_string().then_some(())
    });
}
