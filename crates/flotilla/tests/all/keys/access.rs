//! Who is let in, and how keys come and go.

use crate::cast::{CONFIG, hub, hub_with, id, setup, state};
use flotilla_testkit::client::message;
use flotilla_testkit::process::OWNER;
use flotilla_testkit::{Binding, Client, Refusal, Request, until};
use serde_json::{Value, json};

const OTHER: &str = "flk_00000000000000000000000000000000000000000000000000000000000000bb";

fn operations() -> Vec<(&'static str, Value)> {
    vec![
        ("SendMessage", message("m", "complete")),
        ("SendStreamingMessage", message("m", "complete")),
        ("GetTask", json!({"id": "x"})),
        ("ListTasks", json!({})),
        ("CancelTask", json!({"id": "x"})),
        ("SubscribeToTask", json!({"id": "x"})),
        ("CreateTaskPushNotificationConfig", json!({"taskId": "x"})),
        ("GetTaskPushNotificationConfig", json!({"taskId": "x", "id": "c"})),
        ("ListTaskPushNotificationConfigs", json!({"taskId": "x"})),
        ("DeleteTaskPushNotificationConfig", json!({"taskId": "x", "id": "c"})),
        ("GetExtendedAgentCard", json!({})),
    ]
}

fn turned_away(client: &Client) {
    for (method, params) in operations() {
        let response = client.response(method, &params);
        if client.binding != Binding::Grpc {
            assert_eq!(response.status, 401, "{method}");
            let challenge = response.header("www-authenticate").expect("a challenge");
            assert!(challenge.starts_with("Bearer"), "{challenge}");
        }
        assert_eq!(Refusal::of(&response).reason, "UNAUTHENTICATED", "{method}");
    }
}

#[test]
fn without_a_valid_key_every_operation_is_refused_with_a_challenge() {
    let hub = hub_with("limits: {wrong_keys_per_address: 100000}");
    for binding in Binding::ALL {
        let stranger = hub.stranger(binding);
        turned_away(&stranger);
        turned_away(&stranger.clone().key(OTHER));
        turned_away(&stranger.clone().key(&OWNER[..60]));
        turned_away(&stranger.clone().header("authorization", &format!("Basic {OWNER}")));
        turned_away(&stranger.clone().header("authorization", "Bearer"));
        turned_away(&stranger.header("x-api-key", "nonsense"));
        assert_eq!(hub.owner(binding).call("ListTasks", &json!({})).expect("a list")["totalSize"], 0);
    }
}

#[test]
fn a_key_is_shown_as_bearer_or_as_api_key() {
    let hub = hub();
    for binding in Binding::ALL {
        let stranger = hub.stranger(binding);
        for client in [
            stranger.clone().header("authorization", &format!("Bearer {OWNER}")),
            stranger.clone().header("Authorization", &format!("bearer {OWNER}")),
            stranger.clone().header("X-API-Key", OWNER),
            stranger.clone().header("x-api-key", OWNER),
        ] {
            client.call("ListTasks", &json!({})).expect("let in");
        }
    }
}

#[test]
fn cards_and_health_need_no_key_and_the_owners_view_does() {
    let hub = hub();
    let stranger = hub.stranger(Binding::HttpJson);
    for target in ["/.well-known/agent-card.json", "/agents/echo/.well-known/agent-card.json", "/healthz", "/readyz"] {
        assert_eq!(stranger.get(target).status, 200, "{target}");
    }
    assert_eq!(stranger.get("/api/tasks/x/log").status, 401);
}

#[test]
fn keys_are_made_listed_and_revoked_while_the_hub_runs() {
    let hub = hub();
    let key = hub.key("alice", &[]);
    assert!(key.strip_prefix("flk_").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit())));
    let alice = hub.stranger(Binding::HttpJson).key(&key);
    assert_eq!(state(&alice.say("m", "complete")), "TASK_STATE_COMPLETED");
    let list = hub.cli_ok(&["keys", "list"]);
    assert!(list.contains("alice") && list.contains("owner"), "{list}");
    assert!(!list.contains(&key) && !list.contains(OWNER), "a list of keys holds no keys");
    assert!(!hub.cli(&["keys", "create", "alice"]).status.success(), "a name is used once");
    hub.cli_ok(&["keys", "revoke", "alice"]);
    until("the hub knows of the revocation", || (alice.get("/tasks").status == 401).then_some(()));
    turned_away(&alice);
    turned_away(&alice.through(Binding::JsonRpc));
    let list = hub.cli_ok(&["keys", "list"]);
    let line = list.lines().find(|line| line.starts_with("alice")).expect("still listed");
    assert!(line.contains(" revoked 20"), "with the time of its revocation: {line}");
    assert!(!hub.cli(&["keys", "revoke", "alice"]).status.success(), "revoked already");
    assert!(!hub.cli(&["keys", "revoke", "nobody"]).status.success());
    assert!(!hub.cli(&["keys", "create", "no spaces"]).status.success());
}

