//! Hard ceilings hold also for work that ends at once, is asked for again, waits or is stopped.

use super::{announce, give, is, owner, result, steps, told, worker, worker_saying};
use crate::cast::{hub, hub_with, reached, state};
use flotilla_testkit::socket::Socket;
use flotilla_testkit::{Act, Asked, Binding, Client, HubProcess, StandIn, until};
use serde_json::{Value, json};

const URI: &str = "urn:flotilla:ext:fleet-handshake:2.0";

/// A worker with eight places.
fn wide(hub: &HubProcess, name: &str) -> Socket {
    let mut told = announce(name, 1);
    told["capabilities"]["max_concurrent"] = json!(8);
    worker_saying(hub, name, &told)
}

/// Gives work to a worker several times, lets all of it end at once, and counts what is accepted. What ends after the
/// ceiling is reached may be stopped before that is heard.
fn accepted(hub: &HubProcess, worker: &mut Socket, with: &Value) -> usize {
    let given: Vec<_> = (0..4).map(|_| give(hub, with)).collect();
    let messages: Vec<Value> = given.iter().map(|_| worker.kind("message")).collect();
    for message in &messages {
        result(worker, message, &json!({"status": "done", "usage": {"input_tokens": 700}}));
    }
    let over = ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED"];
    let ended = given.iter().map(|(task, client)| {
        until("it is over", || Some(client.task(task)).filter(|task| over.contains(&state(task))))
    });
    let standing = |task: &Value| task["artifacts"][0]["metadata"][URI]["standing"].clone();
    ended.filter(|task| standing(task) == "accepted").count()
}

pub fn spent(hub: &HubProcess, task: &str) -> Value {
    owner(hub).get(&format!("/api/usage?by=task&task={task}")).json()["total"]["totalTokens"].clone()
}

#[test]
fn of_several_that_end_at_once_no_more_are_accepted_than_fit() {
    let hub = hub_with("budgets: {agents: {cap: {tokens: 1000}}}");
    let (mut ada, mut bob, mut cap) = (wide(&hub, "ada"), wide(&hub, "bob"), wide(&hub, "cap"));
    let budget = json!({"max_total_tokens": 1000, "hard": true});
    let (parent, client) = give(&hub, &json!({"to": "ada", "task": {"budget": budget}}));
    ada.kind("message");
    let metadata = part_of(&hub, "ada", &parent);
    assert_eq!(accepted(&hub, &mut bob, &json!({"to": "bob", "metadata": metadata})), 1, "under a parent's ceiling");
    assert_eq!(accepted(&hub, &mut cap, &json!({"to": "cap"})), 1, "under the day's");
    is_stopped(&client, &parent, "budget of this task");
}

/// What is told beside work that is part of a task.
pub fn part_of(hub: &HubProcess, agent: &str, task: &str) -> Value {
    let log = owner(hub).get(&format!("/api/tasks/{task}/log")).json();
    json!({"urn:flotilla:ext:ancestry:1.0": {"chain": [{"hub": log["hubId"], "agent": agent, "task": task}]}})
}

/// The task was ended for want of a budget.
pub fn is_stopped(client: &Client, task: &str, whose: &str) {
    let failed = reached(client, task, "TASK_STATE_FAILED");
    assert_eq!(told(&failed)["ended_by"], "budget_exhausted", "{failed}");
    assert!(failed["status"]["message"].to_string().contains(whose), "{failed}");
}

/// A worker says what it has used so far, and goes on.
pub fn uses(socket: &mut Socket, message: &Value, tokens: u64) {
    socket.send(&json!({"type": "report", "taskId": message["taskId"], "run": message["run"], "number": 1,
        "reports": [{"note": {"blocks": [{"type": "usage", "input_tokens": tokens}]}}]}));
}

