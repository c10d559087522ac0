//! Updates in, reports out.

use super::Turn;
use flotilla_protocol::usage::Usage;
use flotilla_protocol::work::{Contents, Report};
use serde_json::{Value, json};

fn turn() -> Turn {
    Turn { artifact_id: "output-1".into(), ..Turn::default() }
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

fn cost(amount: f64) -> Value {
    json!({"sessionUpdate": "usage_update", "used": 9, "cost": {"amount": amount, "currency": "USD"}})
}

/// What updates add to the ledger, in billionths of a dollar, and what is remembered then.
fn booked(turn: &mut Turn, amounts: &[f64]) -> (u64, Value) {
    let reports = amounts.iter().flat_map(|amount| turn.update(&cost(*amount))).collect::<Vec<_>>();
    let blocks = reports.into_iter().filter_map(|report| match report {
        Report::Note { blocks } => Some(blocks),
        _ => None,
    });
    let usage = Usage::of_blocks(&blocks.flatten().collect::<Vec<_>>());
    assert_eq!(usage.gaps, 0, "tokens are told at the end");
    (usage.cost().unwrap_or(0), turn.memo().unwrap_or_default())
}

#[test]
fn cost_is_told_as_it_comes_and_is_this_turns() {
    let mut turn = turn();
    assert!(told(&mut turn, cost(1.0)).is_empty());
    turn.begin(&Value::Null);
    let later = r#""later":["input_tokens","output_tokens","cache_read_tokens","cache_write_tokens"],"type":"usage"}"#;
    assert_eq!(told(&mut turn, cost(1.25)), [format!(r#"{{"cost_usd":0.25,{later}"#)]);
    assert_eq!(told(&mut turn, cost(1.5)), [format!(r#"{{"cost_usd":0.25,{later}"#)]);
    assert!(told(&mut turn, cost(1.5)).is_empty(), "nothing new");
    assert!(
        told(&mut turn, json!({"sessionUpdate": "usage_update", "cost": {"amount": 9, "currency": "EUR"}})).is_empty()
    );
    let usage = json!({"inputTokens": 5, "outputTokens": 7, "cachedReadTokens": 0});
    let rest: Vec<String> = turn.end(&usage).iter().map(shown).collect();
    assert_eq!(rest, [r#"{"cache_read_tokens":0,"cost_usd":0,"input_tokens":5,"output_tokens":7,"type":"usage"}"#]);
    assert!(turn.end(&Value::Null).is_empty(), "what is not known is not told");
}

#[test]
fn a_session_is_paid_for_once_however_many_turns_it_has() {
    let mut first = turn();
    first.begin(&Value::Null);
    let (paid, memo) = booked(&mut first, &[0.125, 0.5]);
    assert_eq!((paid, &memo), (500_000_000, &json!({"cost_usd": 0.5})));
    let mut second = turn();
    second.begin(&memo);
    let (paid, memo) = booked(&mut second, &[0.75]);
    assert_eq!((paid, &memo), (250_000_000, &json!({"cost_usd": 0.75})), "the difference");
    let mut anew = turn();
    anew.begin(&memo);
    assert_eq!(booked(&mut anew, &[0.25, 1.0]).0, 1_000_000_000, "a session that costs less was begun anew");
    let mut quiet = turn();
    quiet.begin(&memo);
    assert_eq!(booked(&mut quiet, &[]), (0, memo), "what was remembered stays");
}

#[test]
fn what_a_turn_cost_that_is_broken_off_may_be_more() {
    let mut turn = turn();
    turn.begin(&Value::Null);
    assert!(turn.break_off().is_empty());
    told(&mut turn, cost(0.5));
    assert_eq!(turn.break_off().iter().map(shown).collect::<Vec<_>>(), [r#"{"type":"usage"}"#]);
}
