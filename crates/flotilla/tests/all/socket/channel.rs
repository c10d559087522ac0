//! The channel: JSON-RPC over the socket, as a caller and as an agent, in both versions.

use super::{agent_key, caller, dial};
use crate::cast::{hub, id, reached, state, text};
use flotilla_testkit::socket::Socket;
use flotilla_testkit::{Binding, until};
use serde_json::{Value, json};

fn message(message_id: &str, said: &str, agent: &str) -> Value {
    let message = json!({"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": said}]});
    json!({"tenant": agent, "message": message})
}

/// Frames of a stream up to its end.
fn stream(socket: &mut Socket, number: u64) -> Vec<Value> {
    let mut frames = Vec::new();
    loop {
        let frame = socket.wait_for("a frame of the stream", |frame| frame["id"] == number);
        if frame["streamEnd"] == true {
            return frames;
        }
        frames.push(frame);
    }
}

#[test]
fn a_caller_does_on_the_socket_what_it_does_elsewhere() {
    let hub = hub();
    let mut socket = dial(&hub, hub.owner_key()).subprotocol("a2a.v1").open();
    assert_eq!(socket.header("sec-websocket-protocol"), Some("a2a.v1"));
    let task = socket.call(1, "SendMessage", &message("m", "complete", "mock"))["result"]["task"].clone();
    assert_eq!((state(&task), text(&task["artifacts"][0])), ("TASK_STATE_COMPLETED", "You said complete"));
    let http = hub.owner(Binding::JsonRpc).agent("mock").task(id(&task));
    let read = socket.call(2, "GetTask", &json!({"tenant": "mock", "id": task["id"]}))["result"].clone();
    assert_eq!(read, http, "the same in every binding");
    let listed = socket.call(3, "ListTasks", &json!({"tenant": "mock"}));
    assert_eq!(listed["result"]["totalSize"], 1);
    let refused = socket.call(4, "CancelTask", &json!({"tenant": "mock", "id": task["id"]}));
    assert_eq!(
        (&refused["error"]["code"], refused["error"]["data"][0]["reason"].as_str()),
        (&json!(-32002), Some("TASK_NOT_CANCELABLE"))
    );
    assert_eq!(socket.call(5, "Nonsense", &json!({}))["error"]["code"], -32601);
    for said in [json!("x"), json!({"A2A-Version": 1})] {
        socket.send(&json!({"jsonrpc": "2.0", "id": 6, "method": "ListTasks", "params": {}, "serviceParams": said}));
        let refused = socket.read();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(6), &json!(-32602)), "{refused}");
        assert!(refused["error"].to_string().contains("serviceParams"), "{refused}");
    }
    socket.send_text("{");
    assert_eq!(socket.read()["error"]["code"], -32700);
}

#[test]
fn a_request_without_an_id_is_done_and_not_answered() {
    let hub = hub();
    let mut socket = dial(&hub, hub.owner_key()).subprotocol("a2a.v1").open();
    for (method, params) in [
        ("Nonsense", json!({})),
        ("SendMessage", message("m-1", "complete", "mock")),
        ("SendStreamingMessage", message("m-2", "complete", "mock")),
        ("SendMessage", json!({"tenant": "mock"})),
        ("SendMessage", json!([])),
    ] {
        socket.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }
    let mut number = 0;
    until("both are done", || {
        number += 1;
        socket.send(&json!({"jsonrpc": "2.0", "id": number, "method": "ListTasks",
                            "params": {"tenant": "mock", "status": "TASK_STATE_COMPLETED"}}));
        let answer = socket.read();
        assert_eq!(answer["id"], number, "{answer}");
        (answer["result"]["totalSize"] == 2).then_some(())
    });
    socket.send(&json!({"jsonrpc": "2.0", "id": null, "method": "Nonsense"}));
    let answer = socket.read();
    assert_eq!((answer.get("id"), &answer["error"]["code"]), (Some(&json!(null)), &json!(-32601)), "{answer}");
}

#[test]
fn streams_come_with_cursors_and_end_with_a_word() {
    let hub = hub();
    let mut socket = dial(&hub, hub.owner_key()).subprotocol("a2a.v1").open();
    socket.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "SendStreamingMessage", "params": message("m", "chunks 20", "mock")}));
    let frames = stream(&mut socket, 7);
    let task = frames[0]["result"]["task"]["id"].clone();
    let last = &frames.last().expect("frames")["result"]["statusUpdate"];
    assert_eq!(state(last), "TASK_STATE_COMPLETED");
    let cursor = frames[4]["cursor"].as_str().expect("a cursor").to_owned();
    // From another connection, after a cut.
    socket.cut();
    let mut socket = dial(&hub, hub.owner_key()).subprotocol("a2a.v1").open();
    let params = json!({"tenant": "mock", "id": task});
    socket.send(&json!({"jsonrpc": "2.0", "id": 8, "method": "SubscribeToTask", "params": params,
                        "serviceParams": {"Last-Event-ID": cursor}}));
    let rest = stream(&mut socket, 8);
    let results = |frames: &[Value]| frames.iter().map(|frame| frame["result"].clone()).collect::<Vec<_>>();
    assert_eq!(results(&rest), results(&frames[5..]), "without a gap, and nothing twice");
}

