//! What reports come to: where a result is found, what is believed, and what is asked for again.

mod ends;
mod pieces;
mod recall;
mod several;
mod titles;

use super::{Judge, Ruling};
use crate::dispatch::End;
use crate::fleet::contract::Past;
use crate::fleet::own::refused;
use crate::fleet::reasons::Hindrance;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::{Artifact, Part, TaskState};
use flotilla_protocol::block::Block;
use flotilla_protocol::event::Event;
use flotilla_protocol::fleet::HANDSHAKE;
use flotilla_protocol::fleet::dispatch::{Dispatch, ReplySchema};
use flotilla_protocol::fleet::result::BlockedReason;
use flotilla_protocol::fleet::route::{Standing, Step};
use flotilla_protocol::hub_frame::refused::RefusedResult;
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::{AnyValue, Json, Object};
use flotilla_protocol::work::{Contents, Report};
use serde_json::{Value, json};
use std::sync::Arc;

fn judge(reply_schema: ReplySchema, json_schema: Option<Value>, asked_again: bool) -> Judge {
    let mut dispatch = Dispatch { brief: "x".into(), ..Dispatch::default() };
    (dispatch.task.reply_schema, dispatch.task.json_schema) = (reply_schema, json_schema);
    dispatch.task.task_id = Some("mine".into());
    let asked_again = asked_again.then(|| ("w".into(), Vec::new()));
    let past = Past { asked_again, ..Past::default() };
    Judge::new("w".into(), Arc::new(dispatch), &past)
}

fn plain() -> Judge {
    judge(ReplySchema::Prose, None, false)
}

fn status(state: TaskState, text: &str) -> Report {
    let contents = (!text.is_empty()).then(|| Contents::text(text));
    Report::Status { state, contents, metadata: None }
}

fn artifact(parts: Vec<Part>) -> Report {
    let artifact = Box::new(Artifact { artifact_id: "theirs".into(), ..Artifact::default() });
    Report::Artifact { artifact, contents: Contents::Parts(parts), append: false, last_chunk: true, metadata: None }
}

fn data(value: &Value) -> Part {
    Part { data: AnyValue(Json::of(value).ok()), ..Part::default() }
}

fn result(with: &Value) -> Value {
    let mut whole = json!({"type": "TASK_RESULT", "protocol_version": "2.0"});
    whole.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    whole
}

/// The state, the result and the standing that reports come to.
fn over(judge: &mut Judge, reports: Vec<Report>) -> (TaskState, Value, Standing) {
    let (ruling, _) = judge.rule(reports);
    let Ruling::Over { reports, step: Step::Judged { standing, .. }, .. } = ruling else { panic!("{ruling:?}") };
    let (mut state, mut told) = (TaskState::Unspecified, Value::Null);
    for report in reports {
        match report {
            Report::Status { state: ended, .. } => state = ended,
            Report::Artifact { contents: Contents::Parts(parts), .. } => {
                let data = parts.first().and_then(|part| part.data.0.as_ref());
                told = data.map_or(Value::Null, |data| serde_json::from_str(data.text()).unwrap());
            }
            _ => {}
        }
    }
    (state, told, standing)
}

#[test]
fn a_result_is_found_wherever_it_stands() {
    let done = result(&json!({"status": "done"}));
    let places = [
        vec![artifact(vec![data(&done)]), status(TaskState::Completed, "")],
        vec![artifact(vec![Part::text(done.to_string())]), status(TaskState::Completed, "")],
        vec![status(TaskState::Completed, &done.to_string())],
        vec![status(TaskState::Completed, &format!("Here:\n```json\n{done}\n```\n"))],
        vec![status(TaskState::Completed, &format!("{{not json}} and then {done}"))],
        vec![Report::Answer { contents: Contents::Parts(vec![data(&done)]), metadata: None }],
    ];
    for reports in places {
        let shown = format!("{reports:?}");
        let (state, told, standing) = over(&mut plain(), reports);
        assert_eq!((state, standing), (TaskState::Completed, Standing::Accepted), "{shown}");
        assert_eq!(told["task_id"], "mine", "the orchestrator's own id is repeated");
    }
}

