//! A2A 0.3 over gRPC: the service `a2a.v1.A2AService` beside that of 1.0, on the same tasks.

use crate::cast::{hub, id, state};
use flotilla_testkit::client::message as message_of_1_0;
use flotilla_testkit::{Binding, Client, HubProcess, grpc};
use serde_json::{Value, json};

/// An operation of the service.
fn of(method: &str) -> String {
    format!("a2a.v1.A2AService/{method}")
}

/// A client that names no version, as those of 0.3 do.
fn owner(hub: &HubProcess) -> Client {
    hub.owner(Binding::Grpc).without("a2a-version")
}

/// A send that waits, as the published clients ask for it.
fn message(message_id: &str, text: &str) -> Value {
    let message = json!({"messageId": message_id, "role": "ROLE_USER", "content": [{"text": text}]});
    json!({"message": message, "configuration": {"blocking": true}})
}

fn send(client: &Client, message_id: &str, text: &str) -> Value {
    client.call(&of("SendMessage"), &message(message_id, text)).expect("sent")
}

#[test]
fn a_task_is_the_same_in_both_versions() {
    let hub = hub();
    let owner = owner(&hub);
    let task = send(&owner, "m1", "complete")["task"].clone();
    assert_eq!(state(&task), "TASK_STATE_COMPLETED");
    assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "You said complete"}]));
    assert_eq!(task["status"]["message"]["content"], json!([{"text": "All done"}]));
    let read = owner.call(&of("GetTask"), &json!({"name": format!("tasks/{}", id(&task))})).expect("the task");
    assert_eq!(read, task);
    let newer = hub.owner(Binding::JsonRpc).task(id(&task));
    assert_eq!(newer["history"][0]["parts"], json!([{"text": "complete"}]));
    let made_newer = hub.owner(Binding::JsonRpc).say("m2", "complete");
    let name = format!("tasks/{}", id(&made_newer));
    let read = owner.call(&of("GetTask"), &json!({"name": name, "historyLength": 1})).expect("the task");
    assert_eq!(read["history"].as_array().map(Vec::len), Some(1));
    assert!(read["history"][0]["content"][0]["text"].is_string(), "{read}");
}

#[test]
fn files_and_data_pass_and_a_direct_message_stays_one() {
    let hub = hub();
    let owner = owner(&hub).agent("echo");
    let mut params = message("m", "x");
    // The second is the text `true`, which is base64 too: it is not looked at.
    params["message"]["content"] = json!([
        {"file": {"fileWithBytes": "AP9ieXRlcw==", "mimeType": "image/png", "name": "a.png"}},
        {"file": {"fileWithBytes": "dHJ1ZQ==", "mimeType": "application/json"}},
        {"file": {"fileWithUri": "https://e/f"}},
        {"data": {"data": {"n": 42}}, "metadata": {"k": "v"}},
    ]);
    let task = owner.call(&of("SendMessage"), &params).expect("sent")["task"].clone();
    let parts = &hub.owner(Binding::JsonRpc).agent("echo").task(id(&task))["artifacts"][0]["parts"];
    assert_eq!(parts[0], json!({"raw": "AP9ieXRlcw==", "mediaType": "image/png", "filename": "a.png"}));
    assert_eq!(parts[1]["raw"], "dHJ1ZQ==");
    assert_eq!(parts[2]["url"], "https://e/f");
    assert_eq!((&parts[3]["data"], &parts[3]["metadata"]), (&json!({"n": 42}), &json!({"k": "v"})));
    let shown = |owner: &Client| {
        let name = json!({"name": format!("tasks/{}", id(&task))});
        let read = owner.call(&of("GetTask"), &name).expect("the task");
        read["artifacts"][0]["parts"][0]["file"]["fileWithBytes"].clone()
    };
    assert_eq!(shown(&owner), "AP9ieXRlcw==", "as the proto has it");
    let python = owner.clone().header("user-agent", "grpc-python-asyncio/1.76.0");
    assert_eq!(shown(&python), "QVA5aWVYUmxjdz09", "as that SDK reads it");
    params["message"]["messageId"] = json!("m1");
    params["message"]["content"] = json!([{"file": {"fileWithBytes": "QVA5aWVYUmxjdz09"}}]);
    let sent = python.call(&of("SendMessage"), &params).expect("sent")["task"].clone();
    assert_eq!(
        hub.owner(Binding::JsonRpc).agent("echo").task(id(&sent))["artifacts"][0]["parts"][0]["raw"],
        "AP9ieXRlcw=="
    );
    let answer = send(&self::owner(&hub), "m2", "direct");
    assert_eq!(answer["message"]["content"], json!([{"text": "Hello yourself"}]));
}

