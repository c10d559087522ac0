//! Answers of an agent of A2A on a socket: those that are whole, and those that cannot be used.

use super::{agent_key, caller, dial};
use crate::cast::{id, reached, setup, text};
use flotilla_testkit::Binding;
use flotilla_testkit::socket::Socket;
use serde_json::{Value, json};

fn requested(agent: &mut Socket) -> Value {
    agent.wait_for("a request", |frame| frame.get("method").is_some())
}

fn status(task: &str, state: &str) -> Value {
    json!({"statusUpdate": {"taskId": task, "contextId": "c", "status": {"state": state}}})
}

fn task(state: &str) -> Value {
    json!({"task": {"id": "theirs", "contextId": "c", "status": {"state": state}}})
}

#[test]
fn what_cannot_be_used_fails_the_run_in_plain_words() {
    let hub = setup().start();
    let mut agent = dial(&hub, &agent_key(&hub, "odd")).subprotocol("a2a.v1").open();
    let client = caller(&hub, Binding::JsonRpc, "odd");
    let working = task("TASK_STATE_WORKING");
    for (answers, problem) in [
        (vec![Value::Null], "null"),
        (vec![json!({"foo": {}})], "foo"),
        (vec![working, status("other", "TASK_STATE_COMPLETED")], "statusUpdate.taskId is 'other'"),
    ] {
        let asked = client.start(&format!("m {problem}"), "Go");
        let request = requested(&mut agent);
        for result in answers {
            agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
        }
        let failed = reached(&client, id(&asked), "TASK_STATE_FAILED");
        let told = text(&failed["status"]["message"]);
        assert!(told.contains("InvalidAgentResponse") && told.contains(problem), "{told}");
        assert!(!told.contains(" at line "), "{told}");
    }
}

#[test]
fn an_answer_that_ended_with_its_task_is_not_followed() {
    let hub = setup().start();
    let mut agent = dial(&hub, &agent_key(&hub, "quick")).subprotocol("a2a.v1").open();
    let card = json!({"name": "Quick", "capabilities": {"streaming": true}});
    agent.send(&json!({"type": "update_card", "agentCard": card}));
    agent.kind("card_updated");
    let client = caller(&hub, Binding::JsonRpc, "quick");
    for round in 0..20 {
        let end = if round % 2 == 0 { "TASK_STATE_COMPLETED" } else { "TASK_STATE_INPUT_REQUIRED" };
        let asked = client.start(&format!("m{round}"), "Go");
        // Had the last one been followed, this would be that question.
        let request = requested(&mut agent);
        assert_eq!(request["method"], "SendStreamingMessage", "round {round}");
        for result in [task("TASK_STATE_WORKING"), status("theirs", end)] {
            agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
        }
        agent.send(&json!({"jsonrpc": "2.0", "id": request["id"], "streamEnd": true}));
        reached(&client, id(&asked), end);
    }
}
