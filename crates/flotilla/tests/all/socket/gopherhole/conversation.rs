//! Conversations: what is said in a context goes to who asked there, and not to anybody else.

use super::{connected, dial, post, result, to};
use crate::cast::hub;
use crate::socket::{agent_key, answer, asked};
use flotilla_testkit::http::{self, Request};
use flotilla_testkit::socket::Socket;
use flotilla_testkit::{HubProcess, until};
use serde_json::{Value, json};

/// What its clients' `reply` sends: nothing but the context.
fn reply(context: &Value, text: &str) -> Value {
    json!({"message": {"role": "agent", "parts": [{"kind": "text", "text": text}]},
           "configuration": {"contextId": context}})
}

fn in_context(agent: &str, context: &Value, text: &str) -> Value {
    let mut params = to(agent, text);
    params["configuration"]["contextId"] = context.clone();
    params
}

/// The agent asks back, and its caller is shown that.
fn asks(hub: &HubProcess, key: &str, agent: &mut Socket, message: &Value, state: &str) {
    agent.send(&json!({"type": "task_response", "taskId": message["taskId"], "run": message["run"],
                       "status": {"state": state, "message": "Which?"}}));
    shows(hub, key, &message["taskId"], state);
}

fn shows(hub: &HubProcess, key: &str, task: &Value, state: &str) -> Value {
    until(&format!("the task is {state}"), || {
        let task = result(hub, key, "GetTask", &json!({"id": task}));
        (task["status"]["state"] == state).then_some(task)
    })
}

#[test]
fn an_answer_goes_to_the_task_that_asked() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    let mut agent = connected(&hub, "weather");
    for state in ["input-required", "auth-required"] {
        let task = result(&hub, &key, "SendMessage", &to("weather", "Rain?"));
        let context = &task["contextId"];
        agent.wait_for("the question", |frame| frame["taskId"] == task["id"]);
        for (said, run) in [(reply(context, "Here"), 2), (in_context("weather", context, "There"), 3)] {
            asks(&hub, &key, &mut agent, &json!({"taskId": task["id"], "run": run - 1}), state);
            let answered = result(&hub, &key, "SendMessage", &said);
            assert_eq!((&answered["id"], &answered["status"]["state"]), (&task["id"], &json!("working")));
            let message = agent.wait_for("the answer", |frame| frame["run"] == run);
            assert_eq!((&message["taskId"], asked(&message)), (&task["id"], asked_in(&said)));
        }
        answer(&mut agent, &json!({"taskId": task["id"], "run": 3}), "Dry");
        shows(&hub, &key, &task["id"], "completed");
        // Nobody waits any more: the conversation goes on with the same agent, in a task of its own.
        let more = result(&hub, &key, "SendMessage", &reply(context, "And tomorrow?"));
        assert_eq!((&more["contextId"], &more["serverAgentId"]), (context, &json!("weather")));
        assert_ne!(more["id"], task["id"]);
        let message = agent.wait_for("the next question", |frame| frame["taskId"] == more["id"]);
        answer(&mut agent, &message, "Dry too");
    }
}

fn asked_in(params: &Value) -> &str {
    params["message"]["parts"][0]["text"].as_str().expect("a text")
}

#[test]
fn a_stream_answers_too() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    let mut agent = connected(&hub, "weather");
    let task = result(&hub, &key, "SendMessage", &to("weather", "Rain?"));
    agent.kind("message");
    asks(&hub, &key, &mut agent, &json!({"taskId": task["id"], "run": 1}), "input-required");
    let agent = std::thread::spawn(move || {
        let message = agent.wait_for("the answer", |frame| frame["run"] == 2);
        answer(&mut agent, &message, "Dry");
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage",
                      "params": reply(&task["contextId"], "Here")});
    let request = Request::post("/gopherhole/a2a", body.to_string()).header("authorization", &format!("Bearer {key}"));
    let streamed = http::send(hub.address(), &request.header("content-type", "application/json"));
    agent.join().expect("the agent answers");
    let first = streamed.text().lines().find_map(|line| line.strip_prefix("data: ")).expect("an event").to_owned();
    let first: Value = serde_json::from_str(&first).expect("JSON");
    assert_eq!(first["result"]["task"]["id"], task["id"], "{first}");
    shows(&hub, &key, &task["id"], "completed");
}

