//! Scripts for a turn: frames in, what the hub is told out.

use super::frame::{Frame, Outcome};
use super::turn::{Next, Turn};
use flotilla_protocol::work::{Contents, Report};

fn turn() -> Turn {
    Turn::default()
}

fn schema_turn() -> Turn {
    Turn::structured(true)
}

fn word(report: &Report) -> String {
    match report {
        Report::Artifact { artifact, contents, append, last_chunk, .. } => {
            let text = match contents {
                Contents::Parts(parts) => parts.iter().map(|part| serde_json::to_string(part).unwrap()).collect(),
                other => format!("{other:?}"),
            };
            let more = if *append { "+" } else { "" };
            format!("{}{more}{text}{}", artifact.name, if *last_chunk { "." } else { "" })
        }
        Report::Note { blocks } => {
            let all: Vec<&str> = blocks.iter().map(|block| block.json().text()).collect();
            format!("note {}", all.join(" "))
        }
        Report::Status { state, contents, metadata } => {
            let said = match contents {
                Some(Contents::Parts(parts)) => parts[0].text.clone().unwrap_or_default(),
                _ => String::new(),
            };
            let more = metadata.as_ref().map_or(String::new(), |metadata| metadata.0.text().to_owned());
            format!("{} {said}{more}", state.name().trim_start_matches("TASK_STATE_")).trim_end().to_owned()
        }
        other => format!("{other:?}"),
    }
}

/// What is told of frames, flushed at the end of them, and then of the result.
fn told(mut turn: Turn, frames: &[&str]) -> Vec<String> {
    let mut told = Vec::new();
    for frame in frames {
        let (reports, next) = turn.take(Frame::read(frame));
        told.extend(reports.iter().map(word));
        if let Next::Over(outcome) = next {
            told.extend(turn.end(&outcome, None, 1000).iter().map(word));
        }
    }
    told.extend(turn.flush(false).iter().map(word));
    told
}

fn piece(text: &str) -> String {
    format!(
        r#"{{"type":"stream_event","event":{{"type":"content_block_delta","delta":{{"type":"text_delta","text":"{text}"}}}},"parent_tool_use_id":null}}"#
    )
}

fn said(blocks: &str) -> String {
    format!(r#"{{"type":"assistant","message":{{"content":[{blocks}]}},"parent_tool_use_id":null}}"#)
}

const DONE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"Hello there","total_cost_usd":0.5,"usage":{"input_tokens":3,"output_tokens":2},"num_turns":1}"#;

#[test]
fn what_came_in_pieces_is_not_said_again() {
    let whole = said(r#"{"type":"text","text":"Hello there"}"#);
    let more = said(r#"{"type":"text","text":"Bye"}"#);
    let told = told(turn(), &[&piece("Hello "), &piece("there"), &whole, &more, DONE]);
    assert_eq!(told[0], r#"reply{"text":"Hello there"}"#);
    assert_eq!(told[1], r#"reply+{"text":"\n\nBye"}"#);
    assert_eq!(told[2], "reply+.", "the artifact is closed");
    assert!(told[3].starts_with("note {") && told[3].contains(r#""cost_usd":0.5"#), "{}", told[3]);
    assert_eq!(told[4], "COMPLETED");
}

#[test]
fn a_result_that_nobody_said_is_the_reply() {
    assert_eq!(told(turn(), &[DONE])[0], r#"reply{"text":"Hello there"}."#);
}

#[test]
fn tools_and_agents_below_are_the_owners_alone() {
    let tool =
        said(r#"{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"t","name":"Bash","input":{"n": 1.0}}"#);
    let below =
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"psst"}]},"parent_tool_use_id":"t"}"#;
    let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]},"parent_tool_use_id":null}"#;
    let told = told(turn(), &[&tool, below, result, r#"{"type":"hologram"}"#, "garbage"]);
    assert_eq!(
        told,
        [
            r#"note {"type":"thinking","thinking":"hm"} {"type":"tool_use","id":"t","name":"Bash","input":{"n": 1.0}}"#,
            r#"note {"parent_tool_use_id":"t","type":"text","text":"psst"}"#,
            r#"note {"type":"tool_result","tool_use_id":"t","content":"ok"}"#,
            r#"note {"type":"claude_code","frame":{"type":"hologram"}}"#,
            r#"note {"text":"garbage","type":"text"}"#,
        ]
    );
}

#[test]
fn errors_are_told_in_words_and_limits_by_type() {
    let failed = |subtype: &str, status: &str| {
        let line = format!(r#"{{"type":"result","subtype":"{subtype}","is_error":true,"api_error_status":{status}}}"#);
        told(turn(), &[&line]).pop().unwrap()
    };
    assert!(failed("error_max_turns", "null").starts_with("FAILED The agent reached its limit of turns"));
    assert!(failed("error_max_budget_usd", "null").contains("budget"));
    assert!(failed("success", "401").contains("not signed in"));
    assert!(failed("success", "500").contains("HTTP 500"));
    let limit = r#"{"urn:flotilla:ext:fleet-handshake:2.0":{"blocked_reason":"usage_limit","retry_after":null,"retryable":true}}"#;
    assert!(failed("success", "429").ends_with(limit), "{}", failed("success", "429"));

    let rejected = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1090}}"#;
    let over = r#"{"type":"result","subtype":"success","is_error":true}"#;
    let told_of = told(turn(), &[rejected, over]).pop().unwrap();
    assert!(told_of.contains("in 90 s") && told_of.contains(r#""retry_after":90"#), "{told_of}");
    let retry = r#"{"type":"system","subtype":"api_retry","attempt":1,"retry_delay_ms":2500.5,"error_status":429}"#;
    let refused = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429}"#;
    let told_of = told(turn(), &[retry, refused]);
    assert!(told_of.last().unwrap().contains(r#""retry_after":3"#), "as long as the program waited: {told_of:?}");
    let words = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Claude AI usage limit reached|1030"}]},"error":"rate_limit"}"#;
    let told_of = told(turn(), &[words, over]);
    assert!(told_of[0].starts_with("note"), "the caller does not get it as a reply: {told_of:?}");
    assert!(told_of.last().unwrap().contains(r#""retry_after":30"#), "{told_of:?}");
}

#[test]
fn a_reply_of_a_form_comes_as_data_or_not_at_all() {
    let structured = r#"{"type":"result","subtype":"success","result":"{}","structured_output":{"n": 1.0}}"#;
    let reports = told(schema_turn(), &[structured]);
    assert_eq!(reports[0], r#"result{"data":{"n": 1.0}}."#);
    assert_eq!(reports.last().unwrap(), "COMPLETED");
    assert!(told(schema_turn(), &[DONE]).last().unwrap().starts_with("FAILED The agent did not reply in the form"));
}

#[test]
fn a_question_is_what_becomes_of_the_turn() {
    let mut turn = turn();
    turn.ask(Contents::text("Which?"));
    let outcome = Outcome { subtype: "error_during_execution".into(), is_error: true, ..Outcome::default() };
    assert_eq!(turn.end(&outcome, None, 0).last().map(word).unwrap(), "INPUT_REQUIRED Which?");
}
