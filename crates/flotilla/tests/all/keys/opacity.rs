//! What an agent thinks and which tools it calls is for its owner; callers see what A2A shows, live and replayed.

use crate::cast::{id, setup, state};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess};
use serde_json::{Value, json};

const CONFIG: &str = r#"
agents:
  thinker:
    kind: script
    script:
      rules:
        - when: {text: direct}
          do:
            - blocks: [{type: thinking, thinking: SECRET thought}]
            - message:
                blocks:
                  - {type: tool_use, id: c, name: SECRET_tool, input: {q: SECRET}}
                  - {type: text, text: shown}
        - when: {text: hold}
          do:
            - blocks: [{type: thinking, thinking: SECRET thought}]
            - working:
                blocks: [{type: thinking, thinking: SECRET}, {type: text, text: shown}]
            - delay: 1h
      otherwise:
        - blocks:
            - {type: thinking, thinking: SECRET thought, signature: SECRET}
            - {type: redacted_thinking, data: SECRET}
            - {type: tool_use, id: call-1, name: SECRET_tool, input: {query: SECRET}}
            - {type: tool_result, tool_use_id: call-1, content: SECRET result}
            - {type: server_tool_use, id: call-2, name: web_search, input: {query: SECRET}}
            - {type: web_search_tool_result, tool_use_id: call-2, content: []}
            - {type: hologram, beam: SECRET}
            - {type: usage, input_tokens: 12, output_tokens: 3}
        - progress: {progress: 1, total: 2, message: SECRET progress}
        - working:
            blocks:
              - {type: thinking, thinking: SECRET}
              - {type: text, text: shown status}
              - {type: hologram, beam: SECRET}
        - artifact:
            id: hidden
            blocks: [{type: tool_result, tool_use_id: call-1, content: SECRET}]
        - artifact:
            id: seen
            blocks:
              - {type: text, text: shown artifact}
              - {type: tool_use, id: call-3, name: SECRET_tool, input: {}}
        - completed:
            blocks: [{type: hologram, beam: SECRET}, {type: text, text: shown end}]
"#;

fn hub() -> HubProcess {
    setup().config(CONFIG).start()
}

/// Shown to a caller: the words for them, and none of the others.
fn clean(text: &str) {
    for hidden in [
        "SECRET",
        "thinking",
        "tool_use",
        "tool_result",
        "hologram",
        "call-1",
        "usage",
        "input_tokens",
        "progress",
        "\"hidden\"",
    ] {
        assert!(!text.contains(hidden), "{hidden} is shown to a caller: {text}");
    }
}

/// Everything a caller can ask of a task.
fn looks(caller: &Client, task: &str, epoch: &str) {
    clean(caller.response("GetTask", &json!({"id": task})).text());
    clean(caller.response("ListTasks", &json!({"includeArtifacts": true})).text());
    clean(caller.response("CancelTask", &json!({"id": task})).text());
    for cursor in ["other.1".to_owned(), format!("{epoch}.0"), format!("{epoch}.2")] {
        let client = caller.clone().header("last-event-id", &cursor);
        let mut stream = client.stream("SubscribeToTask", &json!({"id": task})).expect("a replay");
        for event in stream.rest() {
            clean(event.data.as_deref().expect("data"));
        }
    }
}

#[test]
fn no_operation_shows_a_caller_what_is_the_owners() {
    let mut hub = hub();
    let key = hub.key("alice", &[]);
    for binding in Binding::ALL {
        let alice = hub.stranger(binding).key(&key);
        let response = alice.response("SendMessage", &message(&format!("b-{binding:?}"), "go"));
        clean(response.text());
        assert!(["shown status", "shown artifact", "shown end"].iter().all(|shown| response.text().contains(shown)));
        let mut stream =
            alice.stream("SendStreamingMessage", &message(&format!("s-{binding:?}"), "go")).expect("a stream");
        let events = stream.rest();
        for event in &events {
            clean(event.data.as_deref().expect("data"));
        }
        let numbers: Vec<u64> = events.iter().map(flotilla_testkit::Event::number).collect();
        assert_eq!(numbers, [1, 2, 3, 4], "hidden events cannot even be counted");
        let task = events[0].frame()["task"]["id"].as_str().expect("an id").to_owned();
        looks(&alice, &task, events[0].epoch());
        hub.restart();
        looks(&hub.stranger(binding).key(&key), &task, events[0].epoch());
    }
}

