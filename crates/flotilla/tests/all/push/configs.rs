//! The four operations and the inline config, over every binding.

use super::{hub, push};
use crate::cast::id;
use flotilla_testkit::{Binding, Receiver, Talk};
use serde_json::json;

const CREATE: &str = "CreateTaskPushNotificationConfig";
const GET: &str = "GetTaskPushNotificationConfig";
const LIST: &str = "ListTaskPushNotificationConfigs";
const DELETE: &str = "DeleteTaskPushNotificationConfig";

#[test]
fn configs_are_made_read_listed_and_deleted_alike_on_every_binding() {
    let transcripts = Binding::ALL.map(|binding| {
        let hub = hub();
        let mut talk = Talk::new(hub.owner(binding));
        let task = talk.say("ask");
        let auth = json!({"scheme": "Bearer", "credentials": "c-secret"});
        let config = json!({"taskId": task["id"], "id": "mine", "url": "https://example.com/hook", "token": "t-secret",
            "authentication": auth});
        let made = talk.ok(CREATE, config.clone());
        assert_eq!((&made["id"], &made["taskId"], &made["url"]), (&json!("mine"), &task["id"], &config["url"]));
        let second = talk.ok(CREATE, json!({"taskId": task["id"], "url": "https://example.com/other"}));
        assert!(second["id"].as_str().is_some_and(|id| id.len() > 30), "an id is given: {second}");
        let got = talk.ok(GET, json!({"taskId": task["id"], "id": "mine"}));
        let list = talk.ok(LIST, json!({"taskId": task["id"]}));
        assert_eq!(list["configs"].as_array().map(Vec::len), Some(2));
        for shown in [&made, &got, &list] {
            assert!(!shown.to_string().contains("secret"), "a secret is shown: {shown}");
        }
        assert_eq!(got["authentication"]["scheme"], "Bearer");
        let page = talk.ok(LIST, json!({"taskId": task["id"], "pageSize": 1}));
        let rest = talk.ok(LIST, json!({"taskId": task["id"], "pageSize": 1, "pageToken": page["nextPageToken"]}));
        assert_eq!((&page["configs"][0]["id"], &rest["configs"][0]["id"]), (&json!("mine"), &second["id"]));
        assert_eq!(rest["nextPageToken"].as_str().unwrap_or_default(), "");
        let wrong = talk.refused(LIST, json!({"taskId": task["id"], "pageToken": "1"}));
        assert_eq!(wrong.reason, "INVALID_PARAMS", "a token is no count");
        for _ in 0..2 {
            talk.ok(DELETE, json!({"taskId": task["id"], "id": "mine"}));
        }
        assert_eq!(talk.refused(GET, json!({"taskId": task["id"], "id": "mine"})).reason, "TASK_NOT_FOUND");
        for (method, params) in [
            (CREATE, json!({"taskId": "none", "url": "https://example.com"})),
            (GET, json!({"taskId": "none", "id": "x"})),
            (LIST, json!({"taskId": "none"})),
            (DELETE, json!({"taskId": "none", "id": "x"})),
        ] {
            assert_eq!(talk.refused(method, params).reason, "TASK_NOT_FOUND", "{method}");
        }
        assert_eq!(talk.refused(CREATE, json!({"taskId": task["id"]})).fields(), ["url"]);
        talk.transcript()
    });
    assert_eq!(transcripts[0], transcripts[1]);
    assert_eq!(transcripts[0], transcripts[2]);
}

#[test]
fn an_inline_config_is_told_everything_from_the_first_event_on() {
    for binding in Binding::ALL {
        let (hub, receiver) = (hub(), Receiver::start());
        let client = hub.owner(binding);
        let task = push(&client, "complete", json!({"url": receiver.url(), "token": "t-1"}));
        let received = receiver.wait(4);
        let kinds: Vec<String> = received.iter().map(|one| one.told()).collect();
        assert_eq!((kinds[0].as_str(), kinds[1].as_str(), kinds[3].as_str()), ("task", "WORKING", "COMPLETED"));
        let numbers: Vec<u64> = received.iter().map(|one| one.number()).collect();
        assert_eq!(numbers, [1, 2, 3, 4], "{binding:?}: each event once, in order");
        assert_eq!(received[0].json()["task"]["id"], task["id"]);
        assert_eq!(received[0].header("content-type"), Some("application/a2a+json"));
        assert!(received.iter().all(|one| one.header("x-a2a-notification-token") == Some("t-1")));
        let configs = client.call(LIST, &json!({"taskId": task["id"]})).expect("a list");
        assert_eq!(configs["configs"].as_array().map(Vec::len), Some(1), "{configs}");
    }
}