#[test]
fn a_stream_is_canceled_and_the_task_goes_on() {
    let hub = hub();
    let mut socket = dial(&hub, hub.owner_key()).subprotocol("a2a.v1").open();
    socket.send(&json!({"jsonrpc": "2.0", "id": "s", "method": "SendStreamingMessage", "params": message("m", "work 400ms", "mock")}));
    let first = socket.wait_for("the task", |frame| frame["id"] == "s");
    let again = json!({"jsonrpc": "2.0", "id": "s", "method": "ListTasks", "params": {"tenant": "mock"}});
    socket.send(&again);
    let refused = socket.wait_for("a refusal", |frame| frame.get("error").is_some());
    assert_eq!(refused["error"]["code"], -32600, "the id is in use");
    socket.send(&json!({"jsonrpc": "2.0", "id": "s", "cancelStream": true}));
    socket.wait_for("the end", |frame| frame["streamEnd"] == true);
    let client = hub.owner(Binding::JsonRpc).agent("mock");
    reached(&client, first["result"]["task"]["id"].as_str().expect("an id"), "TASK_STATE_COMPLETED");
}

#[test]
fn the_old_version_is_spoken_too() {
    let hub = hub();
    let mut socket = dial(&hub, hub.owner_key()).subprotocol("a2a.v0.3").open();
    assert_eq!(socket.header("sec-websocket-protocol"), Some("a2a.v0.3"));
    let said = json!({"messageId": "m", "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "hi"}]});
    let task = socket.call(1, "message/send", &json!({"message": said}))["result"].clone();
    assert_eq!((&task["kind"], &task["status"]["state"]), (&json!("task"), &json!("completed")));
}

#[test]
fn an_agent_is_sent_requests_in_the_version_it_speaks() {
    let hub = hub();
    for (subprotocol, method, name) in
        [("a2a.v1", "SendStreamingMessage", "new"), ("a2a.v0.3", "message/stream", "old")]
    {
        let mut agent = dial(&hub, &agent_key(&hub, name)).subprotocol(subprotocol).open();
        let client = caller(&hub, Binding::HttpJson, name);
        let task = client.start("m", "Hello");
        let request = agent.wait_for("a request", |frame| frame.get("method").is_some());
        assert_eq!((&request["method"], &request["serviceParams"]["Flotilla-Run"]), (&json!(method), &json!("1")));
        let old = subprotocol != "a2a.v1";
        let result = |result: Value| json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        let (working, done) =
            if old { ("working", "completed") } else { ("TASK_STATE_WORKING", "TASK_STATE_COMPLETED") };
        let task_frame = json!({"id": "theirs", "contextId": "c", "status": {"state": working}, "kind": "task"});
        let piece = json!({"taskId": "theirs", "contextId": "c", "kind": "artifact-update", "artifact":
            {"artifactId": "a", "parts": [{"kind": "text", "text": "Hello yourself"}]}});
        let ended = json!({"taskId": "theirs", "contextId": "c", "kind": "status-update", "final": true, "status": {"state": done}});
        let frames = if old {
            [task_frame, piece, ended]
        } else {
            [json!({"task": task_frame}), json!({"artifactUpdate": piece}), json!({"statusUpdate": ended})]
        };
        for frame in frames {
            agent.send(&result(frame));
        }
        agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "streamEnd": true}));
        let done = reached(&client, id(&task), "TASK_STATE_COMPLETED");
        assert_eq!(text(&done["artifacts"][0]), "Hello yourself", "{subprotocol}");
    }
}