#[test]
fn a_ceiling_that_is_reached_stops_all_that_work_under_it() {
    let hub = hub();
    let (mut ada, mut bob) = (wide(&hub, "ada"), wide(&hub, "bob"));
    let budget = json!({"max_total_tokens": 1000, "hard": true});
    let (parent, adas) = give(&hub, &json!({"to": "ada", "task": {"budget": budget}}));
    let taken = ada.kind("message");
    ada.send(&json!({"type": "ack", "taskId": taken["taskId"], "run": taken["run"]}));
    let with = json!({"to": "bob", "metadata": part_of(&hub, "ada", &parent)});
    let (first, bobs) = give(&hub, &with);
    let silent = bob.kind("message");
    let (second, _) = give(&hub, &with);
    let message = bob.kind("message");
    let (other, _) = give(&hub, &json!({"to": "bob"}));
    let others = bob.kind("message");
    uses(&mut bob, &silent, 600);
    until("it is booked", || (spent(&hub, &first) == 600).then_some(()));
    uses(&mut bob, &message, 600);
    is_stopped(&bobs, &second, "budget of the task this is part of");
    is_stopped(&bobs, &first, "budget of the task this is part of");
    is_stopped(&adas, &parent, "budget of this task");
    assert_eq!(ada.kind("cancel")["taskId"], json!(parent), "its worker is told to stop");
    let told = [bob.kind("cancel"), bob.kind("cancel")].map(|frame| frame["taskId"].clone());
    assert!(told.contains(&json!(first)) && told.contains(&json!(second)), "{told:?}");
    result(&mut bob, &others, &json!({"status": "done"}));
    reached(&bobs, &other, "TASK_STATE_COMPLETED");
}

#[test]
fn a_day_s_ceiling_that_is_reached_stops_all_that_work_and_nothing_that_waits() {
    let hub = hub_with("budgets: {agents: {cap: {tokens: 1000}}}");
    let mut told = announce("cap", 1);
    told["capabilities"]["max_concurrent"] = json!(2);
    let (mut cap, mut bob) = (worker_saying(&hub, "cap", &told), worker(&hub, "bob"));
    let (first, client) = give(&hub, &json!({"to": "cap"}));
    let silent = cap.kind("message");
    let (second, _) = give(&hub, &json!({"to": "cap"}));
    let message = cap.kind("message");
    let (third, _) = give(&hub, &json!({"to": "cap", "on_blocked": ["queue"]}));
    until("it waits", || steps(&hub, &third).starts_with("queued").then_some(()));
    let (other, bobs) = give(&hub, &json!({"to": "bob"}));
    let others = bob.kind("message");
    uses(&mut cap, &silent, 600);
    until("it is booked", || (spent(&hub, &first) == 600).then_some(()));
    uses(&mut cap, &message, 600);
    is_stopped(&client, &second, "for today");
    is_stopped(&client, &first, "for today");
    until("its places are free", || (super::shown(&hub, "cap")["active"] == 0).then_some(()));
    assert_eq!(steps(&hub, &third), "queued", "there is a new budget tomorrow");
    result(&mut bob, &others, &json!({"status": "done"}));
    reached(&bobs, &other, "TASK_STATE_COMPLETED");
}

#[test]
fn a_reply_is_not_asked_for_again_past_the_ceiling() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let terms = json!({"reply_schema": "json", "budget": {"max_total_tokens": 500, "hard": true}});
    let (task, client) = give(&hub, &json!({"to": "ada", "task": terms}));
    let message = ada.kind("message");
    result(&mut ada, &message, &json!({"status": "done", "usage": {"input_tokens": 600}}));
    let failed = reached(&client, &task, "TASK_STATE_FAILED");
    assert_eq!((&told(&failed)["ended_by"], spent(&hub, &task)), (&json!("budget_exhausted"), json!(600)), "{failed}");
    assert_eq!(steps(&hub, &task).matches("assigned").count(), 1, "{}", steps(&hub, &task));
    let (next, _) = give(&hub, &json!({"to": "ada"}));
    assert_eq!(ada.kind("message")["taskId"], json!(next), "nothing was sent in between");
}