#[test]
fn a_connected_caller_is_told_once_however_much_it_says() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    let mut agent = connected(&hub, "weather");
    let mut caller = dial(&hub, &key).query("role", "caller").open();
    let task = result(&hub, &key, "SendMessage", &to("weather", "Rain?"));
    agent.kind("message");
    asks(&hub, &key, &mut agent, &json!({"taskId": task["id"], "run": 1}), "input-required");
    result(&hub, &key, "SendMessage", &reply(&task["contextId"], "Here"));
    let message = agent.wait_for("the answer", |frame| frame["run"] == 2);
    answer(&mut agent, &message, "Dry");
    let done = |frame: &Value| frame["task"]["id"] == task["id"] && frame["task"]["status"]["state"] == "completed";
    let told = caller.wait_for("the end", done);
    assert_eq!((&told["task"]["clientAgentId"], &told["task"]["serverAgentId"]), (&json!("caller"), &json!("weather")));
    // Another task's end comes after whatever would be told again.
    let second = result(&hub, &key, "SendMessage", &to("weather", "Snow?"));
    let message = agent.wait_for("the second", |frame| frame["taskId"] == second["id"]);
    answer(&mut agent, &message, "No");
    loop {
        let frame = caller.kind("task_update");
        assert!(!done(&frame), "told twice: {frame}");
        if frame["task"]["id"] == second["id"] && frame["task"]["status"]["state"] == "completed" {
            break;
        }
    }
}

#[test]
fn who_is_meant_among_several_must_be_said() {
    let hub = hub();
    let key = agent_key(&hub, "caller");
    let (mut weather, mut news) = (connected(&hub, "weather"), connected(&hub, "news"));
    let first = result(&hub, &key, "SendMessage", &to("weather", "Rain?"));
    let context = &first["contextId"];
    let second = result(&hub, &key, "SendMessage", &in_context("news", context, "Rain?"));
    let refused = post(&hub, &key, "SendMessage", &reply(context, "Here")).json();
    let told = refused["error"]["message"].as_str().expect("a text");
    assert!(told.contains("configuration.agentId") && told.contains("weather") && told.contains("news"), "{told}");
    news.kind("message");
    weather.kind("message");
    asks(&hub, &key, &mut news, &json!({"taskId": second["id"], "run": 1}), "input-required");
    assert_eq!(result(&hub, &key, "SendMessage", &reply(context, "Here"))["id"], second["id"], "who asked goes first");
    asks(&hub, &key, &mut weather, &json!({"taskId": first["id"], "run": 1}), "input-required");
    let named = result(&hub, &key, "SendMessage", &in_context("weather", context, "Here"));
    assert_eq!(named["id"], first["id"]);
}

#[test]
fn what_an_agent_answers_too_late_is_no_message_to_another() {
    let hub = hub();
    let (key, caller) = (agent_key(&hub, "weather"), agent_key(&hub, "caller"));
    let mut agent = dial(&hub, &key).open();
    let task = result(&hub, &caller, "SendMessage", &to("weather", "Rain?"));
    let message = agent.kind("message");
    answer(&mut agent, &message, "Dry");
    shows(&hub, &caller, &task["id"], "completed");
    let late = post(&hub, &key, "SendMessage", &reply(&task["contextId"], "Wet")).json();
    assert_eq!(late["error"]["code"], -32001, "{late}");
    assert!(late["error"]["message"].as_str().is_some_and(|text| text.contains("is over")), "{late}");
    let page = result(&hub, &key, "ListTasks", &json!({}));
    assert_eq!(
        (&page["totalSize"], &page["tasks"][0]["id"]),
        (&json!(1), &task["id"]),
        "the default agent heard nothing"
    );
}

/// As its clients' `reply` does: it looks for the context of the task it answers, and answers there.
fn context_of(hub: &HubProcess, key: &str, task: &Value) -> Value {
    result(hub, key, "GetTask", &json!({"id": task["id"]}))["contextId"].clone()
}

