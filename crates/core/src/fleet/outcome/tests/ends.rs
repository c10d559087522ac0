//! How work ends: with a reply, with an error that is told, against its own word.

use super::{Ruling, artifact, data, judge, over, plain, result, status};
use crate::dispatch::End;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::fleet::dispatch::ReplySchema;
use flotilla_protocol::fleet::route::Standing;
use serde_json::json;

#[test]
fn a_valid_reply_is_handed_on_as_data() {
    let schema = json!({"type": "object", "required": ["n"]});
    let mut asked = judge(ReplySchema::Json, Some(schema), false);
    let words = "Here it is:\n```json\n{\"n\": 5}\n```\nHope it helps";
    let (state, told, standing) = over(&mut asked, vec![status(TaskState::Completed, words)]);
    assert_eq!(
        (state, standing, &told["reply"]),
        (TaskState::Completed, Standing::Accepted, &json!({"n": 5})),
        "{told}"
    );
}

#[test]
fn a_result_that_contradicts_itself_is_not_accepted() {
    for odd in [json!({"remaining": ["x"]}), json!({"error": "hm"}), json!({"blocked_reason": "missing_mcp"})] {
        let mut told = result(&json!({"status": "done"}));
        told.as_object_mut().unwrap().extend(odd.as_object().unwrap().clone());
        let (_, _, standing) = over(&mut plain(), vec![artifact(vec![data(&told)]), status(TaskState::Completed, "")]);
        assert_eq!(standing, Standing::Reported, "{odd}");
    }
}

#[test]
fn an_error_that_is_told_is_no_success_and_no_fault() {
    let ended = |reports| match plain().rule(reports) {
        (Ruling::Over { end, .. }, _) => end,
        (other, _) => panic!("{other:?}"),
    };
    let told = result(&json!({"status": "error", "error": "boom"}));
    assert_eq!(ended(vec![artifact(vec![data(&told)]), status(TaskState::Failed, "")]), End::Unsuccessful);
    assert_eq!(ended(vec![status(TaskState::Failed, "boom")]), End::Failed("boom".into()));
    assert_eq!(ended(vec![status(TaskState::Completed, "ok")]), End::Well);
}

#[test]
fn why_a_worker_canceled_its_work_is_told() {
    let told = result(&json!({"status": "blocked", "blocked_reason": "dirty_tree"}));
    let (ruling, _) = plain().rule(vec![artifact(vec![data(&told)]), status(TaskState::Canceled, "")]);
    let Ruling::Pass(reports) = ruling else { panic!("{ruling:?}") };
    let said = serde_json::to_string(&reports).unwrap();
    assert!(said.contains("says that it is blocked (dirty_tree)"), "{said}");
}
