//! What a webhook holds and how it is signed, filtered and joined.

use super::{delivery, hub, push, told};
use flotilla_outbound::webhook::sign::{Proof, Secret, Signed, Verifier, keys_in};
use flotilla_testkit::{Binding, Received, Receiver};
use serde_json::json;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn verified(received: &Received, secrets: &[&str], keys: Vec<Vec<u8>>) -> Result<Proof, String> {
    let secrets = secrets.iter().map(|text| Secret::parse(text).expect("a secret")).collect();
    let header = |name| received.header(name).expect("a header");
    let timestamp = header("webhook-timestamp");
    let now = timestamp.parse().expect("a number");
    let signed = Signed { id: received.id(), timestamp, signature: header("webhook-signature") };
    Verifier { secrets, keys }.verify(signed, &received.body, now)
}

#[test]
fn a_webhook_is_signed_with_the_callers_secret_and_otherwise_with_the_hubs_key() {
    let (hub, receiver) = (hub(), Receiver::start());
    let client = hub.owner(Binding::HttpJson);
    let keys = keys_in(client.get("/.well-known/jwks.json").text()).expect("a key set");
    assert_eq!(keys.len(), 1);
    push(&client, "direct", json!({"url": receiver.url(), "token": format!("{SECRET} {OTHER}")}));
    let received = receiver.wait(1).remove(0);
    for secret in [SECRET, OTHER] {
        assert_eq!(verified(&received, &[secret], Vec::new()), Ok(Proof::Secret), "{secret}");
    }
    assert!(verified(&received, &[], keys.clone()).is_err(), "not with the hub's key too");
    assert!(received.header("x-a2a-notification-token").is_none() && received.header("x-hub-signature-256").is_none());

    let auth = json!({"scheme": "Bearer", "credentials": "open-sesame"});
    let by_hub = Receiver::start();
    push(&client, "fail", json!({"url": by_hub.url(), "authentication": auth}));
    let received = by_hub.wait(1).remove(0);
    assert_eq!(verified(&received, &[], keys), Ok(Proof::HubKey));
    assert_eq!(received.header("authorization"), Some("Bearer open-sesame"));
}

#[test]
fn the_older_signature_comes_where_it_is_asked_for() {
    let (hub, receiver) = (hub(), Receiver::start());
    let options = json!({"urn:flotilla:ext:push-options:1.0": {"hubSignature": true}});
    push(&hub.owner(Binding::HttpJson), "fail", json!({"url": receiver.url(), "token": SECRET, "metadata": options}));
    let received = receiver.wait(1).remove(0);
    let expected = flotilla_outbound::webhook::sign::hub(SECRET, &received.body);
    assert_eq!(received.header("x-hub-signature-256"), Some(expected.as_str()));
}

#[test]
fn a_webhook_id_stands_for_one_content_wherever_it_is_taken_up() {
    let (hub, receiver) = (hub(), Receiver::start());
    let client = hub.owner(Binding::JsonRpc);
    let config = json!({"url": receiver.url(), "metadata": {"urn:flotilla:ext:push-options:1.0": {"chunks": "whole"}}});
    let task = push(&client, "chunks 6", config);
    let done = delivery(&hub, &task, "done");
    let uid = done["id"].as_str().expect("an id");
    for (round, from) in ["3", "5", "8"].into_iter().enumerate() {
        hub.cli_ok(&["push", "redeliver", uid, "--from", from]);
        let received = receiver.wait(4 + 2 * (round + 1));
        delivery(&hub, &task, "done");
        let (first, again) = (&received[2], &received[4 + 2 * round]);
        assert_eq!((first.id(), &first.body), (again.id(), &again.body), "from {from}");
    }
    hub.cli_ok(&["push", "redeliver", uid, "--from", "9"]);
    assert_eq!(receiver.wait(11)[10].told(), "COMPLETED", "what comes after it stands alone");
}