#[test]
fn a_send_that_does_not_wait_is_asked_for_by_a_configuration() {
    let hub = hub();
    let owner = owner(&hub);
    let mut params = message("m1", "pause 1s");
    params["configuration"] = json!({});
    let task = owner.call(&of("SendMessage"), &params).expect("sent")["task"].clone();
    assert_ne!(state(&task), "TASK_STATE_COMPLETED", "false is what an absent blocking is in protobuf");
    let mut params = message("m2", "complete");
    params.as_object_mut().expect("an object").remove("configuration");
    let task = owner.call(&of("SendMessage"), &params).expect("sent")["task"].clone();
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "without a configuration nothing was said, and a send waits");
}

#[test]
fn streams_end_with_what_is_final_and_are_taken_up_again() {
    let hub = hub();
    let owner = owner(&hub);
    let mut stream = owner.stream(&of("SendStreamingMessage"), &message("m", "ask")).expect("a stream");
    let first = stream.expect();
    let task = first.frame()["task"]["id"].as_str().expect("an id").to_owned();
    let rest: Vec<Value> = stream.rest().iter().map(|event| event.frame().clone()).collect();
    let last = &rest.last().expect("an update")["statusUpdate"];
    assert_eq!((&last["status"]["state"], &last["final"]), (&json!("TASK_STATE_INPUT_REQUIRED"), &json!(true)));
    assert!(stream.status().is_none() && !stream.cut, "it ended well");
    let after = first.id.expect("an id");
    let resumed = owner.clone().header("last-event-id", &after);
    let mut again = resumed.stream(&of("TaskSubscription"), &json!({"name": format!("tasks/{task}")})).expect("again");
    let seen: Vec<Value> = again.rest().iter().map(|event| event.frame().clone()).collect();
    assert_eq!(seen, rest, "what was missed, and the end of it");
    let done = send(&owner, "m2", "complete")["task"].clone();
    let ended = json!({"name": format!("tasks/{}", id(&done))});
    let waiting = json!({"name": format!("tasks/{task}")});
    for (named, expected) in [(ended, "TASK_STATE_COMPLETED"), (waiting, "TASK_STATE_INPUT_REQUIRED")] {
        let shown = owner.stream(&of("TaskSubscription"), &named).expect("a stream").rest();
        assert_eq!(shown.len(), 1);
        assert_eq!(state(&shown[0].frame()["task"]), expected);
    }
}

#[test]
fn errors_have_their_name_and_the_codes_of_0_3() {
    let hub = hub();
    let owner = owner(&hub);
    let done = send(&owner, "m", "complete")["task"].clone();
    let named = |id: &str| json!({"name": format!("tasks/{id}")});
    for (method, params, status, words) in [
        ("GetTask", named("nope"), "NOT_FOUND", "TaskNotFoundError: "),
        ("GetTask", json!({"name": "nope"}), "INVALID_ARGUMENT", "InvalidParamsError: "),
        ("CancelTask", named(id(&done)), "FAILED_PRECONDITION", "TaskNotCancelableError: "),
        ("SendMessage", json!({}), "INVALID_ARGUMENT", "InvalidParamsError: "),
    ] {
        let refusal = owner.call(&of(method), &params).expect_err("refused");
        assert_eq!(refusal.status.as_deref(), Some(status), "{method}: {}", refusal.message);
        assert!(refusal.message.starts_with(words), "{}", refusal.message);
    }
    let still = owner.clone().agent("still");
    let refusal = still.call(&of("SendStreamingMessage"), &message("m", "x")).expect_err("refused");
    assert_eq!(refusal.status.as_deref(), Some("UNIMPLEMENTED"));
    assert!(refusal.message.starts_with("UnsupportedOperationError: "), "{}", refusal.message);
    let nobody = hub.stranger(Binding::Grpc).without("a2a-version");
    let refusal = nobody.call(&of("GetTask"), &named("x")).expect_err("refused");
    assert_eq!(refusal.status.as_deref(), Some("UNAUTHENTICATED"));
}

