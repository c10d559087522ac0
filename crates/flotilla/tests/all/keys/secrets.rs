//! Secrets are shown once, to whom they are made for: a busy hub lets them out nowhere else.

use crate::cast::{CONFIG, id, setup};
use flotilla_protocol::a2a::method::Method;
use flotilla_testkit::client::message;
use flotilla_testkit::process::OWNER;
use flotilla_testkit::{Binding, Client, HubProcess, Request, Response};
use serde_json::json;

const WRONG: &str = "flk_00000000000000000000000000000000000000000000000000000000000000dd";
const TYPO: &str = "flk_very-secret-but-mistyped";
const SAID: &str = "complete: the-password-is-swordfish";

/// All that the hub and the program have said, by where it was said.
#[derive(Default)]
struct Said(Vec<(String, String)>);

impl Said {
    fn note(&mut self, what: impl Into<String>, bytes: &[u8]) {
        self.0.push((what.into(), String::from_utf8_lossy(bytes).into_owned()));
    }

    fn answer(&mut self, what: &str, response: &Response) {
        self.note(what, format!("{:?}", response.headers).as_bytes());
        self.note(what, &response.body);
    }

    fn run(&mut self, hub: &HubProcess, args: &[&str]) {
        let output = hub.cli(args);
        self.note(args.join(" "), &output.stdout);
        self.note(args.join(" "), &output.stderr);
    }

    fn holds_none_of(&self, secrets: &[&str]) {
        for (what, text) in &self.0 {
            for secret in secrets {
                // The prefix and the beginning are telling enough.
                let telling = &secret[..secret.len().min(24)];
                assert!(!text.contains(telling), "{what} tells a secret: {text}");
            }
        }
    }
}

/// Every operation, and requests of every kind that goes wrong.
fn ask_everything(said: &mut Said, client: &Client, task: &str) {
    for method in Method::ALL {
        let params = match method {
            Method::SendMessage => message(&format!("{:?}-{method:?}", client.binding), SAID),
            Method::SendStreamingMessage | Method::SubscribeToTask => continue,
            Method::ListTasks | Method::GetExtendedAgentCard => json!({}),
            Method::GetTask | Method::CancelTask => json!({"id": task}),
            Method::CreatePushConfig => json!({"taskId": task, "url": "https://example.com"}),
            Method::ListPushConfigs => json!({"taskId": task}),
            Method::GetPushConfig | Method::DeletePushConfig => json!({"taskId": task, "id": "c"}),
        };
        said.answer(method.name(), &client.response(method.name(), &params));
    }
    said.answer("wrong parameters", &client.response("SendMessage", &json!({})));
    said.answer("no such agent", &client.clone().agent("nobody").response("ListTasks", &json!({})));
    said.answer("another version", &client.clone().header("a2a-version", "9.9").response("ListTasks", &json!({})));
}

#[test]
fn a_busy_hub_tells_no_secrets() {
    let config = format!("{CONFIG}\nlog: {{level: trace}}\nlimits: {{wrong_keys_per_address: 10}}\n");
    let mut hub = setup().config(&config).start();
    let mut said = Said::default();
    let admin = hub.owner(Binding::HttpJson);
    let alice = hub.make_key(&["alice"]);
    let body = json!({"name": "bob", "scopes": ["tasks:read", "tasks:write"]}).to_string();
    let made = admin.send(Request::post("/api/keys", body).header("content-type", "application/json"));
    let bob = made.json()["secret"].as_str().expect("a key").to_owned();
    let rotated = hub.cli_ok(&["keys", "rotate", "alice"]).trim().to_owned();
    for binding in Binding::ALL {
        for key in [&alice, &bob, &rotated, OWNER] {
            let client = hub.stranger(binding).key(key);
            let task = client.say(&format!("{binding:?}"), SAID);
            // What was said is for those who said it; only the rest is looked through for it.
            ask_everything(&mut said, &client, id(&task));
            let mut stream = client.stream("SendStreamingMessage", &message("s", SAID)).expect("a stream");
            said.note("a stream", format!("{:?}", stream.rest()).as_bytes());
        }
        for key in [WRONG, TYPO] {
            ask_everything(&mut said, &hub.stranger(binding).key(key), "x");
            ask_everything(&mut said, &hub.stranger(binding).header("x-api-key", key), "x");
            let basic = hub.stranger(binding).header("authorization", &format!("Basic {key}"));
            said.answer("basic", &basic.response("ListTasks", &json!({})));
        }
    }
    for target in ["/api/keys", "/metrics", "/readyz", "/nowhere", "/.well-known/agent-card.json", "/tasks?x=1"] {
        said.answer(target, &admin.get(target));
        said.answer(target, &hub.stranger(Binding::HttpJson).key(WRONG).get(target));
    }
    let revoked = admin.send(Request::new("DELETE", "/api/keys/bob"));
    said.answer("revoking", &revoked);
    let owner_config = hub.dir().join("other.yaml").display().to_string();
    std::fs::write(&owner_config, format!("hub: {{owner_key: {OWNER}, drain: soon}}")).expect("a file");
    for args in [
        &["keys", "list"][..],
        &["keys", "revoke", "alice"],
        &["keys", "revoke", "nobody"],
        &["config", "show"],
        &["config", "show", "-o", "json"],
        &["config", "hub"],
        &["config", "check", "--config", &owner_config],
        &["doctor"],
        &["doctor", "-o", "json"],
    ] {
        said.run(&hub, args);
    }
    hub.terminate();
    said.note("the log", hub.log().as_bytes());
    assert!(hub.log().contains("TRACE"), "the log tells all it can");
    assert!(!hub.log().contains("swordfish"), "the log tells what callers say");
    for file in std::fs::read_dir(hub.data()).expect("the data directory") {
        let file = file.expect("a file").path();
        said.note(file.display().to_string(), &std::fs::read(&file).expect("readable"));
    }
    said.holds_none_of(&[&alice, &bob, &rotated, OWNER, WRONG, TYPO]);
    assert!(said.0.len() > 200, "a run that says little proves little: {}", said.0.len());
}