#[test]
fn a_direct_message_shows_only_its_words() {
    let hub = hub();
    for binding in Binding::ALL {
        let alice = hub.caller(binding, &format!("alice-{binding:?}"));
        let response = alice.response("SendMessage", &message("m", "direct"));
        clean(response.text());
        assert!(response.text().contains("shown"));
        let mut stream = alice.stream("SendStreamingMessage", &message("m2", "direct")).expect("a stream");
        let events = stream.rest();
        assert_eq!(events.len(), 1);
        clean(events[0].data.as_deref().expect("data"));
    }
}

#[test]
fn a_task_under_way_shows_only_its_words() {
    let hub = hub();
    for binding in Binding::ALL {
        let alice = hub.caller(binding, &format!("alice-{binding:?}"));
        let task = alice.start("m", "hold");
        crate::cast::reached(&alice, id(&task), "TASK_STATE_WORKING");
        clean(alice.response("GetTask", &json!({"id": id(&task)})).text());
        let mut stream = alice.stream("SubscribeToTask", &json!({"id": id(&task)})).expect("a stream");
        clean(stream.expect().data.as_deref().expect("data"));
        clean(alice.response("CancelTask", &json!({"id": id(&task)})).text());
        let end = stream.expect();
        clean(end.data.as_deref().expect("data"));
        assert_eq!(state(&end.frame()["statusUpdate"]), "TASK_STATE_CANCELED");
    }
}

#[test]
fn the_owner_sees_every_block_in_order() {
    let mut hub = hub();
    let alice = hub.caller(Binding::JsonRpc, "alice");
    let task = alice.say("m", "go");
    let read = |hub: &HubProcess| {
        let response = hub.owner(Binding::HttpJson).get(&format!("/api/tasks/{}/log", id(&task)));
        assert_eq!(response.status, 200);
        response.json()
    };
    let log = read(&hub);
    let text = log.to_string();
    for shown in [
        "SECRET thought",
        "redacted_thinking",
        "SECRET_tool",
        "SECRET result",
        "server_tool_use",
        "hologram",
        "usage",
        "SECRET progress",
        "shown end",
    ] {
        assert!(text.contains(shown), "{shown} is missing in the owner's log: {text}");
    }
    let events = log["events"].as_array().expect("events");
    let seqs: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<u64>>(), "dense over all events");
    let for_peers = events.iter().filter(|event| event["forPeers"] == Value::Bool(true)).count();
    assert_eq!(for_peers, 4);
    hub.restart();
    assert_eq!(read(&hub), log, "the same after a restart");
}

#[test]
fn an_artifact_begins_for_its_caller_with_its_first_visible_chunk() {
    let config = r#"
agents:
  thinker:
    kind: script
    script:
      otherwise:
        - artifact: {id: a, blocks: [{type: thinking, thinking: SECRET}], last: false}
        - artifact: {id: a, append: true, last: false, blocks: [{type: text, text: one}]}
        - artifact: {id: a, append: true, blocks: [{type: text, text: two}]}
        - completed: {blocks: [{type: thinking, thinking: SECRET}]}
"#;
    let hub = setup().config(config).start();
    for binding in Binding::ALL {
        let owner = hub.owner(binding);
        let name = format!("m-{binding:?}");
        let frames: Vec<Value> = owner
            .stream("SendStreamingMessage", &message(&name, "go"))
            .expect("a stream")
            .rest()
            .iter()
            .map(|e| e.frame())
            .collect();
        let appends: Vec<bool> =
            frames.iter().filter_map(|f| f.get("artifactUpdate")).map(|u| u["append"] == true).collect();
        assert_eq!(appends, [false, true], "{frames:?}");
        let last = &frames.last().expect("frames")["statusUpdate"]["status"];
        assert!(last.get("message").is_none(), "a message of nothing but thoughts is none: {last}");
        let task = owner.say(&name, "go");
        assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "one"}, {"text": "two"}]));
    }
}