#[test]
fn words_around_a_result_stay() {
    let done = result(&json!({"status": "done"}));
    for (text, words) in [
        (format!("My report: ten findings.\n{done}"), "My report: ten findings."),
        (format!("Here:\n```json\n{done}\n```\n"), "Here:"),
    ] {
        let reports = vec![artifact(vec![Part::text(text)]), status(TaskState::Completed, "")];
        let (ruling, _) = plain().rule(reports);
        let Ruling::Over { reports, .. } = ruling else { panic!("{ruling:?}") };
        let Report::Artifact { artifact, contents, .. } = &reports[0] else { panic!("{reports:?}") };
        assert_eq!((artifact.artifact_id.as_str(), contents), ("theirs", &Contents::Parts(vec![Part::text(words)])));
    }
}

#[test]
fn a_result_that_is_only_quoted_is_content() {
    let quoted = result(&json!({"status": "error", "error": "an example"}));
    for text in [
        format!("I was told to end with {quoted}, but I did finish."),
        format!("```json\n{quoted}\n```\nThat is how failures look."),
        "See \"type\": \"TASK_RESULT\" in the specification.".to_owned(),
    ] {
        for reports in [
            vec![status(TaskState::Completed, &text)],
            vec![artifact(vec![Part::text(text.as_str())]), status(TaskState::Completed, "")],
        ] {
            let (ruling, _) = plain().rule(reports);
            let Ruling::Over { reports, step: Step::Judged { checks, .. }, .. } = ruling else { panic!("{ruling:?}") };
            assert!(format!("{reports:?}").contains(&format!("{:?}", text)), "it stays as it is: {reports:?}");
            assert!(matches!(reports.last(), Some(Report::Status { state: TaskState::Completed, .. })), "{text}");
            assert_eq!(checks[0].detail, "the worker speaks of a TASK_RESULT, and does not end with one");
        }
    }
}

#[test]
fn worse_counts_where_a_worker_contradicts_itself() {
    for (state, told, expected, standing) in [
        (TaskState::Completed, json!({"status": "error", "error": "no"}), TaskState::Failed, Standing::Accepted),
        (TaskState::Failed, json!({"status": "done"}), TaskState::Failed, Standing::Reported),
        (TaskState::Rejected, json!({"status": "done"}), TaskState::Failed, Standing::Reported),
        (TaskState::Rejected, json!({"status": "error", "error": "no"}), TaskState::Failed, Standing::Reported),
        (TaskState::InputRequired, json!({"status": "done"}), TaskState::InputRequired, Standing::Reported),
        (TaskState::AuthRequired, json!({"status": "done"}), TaskState::AuthRequired, Standing::Reported),
        (
            TaskState::Completed,
            json!({"status": "partial", "remaining": ["x"]}),
            TaskState::Completed,
            Standing::Accepted,
        ),
    ] {
        let reports = vec![artifact(vec![data(&result(&told))]), status(state, "")];
        let (state, hub, stands) = over(&mut plain(), reports);
        assert_eq!((state, stands), (expected, standing), "{told}");
        let is_error = hub["status"] == "error" && hub["error"].as_str().is_some_and(|error| !error.is_empty());
        assert_eq!(is_error, state == TaskState::Failed, "the result says what the state does: {hub}");
    }
    let reports = vec![artifact(vec![data(&result(&json!({"status": "done"})))]), status(TaskState::Failed, "")];
    let Ruling::Over { reports, .. } = plain().rule(reports).0 else { panic!("over") };
    let Some(Report::Status { contents: Some(contents), .. }) = reports.last() else { panic!("{reports:?}") };
    let said = contents.parts()[0].text.clone().unwrap();
    assert_eq!(said, "The worker contradicts itself: it failed, and its result says otherwise.");
}

