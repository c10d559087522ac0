//! Where webhooks may go, as callers are told it.

use crate::cast::{hub, hub_with, setup};
use flotilla_testkit::{Binding, Receiver};
use serde_json::json;

#[test]
fn a_refused_url_is_refused_when_the_config_is_made_with_the_reason() {
    let hub = hub();
    for binding in Binding::ALL {
        let client = hub.owner(binding);
        let task = client.say(&format!("m-{binding:?}"), "ask");
        for (url, why) in [
            ("https://127.0.0.1/", "loopback"),
            ("https://2130706433/", "loopback"),
            ("https://0x7f.1/", "loopback"),
            ("https://localhost/", "loopback"),
            ("https://localhost./", "loopback"),
            ("https://[::1]/", "loopback"),
            ("https://[::ffff:10.0.0.1]/", "IPv4 address in IPv6 form"),
            ("https://169.254.169.254/latest/meta-data", "link-local"),
            ("https://[fd00:ec2::254]/", "unique local"),
            ("http://93.184.216.34/", "over https only"),
            ("https://user:pass@example.com/", "credentials"),
            ("ftp://example.com/", "http or https"),
            ("nonsense", "not a URL"),
        ] {
            let params = json!({"taskId": task["id"], "url": url});
            let refusal = client.call("CreateTaskPushNotificationConfig", &params).expect_err(url);
            assert_eq!((refusal.reason.as_str(), refusal.fields()), ("INVALID_PARAMS", vec!["url"]), "{url}");
            assert!(refusal.message.contains(why), "{url}: {}", refusal.message);
        }
    }
}

#[test]
fn an_operator_admits_targets_by_flag_environment_and_file() {
    let receiver = Receiver::start();
    let hubs = [
        setup().config(crate::cast::CONFIG).arg("--allow-target").arg("127.0.0.0/8").start(),
        setup().config(crate::cast::CONFIG).env("FLOTILLA_ALLOW_TARGET", "10.0.0.0/8,127.0.0.1").start(),
        hub_with("targets: {allow: [127.0.0.1/32]}"),
    ];
    for (index, hub) in hubs.iter().enumerate() {
        super::push(&hub.owner(Binding::JsonRpc), "direct", json!({"url": receiver.url()}));
        receiver.wait(index + 1);
    }
    assert!(setup().arg("--allow-target").arg("home").refused().contains("is no range of addresses"));
    assert!(setup().config("targets: {allow: [10.1.2.3/8]}").refused().contains("beyond its length"));
}

#[test]
fn a_target_that_is_no_longer_admitted_is_not_called() {
    let receiver = Receiver::start();
    let settings = "push: {schedule: [50ms], timeout: 1s}\ntargets: {allow: [127.0.0.1]}";
    let mut hub = hub_with(settings);
    let task = super::push(&hub.owner(Binding::JsonRpc), "ask", json!({"url": receiver.url()}));
    let before = receiver.wait(2).len();
    hub.kill();
    hub.write_config(&format!("{}\npush: {{schedule: [50ms], timeout: 1s}}", crate::cast::CONFIG));
    hub.restart();
    hub.owner(Binding::JsonRpc).call("CancelTask", &json!({"id": task["id"]})).expect("canceled");
    let parked = super::delivery(&hub, &task, "parked");
    assert!(parked["reason"].as_str().is_some_and(|reason| reason.contains("loopback")), "{parked}");
    assert_eq!(receiver.count(), before);
}
