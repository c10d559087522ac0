//! Runs that an agent has acknowledged and says nothing of: they stay its own, and their callers know them.

use super::{agent_key, answer, caller, dial};
use crate::cast::{id, reached, setup, state, text};
use flotilla_testkit::Binding;
use flotilla_testkit::client::message;
use serde_json::{Value, json};

fn acknowledge(agent: &mut flotilla_testkit::socket::Socket, message: &Value) {
    agent.send(&json!({"type": "ack", "taskId": message["taskId"], "run": message["run"]}));
}

#[test]
fn an_agent_that_resumes_after_a_restart_keeps_its_run_however_silent_it_is() {
    let mut hub = setup().config("sockets: {grace: 4s}").start();
    let keys = [agent_key(&hub, "silent"), agent_key(&hub, "lost")];
    let begun = keys.each_ref().map(|key| {
        let mut agent = dial(&hub, key).open();
        let name = agent.welcome["agentId"].as_str().expect("a name").to_owned();
        let task = caller(&hub, Binding::JsonRpc, &name).start("m", "Take your time");
        let message = agent.kind("message");
        acknowledge(&mut agent, &message);
        // What is acknowledged in turn is on the disk, and what came before it too.
        agent.send(&json!({"type": "task_response", "id": "w", "taskId": message["taskId"], "run": 1,
                           "status": {"state": "working"}}));
        agent.kind("ack");
        (agent, task, message)
    });
    let token = begun[0].0.welcome["resumeToken"].as_str().expect("a token").to_owned();
    hub.restart();
    let mut agent = dial(&hub, &keys[0]).query("resume", &token).open();
    assert_eq!(agent.welcome["resumed"], true);
    // The one that does not come back shows that the grace time is over.
    reached(&caller(&hub, Binding::JsonRpc, "lost"), id(&begun[1].1), "TASK_STATE_FAILED");
    let client = caller(&hub, Binding::JsonRpc, "silent");
    assert_eq!(state(&client.task(id(&begun[0].1))), "TASK_STATE_WORKING");
    answer(&mut agent, &begun[0].2, "Done");
    reached(&client, id(&begun[0].1), "TASK_STATE_COMPLETED");
}

#[test]
fn an_agent_whose_welcome_was_lost_goes_on_with_the_token_it_has() {
    let hub = setup().config("sockets: {grace: 30s}").start();
    let key = agent_key(&hub, "unlucky");
    let mut agent = dial(&hub, &key).open();
    let client = caller(&hub, Binding::JsonRpc, "unlucky");
    let task = client.start("m", "Take your time");
    let message = agent.kind("message");
    acknowledge(&mut agent, &message);
    agent.send(&json!({"type": "ping"}));
    agent.kind("pong");
    let token = agent.welcome["resumeToken"].as_str().expect("a token").to_owned();
    agent.cut();
    let back = |token: &str| dial(&hub, &key).query("resume", token).open();
    back(&token).cut();
    let mut agent = back(&token);
    assert_eq!(agent.welcome["resumed"], true, "nobody knows that it has another");
    let next = agent.welcome["resumeToken"].as_str().expect("a token").to_owned();
    // The hub's question whether the welcome has come is read on the way, and answered before the result.
    agent.send(&json!({"type": "ping"}));
    agent.kind("pong");
    answer(&mut agent, &message, "Done");
    reached(&client, id(&task), "TASK_STATE_COMPLETED");
    agent.cut();
    let resumed = [&token, &next].map(|token| back(token).welcome["resumed"].clone());
    assert_eq!(resumed, [json!(false), json!(true)], "now it is");
}

#[test]
fn a_token_from_before_a_restart_is_good_until_the_next_one_has_arrived() {
    let mut hub = setup().start();
    let key = agent_key(&hub, "patient");
    let token_of =
        |agent: &flotilla_testkit::socket::Socket| agent.welcome["resumeToken"].as_str().expect("a token").to_owned();
    let token = token_of(&dial(&hub, &key).open());
    hub.restart();
    let back = |token: &str| dial(&hub, &key).query("resume", token).open();
    back(&token).cut();
    let mut agent = back(&token);
    assert_eq!(agent.welcome["resumed"], true, "nobody knows that it has another");
    let next = token_of(&agent);
    // The hub's question whether the welcome has come is read on the way to the first pong, and answered before the second.
    for _ in 0..2 {
        agent.send(&json!({"type": "ping"}));
        agent.kind("pong");
    }
    agent.cut();
    let resumed = [&token, &next].map(|token| back(token).welcome["resumed"].clone());
    assert_eq!(resumed, [json!(false), json!(true)], "now it is");
}

#[test]
fn a_stream_begins_when_the_agent_has_acknowledged() {
    let hub = setup().start();
    for binding in Binding::ALL {
        let mut agent = dial(&hub, &agent_key(&hub, &format!("slow-{binding:?}").to_lowercase())).open();
        let name = agent.welcome["agentId"].as_str().expect("a name").to_owned();
        let client = caller(&hub, binding, &name);
        let mut stream = client.stream("SendStreamingMessage", &message("m", "Take your time")).expect("a stream");
        let run = agent.kind("message");
        acknowledge(&mut agent, &run);
        let first = stream.expect().frame();
        assert_eq!(first["task"]["id"], run["taskId"], "{binding:?}");
        assert_eq!(state(&first["task"]), "TASK_STATE_SUBMITTED");
        answer(&mut agent, &run, "Done");
        reached(&client, id(&first["task"]), "TASK_STATE_COMPLETED");
    }
}