#[test]
fn what_a_worker_alone_says_it_changed_is_a_claim() {
    let made = json!({"files_changed": ["never/touched.py"]});
    let more = json!({"files_changed": ["a.py"], "branch": "main", "commits": ["0123456"]});
    let all = json!(["artifacts.files_changed", "artifacts.branch", "artifacts.commits"]);
    let lost = json!({"git": {"ok": false, "flags": [{"flag": "not_seen", "places": ["."]}]}});
    let inner = json!({"git": {"ok": false, "flags": [{"flag": "not_seen", "places": ["inner"]}]}});
    let (accepted, reported) = (Standing::Accepted, Standing::Reported);
    for (told, unverified, standing) in [
        (json!({"status": "done", "artifacts": made}), json!(["artifacts.files_changed"]), accepted),
        (json!({"status": "done", "artifacts": more}), all.clone(), accepted),
        (json!({"status": "done", "artifacts": more, "evidence": lost}), all, reported),
        (json!({"status": "done", "artifacts": more, "evidence": inner}), Value::Null, reported),
        (json!({"status": "done", "artifacts": made, "evidence": {"git": {"ok": true}}}), Value::Null, accepted),
        (json!({"status": "done"}), Value::Null, accepted),
    ] {
        let reports = vec![artifact(vec![data(&result(&told))]), status(TaskState::Completed, "")];
        let (_, hub, stands) = over(&mut plain(), reports);
        assert_eq!((&hub["unverified"], stands), (&unverified, standing), "{told}");
    }
}

#[test]
fn an_id_of_the_workers_own_is_not_the_orchestrators() {
    let told = result(&json!({"status": "done", "task_id": "invented"}));
    let mut nameless = Judge::new("w".into(), Arc::new(Dispatch::default()), &Past::default());
    let (_, hub, _) = over(&mut nameless, vec![status(TaskState::Completed, &told.to_string())]);
    assert_eq!(hub["task_id"], Value::Null);
}

#[test]
fn a_result_whose_frame_was_refused_is_not_taken_for_done() {
    let refused = RefusedResult { task_id: "t".into(), run: None };
    let note = || refused.note(&Refusal::invalid("artifact.metadata", "must be an object")).unwrap();
    let (state, hub, _) = over(&mut plain(), vec![note(), status(TaskState::Completed, "")]);
    assert_eq!(state, TaskState::Failed);
    assert!(hub["error"].as_str().is_some_and(|error| error.contains("must be an object")), "{hub}");
    let done = result(&json!({"status": "done"}));
    let (state, ..) = over(&mut plain(), vec![note(), status(TaskState::Completed, &done.to_string())]);
    assert_eq!(state, TaskState::Completed, "it was told again, and rightly");
}

#[test]
fn evidence_is_read_in_each_of_its_forms() {
    for (evidence, standing) in [
        (json!({"tests": false}), Standing::Reported),
        (json!({"tests": {"ok": false}}), Standing::Reported),
        (json!([{"name": "lint", "ok": true}, {"name": "tests", "ok": false}]), Standing::Reported),
        (json!({"tests": [{"name": "unit", "ok": false}]}), Standing::Reported),
        (json!({"tests": "failed"}), Standing::Reported),
        (json!({"lint": {"passed": false}}), Standing::Reported),
        (json!({"x": {"ok": "false"}}), Standing::Reported),
        (json!([{"name": "tests", "ok": true}, {"name": "log", "url": "https://a.example"}]), Standing::Accepted),
        (json!({"tests": true, "seen": {"by": "git"}}), Standing::Accepted),
    ] {
        let told = result(&json!({"status": "done", "evidence": evidence}));
        let (_, _, stands) = over(&mut plain(), vec![artifact(vec![data(&told)]), status(TaskState::Completed, "")]);
        assert_eq!(stands, standing, "{evidence}");
    }
}

