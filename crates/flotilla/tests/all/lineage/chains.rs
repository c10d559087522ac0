//! Chains of real hubs: what one tells the next, and where a chain ends.

use super::{PARENT, TRACE, descending, hub_id, in_time, kinds, owners_view, sent};
use crate::cast::{self, reached, setup, state, text};
use flotilla_testkit::{Binding, HubProcess};
use serde_json::{Value, json};
use std::time::Duration;

/// How the hubs of a chain speak to each other.
const WAYS: [Way; 6] = [
    ("JSONRPC", "1.0"),
    ("HTTP+JSON", "1.0"),
    ("GRPC", "1.0"),
    ("JSONRPC", "0.3"),
    ("HTTP+JSON", "0.3"),
    ("GRPC", "0.3"),
];

/// A transport and a version.
type Way = (&'static str, &'static str);

/// An agent that hands everything on to an agent of another hub, with a key.
fn relay(name: &str, way: Way, to: &HubProcess, agent: &str) -> String {
    format!("{}    auth: {{bearer: \"env:FLOTILLA_OWNER_KEY\"}}\n", keyless_relay(name, way, to, agent))
}

fn keyless_relay(name: &str, (transport, version): Way, to: &HubProcess, agent: &str) -> String {
    let url = to.url();
    format!(
        "agents:\n  {name}:\n    kind: a2a\n    url: {url}/agents/{agent}\n    transports: [\"{transport}\"]\n    \
         protocol_version: \"{version}\"\n"
    )
}

/// All tasks the owner has with an agent, the oldest first.
fn tasks(hub: &HubProcess, agent: &str) -> Vec<Value> {
    let owner = hub.owner(Binding::HttpJson).agent(agent);
    let list = owner.call("ListTasks", &json!({})).expect("a list");
    let mut tasks = list["tasks"].as_array().expect("tasks").clone();
    tasks.sort_by_key(|task| task["id"].as_str().map(str::to_owned));
    tasks
}

/// Three hubs, each with one agent that calls the next one's: alpha, beta, gamma, alpha.
fn ring(way: Way) -> [HubProcess; 3] {
    let mut first = setup().config("agents:\n  alpha: {kind: echo}\n").start();
    let third = setup().config(&relay("gamma", way, &first, "alpha")).start();
    let second = setup().config(&relay("beta", way, &third, "gamma")).start();
    first.write_config(&relay("alpha", way, &second, "beta"));
    first.restart();
    [first, second, third]
}

#[test]
fn a_ring_of_three_hubs_is_refused_where_it_closes() {
    for way in WAYS {
        let hubs = ring(way);
        let owner = hubs[0].owner(Binding::JsonRpc).agent("alpha").header("traceparent", PARENT);
        let task = owner.say("round", "Hello");
        assert_eq!(state(&task), "TASK_STATE_REJECTED", "{way:?}: {task}");
        assert!(text(&task["status"]["message"]).contains("alpha to beta to gamma to alpha"), "{task}");
        let [first, second, third] = [("alpha", 0), ("beta", 1), ("gamma", 2)].map(|(agent, n)| tasks(&hubs[n], agent));
        assert_eq!((first.len(), second.len(), third.len()), (2, 1, 1), "each was asked once, and the first once more");
        let place = |hub: usize, agent: &str, task: &Value| {
            let view = owners_view(&hubs[hub], task);
            json!({"hub": view["hubId"], "agent": agent, "task": task["id"]})
        };
        let chain = json!([place(0, "alpha", &first[0]), place(1, "beta", &second[0]), place(2, "gamma", &third[0]),]);
        let closing = owners_view(&hubs[0], &first[1]);
        assert_eq!((&closing["origin"]["chain"], &closing["origin"]["hops"]), (&chain, &json!(3)));
        assert_eq!(closing["origin"]["provenance"], "a2a-remote");
        assert_eq!(kinds(&closing), ["descended", "asked", "opened", "status"], "nothing was run");
        for (hub, task) in [(0, &first[0]), (1, &second[0]), (2, &third[0]), (0, &first[1])] {
            assert_eq!(state(task), "TASK_STATE_REJECTED");
            assert_eq!(owners_view(&hubs[hub], task)["traceId"], TRACE, "one trace through all of them");
        }
    }
}

