//! What a worker said, or was given, before the hub was killed counts afterwards as it would have.

use super::away::Line;
use super::{announce, give, is, key, owner, post, say, steps, told, worker_saying};
use crate::cast::{hub, hub_with, reached, setup};
use crate::socket::dial;
use flotilla_testkit::HubProcess;
use flotilla_testkit::socket::Socket;
use serde_json::{Value, json};

/// Says something of a run, and waits until that is acknowledged.
fn respond(socket: &mut Socket, message: &Value, id: &str, with: &Value) {
    let mut frame = json!({"type": "task_response", "id": id, "taskId": message["taskId"], "run": message["run"]});
    frame.as_object_mut().expect("an object").extend(with.as_object().expect("an object").clone());
    socket.send(&frame);
    let ack = socket.kind("ack");
    assert_eq!(ack["id"], id, "{ack}");
}

/// Work that a worker began, with what it said of it before and after the hub was killed; the task in the end.
fn ended(before: &Value, after: &Value, state: &str) -> (HubProcess, String, Value) {
    let mut hub = hub();
    let (line, mut ada) = Line::of(&hub, "ada");
    let (task, _) = give(&hub, &json!({"to": "any"}));
    let message = ada.kind("message");
    respond(&mut ada, &message, "r1", before);
    hub.kill();
    hub.restart();
    let mut ada = dial(&hub, &line.key).query("resume", &line.token).open();
    respond(&mut ada, &message, "r2", after);
    let ended = reached(&owner(&hub).agent("fleet"), &task, state);
    (hub, task, ended)
}

fn error() -> Value {
    json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "error", "error": "the tests fail",
           "usage": {"input_tokens": 7, "output_tokens": 3}})
}

#[test]
fn a_result_that_was_acknowledged_counts_after_the_hub_was_killed() {
    let part = json!({"kind": "data", "data": error(), "mimeType": "application/vnd.flotilla.task-result+json"});
    let whole =
        json!({"status": {"state": "working"}, "artifact": {"artifactId": "r", "parts": [part]}, "lastChunk": true});
    let text = json!({"status": {"state": "working", "message": {"role": "agent", "messageId": "m",
        "parts": [{"kind": "text", "text": error().to_string()}]}}});
    let completed = json!({"status": {"state": "completed"}});
    for before in [whole, text] {
        let (hub, task, failed) = ended(&before, &completed, "TASK_STATE_FAILED");
        let said = told(&failed);
        assert_eq!((&said["error"], &said["inferred"]), (&json!("the tests fail"), &Value::Null), "{before}: {said}");
        assert_eq!(said["usage"]["input_tokens"], 7, "counted once: {said}");
        assert!(steps(&hub, &task).ends_with("judged ada"), "{}", steps(&hub, &task));
    }
}

#[test]
fn a_result_in_pieces_is_put_together_over_a_kill() {
    let text = error().to_string();
    let (first, rest) = text.split_at(40);
    let piece = |text: &str, append: bool| {
        json!({"status": {"state": if append { "completed" } else { "working" }}, "append": append, "lastChunk": append,
               "artifact": {"artifactId": "out", "parts": [{"kind": "text", "text": text}]}})
    };
    let (_, _, failed) = ended(&piece(first, false), &piece(rest, true), "TASK_STATE_FAILED");
    assert_eq!(told(&failed)["error"], "the tests fail");
}

#[test]
fn work_that_was_sent_and_not_taken_up_goes_to_another_after_a_kill() {
    let mut hub = hub_with("fleet: {take: 2s}\nsockets: {grace: 1s}");
    let mut labelled = announce("ada", 1);
    labelled["worker"]["labels"] = json!(["l"]);
    let mut ada = worker_saying(&hub, "ada", &labelled);
    let (task, _) = give(&hub, &json!({"to": "label:l"}));
    assert_eq!(ada.kind("message")["taskId"], task);
    hub.kill();
    hub.restart();
    let mut labelled = announce("bob", 1);
    labelled["worker"]["labels"] = json!(["l"]);
    let mut bob = worker_saying(&hub, "bob", &labelled);
    let message = bob.kind("message");
    assert_eq!((&message["taskId"], &message["run"]), (&json!(task), &json!(2)), "{message}");
    super::result(&mut bob, &message, &json!({"status": "done"}));
    reached(&owner(&hub).agent("fleet"), &task, "TASK_STATE_COMPLETED");
}

/// A hub whose agent `far` is a worker of another hub, in the words of its own.
fn before(far: &HubProcess, labelled: impl Fn(&str, &str) -> Value) -> (HubProcess, Socket) {
    let config =
        format!("agents:\n  far: {{kind: a2a, url: '{}/agents/rw', auth: {{bearer: 'env:FAR_KEY'}}}}\n", far.url());
    let near = setup().config(&config).env("FAR_KEY", far.owner_key()).start();
    let announced = post(&owner(&near), "/api/fleet/announce?agent=far", &labelled("far", "haiku"));
    assert_eq!(announced.status, 200, "{}", announced.text());
    let mut own = dial(&near, &key(&near, "loc")).open();
    say(&mut own, &labelled("loc", "opus"));
    (near, own)
}