#[test]
fn streams_and_direct_messages_are_told_too() {
    for binding in Binding::ALL {
        let (hub, streamed, direct) = (hub(), Receiver::start(), Receiver::start());
        let client = hub.owner(binding);
        let with = |id: &str, text: &str, receiver: &Receiver| {
            let mut params = flotilla_testkit::client::message(id, text);
            params["configuration"] = json!({"taskPushNotificationConfig": {"url": receiver.url()}});
            params
        };
        let frames =
            client.stream("SendStreamingMessage", &with("m-1", "complete", &streamed)).expect("a stream").rest();
        let shown: Vec<_> = frames.iter().map(|event| event.frame().clone()).collect();
        let told: Vec<_> = streamed.wait(4).iter().map(|one| one.json()).collect();
        if binding != Binding::Grpc {
            assert_eq!(told, shown, "{binding:?}: webhooks hold what the stream shows");
        }
        let answer = client.call("SendMessage", &with("m-2", "direct", &direct)).expect("an answer");
        assert_eq!(direct.wait(1)[0].json()["message"]["messageId"], answer["message"]["messageId"]);
        let done = hub.owner(Binding::HttpJson);
        flotilla_testkit::until("both are told to the end", || {
            let list = done.get("/api/deliveries?state=done").json();
            (list["deliveries"].as_array().map(Vec::len) == Some(2)).then_some(())
        });
        assert_eq!((streamed.count(), direct.count()), (4, 1));
    }
}

#[test]
fn a_config_made_later_is_told_what_comes_after_it() {
    let (hub, receiver) = (hub(), Receiver::start());
    let client = hub.owner(Binding::JsonRpc);
    let task = client.say("m-1", "ask");
    client.call(CREATE, &json!({"taskId": id(&task), "url": receiver.url()})).expect("made");
    let mut reply = flotilla_testkit::client::message("m-2", "large");
    reply["message"]["taskId"] = task["id"].clone();
    client.call("SendMessage", &reply).expect("a reply");
    let received = receiver.wait(3);
    let before = task["history"].as_array().map_or(0, Vec::len);
    assert!(before > 0 && received[0].told() != "task", "the beginning is not told again: {received:?}");
    assert_eq!(received.last().map(|one| one.told()).as_deref(), Some("COMPLETED"));
}

#[test]
fn the_same_send_again_brings_no_second_webhook_and_a_reply_to_the_same_url_neither() {
    let (hub, receiver) = (hub(), Receiver::start());
    let client = hub.owner(Binding::JsonRpc);
    let first = push(&client, "ask", json!({"url": receiver.url()}));
    let again = push(&client, "ask", json!({"url": receiver.url()}));
    assert_eq!(first["id"], again["id"]);
    crate::cast::reached(&client, id(&first), "TASK_STATE_INPUT_REQUIRED");
    let mut reply = flotilla_testkit::client::message("m-2", "large");
    reply["message"]["taskId"] = first["id"].clone();
    reply["configuration"] = json!({"taskPushNotificationConfig": {"url": receiver.url()}});
    client.call("SendMessage", &reply).expect("a reply");
    let list = client.call(LIST, &json!({"taskId": first["id"]})).expect("a list");
    assert_eq!(list["configs"].as_array().map(Vec::len), Some(1), "{list}");
    super::delivery(&hub, &first, "done");
    // A config that is renewed while a webhook is under way may tell it again, under the same id.
    let mut numbers: Vec<u64> = receiver.received().iter().map(|one| one.number()).collect();
    numbers.dedup();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected, "each event, in order");
}

#[test]
fn a_task_has_so_many_configs_and_a_refused_message_leaves_nothing() {
    let hub = crate::cast::hub_with(&format!("{}\nlimits: {{push_configs_per_task: 2}}", super::QUICK));
    let client = hub.owner(Binding::JsonRpc);
    let task = client.say("m-1", "ask");
    let config = |id: &str| json!({"taskId": task["id"], "id": id, "url": "https://example.com/"});
    client.call(CREATE, &config("a")).expect("made");
    client.call(CREATE, &config("b")).expect("made");
    let refusal = client.call(CREATE, &config("c")).expect_err("refused");
    assert_eq!(
        (refusal.reason.as_str(), &refusal.metadata["limit"]),
        ("UNSUPPORTED_OPERATION", &json!("push_configs_per_task"))
    );
    client.call(CREATE, &config("b")).expect("one that is there may be made anew");
    let mut params = flotilla_testkit::client::message("m-2", "complete");
    params["configuration"] = json!({"taskPushNotificationConfig": {"url": "https://127.0.0.2/"}});
    let refusal = client.call("SendMessage", &params).expect_err("refused");
    assert_eq!(refusal.fields(), ["configuration.taskPushNotificationConfig.url"]);
    assert!(refusal.message.contains("loopback"), "{refusal:?}");
    assert_eq!(client.call("ListTasks", &json!({})).expect("a list")["totalSize"], 1);
}

