//! Webhooks are written in the version their config was made in.

use super::{call, old_message};
use crate::cast::hub_with;
use flotilla_testkit::http::Request;
use flotilla_testkit::{Binding, HubProcess, Receiver, until};
use serde_json::{Value, json};

fn hub() -> HubProcess {
    hub_with("targets: {allow: [127.0.0.1]}\npush: {schedule: [50ms, 50ms], timeout: 1s}")
}

fn states(receiver: &Receiver) -> Vec<String> {
    receiver.received().iter().map(|one| one.json()["status"]["state"].as_str().unwrap_or("?").to_owned()).collect()
}

fn is_done(hub: &HubProcess, task: &Value) {
    let client = hub.owner(Binding::HttpJson);
    let task = task.as_str().expect("an id");
    until("everything is delivered", || {
        let list = client.get(&format!("/api/deliveries?task={task}")).json();
        list["deliveries"].as_array()?.iter().all(|one| one["state"] == "done").then_some(())
    });
}

#[test]
fn a_config_of_0_3_gets_the_whole_task_as_its_sdks_send_it() {
    let (hub, receiver) = (hub(), Receiver::start());
    let client = hub.owner(Binding::JsonRpc).without("a2a-version");
    let mut params = old_message("m-1", "chunks 20");
    params["configuration"] = json!({"pushNotificationConfig": {"url": receiver.url(), "token": "open"}});
    let task = call(&client, "message/send", params)["result"].clone();
    is_done(&hub, &task["id"]);
    assert_eq!(states(&receiver), ["submitted", "working", "working", "completed"], "chunks in a row are told once");
    for one in receiver.received() {
        assert_eq!(one.header("content-type"), Some("application/json"));
        assert_eq!(one.header("x-a2a-notification-token"), Some("open"));
        assert_eq!((&one.json()["kind"], &one.json()["id"]), (&json!("task"), &task["id"]));
    }
    let last = receiver.received().pop().expect("one").json();
    assert_eq!(last["artifacts"][0]["parts"].as_array().map(Vec::len), Some(20));
    assert_eq!(last, call(&client, "tasks/get", json!({"id": task["id"]}))["result"], "it is the task as it is read");
}

#[test]
fn configs_of_both_versions_on_one_task_are_each_told_in_theirs() {
    let (hub, old, new) = (hub(), Receiver::start(), Receiver::start());
    let owner = hub.owner(Binding::JsonRpc);
    let client = owner.clone().without("a2a-version");
    let mut params = old_message("m-1", "ask");
    params["configuration"] = json!({"blocking": true});
    let task = call(&client, "message/send", params)["result"].clone();
    let set = json!({"taskId": task["id"], "pushNotificationConfig": {"url": old.url()}});
    let made = call(&client, "tasks/pushNotificationConfig/set", set)["result"].clone();
    assert_eq!(made["pushNotificationConfig"]["id"], task["id"], "one without a name is the task's own");
    let got = call(&client, "tasks/pushNotificationConfig/get", json!({"id": task["id"]}))["result"].clone();
    assert_eq!(got, made);
    let config = json!({"taskId": task["id"], "id": "new", "url": new.url()});
    owner.call("CreateTaskPushNotificationConfig", &config).expect("a config");
    let listed = call(&client, "tasks/pushNotificationConfig/list", json!({"id": task["id"]}))["result"].clone();
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "either version sees both");
    let mut reply = old_message("m-2", "large");
    reply["message"]["taskId"] = task["id"].clone();
    call(&client, "message/send", reply);
    is_done(&hub, &task["id"]);
    assert_eq!(states(&old).last().map(String::as_str), Some("completed"));
    let last = new.received().pop().expect("one");
    assert_eq!(last.json()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(last.header("content-type"), Some("application/a2a+json"));
    let delete = json!({"id": task["id"], "pushNotificationConfigId": "new"});
    let deleted = call(&client, "tasks/pushNotificationConfig/delete", delete);
    assert_eq!(deleted.get("result"), Some(&Value::Null), "{deleted}");
}

#[test]
fn a_config_keeps_its_version_over_a_restart() {
    let (mut hub, receiver) = (hub(), Receiver::start());
    let client = hub.owner(Binding::JsonRpc).without("a2a-version");
    let mut params = old_message("m-1", "ask");
    params["configuration"] = json!({"pushNotificationConfig": {"url": receiver.url()}});
    let task = call(&client, "message/send", params)["result"].clone();
    hub.restart();
    let client = hub.owner(Binding::JsonRpc).without("a2a-version");
    let mut reply = old_message("m-2", "large");
    reply["message"]["taskId"] = task["id"].clone();
    call(&client, "message/send", reply);
    is_done(&hub, &task["id"]);
    assert_eq!(states(&receiver).last().map(String::as_str), Some("completed"));
}

#[test]
fn a_config_that_comes_with_a_message_is_named_after_its_task_too() {
    let (hub, receiver) = (hub(), Receiver::start());
    let client = hub.owner(Binding::JsonRpc).without("a2a-version");
    let mut params = old_message("m-1", "ask");
    params["configuration"] = json!({"pushNotificationConfig": {"url": receiver.url()}});
    let first = call(&client, "message/send", params)["result"]["id"].clone();
    let body = json!({"message": {"messageId": "m-2", "role": "ROLE_USER", "content": [{"text": "ask"}]},
        "configuration": {"blocking": true, "pushNotification": {"url": receiver.url()}}});
    let post = Request::post("/v1/message:send", body.to_string()).header("content-type", "application/json");
    let second = client.send(post).json()["task"]["id"].clone();
    for task in [first, second] {
        let list = || call(&client, "tasks/pushNotificationConfig/list", json!({"id": task}))["result"].clone();
        assert_eq!(list()[0]["pushNotificationConfig"]["id"], task, "{}", list());
        let delete = json!({"id": task, "pushNotificationConfigId": task});
        call(&client, "tasks/pushNotificationConfig/delete", delete);
        assert_eq!(list(), json!([]));
    }
}
