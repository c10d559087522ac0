//! A worker that starts anew while its old connection is still there: what the old one announced does not outrank it.

use super::{announce, give, is, key, result, say, shown, steps, why, worker};
use crate::cast::{hub, hub_with, reached};
use crate::socket::dial;
use serde_json::{Value, json};

fn sick(epoch: u64) -> Value {
    let mut told = announce("ada", epoch);
    told["mcp_health"]["mem"] = json!("failed");
    told
}

fn needs_mem(to: &str) -> Value {
    json!({"to": to, "on_blocked": [], "requirements": {"required_mcp": ["mem"]}})
}

#[test]
fn the_first_word_of_a_new_connection_counts_whatever_its_epoch() {
    let hub = hub();
    let key = key(&hub, "ada");
    let mut old = dial(&hub, &key).open();
    say(&mut old, &announce("ada", 60));
    let mut new = dial(&hub, &key).open();
    let (task, client) = give(&hub, &needs_mem("any"));
    reached(&client, &task, "TASK_STATE_REJECTED");
    let detail = why(&hub, &task)[0]["detail"].as_str().unwrap_or_default().to_owned();
    assert!(detail.contains("connected anew"), "it has announced nothing yet: {detail}");
    assert_eq!(shown(&hub, "ada")["unconfirmed"], true);

    let (task, client) = give(&hub, &needs_mem("ada"));
    let message = new.kind("message");
    assert_eq!(why(&hub, &task)[0]["unverified"], json!(["MCP server mem"]), "by name it gets it");
    result(&mut new, &message, &json!({"status": "done"}));
    reached(&client, &task, "TASK_STATE_COMPLETED");

    assert_eq!(say(&mut new, &sick(1))["taken"], true);
    assert_eq!(say(&mut new, &announce("ada", 0))["taken"], false, "from then on its epochs count");
    let (task, client) = give(&hub, &needs_mem("ada"));
    reached(&client, &task, "TASK_STATE_REJECTED");
    assert_eq!(steps(&hub, &task), "rejected missing_mcp");
}

#[test]
fn one_that_goes_on_with_its_token_keeps_its_profile_also_over_a_restart() {
    let mut hub = hub();
    let key = key(&hub, "ada");
    let mut first = dial(&hub, &key).open();
    let token = first.welcome["resumeToken"].as_str().expect("a token").to_owned();
    say(&mut first, &announce("ada", 60));
    hub.restart();
    let mut back = dial(&hub, &key).query("resume", &token).open();
    let (task, client) = give(&hub, &needs_mem("any"));
    let message = back.kind("message");
    result(&mut back, &message, &json!({"status": "done"}));
    reached(&client, &task, "TASK_STATE_COMPLETED");

    hub.restart();
    let mut anew = dial(&hub, &key).open();
    is(&hub, "ada", "AVAILABLE");
    let (task, client) = give(&hub, &needs_mem("any"));
    reached(&client, &task, "TASK_STATE_REJECTED");
    assert_eq!(say(&mut anew, &announce("ada", 1))["taken"], true);
    give(&hub, &needs_mem("any"));
    anew.kind("message");
}

#[test]
fn connections_that_share_the_work_share_the_profile() {
    let hub = hub_with("sockets: {connections: share}");
    let mut one = worker(&hub, "ada");
    say(&mut one, &announce("ada", 60));
    let mut two = dial(&hub, &key(&hub, "ada")).open();
    assert_eq!(shown(&hub, "ada")["unconfirmed"], json!(null), "the first is still there");
    assert_eq!(say(&mut two, &sick(1))["taken"], false);
    assert_eq!(say(&mut two, &sick(61))["taken"], true);
    assert_eq!(say(&mut one, &announce("ada", 60))["taken"], false);
}
