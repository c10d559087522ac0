//! SIGHUP: what can change while the hub runs does, all or nothing.

use crate::cast::{CONFIG, hub, id, reached, state};
use flotilla_testkit::{Binding, HubProcess, Request, Response, until};

fn card(hub: &HubProcess, agent: &str, etag: Option<&str>) -> Response {
    let request = Request::get(&format!("/agents/{agent}/.well-known/agent-card.json"));
    let request = etag.map_or(request.clone(), |etag| request.header("if-none-match", etag));
    hub.stranger(Binding::HttpJson).send(request)
}

#[test]
fn a_reload_adds_an_agent_and_changes_a_card() {
    let hub = hub();
    let before = card(&hub, "mock", None);
    let etag = before.header("etag").expect("an ETag").to_owned();
    assert_eq!(card(&hub, "mock", Some(&etag)).status, 304);
    assert_eq!(card(&hub, "added", None).status, 404);
    let changed = CONFIG.replace("Does what it is told.", "Does more than it is told.");
    hub.write_config(&format!("{changed}\n  added: {{kind: echo}}\n"));
    hub.signal("HUP");
    until("the new agent is there", || (card(&hub, "added", None).status == 200).then_some(()));
    let after = card(&hub, "mock", Some(&etag));
    assert_eq!(after.status, 200, "the old ETag is no longer fresh");
    assert_ne!(after.header("etag"), Some(etag.as_str()));
    assert_eq!(after.json()["description"], "Does more than it is told.");
    let owner = hub.owner(Binding::JsonRpc).agent("added");
    assert_eq!(state(&owner.say("m", "hello")), "TASK_STATE_COMPLETED");
}

#[test]
fn a_reload_with_a_mistake_changes_nothing() {
    let hub = hub();
    let before = card(&hub, "mock", None);
    hub.write_config("agents:\n  mock:\n    kind: nonsense\n");
    hub.signal("HUP");
    until("the mistake is told", || hub.log().contains("configuration not changed").then_some(()));
    let after = card(&hub, "mock", None);
    assert_eq!((&after.body, after.header("etag")), (&before.body, before.header("etag")));
    assert_eq!(state(&hub.owner(Binding::JsonRpc).say("m", "complete")), "TASK_STATE_COMPLETED");
}

#[test]
fn a_reload_leaves_running_work_alone() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let task = owner.start("m", "work 400ms");
    hub.write_config(&format!("{CONFIG}\n  added: {{kind: echo}}\n"));
    hub.signal("HUP");
    until("the new agent is there", || (card(&hub, "added", None).status == 200).then_some(()));
    reached(&owner, id(&task), "TASK_STATE_COMPLETED");
}

#[test]
fn a_removed_agent_is_no_longer_there() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson).agent("plain");
    owner.say("m", "hello");
    hub.write_config(&CONFIG.replace("  plain:\n", "  renamed:\n"));
    hub.signal("HUP");
    until("the agent is gone", || (card(&hub, "plain", None).status == 404).then_some(()));
    let refusal = owner.call("ListTasks", &serde_json::json!({})).expect_err("gone");
    assert_eq!(refusal.reason, "AGENT_NOT_FOUND");
}

#[test]
fn limits_change_with_a_reload() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    owner.say("m", "complete");
    hub.write_config(&format!("{CONFIG}\nlimits: {{body: 1024}}\n"));
    hub.signal("HUP");
    until("the limit holds", || {
        let response = owner.response("SendMessage", &flotilla_testkit::client::message("m", &"complete ".repeat(200)));
        (response.status == 413).then_some(())
    });
}
