//! Agents of published frameworks, in the words they were heard to use: what is off the specification and yet plain.
//! Which frameworks they are is in docs/peers.md.

use super::{before, config, reason, texts};
use crate::cast::{id, reached, setup, state, text};
use flotilla_testkit::client::message;
use flotilla_testkit::{Act, Asked, Binding, StandIn};
use serde_json::{Value, json};

/// A card of 0.3, with its address.
fn old_card(url: &str) -> Value {
    json!({"name": "peer", "description": "d", "version": "1", "url": url, "capabilities": {"streaming": true},
        "defaultInputModes": ["text"], "defaultOutputModes": ["text"], "skills": []})
}

fn said(id: &str, words: &str) -> Value {
    json!({"kind": "message", "role": "agent", "messageId": id, "parts": [{"kind": "text", "text": words}]})
}

/// The frames of a stream through the hub, and the task they end in.
fn streamed(agent: &StandIn) -> (Vec<Value>, Value) {
    let near = before(agent, "");
    let client = near.owner(Binding::JsonRpc);
    let mut stream = client.stream("SendStreamingMessage", &message("m-1", "go")).expect("a stream");
    let frames: Vec<Value> = stream.rest().iter().map(|event| event.frame()).collect();
    let task = client.task(frames[0]["task"]["id"].as_str().expect("a task first"));
    (frames, task)
}

/// What was said with each status of a stream.
fn words(frames: &[Value]) -> Vec<&str> {
    let messages = frames.iter().map(|frame| &frame["statusUpdate"]["status"]["message"]);
    messages.filter(|message| message.is_object()).map(text).collect()
}

/// FastA2A 1.0 to 2.0: the card says 1.0, the methods are those of 0.3, and any other is HTTP 500 and no JSON.
fn fast_a2a(asked: &Asked) -> Vec<Act> {
    let task = |id: &str, state: &str| {
        let parts = json!([{"text": format!("You said {}", asked.params["message"]["parts"][0]["text"])}]);
        json!({"id": id, "contextId": "c", "status": {"state": state, "timestamp": "2026-11-16T12:00:00.123456"},
            "history": [{"role": "user", "messageId": "m", "parts": parts}],
            "artifacts": [{"artifactId": "a", "name": "result", "parts": parts}]})
    };
    match (asked.method.as_str(), asked.nth) {
        ("message/send", 0) => vec![Act::Answer(json!({"task": task("t-1", "input-required")}))],
        // A message to a task that waits begins another one of the same conversation.
        ("message/send", _) => vec![Act::Answer(json!({"task": task("t-2", "completed")}))],
        ("tasks/get", _) => vec![Act::Refuse(-32001, "Task not found")],
        _ => vec![Act::Body(500, "Internal Server Error".into())],
    }
}

