//! The exact JSON of the handshake, what is wrong with it, and hints.

use super::announce::McpStatus;
use super::dispatch::{OnBlocked, Priority, ReplySchema};
use super::ending::is_cut_off;
use super::result::{BlockedReason, Status, TaskResult, Usage};
use super::version::{CURRENT, Version};
use super::{Announce, Dispatch, Found, Handshake, Kind, ending, ending_and_words, hints, read, write};
use serde_json::{Value, json};

const ANNOUNCE: &str = r#"{"type":"SESSION_ANNOUNCE","protocol_version":"2.0",
 "worker":{"agent_id":"claude-code","model":"claude-sonnet-4-20250514","model_tier":"sonnet","context_window":200000},
 "capabilities":{"tools":["browser","terminal","file","patch"],"mcp_servers":["context_mode","claude_mem","trek"]},
 "mcp_health":{"context_mode":"ok","claude_mem":"ok","trek":"timeout"},
 "session":{"context_id":"handshake:hermes-switch","active_tasks":2,
            "repo_state":{"branch":"main","clean":true},"session_fresh":true}}"#;

const DISPATCH: &str = r#"{"type":"TASK_DISPATCH","protocol_version":"2.0",
 "task":{"task_id":"abc-123","priority":"high","reply_schema":"structured","token_budget":4000},
 "requirements":{"required_mcp":["context_mode"],"required_capabilities":["terminal","file"]},
 "deadline":"2026-05-31T21:00:00.000Z",
 "brief":"Refactor the auth module. Focus on token refresh logic..."}"#;

const RESULT: &str = r#"{"type":"TASK_RESULT","protocol_version":"2.0","task_id":"abc-123","status":"done","tokens_spent":3240,
 "next_steps":["Run the full test suite to verify refactor","Open PR for review"],"blocked_reason":null,
 "artifacts":{"pr":"https://git.example/pull/72","files_changed":["src/auth/token_refresh.py","tests/auth/test_token_refresh.py"]}}"#;

fn value(json: &str) -> Value {
    serde_json::from_str(json).expect("JSON")
}

fn announce(json: &Value) -> Announce {
    match read(&json.to_string()) {
        Found::Handshake(Handshake::Announce(announce)) => *announce,
        other => panic!("{other:?}"),
    }
}

fn dispatch(json: &Value) -> Dispatch {
    match read(&json.to_string()) {
        Found::Handshake(Handshake::Dispatch(dispatch)) => *dispatch,
        other => panic!("{other:?}"),
    }
}

fn written(found: &Found) -> Value {
    let text = match found {
        Found::Handshake(Handshake::Announce(message)) => write(message),
        Found::Handshake(Handshake::Dispatch(message)) => write(message),
        Found::Handshake(Handshake::Result(message)) => write(message),
        other => panic!("{other:?}"),
    };
    value(&text.expect("JSON"))
}

#[test]
fn the_designs_own_json_is_read_and_written_without_a_change() {
    for json in [ANNOUNCE, DISPATCH, RESULT] {
        assert_eq!(written(&read(json)), value(json));
    }
}

#[test]
fn fields_of_a_newer_minor_version_are_kept_everywhere() {
    let mut newer = value(ANNOUNCE);
    newer["protocol_version"] = json!("2.7");
    for place in ["/worker", "/capabilities", "/session", "/session/repo_state", ""] {
        newer.pointer_mut(place).unwrap()["later"] = json!({"n": [1, 2.5, null]});
    }
    newer["mcp_health"]["trek"] = json!({"status": "needs_auth", "latency_ms": 12, "later": true});
    assert_eq!(written(&read(&newer.to_string())), newer);

    let mut newer = value(DISPATCH);
    for place in ["/task", "/requirements", ""] {
        newer.pointer_mut(place).unwrap()["later"] = json!("x");
    }
    newer["task"]["budget"] = json!({"max_cost_usd": 0.5, "hard": true, "later": 1});
    assert_eq!(written(&read(&newer.to_string())), newer);

    let mut newer = value(RESULT);
    newer["artifacts"]["later"] = json!(["x"]);
    newer["usage"] = json!({"input_tokens": 1, "later": 2});
    assert_eq!(written(&read(&newer.to_string())), newer);
}

