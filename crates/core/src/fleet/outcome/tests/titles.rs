//! What results are called beside what else a worker makes.

use super::{artifact, data, plain, result, status};
use crate::fleet::contract::Past;
use crate::fleet::outcome::{Judge, Ruling};
use flotilla_protocol::a2a::model::{Artifact, Part, TaskState};
use flotilla_protocol::event::{Change, Chunk, Event};
use flotilla_protocol::fleet::Dispatch;
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::{Contents, Report};
use serde_json::json;
use std::sync::Arc;

fn called(id: &str, report: Report) -> Report {
    let Report::Artifact { artifact, contents, append, last_chunk, metadata } = report else { panic!("an artifact") };
    let artifact = Box::new(Artifact { artifact_id: id.into(), ..*artifact });
    Report::Artifact { artifact, contents, append, last_chunk, metadata }
}

fn ids(judge: &mut Judge, reports: Vec<Report>) -> (Vec<String>, Vec<Report>) {
    let (ruling, _) = judge.rule(reports);
    let Ruling::Over { reports, .. } = ruling else { panic!("{ruling:?}") };
    let named = reports.iter().filter_map(|report| match report {
        Report::Artifact { artifact, .. } => Some(artifact.artifact_id.clone()),
        _ => None,
    });
    (named.collect(), reports)
}

#[test]
fn what_a_worker_calls_like_a_result_is_kept_beside_it() {
    let own = called("task-result", artifact(vec![Part::text("my own report")]));
    let (ids, _) = ids(&mut plain(), vec![own, status(TaskState::Completed, "prose")]);
    assert_eq!(ids, ["task-result", "task-result-2"]);
}

#[test]
fn a_later_result_takes_the_place_of_an_earlier_one() {
    let asks = result(&json!({"status": "partial", "remaining": ["which?"]}));
    let (first, reports) = ids(&mut plain(), vec![status(TaskState::InputRequired, &asks.to_string())]);
    assert_eq!(first, ["task-result"]);
    let produced = reports.into_iter().filter_map(|report| match report {
        Report::Artifact { artifact, contents: Contents::Parts(parts), append, last_chunk, metadata } => {
            let artifact = Arc::new(Artifact { parts, ..*artifact });
            Some(Event::Produced { chunk: Chunk { artifact, blocks: Vec::new(), append, last_chunk, metadata } })
        }
        _ => None,
    });
    let change = Change { first_seq: 1, first_peer_seq: 1, at: Millis(0), events: produced.collect() };
    let past = Past::of(&[Arc::new(change)]);
    let mut next = Judge::new("w".into(), Arc::new(Dispatch::default()), &past);
    let done = called("r", artifact(vec![data(&result(&json!({"status": "done"})))]));
    assert_eq!(ids(&mut next, vec![done, status(TaskState::Completed, "")]).0, ["task-result"]);
}
