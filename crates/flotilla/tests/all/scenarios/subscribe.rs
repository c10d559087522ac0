//! SubscribeToTask.

use super::{on_all, on_current};
use crate::cast::{id, reached, state};
use serde_json::json;

#[test]
fn a_subscription_begins_with_the_task_and_sees_its_end() {
    on_all(|talk| {
        let task = talk.start("hold");
        reached(&talk.client, id(&task), "TASK_STATE_WORKING");
        let params = json!({"id": id(&task)});
        let mut stream = talk.client.stream("SubscribeToTask", &params).expect("a stream");
        let first = stream.expect();
        assert_eq!(first.frame()["task"], talk.client.task(id(&task)), "the first frame is the task as it is");
        talk.ok("CancelTask", json!({"id": id(&task)}));
        let rest = stream.rest();
        assert_eq!(rest.len(), 1);
        assert_eq!(state(&rest[0].frame()["statusUpdate"]), "TASK_STATE_CANCELED");
        assert!(!stream.cut);
        talk.note_stream("SubscribeToTask", &params, &[&[first], rest.as_slice()].concat());
    });
}

/// In 0.3 it ends there.
#[test]
fn a_subscription_outlasts_the_agents_questions() {
    on_current(|talk| {
        let task = talk.say("ask");
        let params = json!({"id": id(&task)});
        let mut stream = talk.client.stream("SubscribeToTask", &params).expect("a stream");
        let first = stream.expect();
        assert_eq!(state(&first.frame()["task"]), "TASK_STATE_INPUT_REQUIRED");
        let reply = talk.reply(&task, "small");
        talk.ok("SendMessage", reply);
        let rest = stream.rest();
        let last = rest.last().expect("frames").frame();
        assert_eq!(state(&last["statusUpdate"]), "TASK_STATE_COMPLETED");
        talk.note_stream("SubscribeToTask", &params, &[&[first], rest.as_slice()].concat());
    });
}

#[test]
fn an_ended_task_cannot_be_subscribed_to() {
    on_current(|talk| {
        for said in ["complete", "fail", "reject", "give up"] {
            let task = talk.say(said);
            let refusal = talk.refused_stream("SubscribeToTask", json!({"id": id(&task)}));
            assert_eq!(refusal.reason, "UNSUPPORTED_OPERATION", "{said}");
        }
    });
}

#[test]
fn an_agent_that_does_not_stream_says_so() {
    on_all(|talk| {
        talk.client = talk.client.clone().agent("still");
        let params = talk.message("hello");
        let refusal = talk.refused_stream("SendStreamingMessage", params);
        assert_eq!(refusal.reason, "UNSUPPORTED_OPERATION");
        let refusal = talk.refused_stream("SubscribeToTask", json!({"id": "any"}));
        assert_eq!(refusal.reason, "UNSUPPORTED_OPERATION");
        assert_eq!(talk.ok("ListTasks", json!({}))["totalSize"], 0);
        assert_eq!(state(&talk.say("hello")), "TASK_STATE_COMPLETED");
    });
}
