//! Work to a named worker, to any, by label and by skill; in every form a dispatch comes in, and to a mixed fleet.

use super::{announce, dispatch, give, is, owner, result, steps, told, why, worker, worker_saying};
use crate::cast::{hub, hub_with, id, reached, state};
use crate::cli::program::Place;
use crate::socket::{answer, asked, connected};
use flotilla_testkit::{Binding, Refusal};
use serde_json::{Value, json};

const URI: &str = "urn:flotilla:ext:fleet-handshake:2.0";

#[test]
fn work_goes_to_the_worker_that_fits_and_says_why() {
    let hub = hub();
    let mut small = announce("small", 1);
    small["worker"]["model_tier"] = json!("haiku");
    let mut sick = announce("sick", 1);
    sick["mcp_health"]["mem"] = json!("failed");
    let (_sick, _big) = (worker_saying(&hub, "sick", &sick), worker(&hub, "big"));
    let mut small = worker_saying(&hub, "small", &small);
    let with = json!({"requirements": {"required_mcp": ["mem"]}, "task": {"task_id": "abc", "priority": "high"}});
    let (task, client) = give(&hub, &with);
    let message = small.kind("message");
    let carried = &message["payload"]["metadata"][URI];
    assert_eq!((asked(&message), &carried["brief"], &carried["epoch"]), ("Do it", &json!("Do it"), &json!(1)));
    assert_eq!((&carried["task"]["task_id"], &carried["task"]["priority"]), (&json!("abc"), &json!("high")));
    is(&hub, "small", "BUSY");
    result(&mut small, &message, &json!({"status": "done", "task_id": "abc", "tokens_spent": 7}));
    let done = reached(&client, &task, "TASK_STATE_COMPLETED");
    assert_eq!(told(&done)["task_id"], "abc");
    assert_eq!(steps(&hub, &task), "assigned small, judged small");
    let considered = why(&hub, &task)[0]["considered"]["workers"].clone();
    let names: Vec<_> = considered.as_array().expect("workers").iter().map(|one| one["worker"].clone()).collect();
    assert_eq!(names, [json!("small"), json!("big"), json!("sick")]);
    assert_eq!(considered[2]["obstacles"][0]["reason"], "missing_mcp");
    let free = is(&hub, "small", "AVAILABLE");
    assert!(free["lastSuccess"].is_string() && free["active"] == 0, "{free}");

    let told = Place::at(&hub).run(&["task", "why", &task]).ok().out;
    for line in ["assigned to small", "sick: no: missing_mcp (MCP server mem: failed)", "small: could: "] {
        assert!(told.contains(line), "{told}");
    }
    let metrics = hub.owner(Binding::HttpJson).get("/metrics").text().to_owned();
    assert!(metrics.contains(r#"flotilla_dispatches_total{outcome="assigned"} 1"#), "{metrics}");
}

#[test]
fn labels_and_skills_address_a_group() {
    let hub = hub_with("fleet: {workers: {b: {labels: [gpu]}}}");
    let (mut a, mut b) = (worker(&hub, "a"), worker(&hub, "b"));
    let (by_label, client) = give(&hub, &json!({"to": "label:gpu"}));
    let message = b.kind("message");
    result(&mut b, &message, &json!({"status": "done"}));
    reached(&client, &by_label, "TASK_STATE_COMPLETED");
    let card = json!({"name": "A", "description": "A.", "skills": [{"id": "paint", "name": "Paint"}]});
    a.send(&json!({"type": "update_card", "agentCard": card}));
    a.kind("card_updated");
    super::say(&mut a, &announce("a", 2));
    let (by_skill, client) = give(&hub, &json!({"to": "skill:paint"}));
    let message = a.kind("message");
    result(&mut a, &message, &json!({"status": "done"}));
    reached(&client, &by_skill, "TASK_STATE_COMPLETED");
    let (none, client) = give(&hub, &json!({"to": "label:moon", "on_blocked": []}));
    let rejected = reached(&client, &none, "TASK_STATE_REJECTED");
    assert_eq!(told(&rejected)["detail"], "no worker has the label 'moon'");
}

#[test]
fn every_form_of_a_dispatch_is_understood() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let whole = dispatch(&json!({"task": {"priority": "high"}}));
    let media = "application/vnd.flotilla.task-dispatch+json";
    let inline = "TASK DISPATCH (inline)\npriority: high\nBrief: Do it";
    for (number, (agent, parts, metadata)) in [
        ("fleet", json!([{"text": "Do it"}]), json!({URI: whole})),
        ("ada", json!([{"text": "Do it"}]), json!({URI: whole})),
        ("ada", json!([{"data": whole, "mediaType": media}]), json!({})),
        ("ada", json!([{"text": whole.to_string()}]), json!({})),
        ("fleet", json!([{"text": inline}]), json!({})),
        ("ada", json!([{"text": inline}]), json!({})),
        ("ada", json!([{"text": format!("```json\n{whole}\n```")}]), json!({})),
        ("fleet", json!([{"text": format!("\u{feff}{inline}")}]), json!({})),
    ]
    .into_iter()
    .enumerate()
    {
        let client = hub.owner(Binding::ALL[number % Binding::ALL.len()]).agent(agent);
        let params = json!({"message": {"messageId": format!("m{number}"), "role": "ROLE_USER", "parts": parts,
            "metadata": metadata}, "configuration": {"returnImmediately": true}});
        let task = client.call("SendMessage", &params).expect("it is taken")["task"].clone();
        let message = ada.kind("message");
        assert_eq!(asked(&message), "Do it", "{parts}");
        assert_eq!(message["payload"]["metadata"][URI]["task"]["priority"], "high", "{parts}");
        result(&mut ada, &message, &json!({"status": "done"}));
        reached(&client, id(&task), "TASK_STATE_COMPLETED");
        assert_eq!(steps(&hub, id(&task)), "assigned ada, judged ada", "{parts}");
    }
    let card = owner(&hub).get("/agents/fleet/.well-known/agent-card.json").json();
    let declared = card["capabilities"]["extensions"].as_array().expect("extensions").iter();
    assert!(declared.into_iter().any(|extension| extension["uri"] == URI), "{card}");
}

#[test]
fn texts_to_others_are_left_alone_and_slips_are_refused() {
    let hub = hub();
    let inline = "TASK DISPATCH (inline)\npriority: high\nBrief: Do it";
    let echoed = hub.owner(Binding::JsonRpc).agent("echo").say("m", inline);
    assert_eq!(echoed["artifacts"][0]["parts"][0]["text"], inline);
    assert_eq!(steps(&hub, id(&echoed)), "");
    let _ada = worker(&hub, "ada");
    let wrong = |text: &str| {
        let params = json!({"message": {"messageId": "w", "role": "ROLE_USER", "parts": [{"text": text}]}});
        hub.owner(Binding::JsonRpc).agent("ada").call("SendMessage", &params).expect_err("it is wrong")
    };
    let refusal: Refusal = wrong("TASK DISPATCH (inline)\npriority: asap\nBrief: x");
    assert!(refusal.message.contains("priority"), "{refusal:?}");
    let media = "application/vnd.flotilla.task-dispatch+json";
    let second = dispatch(&json!({"requirements": {"required_mcp": ["nope"]}}));
    let parts = json!([{"data": dispatch(&json!({})), "mediaType": media}, {"data": second, "mediaType": media}]);
    let params = json!({"message": {"messageId": "two", "role": "ROLE_USER", "parts": parts}});
    let refusal: Refusal =
        hub.owner(Binding::JsonRpc).agent("ada").call("SendMessage", &params).expect_err("it is two");
    assert!(refusal.message.contains("second TASK_DISPATCH"), "{refusal:?}");
    let schema = json!({"task": {"reply_schema": "json", "json_schema": {"$ref": "file:///etc/passwd"}}});
    let refused = super::post(&owner(&hub), "/api/dispatch", &dispatch(&schema));
    assert!(refused.status == 400 && refused.text().contains("is elsewhere"), "{}", refused.text());
    let nobody = super::post(&owner(&hub), "/api/dispatch", &dispatch(&json!({"to": "nobody"})));
    assert!(nobody.status == 404 && nobody.text().contains("There is no agent 'nobody'"), "{}", nobody.text());
}

#[test]
fn a_mixed_fleet_is_told_in_words_each_knows() {
    let hub = hub();
    // One that never announced itself gets hints, and what is not known is said to be unverified.
    let mut silent = connected(&hub, "silent");
    let needs =
        json!({"to": "silent", "requirements": {"required_mcp": ["mem"]}, "task": {"reply_schema": "structured"}});
    let (task, client) = give(&hub, &needs);
    let message = silent.kind("message");
    let text = asked(&message).to_owned();
    assert!(text.starts_with("TASK DISPATCH (inline)\nreply_schema: structured\nrequired_mcp: [mem]"), "{text}");
    assert!(text.contains("unverified: [MCP server mem]") && text.contains("End with one JSON object"), "{text}");
    assert_eq!(why(&hub, &task)[0]["unverified"], json!(["MCP server mem"]));
    answer(&mut silent, &message, "All is done.");
    let done = reached(&client, &task, "TASK_STATE_COMPLETED");
    assert_eq!((&told(&done)["inferred"], &told(&done)["tokens_spent"]), (&json!(true), &Value::Null));

    // One that speaks other versions only gets plain text, and so does an orchestrator's newer dispatch.
    let mut other = announce("other", 1);
    other["supported_versions"] = json!(["3.0"]);
    let mut other = worker_saying(&hub, "other", &other);
    let (task, client) = give(&hub, &json!({"to": "other"}));
    let message = other.kind("message");
    assert_eq!((asked(&message), &message["payload"]["metadata"][URI]), ("Do it", &Value::Null));
    assert_eq!(why(&hub, &task)[0]["form"], "text");
    answer(&mut other, &message, "Done");
    reached(&client, &task, "TASK_STATE_COMPLETED");
    let newer = json!({"message": {"messageId": "n", "role": "ROLE_USER", "parts": [{"text": "Plainly"}],
        "metadata": {URI: {"type": "TASK_DISPATCH", "protocol_version": "3.0", "brief": "x"}}}});
    let client = owner(&hub).agent("echo");
    let task = client.call("SendMessage", &newer).expect("an answer")["task"].clone();
    assert_eq!((state(&task), steps(&hub, id(&task)).as_str()), ("TASK_STATE_COMPLETED", "fallback"));
    assert_eq!(why(&hub, id(&task))[0]["version"], "3.0");
}

#[test]
fn a_dispatch_of_another_version_goes_on_as_text_over_the_api_too() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let newer = |with: Value| {
        let mut whole = dispatch(&json!({"protocol_version": "3.0", "brief": "Newly", "task": 7}));
        whole.as_object_mut().expect("an object").extend(with.as_object().expect("an object").clone());
        super::post(&owner(&hub), "/api/dispatch", &whole)
    };
    for (with, expected) in [(json!({"to": "ada"}), "fallback"), (json!({}), "fallback, assigned ada, judged ada")] {
        let given = newer(with).json();
        let (task, agent) = (given["task"]["id"].as_str().expect("a task"), given["agent"].as_str().expect("an agent"));
        let message = ada.kind("message");
        assert_eq!(asked(&message), "Newly");
        answer(&mut ada, &message, "Done");
        reached(&owner(&hub).agent(agent), task, "TASK_STATE_COMPLETED");
        assert_eq!(steps(&hub, task), expected);
        assert_eq!(why(&hub, task)[0]["version"], "3.0");
    }
    for (with, told) in [(json!({"to": "label:gpu"}), "version 2.0 only"), (json!({"brief": " "}), "must say what")] {
        let refused = newer(with);
        assert!(refused.status == 400 && refused.text().contains(told), "{}", refused.text());
    }
}

