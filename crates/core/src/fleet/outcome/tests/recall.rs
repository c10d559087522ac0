//! What is read again from the log of a run.

use super::{artifact, data, over, plain, result, status};
use crate::fleet::outcome::{Judge, Ruling};
use flotilla_protocol::a2a::model::{Part, TaskState};
use flotilla_protocol::event::{Change, Chunk, Event};
use flotilla_protocol::fleet::route::Standing;
use flotilla_protocol::fleet::told::ToldResult;
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::{Contents, Report};
use serde_json::json;
use std::sync::Arc;

/// What the log holds of reports after they were judged.
fn logged(judge: &mut Judge, reports: Vec<Report>) -> Vec<Arc<Change>> {
    let (Ruling::Pass(passed), _) = judge.rule(reports) else { panic!("the run is over") };
    let mut events = vec![Event::RunQueued { run: 1 }];
    events.extend(passed.into_iter().map(|report| match report {
        Report::Note { blocks } => Event::Noted { blocks, of: None },
        Report::Artifact { mut artifact, contents: Contents::Parts(parts), append, last_chunk, metadata } => {
            artifact.parts = parts;
            Event::Produced {
                chunk: Chunk { artifact: Arc::from(artifact), blocks: Vec::new(), append, last_chunk, metadata },
            }
        }
        other => panic!("{other:?}"),
    }));
    vec![Arc::new(Change { first_seq: 1, first_peer_seq: 1, at: Millis(0), events })]
}

#[test]
fn a_result_and_its_name_are_known_again() {
    let told = result(&json!({"status": "error", "error": "boom", "usage": {"input_tokens": 5}}));
    let log = logged(&mut plain(), vec![artifact(vec![data(&told)])]);
    let mut again = plain();
    again.recall(&log);
    let (state, said, standing) = over(&mut again, vec![status(TaskState::Completed, "")]);
    assert_eq!((state, standing, &said["error"]), (TaskState::Failed, Standing::Accepted, &json!("boom")), "{said}");
    let mut forgot = plain();
    assert_eq!(over(&mut forgot, vec![status(TaskState::Completed, "")]).0, TaskState::Completed, "without the log");
}

#[test]
fn a_blocked_in_pieces_is_no_work_that_was_begun() {
    let told = result(&json!({"status": "blocked", "blocked_reason": "missing_mcp"})).to_string();
    let (first, rest) = told.split_at(30);
    let piece = |text: &str, append: bool| {
        let Report::Artifact { artifact, metadata, .. } = artifact(Vec::new()) else { panic!("an artifact") };
        let contents = Contents::Parts(vec![Part::text(text)]);
        Report::Artifact { artifact, contents, append, last_chunk: append, metadata }
    };
    let log = logged(&mut plain(), vec![piece(first, false)]);
    let mut again = plain();
    again.recall(&log);
    let (ruling, _) = again.rule(vec![piece(rest, true), status(TaskState::Rejected, "")]);
    assert!(matches!(ruling, Ruling::Blocked(..)), "{ruling:?}");
}

/// What the hub calls the result of work that is over.
fn named(judge: &mut Judge) -> Option<String> {
    let (ruling, _) = judge.rule(vec![status(TaskState::Completed, "")]);
    let Ruling::Over { reports, .. } = ruling else { panic!("{ruling:?}") };
    reports.iter().find_map(|report| match report {
        Report::Artifact { artifact, .. } => Some(artifact.artifact_id.clone()),
        _ => None,
    })
}

#[test]
fn what_comes_later_under_the_name_of_a_result_is_not_overwritten_by_it() {
    let told = result(&json!({"status": "done"}));
    let mut judge = plain();
    judge.rule(vec![artifact(vec![data(&told)])]);
    judge.rule(vec![artifact(vec![Part::text("The report.")])]);
    assert_eq!(named(&mut judge).as_deref(), Some("task-result"));
}

#[test]
fn a_result_that_a_worker_only_noted_is_none() {
    let told = ToldResult::new("r", true, Box::default()).block().unwrap();
    let mut judge = plain();
    let (ruling, _) = judge.rule(vec![Report::Note { blocks: vec![told.clone()] }]);
    assert_eq!(ruling, Ruling::Pass(Vec::new()), "it would count after a restart");
    let (_, said, _) = over(&mut judge, vec![status(TaskState::Completed, "")]);
    assert_eq!(said["inferred"], true, "{said}");
}

#[test]
fn what_stood_beside_a_result_is_not_overwritten_by_it() {
    let told = result(&json!({"status": "done"}));
    let log = logged(&mut plain(), vec![artifact(vec![Part::text("Long report."), data(&told)])]);
    let mut again = plain();
    again.recall(&log);
    assert_eq!(named(&mut again).as_deref(), Some("task-result"));
    let alone = logged(&mut plain(), vec![artifact(vec![data(&told)])]);
    let mut again = plain();
    again.recall(&alone);
    assert_eq!(named(&mut again).as_deref(), Some("theirs"), "what holds nothing else gives it its name");
}

#[test]
fn words_beside_a_blocked_are_no_work_that_was_begun() {
    let told = result(&json!({"status": "blocked", "blocked_reason": "missing_mcp"}));
    let log = logged(&mut plain(), vec![artifact(vec![Part::text("I lack it."), data(&told)])]);
    let mut again = plain();
    again.recall(&log);
    let (ruling, _) = again.rule(vec![status(TaskState::Rejected, "")]);
    assert!(matches!(ruling, Ruling::Blocked(..)), "{ruling:?}");
}
