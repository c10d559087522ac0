//! Conversations of several turns: contexts, follow-ups, and messages that come too late.

use super::on_all;
use crate::cast::{id, reached, state, text};
use serde_json::json;

#[test]
fn a_reply_continues_a_task_that_asked_for_input() {
    on_all(|talk| {
        let asked = talk.say("ask");
        let params = talk.reply(&asked, "a large one");
        let task = talk.ok("SendMessage", params)["task"].clone();
        assert_eq!(task["id"], asked["id"]);
        assert_eq!(state(&task), "TASK_STATE_COMPLETED");
        assert_eq!(text(&task["artifacts"][0]), "a large one, turn 2");
        let said: Vec<&str> = task["history"].as_array().expect("history").iter().map(text).collect();
        assert_eq!(said, ["ask", "Which size?", "a large one"]);
    });
}

#[test]
fn a_reply_continues_a_task_that_asked_for_authorization() {
    on_all(|talk| {
        let asked = talk.say("sign in");
        let params = talk.reply(&asked, "here is my badge");
        let task = talk.ok("SendMessage", params)["task"].clone();
        assert_eq!((&task["id"], state(&task)), (&asked["id"], "TASK_STATE_COMPLETED"));
    });
}

#[test]
fn a_task_may_ask_several_times() {
    on_all(|talk| {
        let asked = talk.say("ask");
        let params = talk.reply(&asked, "ask me again");
        let again = talk.ok("SendMessage", params)["task"].clone();
        assert_eq!(state(&again), "TASK_STATE_INPUT_REQUIRED");
        let params = talk.reply(&asked, "small");
        let task = talk.ok("SendMessage", params)["task"].clone();
        assert_eq!(text(&task["artifacts"][0]), "small, turn 3");
    });
}

#[test]
fn a_streamed_reply_begins_with_the_task_and_ends_with_it() {
    on_all(|talk| {
        let asked = talk.say("ask");
        let params = talk.reply(&asked, "pause 200ms");
        let events = talk.stream("SendStreamingMessage", params);
        let first = events[0].frame();
        assert_eq!(first["task"]["id"], asked["id"]);
        assert_eq!(state(&first["task"]), "TASK_STATE_SUBMITTED");
        assert_eq!(state(&events.last().expect("frames").frame()["statusUpdate"]), "TASK_STATE_COMPLETED");
    });
}

#[test]
fn a_message_said_while_the_agent_works_is_kept_in_the_history() {
    on_all(|talk| {
        let task = talk.start("hold");
        reached(&talk.client, id(&task), "TASK_STATE_WORKING");
        let mut params = talk.reply(&task, "one more thing");
        params["configuration"] = json!({"returnImmediately": true});
        let after = talk.ok("SendMessage", params)["task"].clone();
        assert_eq!(state(&after), "TASK_STATE_WORKING");
        assert_eq!(text(after["history"].as_array().expect("history").last().expect("messages")), "one more thing");
    });
}

#[test]
fn the_context_is_inferred_from_the_task() {
    on_all(|talk| {
        let asked = talk.say("ask");
        let params = talk.reply(&asked, "medium");
        let task = talk.ok("SendMessage", params)["task"].clone();
        assert_eq!(task["contextId"], asked["contextId"]);
        for message in task["history"].as_array().expect("history") {
            assert_eq!(message["contextId"], asked["contextId"]);
        }
    });
}

#[test]
fn a_context_that_is_not_the_tasks_is_refused() {
    on_all(|talk| {
        let asked = talk.say("ask");
        let mut params = talk.reply(&asked, "medium");
        params["message"]["contextId"] = json!("another-context");
        let refusal = talk.refused("SendMessage", params);
        assert_eq!(refusal.fields(), ["message.contextId"]);
        let read = talk.ok("GetTask", json!({"id": id(&asked)}));
        assert_eq!(read, asked, "a refused message leaves no trace");
    });
}

#[test]
fn a_callers_own_context_is_kept_and_shared_by_its_tasks() {
    on_all(|talk| {
        for said in ["complete one", "complete two"] {
            let mut params = talk.message(said);
            params["message"]["contextId"] = json!("my-context");
            let task = talk.ok("SendMessage", params)["task"].clone();
            assert_eq!(task["contextId"], "my-context");
        }
        let list = talk.ok("ListTasks", json!({"contextId": "my-context"}));
        assert_eq!(list["totalSize"], 2);
    });
}

#[test]
fn a_context_is_made_where_none_is_given() {
    on_all(|talk| {
        let (one, two) = (talk.say("complete"), talk.say("complete"));
        assert!(one["contextId"].as_str().is_some_and(|context| !context.is_empty()));
        assert_ne!(one["contextId"], two["contextId"]);
        assert_ne!(one["id"], two["id"]);
    });
}

#[test]
fn a_message_to_an_unknown_task_is_refused_and_makes_none() {
    on_all(|talk| {
        for unknown in ["no-such-task", "01890a5d-ac96-774b-bcce-b302099a8057"] {
            let params = talk.reply(&json!({"id": unknown}), "hello");
            let refusal = talk.refused("SendMessage", params.clone());
            assert_eq!(refusal.reason, "TASK_NOT_FOUND");
            assert_eq!(refusal.metadata["taskId"], unknown);
            assert_eq!(talk.refused_stream("SendStreamingMessage", params).reason, "TASK_NOT_FOUND");
        }
        assert_eq!(talk.ok("ListTasks", json!({}))["totalSize"], 0);
    });
}

#[test]
fn a_message_to_an_ended_task_is_refused() {
    on_all(|talk| {
        for said in ["complete", "fail", "reject", "give up"] {
            let task = talk.say(said);
            let params = talk.reply(&task, "one more thing");
            let refusal = talk.refused("SendMessage", params.clone());
            assert_eq!(refusal.reason, "UNSUPPORTED_OPERATION");
            assert_eq!(talk.refused_stream("SendStreamingMessage", params).reason, "UNSUPPORTED_OPERATION");
            assert_eq!(talk.ok("GetTask", json!({"id": id(&task)})), task);
        }
    });
}

#[test]
fn references_extensions_and_metadata_come_back_in_the_history() {
    on_all(|talk| {
        let earlier = talk.say("complete");
        let mut params = talk.message("complete");
        params["message"]["referenceTaskIds"] = json!([id(&earlier)]);
        params["message"]["extensions"] = json!(["urn:test:some"]);
        params["message"]["metadata"] = json!({"urn:test:some": {"n": 1}});
        let task = talk.ok("SendMessage", params.clone())["task"].clone();
        let kept = &task["history"][0];
        for field in ["messageId", "role", "parts", "referenceTaskIds", "extensions", "metadata"] {
            assert_eq!(kept[field], params["message"][field], "{field}");
        }
    });
}

#[test]
fn a_message_said_while_the_agent_works_is_taken_up_before_the_task_ends() {
    on_all(|talk| {
        let task = talk.start("work 2s");
        reached(&talk.client, id(&task), "TASK_STATE_WORKING");
        let params = talk.reply(&task, "one more thing");
        let after = talk.ok("SendMessage", params)["task"].clone();
        assert_eq!(state(&after), "TASK_STATE_COMPLETED");
        assert_eq!(text(&after["artifacts"][0]), "one more thing, turn 2");
        assert_eq!(text(&after["history"][3]), "Worked", "what the first turn came to is kept: {after}");
    });
}