#[test]
fn an_agent_that_breaks_over_the_methods_of_its_card_is_called_by_those_it_knows() {
    let agent = StandIn::start(false, fast_a2a);
    let near = before(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let task = client.say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED", "{}", reason(&task));
    assert_eq!(agent.asked("SendMessage").len(), 1);
    let mut answer = message("m-2", "large");
    answer["message"]["taskId"] = task["id"].clone();
    let task = client.call("SendMessage", &answer).expect("an answer")["task"].clone();
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{}", reason(&task));
    assert_eq!(agent.asked("message/send")[1].params["message"]["taskId"], "t-1");
    assert_eq!(agent.asked("SendMessage").len(), 1, "it is remembered");
    let file = json!({"raw": "aGk=", "filename": "f", "mediaType": "text/plain"});
    let mut with_file = message("m-3", "see");
    with_file["message"]["parts"] = json!([{"text": "see"}, file]);
    client.call("SendMessage", &with_file).expect("an answer");
    let sent = &agent.asked("message/send")[2].params["message"]["parts"][1];
    assert_eq!(
        (&sent["raw"], &sent["filename"], &sent["mediaType"]),
        (&file["raw"], &file["filename"], &file["mediaType"])
    );
    assert_eq!(
        (sent["kind"].as_str(), sent["file"]["bytes"].as_str()),
        (Some("file"), Some("aGk=")),
        "and as 0.3 has it"
    );
}

#[test]
fn an_agent_that_breaks_over_everything_is_sent_nothing_twice() {
    let agent = StandIn::start(false, |_: &Asked| vec![Act::Body(500, "Internal Server Error".into())]);
    let near = before(&agent, "");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_FAILED");
    assert_eq!((agent.asked("SendMessage").len(), agent.asked("message/send").len()), (1, 0));
}

#[test]
fn one_that_understands_and_broke_is_sent_nothing_twice() {
    let agent = StandIn::start(false, |asked: &Asked| match asked.method.as_str() {
        "GetTask" | "tasks/get" => vec![Act::Refuse(-32001, "Task not found")],
        _ => vec![Act::Body(500, "Internal Server Error".into())],
    });
    let near = before(&agent, "");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_FAILED");
    assert_eq!((agent.asked("SendMessage").len(), agent.asked("message/send").len()), (1, 0));
}

/// FastA2A 0.6 refuses a configuration without them, as A2A did before 0.3.
#[test]
fn agents_of_0_3_are_told_the_accepted_modes() {
    let agent = StandIn::with_card(old_card, |_: &Asked| {
        vec![Act::Answer(json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}}))]
    });
    let near = before(&agent, "");
    near.owner(Binding::JsonRpc).say("m-1", "go");
    let sent = &agent.asked("message/send")[0].params["configuration"];
    assert_eq!(*sent, json!({"acceptedOutputModes": [], "blocking": true}));
}

/// PraisonAI: events without an envelope, then one that holds nothing; underscores and two l.
#[test]
fn a_stream_without_envelopes_is_read() {
    let event = |state: &str| json!({"taskId": "t", "contextId": "c", "status": {"state": state}, "final": false});
    let artifact = json!({"taskId": "t", "contextId": "c", "append": false, "lastChunk": true,
        "artifact": {"artifactId": "a", "parts": [{"text": "You said go"}]}});
    let acts: Vec<Act> = [event("working"), artifact, event("completed"), json!({})]
        .iter()
        .map(|event| Act::Line(event.to_string()))
        .collect();
    let agent = StandIn::with_card(old_card, move |_: &Asked| acts.clone());
    let (frames, task) = streamed(&agent);
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{frames:?}");
    assert_eq!(texts(&task["artifacts"][0]), ["You said go"]);
}

#[test]
fn states_are_read_however_they_are_spelled() {
    for (spelled, read) in [
        ("cancelled", "CANCELED"),
        ("input_required", "INPUT_REQUIRED"),
        ("auth_required", "AUTH_REQUIRED"),
        ("COMPLETED", "COMPLETED"),
        ("TASK_STATE_CANCELLED", "CANCELED"),
    ] {
        let agent = StandIn::with_card(old_card, move |_: &Asked| {
            vec![Act::Answer(json!({"id": "t", "contextId": "c", "status": {"state": spelled}}))]
        });
        let near = before(&agent, "");
        let task = near.owner(Binding::JsonRpc).say("m-1", "go");
        assert_eq!(state(&task), format!("TASK_STATE_{read}"), "{}", reason(&task));
    }
}

/// VoltAgent: whole tasks again and again, in which one message grows under its id; no kinds.
#[test]
fn a_message_that_grows_counts_as_it_is_in_the_end() {
    let task = |state: &str, words: &str| {
        let status = json!({"state": state, "message": said("m", words)});
        Act::Event(json!({"id": "t", "contextId": "c", "status": status, "history": [said("m", words)]}))
    };
    let acts = vec![
        task("working", ""),
        task("working", "You "),
        task("working", "You said"),
        task("completed", "You said go"),
    ];
    let agent = StandIn::with_card(old_card, move |_: &Asked| acts.clone());
    let (frames, task) = streamed(&agent);
    assert_eq!(words(&frames), ["", "You said go"]);
    assert_eq!(text(&task["status"]["message"]), "You said go");
}