#[test]
fn an_agent_s_answer_is_for_the_task_it_looked_at_whoever_else_is_in_a_context_of_that_name() {
    let hub = hub();
    let key = agent_key(&hub, "weather");
    let (alice, eve) = (agent_key(&hub, "alice"), agent_key(&hub, "eve"));
    let mut agent = dial(&hub, &key).open();
    for (name, first, second) in [("main", &alice, &eve), ("own", &alice, &alice)] {
        let name = json!(name);
        let tasks = [first, second].map(|caller| {
            let task = result(&hub, caller, "SendMessage", &in_context("weather", &name, "Rain?"));
            assert_eq!(task["contextId"], name);
            let message = agent.wait_for("the question", |frame| frame["taskId"] == task["id"]);
            assert_eq!(message["contextId"], name);
            task
        });
        if first != second {
            let refused = post(&hub, &key, "SendMessage", &reply(&name, "Dry")).json();
            let told = refused["error"]["message"].as_str().expect("a text");
            assert!(told.contains("configuration.contextId") && told.contains("task/respond"), "{told}");
        }
        // It looks at both before it answers one.
        let contexts = tasks.each_ref().map(|task| context_of(&hub, &key, task));
        for (context, text) in contexts.iter().zip(["for the first", "for the second"]) {
            result(&hub, &key, "SendMessage", &reply(context, text));
        }
        for ((caller, task), text) in [first, second].into_iter().zip(&tasks).zip(["for the first", "for the second"]) {
            let done = shows(&hub, caller, &task["id"], "completed");
            assert_eq!(done["contextId"], name);
            assert!(done["artifacts"].to_string().contains(text), "{text}: {done}");
        }
    }
}

#[test]
fn an_agent_that_does_not_look_answers_a_caller_s_oldest_task_first() {
    let hub = hub();
    let (key, caller) = (agent_key(&hub, "weather"), agent_key(&hub, "caller"));
    let mut agent = dial(&hub, &key).open();
    let context = json!("sky");
    let tasks = ["Rain?", "Snow?"].map(|text| {
        let task = result(&hub, &caller, "SendMessage", &in_context("weather", &context, text));
        agent.wait_for("the question", |frame| frame["taskId"] == task["id"]);
        task
    });
    for task in &tasks {
        assert_eq!(result(&hub, &key, "SendMessage", &reply(&context, "Dry"))["id"], task["id"]);
    }
    let (task, other) = (&tasks[0], agent_key(&hub, "other"));
    let last = result(&hub, &caller, "SendMessage", &in_context("weather", &context, "Hail?"));
    assert_ne!(last["id"], task["id"]);
    agent.wait_for("the question", |frame| frame["taskId"] == last["id"]);
    // It looked while the task was alone there, and another's comes before it answers.
    assert_eq!(context_of(&hub, &key, &last), context);
    let late = result(&hub, &other, "SendMessage", &in_context("weather", &context, "Fog?"));
    agent.wait_for("the question", |frame| frame["taskId"] == late["id"]);
    assert_eq!(result(&hub, &key, "SendMessage", &reply(&context, "Dry"))["id"], last["id"]);
}

#[test]
fn tasks_say_who_has_them_with_whom() {
    let hub = hub();
    let (key, caller) = (agent_key(&hub, "weather"), agent_key(&hub, "caller"));
    let mut agent = dial(&hub, &key).open();
    let task = result(&hub, &caller, "SendMessage", &to("weather", "Rain?"));
    agent.kind("message");
    let held = result(&hub, &caller, "SendMessage", &to("mock", "hold"));
    let parties = |task: &Value| (task["clientAgentId"].clone(), task["serverAgentId"].clone());
    let both = (json!("caller"), json!("weather"));
    assert_eq!(parties(&task), both);
    for key in [&caller, &key] {
        assert_eq!(parties(&result(&hub, key, "GetTask", &json!({"id": task["id"]}))), both);
    }
    let page = result(&hub, &caller, "ListTasks", &json!({"pageSize": 10, "sortOrder": "desc"}));
    let listed: Vec<_> = page["tasks"].as_array().expect("tasks").iter().map(parties).collect();
    assert!(listed.contains(&both) && listed.contains(&(json!("caller"), json!("mock"))), "{page}");
    let canceled = result(&hub, &caller, "CancelTask", &json!({"id": held["id"]}));
    assert_eq!(parties(&canceled), (json!("caller"), json!("mock")));
}

#[test]
fn a_list_of_one_state_holds_what_is_shown_in_it() {
    let hub = hub();
    let caller = agent_key(&hub, "caller");
    let mut agent = connected(&hub, "weather");
    connected(&hub, "news").close();
    let begun = result(&hub, &caller, "SendMessage", &to("weather", "Rain?"));
    agent.kind("message");
    let waits = result(&hub, &caller, "SendMessage", &to("news", "Rain?"));
    for (state, task) in [("working", &begun), ("submitted", &waits)] {
        assert_eq!(task["status"]["state"], state);
        let page = result(&hub, &caller, "ListTasks", &json!({"status": state}));
        let listed: Vec<&Value> = page["tasks"].as_array().expect("tasks").iter().map(|task| &task["id"]).collect();
        assert_eq!(listed, [&task["id"]], "{state}");
    }
}