#[test]
fn what_never_began_is_told_apart() {
    let blocked = result(&json!({"status": "blocked", "blocked_reason": "dirty_tree", "retry_after": 5}));
    let (ruling, _) = plain().rule(vec![status(TaskState::Rejected, &blocked.to_string())]);
    assert!(matches!(ruling, Ruling::Blocked(told, _) if told.blocked_reason == Some(BlockedReason::DirtyTree)));
    let (ruling, _) = plain().rule(vec![status(TaskState::Rejected, "Not my job")]);
    let Ruling::Blocked(told, _) = ruling else { panic!("{ruling:?}") };
    assert_eq!((told.detail.as_deref(), told.inferred), (Some("Not my job"), true));
    assert_eq!(told.blocked_reason, Some(BlockedReason::MissingCapability), "there is a typed word for it");
    let nameless = result(&json!({"status": "blocked"}));
    let (ruling, _) = plain().rule(vec![artifact(vec![data(&nameless)]), status(TaskState::Rejected, "")]);
    let Ruling::Blocked(told, _) = ruling else { panic!("{ruling:?}") };
    assert!(told.detail.is_some_and(|detail| detail.contains("blocked_reason: must say why")));
    let (reason, detail) = (BlockedReason::TierTooLow, "sonnet".to_owned());
    let hindrance = Hindrance { reason, detail, retryable: false, until: None };
    let mut past = Past::default();
    let usage = Block::new(Json::of(&json!({"type": "usage", "input_tokens": 50})).unwrap()).unwrap();
    past.spent.event(&Event::Noted { blocks: vec![usage], of: None });
    let reports = refused(&Dispatch::default(), &hindrance, &past, Millis(0));
    let [Report::Artifact { contents, .. }, Report::Status { state: TaskState::Rejected, .. }] = reports.as_slice()
    else {
        panic!("{reports:?}")
    };
    let told: Value = serde_json::from_str(contents.parts()[0].data.0.as_ref().unwrap().text()).unwrap();
    assert_eq!(told["tokens_spent"], 50, "what was used until then is told");
}

#[test]
fn a_worker_that_stopped_of_its_own_accord_leaves_a_result() {
    let (ruling, _) = plain().rule(vec![status(TaskState::Canceled, "I was told to stop")]);
    let Ruling::Pass(reports) = ruling else { panic!("{ruling:?}") };
    let [Report::Artifact { contents: Contents::Parts(parts), .. }, Report::Status { .. }] = reports.as_slice() else {
        panic!("{reports:?}")
    };
    let told: Value = serde_json::from_str(parts[0].data.0.as_ref().unwrap().text()).unwrap();
    assert_eq!((&told["task_id"], &told["ended_by"]), (&json!("mine"), &json!("canceled")));
    assert_eq!(told["error"], "I was told to stop");
    let done = result(&json!({"status": "done"}));
    let (ruling, _) = plain().rule(vec![artifact(vec![data(&done)]), status(TaskState::Canceled, "")]);
    let Ruling::Pass(reports) = ruling else { panic!("{ruling:?}") };
    let Report::Artifact { contents, .. } = &reports[0] else { panic!("{reports:?}") };
    let told: Value = serde_json::from_str(contents.parts()[0].data.0.as_ref().unwrap().text()).unwrap();
    assert_eq!((&told["status"], &told["ended_by"]), (&json!("error"), &json!("canceled")), "canceled is not done");
}

#[test]
fn text_under_the_name_of_the_result_stays() {
    let said = json!({"status": "done", "task_id": "mine"});
    let Report::Artifact { artifact, contents, .. } = artifact(vec![data(&result(&said))]) else {
        panic!("an artifact")
    };
    let chunk = Report::Artifact { artifact, contents, append: true, last_chunk: true, metadata: None };
    let reports = vec![self::artifact(vec![Part::text("Look here")]), chunk, status(TaskState::Completed, "")];
    let (ruling, _) = plain().rule(reports);
    let Ruling::Over { reports, .. } = ruling else { panic!("{ruling:?}") };
    let named = |report: &Report| match report {
        Report::Artifact { artifact, .. } => Some(artifact.artifact_id.clone()),
        _ => None,
    };
    assert_eq!(reports.iter().filter_map(named).collect::<Vec<_>>(), ["theirs", "task-result"]);
}