/// Agno: the address of one operation of HTTP+JSON, JSON-RPC in snake_case there, and a message piece by piece.
#[test]
fn an_address_that_names_an_operation_leads_to_the_others() {
    let status = |state: &str| {
        Act::Event(
            json!({"kind": "status-update", "task_id": "t", "context_id": "c", "status": {"state": state}, "final": false}),
        )
    };
    let piece = |words: &str| {
        let mut piece = said("m", words);
        piece["task_id"] = json!("t");
        piece["context_id"] = json!("c");
        piece["message_id"] = piece.as_object_mut().and_then(|piece| piece.remove("messageId")).expect("an id");
        Act::Event(piece)
    };
    let stream = vec![status("working"), piece("go "), piece("go "), piece("go"), status("completed")];
    let agent = StandIn::with_card(
        |url| old_card(&format!("{url}/a2a/agents/echo/v1/message:stream")),
        move |asked: &Asked| match asked.method.as_str() {
            "message/stream" => stream.clone(),
            "message/send" => vec![Act::Answer(json!({"kind": "task", "id": "t", "context_id": "c",
                "status": {"state": "completed"}, "history": [said("m", "You said go")]}))],
            _ => vec![Act::Body(400, r#"{"detail":"contextId is required to poll a task"}"#.into())],
        },
    );
    let (frames, task) = streamed(&agent);
    assert_eq!(words(&frames), ["go ", "go ", "go"], "each piece, also one that is like the last");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "it cannot be asked, and is believed");
    assert_eq!(agent.asked("message/stream")[0].path, "/a2a/agents/echo/v1/message:stream");
    let near = before(&agent, "");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    assert_eq!(text(&task["history"][1]), "You said go");
    assert_eq!(agent.asked("message/send")[0].path, "/a2a/agents/echo/v1/message:send");
}

/// LangGraph: a task as 1.0 has it, with parts as 0.3 has them.
#[test]
fn files_of_0_3_in_a_task_of_1_0_are_read() {
    let parts = json!([{"kind": "text", "text": "see"}, {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain", "name": "f"}}]);
    let task = json!({"task": {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": [{"artifactId": "a", "parts": parts}]}});
    let agent = StandIn::start(false, move |_: &Asked| vec![Act::Answer(task.clone())]);
    let near = before(&agent, "");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{}", reason(&task));
    let expected = json!([{"text": "see"}, {"raw": "aGk=", "filename": "f", "mediaType": "text/plain"}]);
    assert_eq!(task["artifacts"][0]["parts"], expected);
}

/// As agents of before 0.3 have them.
#[test]
fn artifacts_of_a_whole_task_are_known_by_their_place() {
    let task = json!({"id": "t", "contextId": "c", "status": {"state": "completed"},
        "artifacts": [{"parts": [{"type": "text", "text": "one"}]}, {"parts": [{"type": "text", "text": "two"}]}]});
    let agent = StandIn::with_card(old_card, move |_: &Asked| vec![Act::Answer(task.clone())]);
    let near = before(&agent, "");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    let shown: Vec<_> = task["artifacts"].as_array().expect("artifacts").iter().map(texts).collect();
    assert_eq!(shown, [["one"], ["two"]], "{}", reason(&task));
    assert_eq!(task["artifacts"][1]["artifactId"], "artifact-2");
}

#[test]
fn a_task_that_is_said_to_be_complete_and_no_more_is_asked_for() {
    let bare = json!({"id": "t", "status": {"state": "completed"}});
    let updates = [
        json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "submitted"}}),
        json!({"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": "completed"}, "final": true}),
    ];
    let lines: String = updates.iter().map(|update| format!("data: {}\n\n", json!({"result": update}))).collect();
    for streams in [true, false] {
        let (bare, lines) = (bare.clone(), lines.clone());
        let agent = StandIn::with_card(old_card, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
            ("message/send", _) => vec![Act::Answer(bare.clone())],
            // All of it at once.
            ("message/stream", _) if streams => vec![Act::Line(" ".into()), Act::Raw(lines.clone())],
            ("message/stream", _) => vec![Act::Answer(bare.clone())],
            _ => {
                let mut whole = bare.clone();
                whole["artifacts"] = json!([{"artifactId": "a", "parts": [{"kind": "text", "text": "the result"}]}]);
                vec![Act::Answer(whole)]
            }
        });
        let near = before(&agent, "");
        let client = near.owner(Binding::JsonRpc);
        let plain = client.say("m-1", "go");
        assert_eq!(texts(&plain["artifacts"][0]), ["the result"]);
        let started = client.start("m-2", "go");
        let done = reached(&client, id(&started), "TASK_STATE_COMPLETED");
        assert_eq!(texts(&done["artifacts"][0]), ["the result"], "streams: {streams}");
        assert_eq!(agent.asked("tasks/get").len(), 2, "once each");
    }
}

/// What a task came to is asked for, once, where its stream tells of statuses alone.
#[test]
fn what_a_stream_of_statuses_leaves_out_is_asked_for() {
    let update = |state: &str, message: Value| {
        json!({"kind": "status-update", "taskId": "t", "contextId": "c", "final": true,
            "status": {"state": state, "message": message}})
    };
    let working = json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "working"}});
    let bare = json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}});
    for (stream, ends) in [
        (vec![update("completed", Value::Null)], ("COMPLETED", "")),
        (vec![working.clone(), update("completed", said("m-2", "done"))], ("COMPLETED", "done")),
        (vec![update("failed", said("m-2", "half of it"))], ("FAILED", "half of it")),
        (vec![bare], ("COMPLETED", "")),
    ] {
        let shown = json!({"kind": "task", "id": "t", "contextId": "c", "metadata": {"k": 1},
            "status": stream[stream.len() - 1]["status"], "history": [said("m-1", "on the way"), said("m-2", "done")],
            "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": "the result"}]}]});
        let agent = StandIn::with_card(old_card, move |asked: &Asked| match asked.method.as_str() {
            "message/stream" => stream.iter().map(|event| Act::Event(event.clone())).collect(),
            _ => vec![Act::Answer(shown.clone())],
        });
        let (frames, task) = streamed(&agent);
        assert_eq!(state(&task), format!("TASK_STATE_{}", ends.0), "{frames:?}");
        assert_eq!(texts(&task["artifacts"][0]), ["the result"], "{frames:?}");
        assert_eq!(task["metadata"]["k"], 1);
        let history: Vec<&str> = task["history"].as_array().expect("messages").iter().map(text).collect();
        assert!(history.contains(&"on the way"), "{history:?}");
        if !ends.1.is_empty() {
            assert_eq!(reason(&task), ends.1);
            assert_eq!(words(&frames).iter().filter(|said| **said == ends.1).count(), 1, "once: {frames:?}");
        }
        assert_eq!(agent.asked("tasks/get").len(), 1);
    }
}