#[test]
fn a_config_made_in_the_middle_of_an_artifact_is_told_it_whole() {
    let (hub, receiver) = (hub(), Receiver::start());
    let client = hub.owner(Binding::JsonRpc);
    let mut params = flotilla_testkit::client::message("m-trickle", "trickle 20");
    params["configuration"] = json!({"returnImmediately": true});
    let task = client.call("SendMessage", &params).expect("sent")["task"].clone();
    flotilla_testkit::until("some of it is there", || {
        let task = client.task(task["id"].as_str().expect("an id"));
        (task["artifacts"][0]["parts"].as_array().map_or(0, Vec::len) > 1).then_some(())
    });
    let options = json!({"urn:flotilla:ext:push-options:1.0": {"chunks": "whole"}});
    let config = json!({"taskId": task["id"], "url": receiver.url(), "metadata": options});
    client.call("CreateTaskPushNotificationConfig", &config).expect("made");
    delivery(&hub, &task, "done");
    let first = receiver.received()[0].json()["artifactUpdate"].clone();
    assert_eq!(first["artifact"]["parts"].as_array().map(Vec::len), Some(20), "{first}");
}

#[test]
fn states_only_and_whole_artifacts_where_they_are_asked_for() {
    let hub = hub();
    let client = hub.owner(Binding::JsonRpc);
    let [all, states, whole] = [(); 3].map(|()| Receiver::start());
    let with = |receiver: &Receiver, options: serde_json::Value| json!({"url": receiver.url(), "metadata": {"urn:flotilla:ext:push-options:1.0": options}});
    let tasks = [
        push(&client, "chunks 50", json!({"url": all.url()})),
        push(&client, "chunks 50", with(&states, json!({"events": "status"}))),
        push(&client, "chunks 50", with(&whole, json!({"chunks": "whole"}))),
    ];
    for task in &tasks {
        delivery(&hub, task, "done");
    }
    assert_eq!(told(&all).len(), 53);
    assert_eq!(told(&states), ["task", "WORKING", "COMPLETED"]);
    assert_eq!(told(&whole), ["task", "WORKING", "stream", "COMPLETED"]);
    let artifact = whole.received()[2].json()["artifactUpdate"].clone();
    assert_eq!(artifact["artifact"]["parts"].as_array().map(Vec::len), Some(50));
    assert!(artifact["append"].as_bool() != Some(true), "it is told from its beginning");
    let appended: Vec<bool> =
        all.received()[2..52].iter().map(|one| one.json()["artifactUpdate"]["append"] == true).collect();
    assert!(!appended[0] && appended[1..].iter().all(|append| *append), "{appended:?}");
    // Over gRPC, where a config has no metadata, the request's own says the same.
    let grpc = Receiver::start();
    let mut params = flotilla_testkit::client::message("grpc-1", "chunks 50");
    params["metadata"] = json!({"urn:flotilla:ext:push-options:1.0": {"events": "status"}});
    params["configuration"] = json!({"taskPushNotificationConfig": {"url": grpc.url()}});
    let sent = hub.owner(Binding::Grpc).call("SendMessage", &params).expect("sent");
    delivery(&hub, &sent["task"], "done");
    assert_eq!(told(&grpc), ["task", "WORKING", "COMPLETED"]);
}

#[test]
fn a_deleted_config_is_told_nothing_more() {
    let (hub, receiver) = (hub(), Receiver::start());
    let client = hub.owner(Binding::JsonRpc);
    let task = push(&client, "ask", json!({"url": receiver.url(), "id": "c"}));
    let before = receiver.wait(2).len();
    client.call("DeleteTaskPushNotificationConfig", &json!({"taskId": task["id"], "id": "c"})).expect("deleted");
    let mut reply = flotilla_testkit::client::message("m-2", "large");
    reply["message"]["taskId"] = task["id"].clone();
    client.call("SendMessage", &reply).expect("the task goes on");
    // A webhook of another task that comes after shows that the loop was there.
    push(&client, "fail", json!({"url": receiver.url()}));
    receiver.wait(before + 3);
    let others = receiver
        .received()
        .iter()
        .filter(|one| one.body.windows(36).any(|w| w == task["id"].as_str().unwrap_or_default().as_bytes()))
        .count();
    assert_eq!(others, before);
}

#[test]
fn secrets_are_not_in_the_store() {
    let (hub, receiver) = (hub(), Receiver::start());
    let auth = json!({"scheme": "Bearer", "credentials": "credential-to-hide"});
    let config = json!({"url": receiver.url(), "token": "token-to-hide", "authentication": auth});
    push(&hub.owner(Binding::JsonRpc), "complete", config);
    receiver.wait(4);
    for file in std::fs::read_dir(hub.data()).expect("a directory") {
        let path = file.expect("a file").path();
        let bytes = std::fs::read(&path).expect("its bytes");
        for secret in ["credential-to-hide", "token-to-hide"] {
            assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{}", path.display());
        }
    }
    assert!(!hub.log().contains("to-hide"));
}