#[test]
fn the_same_message_for_another_webhook_is_a_conflict() {
    let (hub, receiver) = (hub(), Receiver::start());
    let client = hub.owner(Binding::JsonRpc);
    let send = |url: Option<&str>| {
        let mut params = flotilla_testkit::client::message("m-same", "complete");
        if let Some(url) = url {
            params["configuration"] = json!({"taskPushNotificationConfig": {"url": url}});
        }
        client.call("SendMessage", &params)
    };
    let first = send(Some(&receiver.url())).expect("sent");
    assert_eq!(send(Some(&receiver.url())).expect("the same again")["task"]["id"], first["task"]["id"]);
    for other in [Some("https://example.com/other"), None] {
        assert_eq!(send(other).expect_err("a webhook would be left out").reason, "IDEMPOTENCY_CONFLICT", "{other:?}");
    }
}

#[test]
fn a_page_token_names_a_place_that_holds_when_configs_go() {
    let hub = hub();
    let client = hub.owner(Binding::JsonRpc);
    let task = client.say("m", "ask");
    for number in 0..5 {
        let config = json!({"taskId": id(&task), "id": format!("p{number}"), "url": "https://example.com/"});
        client.call(CREATE, &config).expect("made");
    }
    let page = |token: &serde_json::Value| {
        let page = client.call(LIST, &json!({"taskId": id(&task), "pageSize": 2, "pageToken": token})).expect("a page");
        let ids: Vec<_> = page["configs"].as_array().expect("a list").iter().map(|one| one["id"].clone()).collect();
        (ids, page["nextPageToken"].clone())
    };
    let (first, token) = page(&json!(""));
    assert_eq!(first, ["p0", "p1"]);
    for gone in ["p0", "p1"] {
        client.call(DELETE, &json!({"taskId": id(&task), "id": gone})).expect("deleted");
    }
    let (second, token) = page(&token);
    assert_eq!(second, ["p2", "p3"], "none is left out");
    assert_eq!(page(&token).0, ["p4"]);
}

#[test]
fn ids_that_look_like_something_else_are_refused() {
    let hub = hub();
    for binding in Binding::ALL {
        let client = hub.owner(binding);
        let task = client.say(&format!("m-{binding:?}"), "ask");
        for odd in [".", "..", " ", "\u{a0}\u{2003}", "\u{202e}", "a\u{200b}b", "a\u{1}"] {
            let config = json!({"taskId": id(&task), "id": odd, "url": "https://example.com/"});
            let refusal = client.call(CREATE, &config).expect_err(odd);
            assert_eq!(refusal.reason, "INVALID_PARAMS", "{odd:?}: {refusal:?}");
        }
        for fine in ["...", "a b", "\u{e9}\u{1f600}"] {
            let config = json!({"taskId": id(&task), "id": fine, "url": "https://example.com/"});
            assert_eq!(client.call(CREATE, &config).expect(fine)["id"], fine);
        }
    }
}

#[test]
fn configs_of_others_are_not_there() {
    let hub = hub();
    let task = hub.caller(Binding::JsonRpc, "anna").say("m-1", "ask");
    hub.owner(Binding::JsonRpc);
    for binding in Binding::ALL {
        let stranger = hub.caller(binding, &format!("bert-{binding:?}"));
        for (method, params) in [
            (CREATE, json!({"taskId": id(&task), "url": "https://example.com"})),
            (GET, json!({"taskId": id(&task), "id": "c"})),
            (LIST, json!({"taskId": id(&task)})),
            (DELETE, json!({"taskId": id(&task), "id": "c"})),
        ] {
            let refusal = stranger.call(method, &params).expect_err("refused");
            assert_eq!(refusal.reason, "TASK_NOT_FOUND", "{binding:?} {method}");
        }
    }
}