#[test]
fn a_stream_that_ends_with_words_is_believed_where_its_task_cannot_be_had() {
    let end = json!({"kind": "status-update", "taskId": "t", "contextId": "c", "final": true,
        "status": {"state": "completed", "message": said("m", "done")}});
    let shown = |with: Value| {
        let mut task = json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}});
        task.as_object_mut().expect("an object").extend(with.as_object().expect("an object").clone());
        Act::Answer(task)
    };
    for refusal in [
        Act::HangUp,
        Act::Refuse(-32001, "Task not found"),
        Act::Body(200, "<html>".into()),
        shown(json!({"contextId": "made up"})),
        shown(json!({"artifacts": [{"artifactId": "", "parts": []}]})),
    ] {
        let end = end.clone();
        let agent = StandIn::with_card(old_card, move |asked: &Asked| match asked.method.as_str() {
            "message/stream" => vec![Act::Event(end.clone())],
            _ => vec![refusal.clone()],
        });
        let (frames, task) = streamed(&agent);
        assert_eq!((state(&task), reason(&task)), ("TASK_STATE_COMPLETED", "done"), "{frames:?}");
    }
}

#[test]
fn a_task_whose_state_is_not_known_is_followed_until_it_says_more() {
    let task = |state: &str| {
        json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": state},
            "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": "fine"}]}]})
    };
    let agent = StandIn::with_card(old_card, move |asked: &Asked| {
        let task = task(if asked.method == "tasks/get" && asked.nth > 0 { "completed" } else { "unknown" });
        vec![if asked.method == "message/stream" { Act::Event(task) } else { Act::Answer(task) }]
    });
    let near = before(&agent, "poll: {first: 10ms}");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{}", reason(&task));
    assert_eq!(agent.asked("tasks/get").len(), 2);
    let (frames, task) = streamed(&agent);
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{frames:?}");
    assert_eq!(texts(&task["artifacts"][0]), ["fine"]);
}

