//! What the hub has seen of workers outlives it: pauses of accounts, and how turns went; and what their cards say.

use super::{announce, give, is, owner, result, shown, steps, worker, worker_saying};
use crate::cast::{hub, reached};
use crate::socket::connected;
use flotilla_testkit::until;
use serde_json::{Value, json};

const URI: &str = "urn:flotilla:ext:fleet-handshake:2.0";

#[test]
fn pauses_and_turns_outlive_the_hub() {
    let mut hub = hub();
    let with = |name: &str| {
        let mut told = announce(name, 1);
        told["worker"]["account"] = json!("team");
        told
    };
    let mut ada = worker_saying(&hub, "ada", &with("ada"));
    let (task, client) = give(&hub, &json!({}));
    let message = ada.kind("message");
    result(&mut ada, &message, &json!({"status": "done"}));
    reached(&client, &task, "TASK_STATE_COMPLETED");
    let (task, _) = give(&hub, &json!({}));
    let message = ada.kind("message");
    let blocked =
        json!({"status": "blocked", "blocked_reason": "usage_limit", "retry_after": 3600, "detail": "weekly"});
    result(&mut ada, &message, &blocked);
    until("it waits", || steps(&hub, &task).ends_with("queued").then_some(()));
    let before = shown(&hub, "ada");
    drop(ada);
    hub.restart();
    let after = shown(&hub, "ada");
    for figure in ["lastSuccess", "successRate", "failures", "paused", "account"] {
        assert_eq!((&after[figure], after[figure].is_null()), (&before[figure], false), "{figure}: {after}");
    }
    // One of the same account that comes only now is paused with the others.
    let _bob = worker_saying(&hub, "bob", &with("bob"));
    assert_eq!(is(&hub, "bob", "BUSY")["paused"]["reason"], "its usage limit is reached");
}

#[test]
fn a_worker_s_card_says_that_it_takes_dispatches() {
    let hub = hub();
    let declares = |name: &str| {
        let card = owner(&hub).get(&format!("/agents/{name}/.well-known/agent-card.json")).json();
        let all = card["capabilities"]["extensions"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|extension| extension["uri"] == URI)
    };
    let _silent = connected(&hub, "silent");
    assert_eq!(declares("silent"), None);
    let _ada = worker(&hub, "ada");
    for name in ["ada", "fleet"] {
        let declared = declares(name).unwrap_or_else(|| panic!("{name} does not say so"));
        assert_eq!(declared["params"], json!({"versions": {"min": "2.0", "max": "2.0"}}));
        assert_ne!(declared["required"], Value::from(true));
    }
}