#[test]
fn what_waited_is_not_begun_when_its_worker_s_day_or_its_parent_is_spent() {
    let hub = hub_with("budgets: {agents: {ada: {tokens: 500}}}");
    let (mut ada, mut bob, mut eve) = (worker(&hub, "ada"), worker(&hub, "bob"), worker(&hub, "eve"));
    let (first, client) = give(&hub, &json!({"to": "ada"}));
    let message = ada.kind("message");
    let soon = crate::lineage::in_time(std::time::Duration::from_secs(2));
    let (second, second_client) = give(&hub, &json!({"to": "ada", "on_blocked": ["queue"], "deadline": soon}));
    until("it waits", || steps(&hub, &second).starts_with("queued").then_some(()));
    result(&mut ada, &message, &json!({"status": "done", "usage": {"input_tokens": 600}}));
    reached(&client, &first, "TASK_STATE_COMPLETED");
    reached(&second_client, &second, "TASK_STATE_REJECTED");
    assert!(!steps(&hub, &second).contains("assigned"), "{}", steps(&hub, &second));

    let budget = json!({"max_total_tokens": 100, "hard": true});
    let (parent, parent_client) = give(&hub, &json!({"to": "bob", "task": {"budget": budget}}));
    let message = bob.kind("message");
    let (other, other_client) = give(&hub, &json!({"to": "eve"}));
    let others = eve.kind("message");
    let log = owner(&hub).get(&format!("/api/tasks/{parent}/log")).json();
    let chain = json!([{"hub": log["hubId"], "agent": "bob", "task": parent}]);
    let metadata = json!({"urn:flotilla:ext:ancestry:1.0": {"chain": chain}});
    let (child, child_client) = give(&hub, &json!({"to": "eve", "metadata": metadata}));
    until("it waits", || steps(&hub, &child).starts_with("queued").then_some(()));
    result(&mut bob, &message, &json!({"status": "done", "usage": {"input_tokens": 100}}));
    reached(&parent_client, &parent, "TASK_STATE_COMPLETED");
    result(&mut eve, &others, &json!({"status": "done"}));
    reached(&other_client, &other, "TASK_STATE_COMPLETED");
    let rejected = reached(&child_client, &child, "TASK_STATE_REJECTED");
    let said = told(&rejected);
    assert_eq!((&said["blocked_reason"], &said["retryable"]), (&json!("budget_too_small"), &json!(false)), "{said}");
}

#[test]
fn what_a_run_says_it_used_after_it_was_stopped_is_booked_once() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let soon = crate::lineage::in_time(std::time::Duration::from_secs(1));
    let (task, client) = give(&hub, &json!({"to": "ada", "deadline": soon}));
    let message = ada.kind("message");
    ada.send(&json!({"type": "ack", "taskId": message["taskId"], "run": message["run"]}));
    reached(&client, &task, "TASK_STATE_FAILED");
    ada.kind("cancel");
    for _ in 0..2 {
        result(&mut ada, &message, &json!({"status": "partial", "remaining": ["all"], "usage": {"input_tokens": 70}}));
        ada.wait_for("that it is over", |frame| frame["over"] == true);
    }
    assert_eq!(spent(&hub, &task), 70);
    let mut eve = worker(&hub, "eve");
    result(&mut eve, &message, &json!({"status": "done", "usage": {"input_tokens": 9}}));
    eve.kind("error");
    assert_eq!(spent(&hub, &task), 70, "another's word changes nothing");
}

#[test]
fn a_budget_that_is_used_up_is_nothing_against_the_worker() {
    let hub = crate::ledger::hub_with(crate::ledger::budgets::STEADY);
    let told = super::post(&owner(&hub), "/api/fleet/announce?agent=steady", &announce("steady", 1));
    assert_eq!(told.status, 200, "{}", told.text());
    for _ in 0..3 {
        let terms = json!({"budget": {"max_total_tokens": 4, "hard": true}});
        let (task, client) = give(&hub, &json!({"to": "steady", "task": terms}));
        reached(&client, &task, "TASK_STATE_FAILED");
        until("its place is free", || (super::shown(&hub, "steady")["active"] == 0).then_some(()));
    }
    let seen = super::shown(&hub, "steady");
    assert_eq!((&seen["failures"], &seen["health"]), (&json!(0), &json!("AVAILABLE")), "{seen}");
}