#[test]
fn other_json_is_content_and_other_majors_are_told_apart() {
    for text in ["", "hello", "[1]", "{", "{}", r#"{"type":"SOMETHING"}"#, r#"{"type":7}"#] {
        assert_eq!(read(text), Found::Nothing, "{text}");
    }
    let mut other = value(DISPATCH);
    other["protocol_version"] = json!("3.0");
    assert_eq!(read(&other.to_string()), Found::OtherVersion(Kind::Dispatch, "3.0".into()));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let wrong = |json: &str, place: &str, with: Value| {
        let mut message = value(json);
        *message.pointer_mut(place).unwrap() = with;
        match read(&message.to_string()) {
            Found::Wrong(problem) => problem,
            other => panic!("{place}: {other:?}"),
        }
    };
    for (json, place, with, told) in [
        (ANNOUNCE, "/worker/agent_id", json!(" "), "worker.agent_id: must name"),
        (ANNOUNCE, "/worker", json!({}), "worker: missing field `agent_id`"),
        (ANNOUNCE, "/worker/context_window", json!("big"), "worker.context_window"),
        (ANNOUNCE, "/protocol_version", json!("two"), "no version"),
        (DISPATCH, "/brief", json!(""), "brief: must say"),
        (DISPATCH, "/task/priority", json!("asap"), "task.priority: unknown variant `asap`"),
        (DISPATCH, "/task/token_budget", json!(0), "task.token_budget"),
        (DISPATCH, "/deadline", json!("tomorrow"), "RFC 3339"),
        (DISPATCH, "/task", json!({"deadline": "2099-01-01T00:00:00Z"}), "task.deadline: stands beside 'task'"),
        (DISPATCH, "/requirements", json!({"on_blocked": []}), "requirements.on_blocked: stands beside"),
        (
            DISPATCH,
            "/requirements",
            json!({"mcp_servers": ["a"]}),
            "requirements.mcp_servers: is called 'required_mcp'",
        ),
        (RESULT, "/status", json!("blocked"), "blocked_reason: must say"),
        (RESULT, "/status", json!("error"), "error: must say"),
        (RESULT, "/status", json!("partial"), "remaining: must say"),
    ] {
        let problem = wrong(json, place, with);
        assert!(problem.contains(told), "{place}: {problem}");
    }
    for budget in [json!({"max_total_tokens": 0}), json!({"max_output_tokens": 0}), json!({"max_cost_usd": 0})] {
        let problem = wrong(DISPATCH, "/task", json!({"budget": budget}));
        assert!(problem.contains("must be more than 0"), "{problem}");
    }
    let mut result = value(RESULT);
    result["usage"] = json!({"cost_usd": -1});
    assert!(matches!(read(&result.to_string()), Found::Wrong(problem) if problem.contains("usage.cost_usd")));
}

#[test]
fn a_time_to_ask_again_that_cannot_be_read_was_not_told() {
    for (told, expected) in [
        (json!(60), Some(60)),
        (json!("60"), Some(60)),
        (json!(1.5), Some(2)),
        (json!(-5), None),
        (json!(1e300), Some(u64::MAX)),
        (json!("2031-01-01T00:00:00Z"), None),
        (json!(null), None),
        (json!({}), None),
    ] {
        let mut result = value(RESULT);
        result["retry_after"] = told.clone();
        let Found::Handshake(Handshake::Result(read)) = read(&result.to_string()) else { panic!("{told}") };
        assert_eq!(read.retry_after, expected, "{told}");
    }
}

#[test]
fn health_is_found_by_any_spelling_and_unknown_is_not_healthy() {
    let mut json = value(ANNOUNCE);
    json["mcp_health"] = json!({"context-mode": {"status": "ok"}, "trek": "on fire"});
    let announce = announce(&json);
    for (server, expected) in [
        ("context_mode", Some(McpStatus::Ok)),
        ("Trek", Some(McpStatus::Unknown)),
        ("claude-mem", Some(McpStatus::Unknown)),
        ("nobody", None),
    ] {
        assert_eq!(announce.mcp(server), expected, "{server}");
    }
    assert!(announce.has_tool("Bash") || announce.has_tool("terminal"));
}