#[test]
fn a_worker_that_asks_back_gets_the_reply_and_a_cancel_reaches_it() {
    let hub = hub();
    let (mut ada, _bob) = (worker(&hub, "ada"), worker(&hub, "bob"));
    let (task, client) = give(&hub, &json!({"brief": "A coat"}));
    let first = ada.kind("message");
    ada.send(&json!({"type": "task_response", "taskId": first["taskId"], "run": first["run"],
        "status": {"state": "input-required", "message": "Which size?"}}));
    reached(&client, &task, "TASK_STATE_INPUT_REQUIRED");
    let mut reply = flotilla_testkit::client::message("r", "Large");
    reply["message"]["taskId"] = json!(task);
    reply["configuration"] = json!({"returnImmediately": true});
    client.call("SendMessage", &reply).expect("a reply");
    let second = ada.kind("message");
    assert_eq!((asked(&second), &second["run"]), ("Large", &json!(2)));
    client.call("CancelTask", &json!({"id": task})).expect("canceled");
    let stop = ada.kind("cancel");
    assert_eq!((&stop["taskId"], &stop["run"]), (&json!(task), &json!(2)));
    result(&mut ada, &second, &json!({"status": "done"}));
    is(&hub, "ada", "AVAILABLE");
    assert_eq!(state(&client.task(&task)), "TASK_STATE_CANCELED");
    // What waits for a worker is canceled without one.
    let (waits, client) = give(&hub, &json!({"requirements": {"model_tier": "opus"}}));
    client.call("CancelTask", &json!({"id": waits})).expect("canceled");
    assert_eq!(state(&client.task(&waits)), "TASK_STATE_CANCELED");
}