#[test]
fn what_the_hub_refuses_and_what_budgets_tell_is_counted() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let (task, client) = give(&hub, &json!({"to": "label:moon", "on_blocked": []}));
    reached(&client, &task, "TASK_STATE_REJECTED");
    let (task, client) = give(&hub, &json!({"to": "ada", "task": {"token_budget": 100}}));
    let message = ada.kind("message");
    result(&mut ada, &message, &json!({"status": "done", "usage": {"input_tokens": 60}}));
    reached(&client, &task, "TASK_STATE_COMPLETED");
    until("both are counted", || {
        let metrics = hub.owner(Binding::HttpJson).get("/metrics").text().to_owned();
        let blocked = metrics.contains(r#"flotilla_blocked_total{reason="missing_capability"} 1"#);
        (blocked && metrics.contains(r#"flotilla_alerts_total{reason="budget"} 1"#)).then_some(())
    });
    is(&hub, "ada", "AVAILABLE");
}

#[test]
fn what_an_agent_elsewhere_says_it_used_when_it_is_told_to_stop_is_booked() {
    let working = || json!({"id": "t-1", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}});
    let agent = StandIn::start(true, move |asked: &Asked| match asked.method.as_str() {
        "SendStreamingMessage" => vec![Act::Event(json!({"task": working()})), Act::Hold],
        "CancelTask" => vec![Act::Answer(working())],
        "GetTask" | "SubscribeToTask" => {
            let result = json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "partial",
                "remaining": ["all"], "usage": {"input_tokens": 70}});
            let part = json!({"data": result, "mediaType": "application/vnd.flotilla.task-result+json"});
            let mut stopped = working();
            stopped["status"]["state"] = json!("TASK_STATE_CANCELED");
            stopped["artifacts"] = json!([{"artifactId": "r", "parts": [part]}]);
            vec![Act::Answer(stopped)]
        }
        other => panic!("nobody asks for {other}"),
    });
    let config = format!("agents:\n  far: {{kind: a2a, url: '{}', poll: {{first: 50ms}}}}\n", agent.url());
    let hub = crate::cast::setup().config(&config).start();
    let soon = crate::lineage::in_time(std::time::Duration::from_secs(1));
    let (task, client) = give(&hub, &json!({"to": "far", "deadline": soon}));
    reached(&client, &task, "TASK_STATE_FAILED");
    until("it is booked", || (spent(&hub, &task) == 70).then_some(()));
    let used = owner(&hub).get("/api/usage?by=agent").json();
    assert_eq!(used["usage"][0]["key"], "far", "{used}");
}

#[test]
fn usage_told_in_a_response_reaches_the_ceiling_while_the_work_goes_on() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let budget = json!({"max_total_tokens": 500, "hard": true});
    let (task, client) = give(&hub, &json!({"to": "ada", "task": {"budget": budget}}));
    let message = ada.kind("message");
    ada.send(&json!({"type": "task_response", "taskId": message["taskId"], "run": message["run"],
        "status": {"state": "working"}, "blocks": [{"type": "usage", "input_tokens": 600}]}));
    let failed = reached(&client, &task, "TASK_STATE_FAILED");
    assert_eq!((&told(&failed)["ended_by"], spent(&hub, &task)), (&json!("budget_exhausted"), json!(600)), "{failed}");
    ada.kind("cancel");
}

