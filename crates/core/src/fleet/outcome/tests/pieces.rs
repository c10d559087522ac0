//! Results and replies that come in pieces, or in a form that is none.

use super::{artifact, data, judge, over, plain, result, status};
use crate::fleet::outcome::{Judge, Ruling};
use flotilla_protocol::a2a::model::{Part, TaskState};
use flotilla_protocol::fleet::Kind;
use flotilla_protocol::fleet::dispatch::ReplySchema;
use flotilla_protocol::fleet::route::Standing;
use flotilla_protocol::work::Report;
use serde_json::json;

/// A piece after which more may come.
fn piece(text: &str, append: bool) -> Report {
    let Report::Artifact { artifact, contents, metadata, .. } = artifact(vec![Part::text(text)]) else {
        panic!("an artifact")
    };
    Report::Artifact { artifact, contents, append, last_chunk: false, metadata }
}

/// Each report by itself, as they come over a wire; the last one ends the work.
fn streamed(judge: &mut Judge, mut reports: Vec<Report>) -> Ruling {
    let last = reports.pop().expect("an end");
    for report in reports {
        assert!(matches!(judge.rule(vec![report]).0, Ruling::Pass(_)));
    }
    judge.rule(vec![last]).0
}

#[test]
fn a_result_in_pieces_is_the_same_as_in_one() {
    let told = result(&json!({"status": "error", "error": "boom"})).to_string();
    let (first, rest) = told.split_at(30);
    let completed = || status(TaskState::Completed, "");
    for reports in [
        vec![piece("It went wrong.\n", false), piece(first, true), piece(rest, true), completed()],
        vec![piece(first, false), piece(rest, false), completed()],
        vec![artifact(vec![Part::text(first), Part::text(rest)]), completed()],
        vec![status(TaskState::Working, first), status(TaskState::Working, rest), completed()],
        vec![piece(first, false), status(TaskState::Completed, rest)],
    ] {
        let shown = format!("{reports:?}");
        let (state, told, standing) = over(&mut plain(), reports);
        assert_eq!(
            (state, standing, &told["error"]),
            (TaskState::Failed, Standing::Accepted, &json!("boom")),
            "{shown}"
        );
    }
    let done = result(&json!({"status": "done"}));
    let later = vec![artifact(vec![data(&done)]), piece(first, false), piece(rest, true), completed()];
    assert_eq!(over(&mut plain(), later).0, TaskState::Failed, "the later one counts");
}

#[test]
fn what_is_meant_for_a_result_and_is_none_is_not_taken_for_done() {
    let error = json!({"status": "error", "error": "boom"});
    let mut newer = result(&error);
    newer["protocol_version"] = json!("3.0");
    let media = |value| vec![Part { media_type: Kind::Result.media_type().into(), ..data(value) }];
    let text = result(&error).to_string();
    for parts in [
        vec![data(&newer)],
        vec![Part::text(newer.to_string())],
        media(&error),
        media(&json!([result(&error)])),
        vec![data(&json!([result(&error)]))],
        vec![Part::text(&text[..text.len() - 1])],
        vec![Part::text(text.replace("\"status\"", "status"))],
    ] {
        let shown = format!("{parts:?}");
        let (state, told, standing) = over(&mut plain(), vec![artifact(parts), status(TaskState::Completed, "")]);
        assert_eq!((state, standing), (TaskState::Failed, Standing::Reported), "{shown}");
        assert!(told["error"].as_str().is_some_and(|error| error.contains("TASK_RESULT")), "{told}");
    }
    let (state, ..) = over(&mut plain(), vec![status(TaskState::Completed, "I send no TASK_RESULT, for I am plain")]);
    assert_eq!(state, TaskState::Completed, "a word is no result");
}

#[test]
fn a_reply_in_pieces_is_put_together() {
    let schema = json!({"type": "object", "required": ["a"]});
    let mut held = judge(ReplySchema::Json, Some(schema), false);
    let pieces = ["{\"a\"", ": 1", "}"].iter().enumerate().map(|(at, text)| piece(text, at > 0));
    let ruling = streamed(&mut held, pieces.chain([status(TaskState::Completed, "")]).collect());
    assert!(matches!(ruling, Ruling::Over { .. }), "{ruling:?}");
    let mut held = judge(ReplySchema::Json, None, false);
    let pieces = ["There are ", "42", " of them"].iter().enumerate().map(|(at, text)| piece(text, at > 0));
    let ruling = streamed(&mut held, pieces.chain([status(TaskState::Completed, "")]).collect());
    assert!(matches!(ruling, Ruling::Again(..)), "a number among words is no reply: {ruling:?}");
}

#[test]
fn words_in_pieces_are_told_whole() {
    let reports = vec![piece("I opened ", false), piece("PR 72.", true), status(TaskState::Completed, "")];
    let (_, told, _) = over(&mut plain(), reports);
    assert_eq!(told["detail"], "I opened PR 72.");
}

#[test]
fn words_that_follow_in_another_piece_make_a_result_a_quoted_one() {
    let told = result(&json!({"status": "error", "error": "an example"})).to_string();
    for pieces in [
        vec!["I would end with ", told.as_str(), ", but I did finish."],
        vec![format!("I would end with {told}").as_str(), ", but I did finish."],
        vec!["I would end with\n", format!("{told}\n").as_str(), "but I did finish.\n"],
    ] {
        let reports = pieces.iter().enumerate().map(|(at, text)| piece(text, at > 0));
        let ruling = streamed(&mut plain(), reports.chain([status(TaskState::Completed, "")]).collect());
        let Ruling::Over { reports, .. } = ruling else { panic!("{ruling:?}") };
        assert!(matches!(reports.last(), Some(Report::Status { state: TaskState::Completed, .. })), "{pieces:?}");
    }
}

#[test]
fn a_reply_may_stand_before_its_result_or_in_a_fence_among_words() {
    let (reply, done) = ("{\"a\": 5}", result(&json!({"status": "done"})).to_string());
    let whole = format!("{reply}\n{done}");
    let (first, rest) = whole.split_at(12);
    let fenced = format!("Here it is:\n```json\n{reply}\n```\nThat is all.");
    for (reports, standing) in [
        (vec![artifact(vec![Part::text(whole.as_str())]), status(TaskState::Completed, "")], Standing::Accepted),
        (vec![status(TaskState::Completed, &whole)], Standing::Accepted),
        (vec![piece(first, false), piece(rest, true), status(TaskState::Completed, "")], Standing::Accepted),
        (vec![status(TaskState::Completed, &format!("{fenced}\n{done}"))], Standing::Accepted),
        (vec![status(TaskState::Completed, &fenced)], Standing::Accepted),
    ] {
        let shown = format!("{reports:?}");
        let schema = json!({"type": "object", "required": ["a"]});
        let (state, _, stands) = over(&mut judge(ReplySchema::Json, Some(schema), false), reports);
        assert_eq!((state, stands), (TaskState::Completed, standing), "{shown}");
    }
}

#[test]
fn what_is_not_finished_need_not_be_a_reply_yet() {
    let partial = result(&json!({"status": "partial", "remaining": ["the rest"]})).to_string();
    for (state, standing) in
        [(TaskState::Completed, Standing::Reported), (TaskState::InputRequired, Standing::Accepted)]
    {
        let mut held = judge(ReplySchema::Json, None, false);
        let (ended, told, stands) = over(&mut held, vec![status(state, &partial)]);
        assert_eq!((ended, stands, &told["status"]), (state, standing, &json!("partial")));
    }
}
