//! The examples that ship with the hub: the conformance agent, and every block of the manual.

use crate::transcript::{saying, script, sending, transcript};
use flotilla_protocol::a2a::model::Part;
use flotilla_protocol::work::Assignment;
use flotilla_worker::Agent;
use flotilla_worker::script::{Script, ScriptConfig};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// As much of the hub's configuration as these tests need.
#[derive(Deserialize)]
struct Hub {
    agents: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    script: ScriptConfig,
}

fn read(path: &str) -> String {
    std::fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn agent_of(hub: &str, name: &str) -> Agent {
    let hub: Hub = serde_saphyr::from_str(hub).unwrap();
    Agent::Script(Arc::new(Script::compile(&hub.agents[name].script).unwrap()))
}

/// What the kits ask for, and what a caller must see.
const BEHAVIOURS: [(&str, &str); 23] = [
    ("tck-complete-task", r#"COMPLETED {"text":"Hello from TCK"}"#),
    ("tck-input-required", r#"INPUT_REQUIRED {"text":"More input, please"}"#),
    ("tck-auth-required", r#"AUTH_REQUIRED {"text":"Please authorize this task"}"#),
    ("tck-multi-turn", r#"INPUT_REQUIRED {"text":"More input, please"}"#),
    ("tck-task-failure", "WORKING\nFAILED {\"text\":\"This task was asked to fail\"}"),
    ("tck-reject-task", r#"REJECTED {"text":"rejected"}"#),
    ("tck-artifact-text", "artifact {\"text\":\"Generated text content\"} last\nCOMPLETED"),
    (
        "tck-artifact-file",
        "artifact {\"raw\":\"dGNr\",\"filename\":\"output.txt\",\"mediaType\":\"text/plain\"} last\nCOMPLETED",
    ),
    (
        "tck-artifact-file-url",
        "artifact {\"url\":\"https://example.com/output.txt\",\"filename\":\"output.txt\",\
         \"mediaType\":\"text/plain\"} last\nCOMPLETED",
    ),
    ("tck-artifact-data", "artifact {\"data\":{\"count\":42,\"key\":\"value\"}} last\nCOMPLETED"),
    ("tck-message-response", r#"message {"text":"Direct message response"}"#),
    ("tck-stream-001", "WORKING\nartifact {\"text\":\"Stream hello from TCK\"} last\nCOMPLETED"),
    ("tck-stream-002", "COMPLETED"),
    ("tck-stream-003", "WORKING\nartifact {\"text\":\"Stream task lifecycle\"} last\nCOMPLETED"),
    ("tck-stream-ordering-001", "WORKING\nartifact {\"text\":\"Ordered output\"} last\nCOMPLETED"),
    ("tck-stream-artifact-text", "WORKING\nartifact {\"text\":\"Streamed text content\"} last\nCOMPLETED"),
    (
        "tck-stream-artifact-file",
        "WORKING\nartifact {\"raw\":\"dGNr\",\"filename\":\"output.txt\",\"mediaType\":\"text/plain\"} last\nCOMPLETED",
    ),
    (
        "tck-stream-artifact-chunked",
        "WORKING\nartifact {\"text\":\"chunk-1 \"}\nartifact {\"text\":\"chunk-2\"} append last\nCOMPLETED",
    ),
    (
        "tck-stream-basic",
        "WORKING {\"text\":\"Streaming has begun\"}\nartifact {\"name\":\"streamed\"} {\"text\":\"Streamed content\"} \
         last\nCOMPLETED {\"text\":\"tck-stream-basic ok\"}",
    ),
    (
        "tck-stream-chunked",
        "WORKING {\"text\":\"Streaming has begun\"}\nartifact {\"name\":\"chunked\"} {\"text\":\"chunk one \"}\n\
         artifact {\"text\":\"chunk two \"} append\nartifact {\"text\":\"chunk three\"} append last\n\
         COMPLETED {\"text\":\"tck-stream-chunked ok\"}",
    ),
    ("test-resubscribe-message-id", "WORKING\n+4s\nCOMPLETED"),
    (
        "tck-long-running",
        "WORKING\n+2s\nartifact {\"name\":\"long-running\"} {\"text\":\"Long running result\"} last\n\
         COMPLETED {\"text\":\"Long running work finished\"}",
    ),
    ("tck-cancel", "WORKING\n+600s\nFAILED {\"text\":\"Nobody canceled this task\"}"),
];

#[tokio::test(start_paused = true)]
async fn the_conformance_agent_answers_to_ids_and_texts() {
    let agent = agent_of(&read("examples/conformance.yaml"), "tck");
    for (name, expected) in BEHAVIOURS {
        let by_id = sending(&format!("{name}-4f2a"), vec![Part::text("TCK test")]);
        assert_eq!(transcript(&agent, by_id).await, expected, "{name} by id");
        assert_eq!(transcript(&agent, saying(&format!("{name} hello"))).await, expected, "{name} by text");
    }
    let ordinary = transcript(&agent, sending("tck-dm-test-001", vec![Part::text("hello")])).await;
    let expected = "artifact {\"name\":\"reply\"} {\"text\":\"hello\"} last\n\
                    COMPLETED {\"text\":\"Nothing special was asked for\"}";
    assert_eq!(ordinary, expected);
}

#[tokio::test(start_paused = true)]
async fn the_conformance_agent_holds_conversations() {
    let agent = agent_of(&read("examples/conformance.yaml"), "tck");
    for (id, text, expected) in [
        ("tck-input-required-1", "TCK history message 1", "INPUT_REQUIRED"),
        ("tck-infer-ctx-1", "Follow-up message", "INPUT_REQUIRED"),
        ("m", "here is more input", "INPUT_REQUIRED"),
        ("m", "done", "COMPLETED"),
        ("tck-complete-task-1", "Complete", "COMPLETED"),
    ] {
        let turn = Assignment { turn: 2, ..sending(id, vec![Part::text(text)]) };
        let said = transcript(&agent, turn).await;
        assert_eq!(said.split(' ').next(), Some(expected), "{id} {text}");
    }
}

/// The fenced blocks of a page, each with what stands behind its fence.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(kind)) => open = Some((kind.to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, body)), None) => *body += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    blocks
}

/// Plays a page's transcripts against the script before each: `> text` is said, and the lines below must follow.
#[tokio::test(start_paused = true)]
async fn the_manual_is_true() {
    let page = read("docs/script-agent.md");
    let (mut agent, mut scripts, mut exchanges) = (None, 0, 0);
    for (kind, body) in blocks(&page) {
        match kind.as_str() {
            "yaml" if body.starts_with("hub:") => agent = Some(agent_of(&body, "mock")),
            "yaml" => agent = Some(script(&body).unwrap_or_else(|error| panic!("{error}\n{body}"))),
            "text" => exchanges += play(agent.as_ref().unwrap(), &body).await,
            "yaml wrong" => {
                let error = body.lines().next().unwrap().trim_start_matches("# ");
                assert_eq!(script(&body).expect_err(&body), error);
            }
            other => panic!("a block of kind {other:?}"),
        }
        scripts += usize::from(kind == "yaml");
    }
    assert!(scripts > 5 && exchanges > 5, "{scripts} scripts, {exchanges} exchanges");
}

/// Each `>` is one more message of the same task.
async fn play(agent: &Agent, body: &str) -> usize {
    let exchanges: Vec<&str> = body.split("> ").skip(1).collect();
    for (i, exchange) in exchanges.iter().enumerate() {
        let (text, expected) = exchange.split_once('\n').unwrap();
        let said = transcript(agent, Assignment { turn: i as u32 + 1, ..saying(text) }).await;
        assert_eq!(said, expected.trim_end(), "> {text}");
    }
    exchanges.len()
}
