//! Lists of tasks in the dialect: what an agent has to do.

use super::{connected, dial, post, result, to};
use crate::cast::hub;
use crate::socket::agent_key;
use flotilla_testkit::{Binding, until};
use serde_json::{Value, json};

fn ids(page: &Value) -> Vec<&Value> {
    page["tasks"].as_array().unwrap_or_else(|| panic!("no tasks in {page}")).iter().map(|task| &task["id"]).collect()
}

fn sorted(ids: Vec<&Value>) -> Vec<String> {
    let mut ids: Vec<String> = ids.into_iter().map(Value::to_string).collect();
    ids.sort();
    ids
}

#[test]
fn an_agent_without_a_socket_finds_what_it_has_to_do() {
    let hub = hub();
    let key = agent_key(&hub, "weather");
    dial(&hub, &key).open().close();
    let (one, two) = (agent_key(&hub, "one"), agent_key(&hub, "two"));
    until("the agent is away", || {
        let entry = result(&hub, &one, "x-gopherhole/agents.available", &json!({}));
        let entries = entry["agents"].as_array().cloned().unwrap_or_default();
        entries.iter().any(|agent| agent["id"] == "weather" && agent["connected"] == false).then_some(())
    });
    let first = result(&hub, &one, "SendMessage", &to("weather", "Rain?"));
    let second = result(&hub, &two, "SendMessage", &to("weather", "Snow?"));
    // It has asked nobody yet, and names no state.
    let page = until("both wait", || {
        let page = result(&hub, &key, "ListTasks", &json!({}));
        page["tasks"].as_array()?.iter().all(|task| task["status"]["state"] == "submitted").then_some(page)
    });
    assert_eq!((sorted(ids(&page)), &page["totalSize"]), (sorted(vec![&first["id"], &second["id"]]), &json!(2)));
    for task in page["tasks"].as_array().into_iter().flatten() {
        let from = if task["id"] == first["id"] { "one" } else { "two" };
        assert_eq!((&task["clientAgentId"], &task["serverAgentId"]), (&json!(from), &json!("weather")));
    }
    let own = result(&hub, &key, "SendMessage", &to("mock", "hold"));
    let (mut seen, mut params) = (Vec::new(), json!({"pageSize": 1}));
    loop {
        let page = result(&hub, &key, "ListTasks", &params);
        assert!(ids(&page).len() <= 1 && page["totalSize"] == 3, "{page}");
        seen.extend(ids(&page).into_iter().cloned());
        let Some(token) = page.get("nextPageToken") else { break };
        params["pageToken"] = token.clone();
    }
    assert_eq!(sorted(seen.iter().collect()), sorted(vec![&own["id"], &second["id"], &first["id"]]));
    let waiting = result(&hub, &key, "ListTasks", &json!({"status": "submitted"}));
    assert_eq!(sorted(ids(&waiting)), sorted(vec![&second["id"], &first["id"]]));
    let done = json!({"taskId": first["id"], "status": {"state": "completed"}});
    assert!(post(&hub, &key, "task/respond", &done).json().get("error").is_none());
    assert_eq!(ids(&result(&hub, &key, "ListTasks", &json!({"status": "completed"}))), [&first["id"]]);
    assert_eq!(ids(&result(&hub, &one, "ListTasks", &json!({}))), [&first["id"]], "a caller sees its own alone");
}

#[test]
fn an_agent_that_is_connected_finds_its_work_before_it_has_said_anything() {
    let hub = hub();
    let key = agent_key(&hub, "weather");
    let mut agent = dial(&hub, &key).open();
    let asked = result(&hub, &agent_key(&hub, "one"), "SendMessage", &to("weather", "Rain?"));
    agent.kind("message");
    let over_socket = agent.call(1, "ListTasks", &json!({}))["result"].clone();
    for page in [over_socket, result(&hub, &key, "ListTasks", &json!({}))] {
        assert_eq!((ids(&page), &page["tasks"][0]["serverAgentId"]), (vec![&asked["id"]], &json!("weather")), "{page}");
    }
    let in_a2a = hub.stranger(Binding::JsonRpc).key(&key).call("ListTasks", &json!({})).expect("a list");
    assert_eq!(in_a2a["tasks"], json!([]), "A2A lists what a caller asked for, not what an agent has to do");
}