/// The SDK for JavaScript has the bytes of a file where those for other languages have base64 text, and is known by
/// what it is served with.
#[test]
fn files_are_written_as_an_agent_of_0_3_has_them() {
    let rest = |url: &str| {
        let mut card = old_card(url);
        card["preferredTransport"] = json!("HTTP+JSON");
        card
    };
    // The bytes 0, 1, 2: as they are in ProtoJSON, and the text 'AAEC' there.
    let (bytes, text) = ("AAEC", "QUFFQw==");
    for (header, settings, expected, asked_before) in [
        ("x-powered-by: Express", "", bytes, 1),
        ("server: uvicorn", "", text, 1),
        ("x-powered-by: Express", "proto_files: text", text, 0),
        ("server: uvicorn", "proto_files: bytes", bytes, 0),
    ] {
        let agent = StandIn::with_card(rest, move |asked: &Asked| {
            let mirrored = asked.body["message"]["content"].clone();
            let task = json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"},
                "artifacts": [{"artifactId": "a", "parts": mirrored}]}});
            let is_send = asked.path.starts_with("/v1/message:");
            let body = if is_send { Act::Body(200, task.to_string()) } else { Act::Body(404, "{}".into()) };
            vec![Act::Header(header), body]
        });
        let near = before(&agent, settings);
        let client = near.owner(Binding::JsonRpc);
        for id in ["m-1", "m-2"] {
            let mut params = message(id, "x");
            params["message"]["parts"] = json!([{"raw": "AAEC", "mediaType": "a/b"}]);
            let task = client.call("SendMessage", &params).expect("an answer")["task"].clone();
            assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{}", reason(&task));
            assert_eq!(task["artifacts"][0]["parts"][0]["raw"], "AAEC", "{header} {settings}");
        }
        let sent = agent.asked("/v1/message:send");
        assert_eq!(sent.len(), 2);
        for asked in sent {
            assert_eq!(asked.body["message"]["content"][0]["file"]["fileWithBytes"], expected, "{header} {settings}");
        }
        let before = agent.asked("/v1/tasks/00000000-0000-0000-0000-000000000000").len();
        assert_eq!(before, asked_before, "{header} {settings}: once");
    }
}

/// VoltAgent, where it does not know its own name.
#[test]
fn a_path_alone_is_one_where_the_card_came_from() {
    let agent = StandIn::with_card(
        |_| old_card("/a2a/echo"),
        |_: &Asked| vec![Act::Answer(json!({"id": "t", "contextId": "c", "status": {"state": "completed"}}))],
    );
    let near = setup().config(&config(&agent.url(), "")).start();
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    reached(&client, id(&task), "TASK_STATE_COMPLETED");
    assert_eq!(agent.asked("message/stream")[0].path, "/a2a/echo");
}