#[test]
fn the_version_may_be_named_and_must_be_the_service_s() {
    let hub = hub();
    let named = |version: &str| hub.owner(Binding::Grpc).without("a2a-version").header("a2a-version", version);
    for version in ["0.3", "0.3.0", ""] {
        let task = send(&named(version), &format!("m-{version}"), "complete");
        assert_eq!(state(&task["task"]), "TASK_STATE_COMPLETED", "{version}");
    }
    let refusal = named("1.0").call(&of("SendMessage"), &message("m", "x")).expect_err("refused");
    assert_eq!(refusal.reason, "VERSION_NOT_SUPPORTED");
    assert!(refusal.message.contains("lf.a2a.v1.A2AService"), "{}", refusal.message);
    let answer = named("0.3").response(&of("GetTask"), &json!({"name": "tasks/x"}));
    assert_eq!(answer.header("a2a-version"), Some("0.3"));
}

#[test]
fn the_agent_is_named_by_metadata_and_has_a_card() {
    let hub = hub();
    let owner = owner(&hub);
    let card = owner.call(&of("GetAgentCard"), &json!({})).expect("a card");
    assert_eq!((&card["protocolVersion"], &card["preferredTransport"]), (&json!("0.3.0"), &json!("JSONRPC")));
    let interfaces = card["additionalInterfaces"].as_array().expect("more").clone();
    let place = json!({"transport": "GRPC", "url": hub.address().to_string()});
    assert!(interfaces.contains(&place), "HOST:PORT, which SDKs dial: {card}");
    let echo = owner.clone().agent("echo");
    let card = echo.call(&of("GetAgentCard"), &json!({})).expect("a card");
    assert_eq!(card["name"], "echo");
    let interfaces = card["additionalInterfaces"].as_array().expect("more").clone();
    assert!(interfaces.iter().all(|one| one["transport"] != "GRPC"), "it would lead to the default agent: {card}");
    for place in ["/agents/mock/.well-known/agent-card.json", "/agents/mock/v1/card"] {
        let named = hub.owner(Binding::HttpJson).without("a2a-version").header("a2a-version", "0.3").get(place).json();
        assert!(named["additionalInterfaces"].to_string().contains("GRPC"), "the default agent's own: {named}");
    }
    let task = send(&echo, "m", "hello")["task"].clone();
    let elsewhere = owner.call(&of("GetTask"), &json!({"name": format!("tasks/{}", id(&task))}));
    assert_eq!(elsewhere.expect_err("not of the default agent").status.as_deref(), Some("NOT_FOUND"));
    let refusal = owner.agent("nobody").call(&of("SendMessage"), &message("m", "x")).expect_err("refused");
    assert_eq!(refusal.reason, "AGENT_NOT_FOUND");
}