#[test]
fn the_command_line_dispatches_and_waits() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let place = Place::at(&hub);
    let args = ["dispatch", "Do it", "--priority", "high", "--require", "terminal", "--wait", "-o", "json"];
    let running = place.start(&args);
    let message = ada.kind("message");
    let carried = &message["payload"]["metadata"][URI];
    assert_eq!(
        (&carried["task"]["priority"], &carried["requirements"]["required_capabilities"][0]),
        (&json!("high"), &json!("terminal"))
    );
    result(&mut ada, &message, &json!({"status": "partial", "remaining": ["the rest"]}));
    let done = crate::cli::program::finish(running).ok().json();
    assert_eq!((state(&done), &told(&done)["remaining"][0]), ("TASK_STATE_COMPLETED", &json!("the rest")));
    let ceilings = ["--token-budget", "900", "--max-cost", "0.5", "--hard", "--context-window", "1000"];
    let running = place.start(&[&["dispatch", "Do it", "--wait"][..], &ceilings[..]].concat());
    let message = ada.kind("message");
    let carried = &message["payload"]["metadata"][URI];
    assert_eq!(
        carried["task"]["budget"],
        json!({"max_total_tokens": 900, "max_cost_usd": 0.5, "hard": true}),
        "{carried}"
    );
    assert_eq!(carried["requirements"]["context_window"], 1000);
    result(&mut ada, &message, &json!({"status": "done"}));
    assert_eq!(crate::cli::program::finish(running).ok().field("Result"), "accepted");
    let lacking = place.run(&["dispatch", "x", "--on-blocked", "", "--require-label", "none", "--wait"]);
    assert_eq!(lacking.code, 6, "{lacking:?}");
    let given = place.run(&["dispatch", "More", "--on-blocked", "queue", "--tier", "opus"]).ok();
    assert!(given.field("Why").starts_with("flotilla task why "), "{given:?}");
    let undone = place.run(&["dispatch", "More", "--on-blocked", "", "--tier", "opus", "--wait"]);
    assert_eq!(undone.code, 6, "a script can tell that the work is not done: {undone:?}");
    assert!(undone.out.contains("TASK_STATE_REJECTED"), "it is shown all the same: {undone:?}");
    let slip = place.run(&["dispatch", "More", "--priority", "asap"]);
    assert!(slip.code != 0 && slip.err.contains("priority"), "{slip:?}");
}