#[test]
fn a_ring_of_hubs_that_do_not_know_each_other_is_refused_where_it_closes() {
    let open = |relay: String| format!("hub: {{allow_anonymous: true}}\n{relay}");
    for way in WAYS {
        let mut first = setup().config(&open("agents:\n  alpha: {kind: echo}\n".into())).start();
        let third = setup().config(&open(keyless_relay("gamma", way, &first, "alpha"))).start();
        let second = setup().config(&open(keyless_relay("beta", way, &third, "gamma"))).start();
        first.write_config(&open(keyless_relay("alpha", way, &second, "beta")));
        first.restart();
        let task = first.owner(Binding::JsonRpc).agent("alpha").say("round", "Hello");
        assert_eq!(state(&task), "TASK_STATE_REJECTED", "{way:?}: {task}");
        assert!(text(&task["status"]["message"]).contains("alpha to beta to gamma to alpha"), "{task}");
        let strangers = first.stranger(Binding::HttpJson).agent("alpha").call("ListTasks", &json!({})).expect("a list");
        let closing = owners_view(&first, &strangers["tasks"][0]);
        let origin = &closing["origin"];
        assert_eq!((&origin["provenance"], &origin["hops"]), (&json!("a2a-external"), &json!(0)), "nothing is known");
        let claimed: Vec<&Value> = origin["claimed"]["chain"].as_array().expect("a chain").iter().collect();
        assert_eq!((claimed.len(), &origin["claimed"]["hops"]), (3, &json!(3)));
        assert_eq!(kinds(&closing), ["descended", "asked", "opened", "status"], "nothing was run");
    }
}

#[test]
fn an_agent_that_calls_itself_is_refused() {
    let mut hub = setup().config("agents:\n  alpha: {kind: echo}\n").start();
    hub.write_config(&relay("alpha", WAYS[0], &hub, "alpha"));
    hub.restart();
    let task = hub.owner(Binding::JsonRpc).say("self", "Hello");
    assert_eq!(state(&task), "TASK_STATE_REJECTED");
    let all = tasks(&hub, "alpha");
    assert_eq!(all.len(), 2);
    let origin = owners_view(&hub, &all[1])["origin"].clone();
    assert_eq!((&origin["provenance"], &origin["hops"]), (&json!("local"), &json!(1)), "the parent is of this hub");
}

#[test]
fn a_chain_ends_where_its_hops_are_used_up() {
    let third = cast::hub_with("limits: {hops: 1}");
    let second = setup().config(&relay("beta", WAYS[2], &third, "mock")).start();
    let first = setup().config(&relay("alpha", WAYS[1], &second, "beta")).start();
    let direct = second.owner(Binding::JsonRpc).agent("beta").say("near", "complete");
    assert_eq!(state(&direct), "TASK_STATE_COMPLETED", "one hop is allowed: {direct}");
    let task = first.owner(Binding::JsonRpc).agent("alpha").say("far", "complete");
    assert_eq!(state(&task), "TASK_STATE_REJECTED", "{task}");
    assert!(text(&task["status"]["message"]).contains("2 hops from where it began, and at most 1"), "{task}");
}

#[test]
fn the_next_hub_knows_whom_it_works_for_and_until_when() {
    let second = cast::hub();
    let first = setup().config(&relay("alpha", WAYS[0], &second, "mock")).start();
    let deadline = in_time(Duration::from_millis(1500));
    let params = descending("hold", "hold", &json!({"deadline": deadline, "maxHops": 3}));
    let owner = first.owner(Binding::HttpJson).agent("alpha").header("traceparent", PARENT);
    let task = sent(&owner, &params);
    assert_eq!(state(&task), "TASK_STATE_FAILED", "{task}");
    assert!(text(&task["status"]["message"]).starts_with("The deadline passed"), "{task}");
    let there = tasks(&second, "mock");
    assert_eq!(there.len(), 1);
    let id = there[0]["id"].as_str().expect("an id");
    let ended = reached(&second.owner(Binding::HttpJson), id, "TASK_STATE_FAILED");
    assert!(text(&ended["status"]["message"]).starts_with("The deadline passed"), "{ended}");
    let view = owners_view(&second, &ended);
    let parent = json!({"hub": hub_id_of(&first, &task), "agent": "alpha", "task": task["id"]});
    assert_eq!((&view["origin"]["chain"], &view["origin"]["maxHops"]), (&json!([parent]), &json!(3)));
    assert_eq!((&view["deadline"], &view["traceId"]), (&json!(deadline), &json!(TRACE)));
    let told = view["origin"]["trace"]["traceparent"].as_str().expect("a trace");
    assert!(told != PARENT && told.ends_with("-01"), "the span is that of the first hub's run: {told}");
    assert_ne!(hub_id(&second), hub_id_of(&first, &task));
}

fn hub_id_of(hub: &HubProcess, task: &Value) -> Value {
    owners_view(hub, task)["hubId"].clone()
}

#[test]
fn an_agent_that_knows_no_deadlines_is_told_to_stop() {
    // It believes nobody without a key, so it does not know of any.
    let second = cast::hub_set("allow_anonymous: true");
    let first = setup().config(&keyless_relay("alpha", WAYS[0], &second, "mock")).start();
    let params = descending("hold", "hold", &json!({"deadline": in_time(Duration::from_millis(1500))}));
    let task = sent(&first.owner(Binding::HttpJson).agent("alpha"), &params);
    assert_eq!(state(&task), "TASK_STATE_FAILED", "{task}");
    let stranger = second.stranger(Binding::HttpJson);
    let there = stranger.call("ListTasks", &json!({})).expect("a list")["tasks"][0]["id"].clone();
    reached(&stranger, there.as_str().expect("an id"), "TASK_STATE_CANCELED");
}