#[test]
fn versions_meet_at_the_highest_both_speak() {
    let of = |text: &str| text.parse::<Version>().unwrap();
    assert_eq!(Version::common(&[of("1.4"), of("2.9")]), Some(CURRENT));
    assert_eq!(Version::common(&[of("1.0"), of("3.0")]), None);
    assert_eq!(of("2"), CURRENT);
    assert!("2.x".parse::<Version>().is_err());
}

#[test]
fn usage_that_nobody_knows_is_not_zero() {
    assert!(Usage::default().block().is_none(), "what says nothing is not counted");
    let some = Usage { output_tokens: Some(7), cost_usd: Some(0.5), ..Usage::default() };
    let counted = crate::usage::Usage::of_blocks(&[some.block().unwrap()]);
    assert_eq!((counted.figures[0], counted.tokens(), counted.reports), (None, Some(7), 1));
    let incomplete = vec!["tokens_spent".to_owned()];
    assert_eq!(Usage::counted(&counted), Usage { incomplete, ..some }, "and the sum says that it is not all");
    for odd in ["7", "[7]", "\"x\""] {
        let json = format!(r#"{{"output_tokens":7,"incomplete":{odd}}}"#);
        let told: Usage = serde_json::from_str(&json).unwrap();
        assert_eq!(told, Usage { output_tokens: Some(7), ..Usage::default() }, "{odd} does no harm");
    }
    let result = TaskResult::default();
    assert_eq!(value(&write(&result).unwrap())["tokens_spent"], Value::Null);
}

#[test]
fn reasons_are_typed_and_others_are_kept() {
    for reason in BlockedReason::TYPED {
        assert_eq!(BlockedReason::of(reason.name()), reason);
    }
    let json = r#"{"type":"TASK_RESULT","protocol_version":"2.0","status":"blocked","blocked_reason":"moon_phase"}"#;
    match read(json) {
        Found::Handshake(Handshake::Result(result)) => {
            assert_eq!(
                (result.status, result.blocked_reason),
                (Status::Blocked, Some(BlockedReason::of("moon_phase")))
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_reason_is_a_word_and_prose_is_its_detail() {
    let named = |reason: &str, detail: Option<&str>| {
        let (reason, detail) = (Some(BlockedReason::of(reason)), detail.map(str::to_owned));
        let told = TaskResult { blocked_reason: reason, detail, ..TaskResult::default() }.with_a_word();
        (told.blocked_reason.unwrap().name().to_owned(), told.detail)
    };
    assert_eq!(named("moon_phase", None), ("moon_phase".into(), None));
    assert_eq!(named("Missing-MCP", None), ("missing_mcp".into(), None));
    let prose = "we\"ird\nflotilla_x 1";
    assert_eq!(named(prose, None), ("missing_capability".into(), Some(prose.into())));
    assert_eq!(named("I have no disk", Some("0 bytes")).1.as_deref(), Some("I have no disk: 0 bytes"));
    assert_eq!(named(&"x".repeat(65), None).0, "missing_capability");
    assert_eq!(named("", None), ("missing_capability".into(), None));
}

const HINTS: &str = "TASK DISPATCH (inline)
priority: high
reply_schema: structured
token_budget: 4000
required_mcp: [context_mode]
Brief: Refactor the auth module...";

#[test]
fn the_designs_own_hints_are_read_and_written() {
    let dispatch = hints::read(HINTS).unwrap().unwrap();
    assert_eq!((dispatch.task.priority, dispatch.task.reply_schema), (Priority::High, ReplySchema::Structured));
    assert_eq!((dispatch.task.token_budget, dispatch.requirements.required_mcp.len()), (Some(4000), 1));
    assert_eq!(dispatch.brief, "Refactor the auth module...");
    assert_eq!(hints::write(&dispatch), HINTS);
}

#[test]
fn hints_carry_all_they_have_words_for() {
    let whole = json!({"type": "TASK_DISPATCH", "protocol_version": "2.0",
        "task": {"task_id": "t-1", "priority": "urgent", "reply_schema": "json", "token_budget": 10,
            "budget": {"max_output_tokens": 5, "max_cost_usd": 0.25, "hard": true}}, "mood": "calm",
        "requirements": {"required_mcp": ["a", "b"], "required_capabilities": ["terminal"], "model_tier": "opus",
            "context_window": 9, "write": true, "skills": ["s"], "labels": ["l"]},
        "deadline": "2026-05-31T21:00:00.000Z", "on_blocked": ["queue", "alert"], "brief": "Do it.\n\nkey: value"});
    let dispatch = dispatch(&whole);
    assert_eq!(hints::read(&hints::write(&dispatch)).unwrap().unwrap(), dispatch);
    let mut never = dispatch;
    never.on_blocked = Some(Vec::new());
    let again = hints::read(&hints::write(&never)).unwrap().unwrap();
    assert_eq!(again.on_blocked(), &[] as &[OnBlocked]);
    let newer = json!({"type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": "x", "task": {"style": {"a": [1]}},
        "priority": "urgent", "a: b": "c", "Brief": "y"});
    let written = hints::write(&self::dispatch(&newer));
    assert_eq!(written, "TASK DISPATCH (inline)\nstyle: {\"a\":[1]}\nBrief: x", "no field becomes another one's hint");
}

#[test]
fn ceilings_and_schemas_in_hints_hold() {
    let read = |hints: &str| hints::read(&format!("TASK DISPATCH (inline)\n{hints}\nBrief: x")).unwrap().unwrap();
    let plain = read("max_total_tokens: 50\nhard: true");
    let whole = read(r#"budget: {"max_total_tokens": 50, "hard": true}"#);
    let mixed = read("hard: true\nbudget: {\"max_total_tokens\": 50}");
    for dispatch in [plain, whole, mixed] {
        assert_eq!((dispatch.most_tokens(), dispatch.task.budget.is_some_and(|b| b.hard)), (Some(50), true));
        assert!(dispatch.more.is_empty(), "{:?}", dispatch.more);
    }
    let schema = read("reply_schema: json\njson_schema: {\"required\": [\"a\"]}");
    assert_eq!(schema.task.json_schema, Some(json!({"required": ["a"]})));
}

#[test]
fn a_worker_of_a_newer_version_is_known_for_what_it_speaks() {
    let told = |versions: serde_json::Value| {
        let announce = json!({"type": "SESSION_ANNOUNCE", "protocol_version": "3.0", "supported_versions": versions,
            "worker": {"agent_id": "w", "model": "m"}, "epoch": 4, "mcp_health": {"mem": "ok"}});
        match read(&announce.to_string()) {
            Found::Handshake(Handshake::Announce(announce)) => announce,
            other => panic!("{other:?}"),
        }
    };
    let both = told(json!(["2.0", "3.0"]));
    assert_eq!((both.spoken().unwrap().to_string(), both.worker.model.as_deref()), ("2.0".into(), Some("m")));
    let other = told(json!([]));
    assert_eq!((other.spoken(), other.worker.agent_id.as_str(), other.epoch), (None, "w", Some(4)));
    assert!(other.worker.model.is_none() && other.mcp_health.is_empty(), "its words may mean something else");
    assert_eq!(read(&write(&*other).unwrap()), Found::Handshake(Handshake::Announce(other)), "and it is kept so");
    let nameless = json!({"type": "SESSION_ANNOUNCE", "protocol_version": "3.0", "who": "w"});
    assert!(matches!(read(&nameless.to_string()), Found::Wrong(problem) if problem.contains("must name the worker")));
}

#[test]
fn an_announcement_has_a_size() {
    let told = |worker: serde_json::Value, capabilities: serde_json::Value| {
        let announce = json!({"type": "SESSION_ANNOUNCE", "protocol_version": "2.0", "worker": worker,
            "capabilities": capabilities});
        match read(&announce.to_string()) {
            Found::Wrong(problem) => problem,
            other => panic!("{other:?}"),
        }
    };
    let labels: Vec<String> = (0..1_001).map(|label| label.to_string()).collect();
    assert!(told(json!({"agent_id": "a", "labels": labels}), json!({})).contains("worker.labels: has 1001 entries"));
    assert!(told(json!({"agent_id": "a"}), json!({"tools": labels})).contains("capabilities.tools"));
    assert!(
        told(json!({"agent_id": "a", "model": "m".repeat(4_097)}), json!({})).contains("worker.model: must be at most")
    );
    assert!(told(json!({"agent_id": "a", "new": "n".repeat(200_000)}), json!({})).contains("may have 131072"));
    let most: Vec<String> = (0..1_000).map(|tool| format!("mcp__a_long_name__{tool}")).collect();
    let large = json!({"type": "SESSION_ANNOUNCE", "protocol_version": "2.0", "worker": {"agent_id": "a"},
        "capabilities": {"tools": most}});
    assert!(matches!(read(&large.to_string()), Found::Handshake(_)), "a worker with many tools is one");
}

#[test]
fn only_hints_at_the_top_are_hints_and_slips_are_told() {
    assert_eq!(hints::read("Hello\nTASK DISPATCH (inline)\nBrief: x"), None);
    assert_eq!(hints::read("TASK DISPATCH (inline)"), None);
    for (text, told) in [
        ("priority: asap\nBrief: x", "priority: unknown variant"),
        ("token_budget: lots\nBrief: x", "token_budget: 'lots'"),
        ("deadline: soon\nBrief: x", "RFC 3339"),
        ("do the thing", "no hint"),
        ("priority: low", "no hint"),
        ("Brief:", "brief: must say"),
        ("budget: 4000\nBrief: x", "budget: must be JSON in this one line"),
        ("json_schema: {\nBrief: x", "json_schema: must be JSON in this one line"),
        ("json_schema: {}\nBrief: x", "task.json_schema: goes with reply_schema"),
        ("task: none\nBrief: x", "'task' is no hint"),
        ("requirements: none\nBrief: x", "'requirements' is no hint"),
        ("type: TASK_RESULT\nBrief: x", "'type' is no hint"),
        ("epoch: new\nBrief: x", "epoch: 'new' is not a whole number"),
        ("protocol_version: new\nBrief: x", "protocol_version: 'new' is no version"),
    ] {
        let read = hints::read(&format!("TASK DISPATCH (inline)\n{text}")).unwrap();
        assert!(read.clone().unwrap_err().contains(told), "{text}: {read:?}");
    }
    let reserved =
        hints::read("TASK DISPATCH (inline)\ntype: TASK_DISPATCH\nunverified: [a]\nBrief: x").unwrap().unwrap();
    assert_eq!((reserved.unverified, reserved.more.len()), (vec!["a".to_owned()], 0), "not kept as a text");
    let marked = hints::read("\u{feff}TASK DISPATCH (inline)\nBrief: x").unwrap().unwrap();
    assert_eq!(marked.brief, "x", "some editors put a mark before a text");
    let kept = hints::read("TASK DISPATCH (inline)\nmood: calm\nBrief: x").unwrap().unwrap();
    assert_eq!(kept.more["mood"], json!("calm"));
    // What stands in a value cannot become a hint of its own.
    let mut sly = kept;
    sly.task.task_id = Some("1\npriority: urgent".into());
    assert_eq!(hints::read(&hints::write(&sly)).unwrap().unwrap().task.priority, Priority::Normal);
}

#[test]
fn a_text_ends_with_a_result_or_only_quotes_one() {
    let done =
        json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "done", "x": "a \\\" } {"}).to_string();
    // Members in the order of their names, so that much stands before the type.
    let last =
        r#"{"artifacts":{"a":{},"b":{},"c":{},"d":{}},"protocol_version":"2.0","status":"done","type":"TASK_RESULT"}"#;
    for (text, words) in [
        (done.clone(), ""),
        (format!("```json\n{done}\n```\n"), ""),
        (format!("I did it.\n{done}\n"), "I did it."),
        (format!("I did it: {last}"), "I did it:"),
        (format!("{{\"a\": 5}}\n{done}"), "{\"a\": 5}"),
        (format!("Here:\n```json\n{done}\n```"), "Here:"),
        (format!("I end with `{done}`"), "I end with"),
        (format!("```json\n{{\"a\": 5}}\n{done}\n```"), "```json\n{\"a\": 5}\n```"),
    ] {
        let (found, left) = ending_and_words(&text);
        assert!(matches!(found, Found::Handshake(Handshake::Result(_))), "{text}: {found:?}");
        assert_eq!(left, words, "{text}");
    }
    for text in [
        format!("For a success I would end with {done}. But I could not do it."),
        format!("```json\n{done}\n```\nThat is what I would say."),
        format!("{done}\n{{\"a\": 5}}"),
        format!("{{\"results\": [{done}]}}"),
        "See \"type\": \"TASK_RESULT\" in the specification.".into(),
        "Write {\"type\": \"TASK_RESULT\", ...} for each {item}".into(),
        "I send no TASK_RESULT".into(),
    ] {
        assert_eq!(ending_and_words(&text), (Found::Nothing, text.clone()), "{text}");
        assert!(!is_cut_off(&text), "{text}");
    }
}

#[test]
fn a_result_that_is_meant_and_cannot_be_read_is_wrong() {
    let error = r#"{"type":"TASK_RESULT","protocol_version":"2.0","status":"error","error":"boom"}"#;
    for text in [
        format!("It went wrong. {}", error.replace("\"status\"", "status")),
        format!("[{error}]"),
        format!("```json\n[{error}]\n```"),
        format!("It went wrong. {}", error.replace("boom", " ")),
    ] {
        assert!(matches!(ending(&text), Found::Wrong(problem) if problem.starts_with("TASK_RESULT: ")), "{text}");
    }
    for cut in [&error[..error.len() - 1], &error[..error.len() - 4]] {
        assert!(ending(cut) == Found::Nothing && is_cut_off(cut) && is_cut_off(&format!("So: {cut}")), "{cut}");
    }
    assert!(is_cut_off(r#"{"evidence":{"a":{}},"type":"TASK_RESULT","artifacts":{"pr":"x"}"#));
}

#[test]
fn what_is_null_is_not_there_and_a_whole_number_may_have_a_point() {
    let result = json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "done", "next_steps": null,
                        "artifacts": {"files_changed": null}, "remaining": null, "unverified": null, "inferred": null,
                        "tokens_spent": 3240.0, "usage": {"input_tokens": 5.0}, "other": null});
    let Found::Handshake(Handshake::Result(read_result)) = read(&result.to_string()) else { panic!("{result}") };
    let figures = (read_result.tokens_spent, read_result.usage.as_ref().and_then(|usage| usage.input_tokens));
    assert_eq!(figures, (Some(3240), Some(5)));
    assert_eq!(read_result.more.get("other"), Some(&Value::Null), "what is not known is kept as it came");
    let none = json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "done", "artifacts": null});
    assert!(matches!(read(&none.to_string()), Found::Handshake(_)));
    let dispatch = json!({"type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": "x", "task": {"priority": null,
                          "token_budget": 4000.0}, "requirements": null, "epoch": 2.0});
    let Found::Handshake(Handshake::Dispatch(told)) = read(&dispatch.to_string()) else { panic!("{dispatch}") };
    assert_eq!((told.task.token_budget, told.epoch), (Some(4000), Some(2)));
    let announce = json!({"type": "SESSION_ANNOUNCE", "protocol_version": "2.0", "worker": {"agent_id": "a", "labels": null},
                          "capabilities": null, "mcp_health": null, "session": null, "supported_versions": null});
    assert!(matches!(read(&announce.to_string()), Found::Handshake(_)));
    for wrong in [json!(1.5), json!(-1), json!("7"), json!(1e30), json!(true)] {
        let told = json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "done", "tokens_spent": wrong});
        let Found::Wrong(problem) = read(&told.to_string()) else { panic!("{wrong} is taken") };
        assert!(problem.contains("tokens_spent") && problem.contains("whole number"), "{problem}");
    }
}