#[test]
fn what_waits_for_the_place_of_the_work_that_spends_the_budget_is_never_begun() {
    let hub = hub();
    let (mut ada, mut bob) = (worker(&hub, "ada"), worker(&hub, "bob"));
    let budget = json!({"max_total_tokens": 100, "hard": true});
    for _ in 0..20 {
        let (parent, bobs) = give(&hub, &json!({"to": "bob", "task": {"budget": budget}}));
        bob.wait_for("its work", |frame| frame["type"] == "message" && frame["taskId"] == json!(parent));
        let part = json!({"to": "ada", "metadata": part_of(&hub, "bob", &parent)});
        let (first, client) = give(&hub, &part);
        let message = ada.wait_for("its work", |frame| frame["type"] == "message" && frame["taskId"] == json!(first));
        let (second, _) = give(&hub, &part);
        until("it waits", || steps(&hub, &second).starts_with("queued").then_some(()));
        uses(&mut ada, &message, 100);
        is_stopped(&client, &first, "budget of the task this is part of");
        is_stopped(&bobs, &parent, "budget of this task");
        let over = ["TASK_STATE_REJECTED", "TASK_STATE_FAILED"];
        let ended = until("it is over", || Some(client.task(&second)).filter(|task| over.contains(&state(task))));
        assert_eq!((state(&ended), &told(&ended)["blocked_reason"]), (over[0], &json!("budget_too_small")), "{ended}");
        assert_eq!(steps(&hub, &second), "queued, rejected budget_too_small");
    }
}

#[test]
fn an_answer_to_work_whose_budget_is_used_up_is_refused_and_the_work_waits_on() {
    let hub = hub();
    let (mut ada, mut bob) = (worker(&hub, "ada"), worker(&hub, "bob"));
    let budget = json!({"max_total_tokens": 100, "hard": true});
    let (parent, client) = give(&hub, &json!({"to": "ada", "task": {"budget": budget}}));
    let message = ada.kind("message");
    ada.send(&json!({"type": "task_response", "taskId": message["taskId"], "run": message["run"],
        "status": {"state": "input-required", "message": "Which one?"}}));
    reached(&client, &parent, "TASK_STATE_INPUT_REQUIRED");
    let (child, bobs) = give(&hub, &json!({"to": "bob", "metadata": part_of(&hub, "ada", &parent)}));
    let part = bob.kind("message");
    uses(&mut bob, &part, 100);
    is_stopped(&bobs, &child, "budget of the task this is part of");
    let answer = |with: Value| {
        let mut message =
            json!({"messageId": "m-2", "role": "ROLE_USER", "taskId": parent, "parts": [{"text": "This"}]});
        message.as_object_mut().expect("an object").extend(with.as_object().expect("an object").clone());
        client.call("SendMessage", &json!({"message": message, "configuration": {"returnImmediately": true}}))
    };
    let refused = answer(json!({})).expect_err("nothing is left");
    assert!(refused.message.contains("the budget of this task is used up"), "{refused:?}");
    assert_eq!(state(&client.task(&parent)), "TASK_STATE_INPUT_REQUIRED", "it waits on");
    // One that brings more goes on.
    let more = |most: u64| {
        let task = json!({"budget": {"max_total_tokens": most, "hard": true}});
        answer(json!({"messageId": format!("m-{most}"), "metadata": {URI: super::dispatch(&json!({"task": task}))}}))
    };
    more(100).expect_err("that is used up too");
    // A softer word, or one of something else, is not more.
    for (number, task) in [
        json!({"token_budget": 99}),
        json!({"budget": {"max_cost_usd": 5, "hard": true}}),
        json!({"budget": {"max_output_tokens": 500, "hard": true}}),
    ]
    .into_iter()
    .enumerate()
    {
        let contract = json!({URI: super::dispatch(&json!({"task": task}))});
        let refused = answer(json!({"messageId": format!("n-{number}"), "metadata": contract}));
        assert!(refused.is_err(), "{task}");
    }
    more(200).expect("it goes on");
    assert_eq!(ada.kind("message")["taskId"], json!(parent));
}
