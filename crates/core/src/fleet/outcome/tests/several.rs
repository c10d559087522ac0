//! Several results in one run, replies that need none, and reasons that are no words.

use super::{Ruling, artifact, data, judge, over, plain, result, status};
use flotilla_protocol::a2a::model::{Message, Part, TaskState};
use flotilla_protocol::fleet::HANDSHAKE;
use flotilla_protocol::fleet::dispatch::ReplySchema;
use flotilla_protocol::fleet::result::BlockedReason;
use flotilla_protocol::fleet::route::{Check, Standing, Step};
use flotilla_protocol::wire::{Base64, Object};
use flotilla_protocol::work::{Contents, Report};
use serde_json::{Value, json};

/// An artifact of this name with a result in it.
fn told(name: &str, with: &Value) -> Report {
    let Report::Artifact { mut artifact, contents, append, last_chunk, metadata } = artifact(vec![data(&result(with))])
    else {
        panic!("an artifact")
    };
    name.clone_into(&mut artifact.artifact_id);
    Report::Artifact { artifact, contents, append, last_chunk, metadata }
}

#[test]
fn a_result_counts_in_a_file_of_its_type_and_beside_the_words_too() {
    let media_type = "application/vnd.flotilla.task-result+json".to_owned();
    let file = |text: &str| {
        let raw = Some(Base64::encode(text.as_bytes()));
        vec![artifact(vec![Part { raw, media_type: media_type.clone(), ..Part::default() }])]
    };
    let error = result(&json!({"status": "error", "error": "boom"}));
    let beside = Object::of(&json!({HANDSHAKE: error})).ok();
    let message = Message { parts: vec![Part::text("x")], metadata: beside.clone(), ..Message::default() };
    let ended = |contents, metadata| vec![Report::Status { state: TaskState::Completed, contents, metadata }];
    for (mut reports, ended) in [
        (file(&error.to_string()), ended(None, None)),
        (Vec::new(), ended(Some(Contents::Message(Box::new(message))), None)),
        (Vec::new(), ended(Some(Contents::text("x")), beside)),
    ] {
        reports.extend(ended);
        let (state, told, _) = over(&mut plain(), reports.clone());
        assert_eq!((state, &told["error"], &told["inferred"]), (TaskState::Failed, &json!("boom"), &Value::Null));
    }
    for wrong in ["{\"status\":", "done", "[]"] {
        let reports = file(wrong).into_iter().chain(ended(None, None)).collect();
        assert_eq!(over(&mut plain(), reports).0, TaskState::Failed, "{wrong} is meant for a result");
    }
}

#[test]
fn of_several_results_the_worst_counts_and_none_is_lost() {
    let (done, error) = (json!({"status": "done"}), json!({"status": "error", "error": "first"}));
    let partial = json!({"status": "partial", "remaining": ["x"]});
    let blocked = json!({"status": "blocked", "blocked_reason": "missing_mcp"});
    for (first, second, state, status_told) in [
        (&error, &done, TaskState::Failed, "error"),
        (&done, &error, TaskState::Failed, "error"),
        (&partial, &done, TaskState::Completed, "partial"),
        (&done, &blocked, TaskState::Failed, "error"),
    ] {
        let reports = vec![told("a", first), told("b", second), status(TaskState::Completed, "")];
        let (ended, hub, standing) = over(&mut plain(), reports);
        assert_eq!((ended, standing), (state, Standing::Reported), "{first} {second}");
        assert_eq!((&hub["status"], hub["other_results"].as_array().map(Vec::len)), (&json!(status_told), Some(1)));
    }
    let used = json!({"status": "done", "usage": {"input_tokens": 7}});
    let (_, hub, _) = over(&mut plain(), vec![told("a", &used), told("b", &error), status(TaskState::Completed, "")]);
    assert_eq!((&hub["error"], &hub["tokens_spent"]), (&json!("first"), &json!(7)), "what was used counts");
    let reports = vec![told("a", &error), told("b", &done), status(TaskState::Completed, "")];
    let Ruling::Over { reports, step: Step::Judged { checks, .. }, .. } = plain().rule(reports).0 else {
        panic!("over")
    };
    let failed: Vec<&Check> = checks.iter().filter(|check| !check.ok).collect();
    assert!(failed.len() == 1 && failed[0].name == "one_result", "{checks:?}");
    let Some(Report::Status { contents: Some(contents), .. }) = reports.last() else { panic!("{reports:?}") };
    assert_eq!(*contents, Contents::text("first"));
}