#[test]
fn an_agents_own_ids_are_used_for_its_next_turn_and_for_cancel() {
    let hub = hub();
    let mut agent = dial(&hub, &agent_key(&hub, "tailor")).subprotocol("a2a.v1").open();
    let client = caller(&hub, Binding::JsonRpc, "tailor");
    let task = client.start("m", "A coat");
    let first = agent.wait_for("a request", |frame| frame.get("method").is_some());
    assert_eq!(first["params"]["message"]["taskId"], Value::Null);
    let status = json!({"state": "TASK_STATE_INPUT_REQUIRED", "message": {"messageId": "q", "role": "ROLE_AGENT", "parts": [{"text": "Size?"}]}});
    agent.send(&json!({"jsonrpc": "2.0", "id": first["id"], "result": {"task": {"id": "theirs", "contextId": "their-context", "status": status}}}));
    reached(&client, id(&task), "TASK_STATE_INPUT_REQUIRED");
    let mut reply = flotilla_testkit::client::message("r", "Large");
    reply["message"]["taskId"] = task["id"].clone();
    reply["configuration"] = json!({"returnImmediately": true});
    client.call("SendMessage", &reply).expect("a reply");
    let second = agent.wait_for("a request", |frame| frame.get("method").is_some());
    let message = &second["params"]["message"];
    assert_eq!((&message["taskId"], &message["contextId"]), (&json!("theirs"), &json!("their-context")));
    let working = json!({"statusUpdate": {"taskId": "theirs", "contextId": "their-context", "status": {"state": "TASK_STATE_WORKING"}}});
    agent.send(&json!({"jsonrpc": "2.0", "id": second["id"], "result": working}));
    reached(&client, id(&task), "TASK_STATE_WORKING");
    let asking = std::thread::spawn(move || client.call("CancelTask", &json!({"id": id(&task)})));
    let cancel = agent.wait_for("a request", |frame| frame["method"] == "CancelTask");
    assert_eq!(cancel["params"]["id"], "theirs");
    let stopped = json!({"id": "theirs", "contextId": "their-context", "status": {"state": "TASK_STATE_CANCELED"}});
    agent.send(&json!({"jsonrpc": "2.0", "id": cancel["id"], "result": stopped}));
    assert_eq!(state(&asking.join().expect("the caller is answered").expect("canceled")), "TASK_STATE_CANCELED");
}

#[test]
fn an_agent_may_answer_with_a_message_or_refuse() {
    let hub = hub();
    let mut agent = dial(&hub, &agent_key(&hub, "curt")).subprotocol("a2a.v1").open();
    let client = caller(&hub, Binding::JsonRpc, "curt");
    let asking = std::thread::spawn(move || {
        let answer = client.call("SendMessage", &flotilla_testkit::client::message("m", "Hello"));
        (answer.expect("an answer"), client.say("n", "Again"))
    });
    let request = agent.wait_for("a request", |frame| frame.get("method").is_some());
    let said = json!({"messageId": "x", "role": "ROLE_AGENT", "parts": [{"text": "Hi"}]});
    agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"message": said}}));
    let request = agent.wait_for("a request", |frame| frame.get("method").is_some());
    agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32004, "message": "Not today"}}));
    let (answered, refused) = asking.join().expect("the caller is answered");
    assert_eq!(text(&answered["message"]), "Hi");
    assert_eq!(state(&refused), "TASK_STATE_FAILED");
    assert!(text(&refused["status"]["message"]).contains("Not today"), "{refused}");
}

#[test]
fn what_is_no_answer_ends_the_run_and_is_told_as_what_it_is() {
    let hub = hub();
    for (subprotocol, name) in [("a2a.v1", "new"), ("a2a.v0.3", "old")] {
        let mut agent = dial(&hub, &agent_key(&hub, name)).subprotocol(subprotocol).open();
        let client = caller(&hub, Binding::JsonRpc, name);
        for (number, (said, told)) in [
            (json!({}), "neither a result nor an error"),
            (json!({"error": 5}), "neither a result nor an error"),
            (json!({"result": {}}), "neither a Task nor a Message"),
            (json!({"result": 5}), "neither a Task nor a Message"),
            (json!({"result": []}), "neither a Task nor a Message"),
        ]
        .into_iter()
        .enumerate()
        {
            let task = client.start(&format!("m-{number}"), "Hello");
            let request = agent.wait_for("a request", |frame| frame.get("method").is_some());
            let mut frame = said.clone();
            (frame["jsonrpc"], frame["id"]) = (json!("2.0"), request["id"].clone());
            agent.send(&frame);
            let failed = reached(&client, id(&task), "TASK_STATE_FAILED");
            let why = text(&failed["status"]["message"]);
            assert!(why.contains("InvalidAgentResponse") && why.contains(told), "{subprotocol} {said}: {why}");
            if said.get("result").is_none() {
                let refused = agent.wait_for("an error", |frame| frame.get("error").is_some());
                assert_eq!((&refused["id"], &refused["error"]["code"]), (&request["id"], &json!(-32600)), "{refused}");
            }
        }
    }
}

#[test]
fn cards_list_the_channel() {
    let hub = hub();
    let card = hub.owner(Binding::HttpJson).get("/agents/mock/.well-known/agent-card.json").json();
    let all = card["supportedInterfaces"].as_array().expect("interfaces").clone();
    let channel =
        all.iter().find(|one| one["protocolBinding"] == "urn:flotilla:binding:channel:1.0").expect("the channel");
    assert_eq!((&channel["url"], &channel["tenant"]), (&json!(format!("ws://{}/ws", hub.address())), &json!("mock")));
}