#[test]
fn a_stream_begins_when_an_agent_that_acknowledges_nothing_was_sent_its_run() {
    let hub = setup().start();
    for binding in Binding::ALL {
        let mut agent = dial(&hub, &agent_key(&hub, &format!("mute-{binding:?}").to_lowercase())).open();
        let name = agent.welcome["agentId"].as_str().expect("a name").to_owned();
        let client = caller(&hub, binding, &name);
        let mut stream = client.stream("SendStreamingMessage", &message("m", "Think first")).expect("a stream");
        let run = agent.kind("message");
        let first = stream.expect().frame();
        assert_eq!((&first["task"]["id"], state(&first["task"])), (&run["taskId"], "TASK_STATE_SUBMITTED"));
        answer(&mut agent, &run, "Done");
        reached(&client, id(&first["task"]), "TASK_STATE_COMPLETED");
    }
}

#[test]
fn a_stream_of_an_agent_that_might_answer_with_a_message_begins_when_it_thinks_for_long() {
    let hub = setup().start();
    let mut agent = dial(&hub, &agent_key(&hub, "thinker")).subprotocol("a2a.v1").open();
    let client = caller(&hub, Binding::JsonRpc, "thinker");
    let mut stream = client.stream("SendStreamingMessage", &message("m", "Think")).expect("a stream");
    let request = agent.wait_for("a request", |frame| frame.get("method").is_some());
    let first = stream.expect().frame();
    assert_eq!(state(&first["task"]), "TASK_STATE_SUBMITTED", "{first}");
    let thought = json!({"messageId": "t", "role": "ROLE_AGENT", "parts": [{"text": "At last"}]});
    agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"message": thought}}));
    agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "streamEnd": true}));
    let done = reached(&client, id(&first["task"]), "TASK_STATE_COMPLETED");
    assert_eq!(text(&done["status"]["message"]), "At last", "a Message completes what is a task by then");
}

#[test]
fn why_a_message_waited_is_not_said_any_more_once_the_agent_has_it() {
    let hub = setup().start();
    for acknowledges in [true, false] {
        let name = if acknowledges { "takes" } else { "listens" };
        let key = agent_key(&hub, name);
        dial(&hub, &key).open().close();
        let client = caller(&hub, Binding::JsonRpc, name);
        let task = client.start("m", "Will it rain?");
        assert!(text(&task["status"]["message"]).contains("not connected"), "{task}");
        let mut stream = client.stream("SubscribeToTask", &json!({"id": id(&task)})).expect("a stream");
        stream.expect();
        let mut agent = dial(&hub, &key).open();
        let run = agent.kind("message");
        if acknowledges {
            acknowledge(&mut agent, &run);
        }
        let told = stream.expect().frame()["statusUpdate"].clone();
        assert_eq!((state(&told), told["status"].get("message")), ("TASK_STATE_SUBMITTED", None), "{told}");
        assert_eq!(client.task(id(&task))["status"].get("message"), None);
        if !acknowledges {
            agent.cut();
            let told = stream.expect().frame()["statusUpdate"].clone();
            assert!(text(&told["status"]["message"]).contains("went away before"), "{told}");
            agent = dial(&hub, &key).open();
            agent.kind("message");
            assert_eq!(stream.expect().frame()["statusUpdate"]["status"].get("message"), None);
        }
        answer(&mut agent, &run, "No");
        reached(&client, id(&task), "TASK_STATE_COMPLETED");
    }
}

#[test]
fn an_artifact_without_parts_is_refused_unless_it_only_ends_one() {
    let hub = setup().start();
    let mut agent = dial(&hub, &agent_key(&hub, "empty")).open();
    let client = caller(&hub, Binding::JsonRpc, "empty");
    let task = client.start("m", "Go");
    let run = agent.kind("message");
    let mut piece = |artifact: Value| {
        agent.send(
            &json!({"type": "task_response", "id": "r", "taskId": run["taskId"], "run": 1, "artifact": artifact}),
        );
        agent.read()
    };
    for empty in [json!({}), json!({"artifactId": "a", "parts": []})] {
        let refused = piece(empty);
        assert!(refused["message"].as_str().is_some_and(|text| text.contains("artifact.parts")), "{refused}");
    }
    agent.send(&json!({"type": "task_response", "id": "1", "taskId": run["taskId"], "run": 1, "lastChunk": false,
                       "artifact": {"artifactId": "a", "parts": [{"text": "all"}]}}));
    agent.send(&json!({"type": "task_response", "id": "2", "taskId": run["taskId"], "run": 1, "lastChunk": true,
                       "artifact": {"artifactId": "a", "parts": []}, "status": {"state": "completed"}}));
    let done = reached(&client, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(done["artifacts"][0]["parts"].as_array().map(Vec::len), Some(1), "{done}");
}