#[test]
fn what_another_hub_cannot_do_is_rerouted_here_and_waits_nowhere_else() {
    let far = hub();
    let mut lacking = announce("rw", 1);
    lacking["mcp_health"] = json!({"cm": "failed"});
    let _rw = worker_saying(&far, "rw", &lacking);
    is(&far, "rw", "AVAILABLE");
    let labelled = |name: &str, tier: &str| {
        let mut announce = announce(name, 1);
        announce["worker"]["labels"] = json!(["g"]);
        announce["worker"]["model_tier"] = json!(tier);
        announce["mcp_health"] = json!({"cm": "ok"});
        announce
    };
    let (near, mut own) = before(&far, labelled);
    let (task, _) = give(&near, &json!({"to": "label:g", "requirements": {"required_mcp": ["cm"]}}));
    let message = own.kind("message");
    assert_eq!(message["taskId"], task, "{message}");
    super::result(&mut own, &message, &json!({"status": "done"}));
    reached(&owner(&near).agent("fleet"), &task, "TASK_STATE_COMPLETED");
    assert!(steps(&near, &task).starts_with("assigned far, blocked far, assigned loc"), "{}", steps(&near, &task));
}

fn of_group(name: &str, tier: &str) -> Value {
    let mut announce = announce(name, 1);
    announce["worker"]["labels"] = json!(["g"]);
    announce["worker"]["model_tier"] = json!(tier);
    announce["capabilities"]["max_concurrent"] = json!(5);
    announce
}

#[test]
fn a_worker_of_another_hub_that_is_away_has_not_begun() {
    let far = hub_with("sockets: {grace: 1s}");
    let rw = worker_saying(&far, "rw", &announce("rw", 1));
    rw.cut();
    is(&far, "rw", "OFFLINE");
    let (near, mut own) = before(&far, of_group);
    let (task, _) = give(&near, &json!({"to": "label:g"}));
    let message = own.kind("message");
    assert_eq!(message["taskId"], task, "{message}");
    super::result(&mut own, &message, &json!({"status": "done"}));
    reached(&owner(&near).agent("fleet"), &task, "TASK_STATE_COMPLETED");
}

#[test]
fn a_worker_of_another_hub_that_was_busy_is_asked_again() {
    let far = hub();
    let mut rw = worker_saying(&far, "rw", &announce("rw", 1));
    let (near, _own) = before(&far, of_group);
    let (first, client) = give(&near, &json!({"to": "far"}));
    let begun = rw.kind("message");
    let (second, _) = give(&near, &json!({"to": "far"}));
    flotilla_testkit::until("the second is refused", || steps(&near, &second).contains("blocked far").then_some(()));
    super::result(&mut rw, &begun, &json!({"status": "done"}));
    reached(&client, &first, "TASK_STATE_COMPLETED");
    let message = rw.kind("message");
    super::result(&mut rw, &message, &json!({"status": "done"}));
    reached(&client, &second, "TASK_STATE_COMPLETED");
}

/// The other hub knows of no contract: it hands on the words.
#[test]
fn an_agent_of_another_hub_is_asked_again_for_a_reply_that_is_not_valid() {
    let far = hub();
    let mut rw = dial(&far, &key(&far, "rw")).open();
    let config =
        format!("agents:\n  far: {{kind: a2a, url: '{}/agents/rw', auth: {{bearer: 'env:FAR_KEY'}}}}\n", far.url());
    let near = setup().config(&config).env("FAR_KEY", far.owner_key()).start();
    let (task, client) = give(&near, &json!({"to": "far", "task": {"reply_schema": "json"}}));
    for reply in ["no JSON", "{\"pr\": 7}"] {
        let message = rw.kind("message");
        let parts = json!([{"kind": "text", "text": reply}]);
        let status = json!({"state": "completed", "message": {"role": "agent", "messageId": "r", "parts": parts}});
        respond(&mut rw, &message, "r", &json!({"status": status}));
    }
    reached(&client, &task, "TASK_STATE_COMPLETED");
    assert_eq!(steps(&near, &task), "assigned far, asked_again far, assigned far, judged far");
}

#[test]
fn work_that_was_sent_and_not_taken_up_comes_again_with_its_contract() {
    let mut hub = hub();
    let (line, mut ada) = Line::of(&hub, "ada");
    let (task, _) = give(&hub, &json!({"to": "any", "task": {"task_id": "c-7", "token_budget": 900}}));
    let first = ada.kind("message");
    hub.kill();
    hub.restart();
    let mut ada = dial(&hub, &line.key).query("resume", &line.token).open();
    let again = ada.kind("message");
    assert_eq!((&again["taskId"], &again["run"]), (&first["taskId"], &first["run"]), "{again}");
    assert_eq!(again["payload"], first["payload"], "as it was");
    assert!(again["payload"].to_string().contains("TASK_DISPATCH"), "{again}");
    super::result(&mut ada, &again, &json!({"status": "done"}));
    reached(&owner(&hub).agent("fleet"), &task, "TASK_STATE_COMPLETED");
}
