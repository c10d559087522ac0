//! Approvals: asked, answered once, ruled on, expired and withdrawn.

use super::{allow, answer, approval, hub_with, owner};
use crate::cast::{id, reached, state, text};
use crate::socket::{answer as reply, dial};
use flotilla_testkit::socket::Socket;
use flotilla_testkit::{Binding, until};
use serde_json::{Value, json};

#[test]
fn an_agent_goes_on_when_its_owner_allows_it() {
    let hub = hub_with("");
    let caller = hub.caller(Binding::JsonRpc, "peer");
    let task = caller.start("m1", "run ls");
    let open = approval(&hub, "open");
    assert_eq!(
        (&open["tool"], &open["input"]["command"], &open["text"]),
        (&json!("Bash"), &json!("run ls"), &json!("May I?"))
    );
    assert_eq!((&open["agent"], &open["taskId"], &open["run"]), (&json!("careful"), &task["id"], &json!(1)));
    assert_eq!(open["workspace"], "default");
    reached(&caller, id(&task), "TASK_STATE_WORKING");
    let answered = allow(&hub, &open);
    assert_eq!((&answered["state"], &answered["answer"]["by"]), (&json!("allowed"), &json!("owner")));
    reached(&caller, id(&task), "TASK_STATE_COMPLETED");

    let log = owner(&hub).get(&format!("/api/tasks/{}/log", id(&task))).json();
    let told: Vec<String> = log["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["event"].as_object().unwrap().keys().next().unwrap().clone())
        .collect();
    let place =
        |name: &str| told.iter().position(|event| event == name).unwrap_or_else(|| panic!("{name} in {told:?}"));
    assert!(place("approval_asked") < place("approval_settled"));
    assert!(hub.cli_ok(&["task", "log", id(&task)]).contains("allowed"));
}

#[test]
fn a_denial_and_its_note_stay_with_the_owner() {
    let hub = hub_with("");
    let caller = hub.caller(Binding::HttpJson, "peer");
    let task = caller.start("m1", "run rm");
    let open = approval(&hub, "open");
    let shown = hub.cli_ok(&["approvals", "list"]);
    assert!(shown.contains("run rm") && shown.contains("Total: 1"), "{shown}");
    let denied = hub.cli_ok(&["approvals", "deny", open["id"].as_str().unwrap(), "--note", "too risky"]);
    assert!(denied.contains("State: denied") && denied.contains("Note: too risky"), "{denied}");
    let failed = reached(&caller, id(&task), "TASK_STATE_FAILED");
    assert!(!failed.to_string().contains("risky") && !failed.to_string().contains("Bash"), "{failed}");
}

#[test]
fn the_first_answer_counts_whoever_races() {
    let hub = hub_with("");
    let caller = hub.caller(Binding::HttpJson, "peer");
    for round in 0..5 {
        let task = caller.start(&format!("m{round}"), "run it");
        let open = approval(&hub, "open");
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..8)
                .map(|number| {
                    let (hub, open) = (&hub, &open);
                    let word = if number % 2 == 0 { "allow" } else { "deny" };
                    scope.spawn(move || answer(&owner(hub), open, &json!({"decision": word})).status)
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
        let kept = owner(&hub).get(&format!("/api/approvals/{}", open["id"].as_str().unwrap())).json();
        let ended = if kept["state"] == "allowed" { "TASK_STATE_COMPLETED" } else { "TASK_STATE_FAILED" };
        reached(&caller, id(&task), ended);
        let late = answer(&owner(&hub), &open, &json!({"decision": "allow"}));
        assert!(late.status == 400 && late.text().contains("first answer counts"), "{}", late.text());
    }
}

#[test]
fn rules_answer_before_anybody_is_asked() {
    let rules = r#"
approvals:
  rules:
    - {tool: Bash, input: {command: "run rm*"}, decide: deny}
    - {agent: care*, tool: Ba?h, input: {command: "run ls*"}, decide: allow}
"#;
    let hub = hub_with(rules);
    let caller = hub.caller(Binding::HttpJson, "peer");
    assert_eq!(text(&caller.say("m1", "run ls -l")["status"]["message"]), "Done");
    assert_eq!(state(&caller.say("m2", "run rm -r")), "TASK_STATE_FAILED");
    let answered = |state: &str| approval(&hub, state)["answer"]["by"].clone();
    assert_eq!((answered("allowed"), answered("denied")), (json!("rule 2"), json!("rule 1")));
    let task = caller.start("m3", "run make");
    let open = approval(&hub, "open");
    hub.write_config(&format!("{}approvals: {{expire_after: 0s}}", super::CONFIG));
    hub.signal("HUP");
    until("the configuration is read", || hub.log().contains("configuration read again").then_some(()));
    assert_eq!(state(&caller.say("m4", "run now")), "TASK_STATE_FAILED");
    allow(&hub, &open);
    reached(&caller, id(&task), "TASK_STATE_COMPLETED");
}

#[test]
fn an_answer_may_hold_for_the_whole_task_and_change_the_input() {
    let hub = hub_with("");
    let caller = hub.caller(Binding::HttpJson, "peer");
    let task = caller.start("m1", "twice");
    let first = approval(&hub, "open");
    let said = json!({"decision": "allow", "always": true, "input": {"command": "safer"}});
    assert_eq!(answer(&owner(&hub), &first, &said).json()["answer"]["input"]["command"], "safer");
    reached(&caller, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(owner(&hub).get("/api/approvals?state=all").json(), owner(&hub).get("/api/approvals").json());
    let all = owner(&hub).get("/api/approvals?state=allowed").json();
    assert_eq!(all["approvals"].as_array().unwrap().len(), 2);
    assert!(all["approvals"][0]["answer"]["note"].as_str().unwrap().contains(first["id"].as_str().unwrap()));
    assert_eq!(all["approvals"][0]["input"]["command"], "second", "the newest first");
}

#[test]
fn what_nobody_answers_expires_and_what_is_canceled_is_withdrawn() {
    let hub = hub_with("approvals: {expire_after: 300ms}\n");
    let caller = hub.caller(Binding::HttpJson, "peer");
    let task = caller.start("m1", "run it");
    let expired = approval(&hub, "expired");
    assert_eq!(expired["answer"]["by"], "expiry");
    reached(&caller, id(&task), "TASK_STATE_FAILED");

    let hub = hub_with("");
    let caller = hub.caller(Binding::HttpJson, "peer");
    let task = caller.start("m1", "run it");
    let open = approval(&hub, "open");
    caller.call("CancelTask", &json!({"id": id(&task)})).expect("canceled");
    assert_eq!(approval(&hub, "withdrawn")["id"], open["id"]);
    assert_eq!(answer(&owner(&hub), &open, &json!({"decision": "allow"})).status, 400);
    let metrics = owner(&hub).get("/metrics");
    assert!(metrics.text().contains(r#"flotilla_approvals_settled_total{state="withdrawn"} 1"#));
    assert!(metrics.text().contains("flotilla_approvals_open 0"));
}

#[test]
fn an_agent_that_dialed_in_asks_over_its_socket() {
    let hub = hub_with("");
    let mut socket = dial(&hub, &crate::socket::agent_key(&hub, "far")).open();
    let caller = hub.owner(Binding::JsonRpc).agent("far");
    let task = caller.start("m1", "work");
    let work = socket.kind("message");
    let ask = |name: &str| {
        json!({"type": "approval_request", "id": name, "taskId": work["taskId"], "run": work["run"],
        "tool": "Edit", "input": {"path": "a.rs"}})
    };
    // Another question under its name, open or answered, is refused.
    let refused = |socket: &mut Socket, tool: &str, input: Value| {
        let mut other = ask("q1");
        (other["tool"], other["input"]) = (json!(tool), input);
        socket.send(&other);
        let told = socket.kind("error");
        assert_eq!(told["id"], "q1");
        assert!(told["message"].as_str().unwrap().contains("another question"), "{told}");
    };
    socket.send(&ask("q1"));
    let open = approval(&hub, "open");
    assert_eq!((&open["tool"], &open["agent"]), (&json!("Edit"), &json!("far")));
    refused(&mut socket, "Bash", json!({"command": "rm -r /"}));
    // The same question again is the same approval.
    socket.send(&ask("q1"));
    let said = json!({"decision": "allow", "note": "go on", "input": {"path": "b.rs"}});
    assert_eq!(answer(&owner(&hub), &open, &said).status, 200);
    for _ in 0..2 {
        let decision = socket.kind("approval_decision");
        assert_eq!(
            (&decision["id"], &decision["decision"], &decision["note"]),
            (&json!("q1"), &json!("allow"), &json!("go on"))
        );
        assert_eq!(decision["input"]["path"], "b.rs");
    }
    assert_eq!(owner(&hub).get("/api/approvals").json()["approvals"].as_array().unwrap().len(), 1);
    refused(&mut socket, "Bash", json!({"command": "rm -r /"}));
    refused(&mut socket, "Edit", json!({"path": "c.rs"}));
    socket.send(&json!({"type": "approval_request", "id": "q2", "taskId": work["taskId"]}));
    assert!(socket.kind("error")["message"].as_str().unwrap().contains("tool"));
    socket.send(
        &json!({"type": "approval_request", "id": "q3", "taskId": "018bcfe5-6800-7000-8000-0000000000aa", "tool": "x"}),
    );
    assert_eq!(socket.kind("error")["id"], "q3");
    reply(&mut socket, &work, "done");
    reached(&caller, id(&task), "TASK_STATE_COMPLETED");
}

#[test]
fn slips_are_told() {
    let hub = hub_with("");
    hub.caller(Binding::HttpJson, "peer").start("m1", "run it");
    let open = approval(&hub, "open");
    for (said, told) in [
        (json!({}), "decision"),
        (json!({"decision": "maybe"}), "allow"),
        (json!({"decision": "deny", "input": {}}), "allow"),
        (json!({"decision": "allow", "allways": true}), "allways"),
    ] {
        let refused = answer(&owner(&hub), &open, &said);
        assert!(refused.status == 400 && refused.text().contains(told), "{said}: {}", refused.text());
    }
    let get = |target: &str| owner(&hub).get(target);
    assert!(get("/api/approvals?state=lost").text().contains("withdrawn"));
    assert!(get("/api/approvals?stat=open").text().contains("is not known here"));
    let missing: Value = get("/api/approvals/018bcfe5-6800-7000-8000-0000000000aa").json();
    assert_eq!(missing["error"]["code"], 404);
}