#[test]
fn a_result_that_cannot_be_read_is_not_taken_for_done() {
    for wrong in [json!({"status": "error"}), json!({"status": "partial"}), json!({"status": "splendid"})] {
        let reports = vec![artifact(vec![data(&result(&wrong))]), status(TaskState::Completed, "")];
        let (state, told, standing) = over(&mut plain(), reports);
        assert_eq!((state, standing), (TaskState::Failed, Standing::Reported), "{wrong}");
        assert!(told["error"].as_str().is_some_and(|error| error.contains("TASK_RESULT")), "{told}");
        let reports = vec![artifact(vec![data(&result(&wrong))]), status(TaskState::Completed, "")];
        let Ruling::Over { step: Step::Judged { checks, .. }, .. } = plain().rule(reports).0 else { panic!("over") };
        assert_eq!(checks[0].detail, "the worker's TASK_RESULT cannot be read");
    }
}

#[test]
fn an_agent_that_is_kept_from_going_on_says_so_beside_its_state() {
    let said = json!({HANDSHAKE: {"blocked_reason": "usage_limit", "retryable": true, "retry_after": 60}});
    let metadata = Object::of(&said).ok();
    let report = Report::Status { state: TaskState::Failed, contents: Some(Contents::text("Limit reached")), metadata };
    let (ruling, _) = plain().rule(vec![report]);
    let Ruling::Blocked(told, _) = ruling else { panic!("{ruling:?}") };
    assert_eq!((told.blocked_reason, told.retry_after), (Some(BlockedReason::UsageLimit), Some(60)));
    assert_eq!((told.retryable, told.detail.as_deref()), (Some(true), Some("Limit reached")));
}

#[test]
fn prose_is_inferred_and_only_a_worker_without_a_word_is_at_fault() {
    let (state, told, standing) = over(&mut plain(), vec![status(TaskState::Completed, "Done it")]);
    assert_eq!((state, standing, &told["inferred"]), (TaskState::Completed, Standing::Reported, &json!(true)));
    let faults = |report: Report| match plain().rule(vec![report]).0 {
        Ruling::Over { end: End::Failed(fault), .. } => Some(fault),
        Ruling::Over { .. } => None,
        other => panic!("{other:?}"),
    };
    assert_eq!(faults(status(TaskState::Failed, "crashed")).as_deref(), Some("crashed"));
    let unreadable = Contents::Parts(vec![data(&result(&json!({"status": "error"})))]);
    let fault = faults(Report::Answer { contents: unreadable, metadata: None });
    assert!(fault.is_some_and(|fault| fault.contains("error: must say what went wrong")), "it is told what it was");
    let error = result(&json!({"status": "error", "error": "no such file"}));
    assert_eq!(faults(status(TaskState::Failed, &error.to_string())), None, "a task that cannot be done is no fault");
}

#[test]
fn tokens_are_counted_and_what_is_not_known_is_null() {
    let claims = result(&json!({"status": "done", "tokens_spent": 99}));
    let ends = || status(TaskState::Completed, &claims.to_string());
    let (_, told, _) = over(&mut plain(), vec![ends()]);
    assert_eq!((&told["tokens_spent"], &told["tokens_claimed"]), (&Value::Null, &json!(99)));
    let usage = |json: Value| Block::new(Json::of(&json).unwrap()).unwrap();
    let note = Report::Note {
        blocks: vec![
            usage(json!({"type": "usage", "input_tokens": 1, "output_tokens": 2})),
            usage(json!({"type": "usage", "output_tokens": 3, "cache_read_input_tokens": 4})),
        ],
    };
    let (_, told, _) = over(&mut plain(), vec![note, ends()]);
    assert_eq!((&told["tokens_spent"], &told["usage"]["output_tokens"]), (&json!(6), &json!(5)));
}