#[test]
fn push_configs_have_names() {
    let hub = crate::cast::setup().config(crate::cast::CONFIG).arg("--allow-target").arg("127.0.0.1").start();
    let owner = owner(&hub);
    let task = hub.owner(Binding::JsonRpc).start("m", "hold");
    let parent = format!("tasks/{}", id(&task));
    let config = json!({"url": "http://127.0.0.1:9/hook", "token": "t", "authentication": {"schemes": ["Bearer"]}});
    let asked = json!({"parent": parent, "configId": "c", "config": {"pushNotificationConfig": config}});
    let made = owner.call(&of("CreateTaskPushNotificationConfig"), &asked).expect("made");
    let name = format!("{parent}/pushNotificationConfigs/c");
    assert_eq!(made["name"], json!(name));
    assert_eq!(made["pushNotificationConfig"]["authentication"]["schemes"], json!(["Bearer"]));
    let read = owner.call(&of("GetTaskPushNotificationConfig"), &json!({"name": name})).expect("it is there");
    assert_eq!(read, made);
    let list = owner.call(&of("ListTaskPushNotificationConfig"), &json!({"parent": parent})).expect("a list");
    assert_eq!(list["configs"], json!([made]));
    owner.call(&of("DeleteTaskPushNotificationConfig"), &json!({"name": name})).expect("gone");
    let refusal = owner.call(&of("GetTaskPushNotificationConfig"), &json!({"name": name})).expect_err("gone");
    assert_eq!(refusal.status.as_deref(), Some("NOT_FOUND"));
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let hub = hub();
    let metadata = owner(&hub).metadata_with("x", "y");
    let raised = grpc::refused(hub.address(), &metadata, "/a2a.v1.A2AService/ListTasks", Vec::new());
    assert_eq!(raised.code, 12);
    assert!(raised.message.contains("TaskSubscription"), "{}", raised.message);
    assert_eq!(grpc::health(hub.address(), "a2a.v1.A2AService"), Ok(1));
}

#[test]
fn our_own_client_speaks_it() {
    let hub = hub();
    let place = crate::cli::program::Place::at(&hub);
    for transport in ["JSONRPC", "HTTP+JSON", "GRPC"] {
        let run =
            |args: &[&str]| place.run(&[args, &["--a2a-version", "0.3", "--transport", transport, "--debug"]].concat());
        let asked = run(&["send", "ask"]).ok();
        assert!(
            asked.err.contains(&format!("* {transport} at ")) && asked.err.contains("A2A-Version 0.3"),
            "{asked:?}"
        );
        let task = asked.field("Task");
        assert_eq!(run(&["task", "get", task]).ok().field("State"), "TASK_STATE_INPUT_REQUIRED");
        let turn = run(&["send", "--stream", "large", "--task-id", task]).ok();
        assert!(turn.out.contains("  large, turn 2"), "{turn:?}");
        let held = run(&["send", "--async", "hold"]).ok();
        assert_eq!(run(&["task", "cancel", held.field("Task")]).ok().field("State"), "TASK_STATE_CANCELED");
        let worked = run(&["send", "--async", "work 200ms"]).ok();
        assert_eq!(run(&["task", "subscribe", worked.field("Task")]).ok().field("State"), "TASK_STATE_COMPLETED");
        let refused = run(&["task", "get", "nope", "-o", "json"]);
        assert_eq!(refused.error(), "TaskNotFoundError", "{refused:?}");
    }
    hub.owner(Binding::JsonRpc).call("SendMessage", &message_of_1_0("last", "complete")).expect("it goes on");
}

/// docs/dialects.md, the rows of gRPC: each call is made, and must be answered as the document says.
#[test]
fn grpc_is_answered_as_the_table_says() {
    let document = include_str!("../../../../docs/dialects.md");
    let section = document.split("\n## ").find(|section| section.starts_with("gRPC")).expect("the section is there");
    let rows: Vec<Vec<&str>> = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches(['|', ' ']).split(" | ").map(|cell| cell.trim().trim_matches('`')).collect())
        .collect();
    assert!(rows.len() > 8, "{rows:?}");
    let hub = hub();
    for row in rows {
        let [service, version, method, answer] = row[..] else { panic!("{row:?}") };
        let named = owner(&hub).metadata_with("a2a-version", if version == "none" { "" } else { version });
        // No id is good: an operation that is reached says that there is no such task.
        let body = if service.starts_with("/lf") { vec![0x12, 1, b'x'] } else { b"\x0a\x07tasks/x".to_vec() };
        let raised = grpc::refused(hub.address(), &named, &format!("{service}/{method}"), body);
        let (reason, version) = answer.split_once(", in ").unwrap_or(("TASK_NOT_FOUND", &answer[3..]));
        assert!(raised.metadata.contains(&("a2a-version".into(), version.into())), "{row:?}: {:?}", raised.metadata);
        let details = String::from_utf8_lossy(&raised.details).into_owned();
        assert!(details.contains(reason), "{row:?}: {}", raised.message);
    }
}
