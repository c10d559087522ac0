//! Alerts reach people: a webhook that is signed, and a program of the operator's own.

use super::{dispatch, give, owner, steps, worker};
use crate::cast::{CONFIG, hub_with, id, reached, setup};
use flotilla_testkit::{Binding, Reaction, Receiver, until};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn work_nobody_takes_is_told_to_webhooks_and_programs() {
    let receiver = Receiver::start();
    let home = flotilla_testkit::scratch();
    let (program, told) = (home.path().join("page-me"), home.path().join("told.json"));
    std::fs::write(&program, format!("#!/bin/sh\ncat > {0}.part && mv {0}.part {0}\n", told.display()))
        .expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it may be run");
    let notify = json!([{"webhook": receiver.url()}, {"command": [program]}]);
    let config = format!("{CONFIG}\nfleet: {{notify: {notify}}}\ntargets: {{allow: [127.0.0.1]}}");
    let hub = setup().config(&config).start();
    let (task, client) = give(&hub, &json!({"to": "label:moon", "on_blocked": ["alert"]}));
    reached(&client, &task, "TASK_STATE_REJECTED");
    assert_eq!(steps(&hub, &task), "alerted missing_capability, rejected missing_capability");
    let webhook = receiver.wait(1).remove(0);
    let alert = webhook.json();
    assert_eq!((&alert["type"], &alert["taskId"], &alert["agent"]), (&json!("alert"), &json!(task), &json!("fleet")));
    assert!(alert["text"].as_str().expect("a text").contains("no worker has the label 'moon'"), "{alert}");
    assert!(webhook.header("webhook-signature").is_some_and(|signature| signature.starts_with("v1a,")));
    let program_heard = until("the program is told", || std::fs::read_to_string(&told).ok());
    assert_eq!(serde_json::from_str::<serde_json::Value>(&program_heard).expect("JSON"), alert);
    until("both are counted", || {
        let metrics = hub.owner(Binding::HttpJson).get("/metrics").text().to_owned();
        metrics.contains(r#"flotilla_notifications_total{outcome="delivered"} 2"#).then_some(())
    });
}

#[test]
fn an_alert_that_waits_for_its_receiver_is_told_after_a_restart() {
    let receiver = Receiver::doing(|number, _| if number == 0 { Reaction::Hang } else { Reaction::Status(200) });
    let config = format!("fleet: {{notify: [{{webhook: '{}'}}]}}\ntargets: {{allow: [127.0.0.1]}}", receiver.url());
    let mut hub = hub_with(&config);
    let work = json!({"to": "label:moon", "on_blocked": ["alert"]});
    let (task, _) = give(&hub, &work);
    receiver.wait(1);
    hub.restart();
    let told = receiver.wait(2).remove(1);
    assert_eq!(told.json()["taskId"], json!(task));
    assert_eq!(told.id(), receiver.received()[0].id(), "the same alert, under the same id");
    until("it is told", || {
        let metrics = hub.owner(Binding::HttpJson).get("/metrics").text().to_owned();
        metrics.contains(r#"flotilla_notifications_total{outcome="delivered"} 1"#).then_some(())
    });
    hub.restart();
    let (next, _) = give(&hub, &work);
    assert_eq!(receiver.wait(3).remove(2).json()["taskId"], json!(next), "what was told is not told again");
}

#[test]
fn an_alert_is_pushed_to_who_has_the_task_s_news_pushed() {
    let receiver = Receiver::start();
    let hub = hub_with("fleet: {wait: 1s}\ntargets: {allow: [127.0.0.1]}");
    let _ada = worker(&hub, "ada");
    for (number, policy) in [json!(["alert"]), json!(["alert", "queue"])].into_iter().enumerate() {
        let work = dispatch(&json!({"to": "label:moon", "on_blocked": policy}));
        let message = json!({"messageId": format!("m-{number}"), "role": "ROLE_USER", "parts": [{"text": "x"}],
            "metadata": {"urn:flotilla:ext:fleet-handshake:2.0": work}});
        let configuration = json!({"returnImmediately": true, "taskPushNotificationConfig": {"url": receiver.url()}});
        let client = owner(&hub).agent("fleet");
        let sent = client.call("SendMessage", &json!({"message": message, "configuration": configuration}));
        let task = id(&sent.expect("a task")["task"]).to_owned();
        let alert = format!("No worker takes the work of task {task} (missing_capability): ");
        until("the alert is pushed", || {
            receiver.received().iter().find(|got| got.json().to_string().contains(&alert)).cloned()
        });
        reached(&client, &task, "TASK_STATE_REJECTED");
    }
}

#[test]
fn a_notifier_that_cannot_be_is_refused() {
    for (notify, told) in [
        ("[{webhook: ftp://x}]", "must be an http or https URL"),
        ("[{command: [page-me]}]", "must begin with the whole path of a program"),
        ("[{command: []}]", "must begin with the whole path of a program"),
    ] {
        let refused = setup().config(&format!("fleet: {{notify: {notify}}}")).refused();
        assert!(refused.contains(told), "{refused}");
    }
}