#[test]
fn who_asks_over_an_agents_socket_is_shown_by_the_agents_name() {
    let hub = hub();
    let key = agent_key(&hub, "team-key");
    let mut alpha = dial(&hub, &key).query("agent", "alpha").open();
    assert_eq!(alpha.welcome["agentId"], "alpha");
    let mut beta = connected(&hub, "beta");
    alpha.send(&json!({"type": "message", "id": "1", "to": "beta", "from": "gamma",
                       "payload": {"parts": [{"kind": "text", "text": "Hi"}]}}));
    let asked = beta.kind("message");
    assert_eq!(asked["from"], "alpha");
    let page = beta.call(1, "ListTasks", &json!({}))["result"].clone();
    assert_eq!((ids(&page), &page["tasks"][0]["clientAgentId"]), (vec![&asked["taskId"]], &json!("alpha")));
    let sent = alpha.call(2, "SendMessage", &to("beta", "Once more"))["result"].clone();
    assert_eq!((&sent["clientAgentId"], &beta.kind("message")["from"]), (&json!("alpha"), &json!("alpha")));
    // Whoever was asked can write back.
    let back = beta.call(2, "SendMessage", &to("alpha", "Hi yourself"))["result"].clone();
    let heard = alpha.kind("message");
    assert_eq!((&heard["taskId"], &heard["from"]), (&back["id"], &json!("beta")));
    let page = alpha.call(3, "ListTasks", &json!({"status": "working"}))["result"].clone();
    assert!(ids(&page).contains(&&back["id"]), "what alpha has to do is among it: {page}");
}

#[test]
fn a_task_of_a2a_stays_one_for_its_caller_and_is_work_for_its_agent() {
    let hub = hub();
    let (key, caller) = (agent_key(&hub, "weather"), agent_key(&hub, "caller"));
    let mut agent = dial(&hub, &key).open();
    let sent = json!({"tenant": "weather", "configuration": {"returnImmediately": true},
                      "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Rain?"}]}});
    let plain = hub.stranger(Binding::JsonRpc).key(&caller);
    let task = plain.call("SendMessage", &sent).expect("a task")["task"].clone();
    agent.kind("message");
    let (alone, named) = (json!({"id": task["id"]}), json!({"id": task["id"], "tenant": "weather"}));
    for _ in 0..3 {
        let state = plain.call("GetTask", &named).expect("the task")["status"]["state"].clone();
        assert!(state.as_str().is_some_and(|state| state.starts_with("TASK_STATE_")), "{state}");
        let unnamed = plain.call("GetTask", &alone).expect_err("the default agent has no such task");
        assert_eq!(unnamed.reason, "TASK_NOT_FOUND");
        let own = result(&hub, &caller, "GetTask", &alone);
        assert_eq!(
            (&own["id"], &own["serverAgentId"]),
            (&task["id"], &json!("weather")),
            "however it was begun: {own}"
        );
        let work = result(&hub, &key, "GetTask", &alone);
        assert_eq!((&work["id"], &work["serverAgentId"]), (&task["id"], &json!("weather")), "{work}");
    }
}

#[test]
fn an_acknowledgement_of_what_never_was_is_passed_over() {
    let hub = hub();
    let mut agent = connected(&hub, "weather");
    for task in ["nope", "01890000-0000-7000-8000-000000000000"] {
        agent.send(&json!({"type": "ack", "taskId": task, "run": 1}));
    }
    agent.send(&json!({"type": "ping"}));
    let next = agent.wait_for("an answer", |frame| frame["type"] == "error" || frame["type"] == "pong");
    assert_eq!(next["type"], "pong", "{next}");
}