#[test]
fn a_key_may_be_limited_to_agents() {
    let hub = hub();
    let key = hub.key("limited", &["echo", "plain"]);
    for binding in Binding::ALL {
        let limited = hub.stranger(binding).key(&key);
        assert_eq!(state(&limited.clone().agent("echo").say(&format!("m-{binding:?}"), "x")), "TASK_STATE_COMPLETED");
        limited.clone().agent("plain").call("ListTasks", &json!({})).expect("the other one too");
        let refusal = limited.clone().agent("mock").call("ListTasks", &json!({})).expect_err("not for this key");
        let unknown = limited.clone().agent("nope").call("ListTasks", &json!({})).expect_err("not there");
        assert_eq!(refusal.message, unknown.message.replace("nope", "mock"), "not yours is not there");
        assert_eq!((refusal.reason, refusal.http), (unknown.reason, unknown.http));
        assert!(!unknown.message.contains("mock"), "agents it may not call are not named");
        let refusal = limited.call("ListTasks", &json!({})).expect_err("the default agent is not among them");
        assert_eq!(refusal.reason, "AGENT_NOT_FOUND");
    }
    assert!(hub.cli_ok(&["keys", "list"]).contains("echo, plain"));
}

#[test]
fn two_different_keys_at_once_are_refused() {
    let hub = hub();
    let (alice, bob) = (hub.key("alice", &[]), hub.key("bob", &[]));
    for binding in Binding::ALL {
        let both = |other: &str| hub.stranger(binding).key(&alice).header("x-api-key", other);
        both(&alice).call("ListTasks", &json!({})).expect("the same twice is one");
        let refusal = both(&bob).call("ListTasks", &json!({})).expect_err("which one is meant?");
        assert_eq!(refusal.reason, "UNAUTHENTICATED", "{refusal:?}");
        assert!(refusal.message.contains("two different keys"), "{refusal:?}");
    }
}

#[test]
fn keys_survive_a_restart() {
    let mut hub = hub();
    let key = hub.key("alice", &[]);
    let before = hub.stranger(Binding::JsonRpc).key(&key).say("m", "complete");
    hub.restart();
    assert_eq!(hub.stranger(Binding::JsonRpc).key(&key).task(id(&before)), before);
}

#[test]
fn strangers_are_let_in_where_that_is_allowed_but_a_wrong_key_is_not() {
    let hub = setup().config(CONFIG).arg("--allow-anonymous").start();
    assert!(hub.banner.iter().any(|line| line.contains("WARNING")), "warned about: {:?}", hub.banner);
    for binding in Binding::ALL {
        assert_eq!(state(&hub.stranger(binding).say("m", "complete")), "TASK_STATE_COMPLETED");
        turned_away(&hub.stranger(binding).key(OTHER));
    }
}

#[test]
fn strangers_are_refused_on_an_open_address_without_a_second_switch() {
    let said = setup().arg("--allow-anonymous").listen("0.0.0.0:0").refused();
    assert!(said.contains("--allow-anonymous-remote"), "{said}");
    let said = setup().config("hub: {allow_anonymous: true}").listen("[::]:0").refused();
    assert!(said.contains("--allow-anonymous-remote"), "{said}");
    let hub = setup().arg("--allow-anonymous").arg("--allow-anonymous-remote").listen("0.0.0.0:0").start();
    hub.stranger(Binding::HttpJson).say("m", "hello");
}

#[test]
fn loopback_is_no_credential() {
    let hub = setup().start();
    let response = hub.stranger(Binding::HttpJson).header("x-forwarded-for", "127.0.0.1").get("/tasks");
    assert_eq!(response.status, 401);
}

#[test]
fn the_first_start_makes_an_owners_key_and_shows_it_once() {
    let mut hub = setup().env("FLOTILLA_OWNER_KEY", "").start();
    let shown = |banner: &[String]| {
        let words = banner.iter().flat_map(|line| line.split_whitespace()).find(|word| word.starts_with("flk_"));
        words.map(str::to_owned)
    };
    let key = shown(&hub.banner).expect("the key is shown");
    let request = hub.banner.last().expect("a request to paste");
    assert!(request.contains("curl") && request.contains(&key) && request.contains("$RANDOM"), "{request}");
    hub.stranger(Binding::HttpJson).key(&key).say("m", "hello");
    hub.restart();
    assert_eq!(shown(&hub.banner), None, "only once");
    hub.stranger(Binding::HttpJson).key(&key).say("m2", "hello");
}

#[test]
fn a_preset_key_that_is_none_is_refused() {
    let said = setup().env("FLOTILLA_OWNER_KEY", "letmein").refused();
    assert!(said.contains("flk_") && !said.contains("letmein"), "{said}");
}

#[test]
fn a_refused_body_is_not_read_before_the_key_is() {
    let hub = hub();
    for binding in Binding::JSON {
        let mut request = hub.stranger(binding).request("SendMessage", &message("m", "x"));
        request.body = b"not json".to_vec();
        assert_eq!(flotilla_testkit::http::send(hub.address(), &request).status, 401);
    }
    let response =
        hub.stranger(Binding::HttpJson).send(Request::post("/message:send", "x").header("content-type", "text/plain"));
    assert_eq!(response.status, 401);
}

#[test]
fn the_open_stream_of_a_revoked_key_ends() {
    for binding in Binding::ALL {
        let hub = hub();
        let key = hub.key("alice", &[]);
        let alice = hub.stranger(binding).key(&key);
        let mut stream = alice.stream("SendStreamingMessage", &message("m", "trickle 2000")).expect("a stream");
        stream.expect();
        hub.cli_ok(&["keys", "revoke", "alice"]);
        let last = stream.rest().pop().expect("a last word");
        assert!(last.data.is_some_and(|data| data.contains("UNAUTHENTICATED")), "the stream says why it ends");
    }
}
