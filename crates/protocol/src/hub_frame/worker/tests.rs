//! What workers and the hub say to each other, written and read again.

use super::{Gone, Heard, Told, Untaken, kept};
use crate::a2a::model::{Artifact, TaskState};
use crate::block::Block;
use crate::decode;
use crate::wire::Json;
use crate::work::{Contents, Report};

#[test]
fn every_report_is_read_as_it_was_written() {
    let block = Block::new(Json::new(r#"{"type":"tool_use","id":"1","name":"x","input":{"n":1.0}}"#.into()).unwrap());
    let artifact = Artifact { artifact_id: "a".into(), ..Artifact::default() };
    let reports = vec![
        Report::status(TaskState::Working),
        Report::Artifact {
            artifact: Box::new(artifact),
            contents: Contents::text("x"),
            append: true,
            last_chunk: false,
            metadata: None,
        },
        Report::Answer { contents: Contents::Blocks(vec![block.clone().unwrap()]), metadata: None },
        Report::Note { blocks: vec![block.unwrap()] },
    ];
    let told = Told { task_id: "t".into(), run: 2, number: 7, reports };
    let frame = told.frame();
    assert!(frame.starts_with(r#"{"type":"report","taskId":"t","run":2,"number":7,"#), "{frame}");
    assert!(frame.contains(r#"{"n":1.0}"#), "bytes stay as they are: {frame}");
    assert_eq!(Told::read(frame.as_bytes()).unwrap(), told);
}

#[test]
fn what_a_caller_could_not_be_shown_is_refused() {
    let frame = |report: &str| format!(r#"{{"type":"report","taskId":"t","run":1,"number":1,"reports":[{report}]}}"#);
    let refused = |report: &str| Told::read(frame(report).as_bytes()).unwrap_err().message;
    assert!(refused(r#"{"answer":{"contents":{"parts":[{}]}}}"#).contains("reports[0]"));
    assert!(refused(r#"{"received":{"number":9}}"#).contains("received"), "only the hub says that");
    assert!(refused(r#"{"dance":{}}"#).contains("dance"));
}

#[test]
fn a_refusal_names_the_report_however_deep_that_is() {
    let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
    let frame = format!(r#"{{"type":"report","reports":[{deep}],"taskId":"t","run":2,"number":7}}"#);
    let untaken = Untaken::read(frame.as_bytes()).expect("a report");
    let told = untaken.frame(&decode::too_deep(64));
    assert!(told.contains(r#""taskId":"t""#) && told.contains(r#""number":7"#), "{told}");
    assert!(matches!(Heard::read(&told), Ok(Heard::Problem(problem)) if problem.task_id.as_deref() == Some("t")));
    assert_eq!(Untaken::read(br#"{"type":"gone","taskId":"t","run":2,"number":7}"#), None);
}

#[test]
fn what_the_hub_says_is_told_apart() {
    assert!(matches!(Heard::read(&kept("t", 1, 4, true)), Ok(Heard::Kept(kept)) if kept.over && kept.number == 4));
    assert!(matches!(Heard::read(r#"{"type":"cancel","taskId":"t","run":3}"#), Ok(Heard::Cancel { run: 3, .. })));
    assert!(
        matches!(Heard::read(r#"{"type":"error","message":"no"}"#), Ok(Heard::Problem(told)) if told.message == "no")
    );
    assert!(matches!(Heard::read(r#"{"type":"dance"}"#), Ok(Heard::Other)));
    let gone = Gone { task_id: "t".into(), run: 1, number: 2, reason: "it fell".into() };
    assert_eq!(serde_json::from_str::<Gone>(&gone.frame()).unwrap(), gone);
}