#[test]
fn usage_that_only_the_result_tells_goes_to_the_ledger_and_against_the_ceiling() {
    let told =
        result(&json!({"status": "done", "usage": {"input_tokens": 900, "output_tokens": 200, "cost_usd": 0.5}}));
    let ends = || vec![status(TaskState::Completed, &told.to_string())];
    let (ruling, _) = plain().rule(ends());
    let Ruling::Over { reports, .. } = ruling else { panic!("{ruling:?}") };
    let blocks = reports.iter().find_map(|report| match report {
        Report::Note { blocks } => Some(blocks.clone()),
        _ => None,
    });
    let usage = flotilla_protocol::usage::Usage::of_blocks(&blocks.expect("a note"));
    assert_eq!((usage.tokens(), usage.cost()), (Some(1_100), Some(500_000_000)));
    let mut dispatch = Dispatch { brief: "x".into(), ..Dispatch::default() };
    dispatch.task.budget = serde_json::from_value(json!({"max_total_tokens": 1000, "hard": true})).unwrap();
    let mut held = Judge::new("w".into(), Arc::new(dispatch), &Past::default());
    let (state, told, standing) = over(&mut held, ends());
    assert_eq!((state, standing), (TaskState::Completed, Standing::Reported), "done, but not as was agreed");
    assert_eq!((&told["tokens_spent"], &told["usage"]["cost_usd"]), (&json!(1_100), &json!(0.5)));
}

#[test]
fn what_a_run_noted_stays_when_it_is_tried_again() {
    let usage = Block::new(Json::of(&json!({"type": "usage", "input_tokens": 1})).unwrap()).unwrap();
    let reports = vec![Report::Note { blocks: vec![usage] }, status(TaskState::Completed, "no JSON")];
    let (ruling, _) = judge(ReplySchema::Json, None, false).rule(reports);
    assert!(matches!(ruling, Ruling::Again(_, notes) if notes.len() == 1));
}

#[test]
fn a_wrong_reply_is_asked_for_once() {
    let schema = json!({"type": "object", "required": ["n"]});
    let json = |again| judge(ReplySchema::Json, Some(schema.clone()), again);
    let reply = |text: &str| vec![status(TaskState::Completed, text)];
    assert!(matches!(json(false).rule(reply("{}")).0, Ruling::Again(violations, _) if violations.len() == 1));
    let impossible = judge(ReplySchema::Json, Some(serde_json::json!({"not": {}})), true).rule(reply("{}")).0;
    assert!(matches!(impossible, Ruling::Over { end: End::Well, .. }), "not its worker's fault: {impossible:?}");
    let failed = json(true).rule(vec![status(TaskState::Failed, "crashed")]).0;
    assert!(matches!(failed, Ruling::Over { end: End::Failed(_), .. }), "{failed:?}");
    let (state, told, _) = over(&mut json(true), reply("{}"));
    assert_eq!(state, TaskState::Failed);
    assert!(told["error"].as_str().unwrap().starts_with("The reply is not valid: "), "{told}");
    let (state, _, standing) = over(&mut json(false), reply("```json\n{\"n\": 1}\n```"));
    assert_eq!((state, standing), (TaskState::Completed, Standing::Accepted), "it is what was asked for");
    let inside = result(&json!({"status": "done", "n": 1})).to_string();
    let told = json(false).rule(reply(&inside)).0;
    assert!(matches!(&told, Ruling::Again(violations, _) if violations[0].contains("not into it")), "{told:?}");
    let both = vec![artifact(vec![data(&json!({"n": 1})), data(&result(&json!({"status": "done"})))])];
    let (ruling, _) = json(false).rule(both);
    let Ruling::Pass(reports) = ruling else { panic!("{ruling:?}") };
    let kept = matches!(reports.as_slice(), [Report::Artifact { .. }, Report::Note { .. }]);
    assert!(kept, "the reply itself goes on, and the result is noted: {reports:?}");
}
