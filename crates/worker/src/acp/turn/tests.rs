//! Updates in, reports out.

use super::Turn;
use flotilla_protocol::work::{Contents, Report};
use serde_json::{Value, json};
use std::collections::HashMap;

fn turn() -> Turn {
    Turn {
        artifact_id: "output-1".into(),
        printed: false,
        thought: String::new(),
        uses: HashMap::new(),
        cost: None,
        cost_before: 0.0,
    }
}

fn shown(report: &Report) -> String {
    match report {
        Report::Artifact { contents: Contents::Parts(parts), append, last_chunk, .. } => {
            let text: String = parts.iter().filter_map(|part| part.text.as_deref()).collect();
            format!("text {text:?}{}{}", if *append { " more" } else { "" }, if *last_chunk { " last" } else { "" })
        }
        Report::Artifact { contents: Contents::Blocks(blocks), .. } => {
            format!("made {}", blocks.iter().map(|block| block.json().text()).collect::<String>())
        }
        Report::Note { blocks } => {
            blocks.iter().map(|block| block.json().text().to_owned()).collect::<Vec<_>>().join(" ")
        }
        other => format!("{other:?}"),
    }
}

fn told(turn: &mut Turn, update: Value) -> Vec<String> {
    turn.update(&update).iter().map(shown).collect()
}

fn text(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

#[test]
fn text_is_the_callers_and_thoughts_are_kept_together_for_the_owner() {
    let mut turn = turn();
    assert!(told(&mut turn, text("agent_thought_chunk", "so ")).is_empty());
    assert!(told(&mut turn, text("agent_thought_chunk", "then")).is_empty());
    let thinking = r#"{"thinking":"so then","type":"thinking"}"#;
    assert_eq!(told(&mut turn, text("agent_message_chunk", "Hello")), [thinking, r#"text "Hello""#]);
    assert_eq!(told(&mut turn, text("agent_message_chunk", " you")), [r#"text " you" more"#]);
    let image = json!({"sessionUpdate": "agent_message_chunk",
        "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"}});
    assert_eq!(told(&mut turn, image), [r#"made {"data":"AAAA","mimeType":"image/png","type":"image"}"#]);
    let rest: Vec<String> = turn.end(&Value::Null).iter().map(shown).collect();
    assert_eq!(rest, [r#"text "" more last"#]);
}

#[test]
fn a_tool_is_told_when_it_is_begun_when_more_is_known_and_when_it_has_ended() {
    let mut turn = turn();
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Terminal", "name": "Bash",
        "rawInput": {}, "status": "pending"});
    let begun = r#"{"id":"t","input":{},"name":"Bash","title":"Terminal","type":"tool_use"}"#;
    assert_eq!(told(&mut turn, call), [begun]);
    let more = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "ls", "rawInput": {"c": "ls"}});
    assert_eq!(
        told(&mut turn, more.clone()),
        [r#"{"id":"t","input":{"c":"ls"},"name":"ls","title":"ls","type":"tool_use"}"#]
    );
    assert!(told(&mut turn, more).is_empty(), "the same again is nothing new");
    let done = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed", "rawOutput": "x"});
    let result = r#"{"content":[{"text":"x","type":"text"}],"is_error":false,"tool_use_id":"t","type":"tool_result"}"#;
    assert_eq!(told(&mut turn, done), [result]);
    let failed = json!({"sessionUpdate": "tool_call", "toolCallId": "u", "title": "Edit", "status": "failed",
        "content": [{"type": "diff", "path": "/a", "newText": "b"}]});
    let told = told(&mut turn, failed);
    assert!(
        told[0].contains("tool_use") && told[0].contains(r#""type":"diff""#) && told[0].contains(r#""is_error":true"#)
    );
}

#[test]
fn plans_are_progress_and_what_is_new_is_kept() {
    let mut turn = turn();
    let entries = json!([{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]);
    let said = told(&mut turn, json!({"sessionUpdate": "plan", "entries": entries}));
    assert!(said[0].contains(r#""message":"b""#) && said[0].contains(r#""progress":1,"total":2"#), "{said:?}");
    assert!(told(&mut turn, json!({"sessionUpdate": "available_commands_update"})).is_empty());
    assert!(told(&mut turn, json!({"sessionUpdate": "hologram", "x": 1}))[0].contains("hologram"));
}

#[test]
fn usage_is_told_once_and_the_cost_is_this_turns() {
    let mut turn = turn();
    let cost = |amount: f64| json!({"sessionUpdate": "usage_update", "cost": {"amount": amount, "currency": "USD"}});
    assert!(told(&mut turn, cost(1.0)).is_empty());
    turn.begin();
    told(&mut turn, cost(1.5));
    told(&mut turn, json!({"sessionUpdate": "usage_update", "cost": {"amount": 9, "currency": "EUR"}}));
    let usage = json!({"inputTokens": 5, "outputTokens": 7, "cachedReadTokens": 0});
    let rest: Vec<String> = turn.end(&usage).iter().map(shown).collect();
    let used = r#"{"cache_read_tokens":0,"cost_usd":0.5,"input_tokens":5,"output_tokens":7,"type":"usage"}"#;
    assert_eq!(rest, [used]);
    assert!(turn.end(&Value::Null).is_empty(), "what is not known is not told");
}
