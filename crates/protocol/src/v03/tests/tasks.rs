//! Tasks, events and pages.

use super::{newer, older, same};
use crate::a2a::method::Method;
use crate::a2a::model::{StreamResponse, Task, TaskState, TaskStatus};
use crate::a2a::request::ListTasksResponse;
use crate::v03::{V03, answer, state};

#[test]
fn every_state_has_its_name() {
    for state in TaskState::ALL {
        assert_eq!(state::from_name(state::name(*state)), Some(*state));
        assert_eq!(state::from_name(state.name()), Some(*state), "agents mix dialects");
    }
    assert_eq!(state::from_name("TASK_STATE_CANCELLED"), Some(TaskState::Canceled), "as the proto file has it");
    for (spelled, state) in [
        ("cancelled", TaskState::Canceled),
        ("input_required", TaskState::InputRequired),
        ("COMPLETED", TaskState::Completed),
    ] {
        assert_eq!(state::from_name(spelled), Some(state), "as some agents have it");
    }
    assert_eq!(state::from_name("done"), None);
    same::<TaskStatus>(r#"{"state":"input-required"}"#, r#"{"state":"TASK_STATE_INPUT_REQUIRED"}"#);
    same::<TaskStatus>(r#"{"state":"auth-required"}"#, r#"{"state":"TASK_STATE_AUTH_REQUIRED"}"#);
    assert!(newer::<TaskStatus>(r#"{"state":"busy"}"#).unwrap_err().contains("input-required"));
}

#[test]
fn unspecified_is_unknown() {
    assert_eq!(older::<TaskStatus>("{}"), r#"{"state":"unknown"}"#);
    assert_eq!(newer::<TaskStatus>(r#"{"state":"unknown"}"#).as_deref(), Ok("{}"));
}

#[test]
fn moments_are_utc_and_what_is_no_time_is_left_out() {
    let at = |text: &str| newer::<TaskStatus>(&format!(r#"{{"state":"working","timestamp":"{text}"}}"#)).unwrap();
    assert!(at("2026-01-02T03:04:05.678901+00:00").contains("2026-01-02T03:04:05.678901Z"));
    assert!(at("2026-01-02T03:04:05").contains("2026-01-02T03:04:05.000Z"));
    assert_eq!(at("yesterday"), r#"{"state":"TASK_STATE_WORKING"}"#);
}

const OLD_TASK: &str = r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"completed","message":{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"a"}]},"timestamp":"2026-01-02T03:04:05.000Z"},"artifacts":[{"artifactId":"a","name":"n","parts":[{"kind":"data","data":{"n":42}}],"metadata":{"x":1.0},"extensions":["urn:x"]}],"history":[{"kind":"message","messageId":"h","role":"user","parts":[{"kind":"text","text":"q"}]}],"metadata":{"k":9007199254740993},"later":[1.0]}"#;
const NEW_TASK: &str = r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"a"}]},"timestamp":"2026-01-02T03:04:05.000Z"},"artifacts":[{"artifactId":"a","name":"n","parts":[{"data":{"n":42}}],"metadata":{"x":1.0},"extensions":["urn:x"]}],"history":[{"messageId":"h","role":"ROLE_USER","parts":[{"text":"q"}]}],"metadata":{"k":9007199254740993},"later":[1.0]}"#;

#[test]
fn tasks_with_all_they_may_hold() {
    same::<Task>(OLD_TASK, NEW_TASK);
    let sent = answer::upgraded(Method::SendMessage, OLD_TASK).expect("a task");
    assert_eq!(sent, format!(r#"{{"task":{NEW_TASK}}}"#));
    assert_eq!(answer::upgraded(Method::GetTask, OLD_TASK).expect("a task"), NEW_TASK);
}

#[test]
fn final_says_that_the_stream_ends() {
    for (state, last) in [
        ("working", false),
        ("submitted", false),
        ("input-required", true),
        ("auth-required", true),
        ("completed", true),
        ("canceled", true),
        ("failed", true),
        ("rejected", true),
    ] {
        let old = format!(
            r#"{{"kind":"status-update","taskId":"t","contextId":"c","status":{{"state":"{state}"}},"final":{last}}}"#
        );
        let new = newer::<StreamResponse>(&old).expect("an update");
        assert!(!new.contains("final"), "{new}");
        assert_eq!(older::<StreamResponse>(&new), old);
    }
}

#[test]
fn artifact_updates_say_both_flags() {
    let old = r#"{"kind":"artifact-update","taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[{"kind":"text","text":"x"}]},"append":true,"lastChunk":false,"metadata":{"k":1}}"#;
    let new = r#"{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[{"text":"x"}]},"append":true,"metadata":{"k":1}}}"#;
    same::<StreamResponse>(old, new);
    let silent = r#"{"kind":"artifact-update","taskId":"t","artifact":{"artifactId":"a"}}"#;
    let read = newer::<StreamResponse>(silent).expect("an update");
    assert!(!read.contains("append") && !read.contains("lastChunk"), "{read}");
    assert!(older::<StreamResponse>(&read).ends_with(r#""append":false,"lastChunk":false}"#));
}

#[test]
fn an_answer_without_a_kind_is_told_by_its_members() {
    let what = |old: &str| newer::<StreamResponse>(old).map(|new| new.split('"').nth(1).unwrap().to_owned());
    assert_eq!(what(r#"{"id":"t","status":{"state":"working"}}"#).as_deref(), Ok("task"));
    assert_eq!(what(r#"{"messageId":"m","role":"agent","parts":[]}"#).as_deref(), Ok("message"));
    assert_eq!(what(r#"{"taskId":"t","status":{"state":"working"}}"#).as_deref(), Ok("statusUpdate"));
    assert_eq!(what(r#"{"taskId":"t","artifact":{}}"#).as_deref(), Ok("artifactUpdate"));
    assert!(what("{}").unwrap_err().contains("no kind"));
    assert!(what(r#"{"kind":"note"}"#).unwrap_err().contains("'note'"));
    let wrong = what(r#"{"kind":"task","status":{"message":{"parts":[{"kind":"image"}]}}}"#).unwrap_err();
    assert!(wrong.contains("status.message.parts[0]"), "{wrong}");
}

#[test]
fn pages_of_tasks_and_plain_lists() {
    let page = format!(r#"{{"tasks":[{OLD_TASK}],"nextPageToken":"","pageSize":1,"totalSize":1}}"#);
    let new = format!(r#"{{"tasks":[{NEW_TASK}],"nextPageToken":"","pageSize":1,"totalSize":1}}"#);
    assert_eq!(answer::upgraded(Method::ListTasks, &page).expect("a page"), new);
    let read: V03<ListTasksResponse> = serde_json::from_str(&page).expect("a page");
    assert_eq!(serde_json::to_string(&V03(read.0)).expect("JSON"), page);
    assert_eq!(answer::upgraded(Method::ListTasks, &format!("[{OLD_TASK}]")).expect("a list"), new);
}

#[test]
fn a_page_is_read_although_a_task_in_it_holds_what_cannot_be() {
    let page = r#"{"tasks":[
        {"kind":"task","id":"a","contextId":"c","status":{"state":"completed"},"artifacts":[{"artifactId":"x","parts":[{"weird":1}]}]},
        {"kind":"task","id":"b","contextId":"c","status":{"state":"completed"},
            "history":[{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"go"}]}]}]}"#;
    let read: serde_json::Value = serde_json::from_str(&answer::upgraded(Method::ListTasks, page).unwrap()).unwrap();
    assert_eq!((&read["tasks"][0]["id"], read["tasks"][0].get("artifacts")), (&"a".into(), None), "{read}");
    assert_eq!(read["tasks"][1]["history"][0]["messageId"], "m", "{read}");
    assert!(answer::upgraded(Method::ListTasks, r#"{"tasks":[{"kind":"task","id":7}]}"#).is_err());
}
