//! CancelTask.

use super::on_all;
use crate::cast::{id, reached, state};
use serde_json::json;

#[test]
fn a_running_task_is_canceled_and_stays_so() {
    on_all(|talk| {
        let task = talk.start("hold");
        reached(&talk.client, id(&task), "TASK_STATE_WORKING");
        let canceled = talk.ok("CancelTask", json!({"id": id(&task)}));
        assert_eq!(state(&canceled), "TASK_STATE_CANCELED");
        assert_eq!(canceled["id"], task["id"]);
        assert_eq!(talk.ok("GetTask", json!({"id": id(&task)})), canceled);
    });
}

#[test]
fn a_waiting_or_queued_task_is_canceled() {
    on_all(|talk| {
        for said in ["ask", "sign in"] {
            let task = talk.say(said);
            assert_eq!(state(&talk.ok("CancelTask", json!({"id": id(&task)}))), "TASK_STATE_CANCELED");
        }
        let task = talk.start("silence");
        assert_eq!(state(&talk.ok("CancelTask", json!({"id": id(&task)}))), "TASK_STATE_CANCELED");
    });
}

#[test]
fn a_cancel_may_carry_metadata() {
    on_all(|talk| {
        let task = talk.say("ask");
        let canceled = talk.ok("CancelTask", json!({"id": id(&task), "metadata": {"why": "no time"}}));
        assert_eq!(state(&canceled), "TASK_STATE_CANCELED");
    });
}

#[test]
fn a_blocking_send_returns_when_its_task_is_canceled() {
    on_all(|talk| {
        let client = talk.client.clone();
        let params = talk.message("hold");
        let waiting = std::thread::spawn(move || client.call("SendMessage", &params));
        let task = flotilla_testkit::until("the task is there", || {
            let list = talk.client.call("ListTasks", &json!({"status": "TASK_STATE_WORKING"})).expect("a list");
            list["tasks"].get(0).cloned()
        });
        talk.ok("CancelTask", json!({"id": id(&task)}));
        let answer = waiting.join().expect("no panic").expect("a task");
        assert_eq!((&answer["task"]["id"], state(&answer["task"])), (&task["id"], "TASK_STATE_CANCELED"));
    });
}

#[test]
fn an_ended_task_cannot_be_canceled() {
    on_all(|talk| {
        for said in ["complete", "fail", "reject", "give up"] {
            let task = talk.say(said);
            let refusal = talk.refused("CancelTask", json!({"id": id(&task)}));
            assert_eq!(refusal.reason, "TASK_NOT_CANCELABLE", "{said}");
            assert_eq!(refusal.metadata["taskId"], task["id"]);
            assert_eq!(talk.ok("GetTask", json!({"id": id(&task)})), task);
        }
    });
}

#[test]
fn an_unknown_task_cannot_be_canceled_or_read() {
    on_all(|talk| {
        for unknown in ["nowhere", "01890a5d-ac96-774b-bcce-b302099a8057", "ünïcode id", "a:b"] {
            for method in ["CancelTask", "GetTask"] {
                let refusal = talk.refused(method, json!({"id": unknown}));
                assert_eq!((refusal.reason.as_str(), &refusal.metadata["taskId"]), ("TASK_NOT_FOUND", &json!(unknown)));
            }
            assert_eq!(talk.refused_stream("SubscribeToTask", json!({"id": unknown})).reason, "TASK_NOT_FOUND");
        }
    });
}

#[test]
fn an_id_with_a_slash_is_an_id_like_any_other() {
    on_all(|talk| {
        for method in ["GetTask", "CancelTask"] {
            assert_eq!(talk.refused(method, json!({"id": "a/b"})).reason, "TASK_NOT_FOUND", "{method}");
        }
    });
}

#[test]
fn the_task_of_another_agent_is_not_there() {
    on_all(|talk| {
        let task = talk.say("ask");
        for method in ["GetTask", "CancelTask"] {
            let refusal = talk.refused(method, json!({"tenant": "echo", "id": id(&task)}));
            assert_eq!(refusal.reason, "TASK_NOT_FOUND", "{method}");
        }
        assert_eq!(state(&talk.ok("GetTask", json!({"id": id(&task)}))), "TASK_STATE_INPUT_REQUIRED");
    });
}