#[test]
fn hints_hold_as_the_same_in_json_does_and_a_hard_budget_names_its_ceiling() {
    let hub = hub();
    let mut ada = worker(&hub, "ada");
    let client = owner(&hub).agent("ada");
    let send = |number: u32, hints: &str| {
        let text = format!("TASK DISPATCH (inline)\n{hints}\nBrief: Do it");
        let message = json!({"messageId": format!("h{number}"), "role": "ROLE_USER", "parts": [{"text": text}]});
        client.call("SendMessage", &json!({"message": message, "configuration": {"returnImmediately": true}}))
    };
    let budget = json!({"max_total_tokens": 50, "hard": true});
    for (number, hints) in (1..).zip(["max_total_tokens: 50\nhard: true".to_owned(), format!("budget: {budget}")]) {
        let task = send(number, &hints).expect("it is taken")["task"].clone();
        let message = ada.kind("message");
        assert_eq!(message["payload"]["metadata"][URI]["task"]["budget"], budget, "{hints}");
        result(&mut ada, &message, &json!({"status": "done"}));
        reached(&client, id(&task), "TASK_STATE_COMPLETED");
    }
    let task =
        send(3, "reply_schema: json\njson_schema: {\"required\": [\"a\"]}").expect("it is taken")["task"].clone();
    for (reply, run) in [("{}", 1), (r#"{"a": 1}"#, 2)] {
        let message = ada.kind("message");
        assert_eq!(message["run"], run, "a reply that is not valid is asked for again");
        answer(&mut ada, &message, reply);
    }
    reached(&client, id(&task), "TASK_STATE_COMPLETED");
    let named = "write max_total_tokens, max_output_tokens or max_cost_usd";
    let refused = send(4, "max_tokens: 50\nhard: true").expect_err("no ceiling holds");
    assert!(refused.message.contains(named), "{refused:?}");
    let body = dispatch(&json!({"to": "ada", "task": {"budget": {"max_tokens": 50, "hard": true}}}));
    let refused = super::post(&owner(&hub), "/api/dispatch", &body);
    assert!(refused.status == 400 && refused.text().contains(named), "{}", refused.text());
    let soft = json!({"to": "ada", "task": {"budget": {"max_tokens": 50}}});
    give(&hub, &soft);
    assert_eq!(ada.kind("message")["payload"]["metadata"][URI]["task"]["budget"]["max_tokens"], 50, "kept");
}