#[test]
fn a_claim_that_was_held_against_what_git_saw_is_no_other_result() {
    let claim = json!({"status": "done", "detail": "x", "artifacts": {"pr": "https://x.example/1",
        "files_changed": ["lie.py"], "commits": 1}});
    let flag = json!({"flag": "claimed_not_changed", "files": ["lie.py"]});
    let mut seen = claim.clone();
    seen["artifacts"] = json!({"pr": "https://x.example/1", "files_changed": ["a.rs"], "branch": "main",
        "commits": ["0123456"], "diff": null, "flags": [flag]});
    seen["evidence"] = json!({"git": {"ok": false, "flags": [flag]}});
    let both = |claim: &Value, seen: &Value| {
        over(&mut plain(), vec![told("output-1", claim), told("task-result", seen), status(TaskState::Completed, "")]).1
    };
    let hub = both(&claim, &seen);
    assert_eq!((&hub["other_results"], &hub["artifacts"]["flags"][0]), (&Value::Null, &flag), "{hub}");
    let mut tested = claim.clone();
    tested["evidence"] = json!({"tests": true});
    let mut held = seen.clone();
    held["evidence"]["tests"] = json!(true);
    assert_eq!(both(&tested, &held)["other_results"], Value::Null, "other evidence stays");
    let mut other = claim;
    other["detail"] = json!("y");
    assert_eq!(both(&other, &seen)["other_results"][0]["detail"], "y", "what is another is told");
}

#[test]
fn the_same_told_twice_or_anew_is_one_result() {
    let (done, error) = (json!({"status": "done"}), json!({"status": "error", "error": "first"}));
    let again = vec![told("a", &done), status(TaskState::Completed, &result(&done).to_string())];
    let anew = vec![told("a", &error), told("a", &done), status(TaskState::Completed, "")];
    for reports in [again, anew] {
        let (state, hub, standing) = over(&mut plain(), reports);
        assert_eq!((state, standing), (TaskState::Completed, Standing::Accepted), "{hub}");
        assert_eq!(hub["other_results"], Value::Null);
    }
}

#[test]
fn a_valid_reply_that_was_asked_for_needs_no_result_beside_it() {
    let schema = json!({"type": "object", "required": ["a"]});
    let reply = |asked: ReplySchema, text: &str, state: TaskState| {
        let schema = (asked == ReplySchema::Json).then(|| schema.clone());
        over(&mut judge(asked, schema, true), vec![artifact(vec![Part::text(text)]), status(state, "")])
    };
    let (state, hub, standing) = reply(ReplySchema::Json, r#"{"a": 5}"#, TaskState::Completed);
    assert_eq!((state, standing), (TaskState::Completed, Standing::Accepted), "{hub}");
    assert_eq!((&hub["status"], &hub["inferred"]), (&json!("done"), &json!(true)));
    let quoted = format!("```json\n{{\"a\": 5}}\n```\nI was told to end with {}, and do not.", result(&json!({})));
    for (asked, text, state) in [
        (ReplySchema::Structured, r#"{"a": 5}"#, TaskState::Completed),
        (ReplySchema::Json, r#"{"b": 5}"#, TaskState::Completed),
        (ReplySchema::Json, r#"{"a": 5}"#, TaskState::Failed),
        (ReplySchema::Json, quoted.as_str(), TaskState::Completed),
    ] {
        assert_eq!(reply(asked, text, state).2, Standing::Reported, "{asked:?} {text} {state:?}");
    }
}

#[test]
fn a_reason_in_prose_is_not_passed_on_as_one() {
    let prose = json!({"status": "blocked", "blocked_reason": "I have no access\nto the disk"});
    let (ruling, _) = plain().rule(vec![told("a", &prose), status(TaskState::Rejected, "")]);
    let Ruling::Blocked(told, _) = ruling else { panic!("{ruling:?}") };
    assert_eq!(told.blocked_reason, Some(BlockedReason::MissingCapability));
    assert_eq!(told.detail.as_deref(), Some("I have no access\nto the disk"));
}
