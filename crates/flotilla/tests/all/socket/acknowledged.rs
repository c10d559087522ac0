//! Runs that an agent has acknowledged and says nothing of: they stay its own, and their callers know them.

use super::{agent_key, answer, caller, dial};
use crate::cast::{id, reached, setup, state};
use flotilla_testkit::Binding;
use serde_json::{Value, json};

fn acknowledge(agent: &mut flotilla_testkit::socket::Socket, message: &Value) {
    agent.send(&json!({"type": "ack", "taskId": message["taskId"], "run": message["run"]}));
}

#[test]
fn an_agent_that_resumes_after_a_restart_keeps_its_run_however_silent_it_is() {
    let mut hub = setup().config("sockets: {grace: 4s}").start();
    let keys = [agent_key(&hub, "silent"), agent_key(&hub, "lost")];
    let begun = keys.each_ref().map(|key| {
        let mut agent = dial(&hub, key).open();
        let name = agent.welcome["agentId"].as_str().expect("a name").to_owned();
        let task = caller(&hub, Binding::JsonRpc, &name).start("m", "Take your time");
        let message = agent.kind("message");
        acknowledge(&mut agent, &message);
        // Frames are worked on in order.
        agent.send(&json!({"type": "ping"}));
        agent.kind("pong");
        (agent, task, message)
    });
    let token = begun[0].0.welcome["resumeToken"].as_str().expect("a token").to_owned();
    hub.restart();
    let mut agent = dial(&hub, &keys[0]).query("resume", &token).open();
    assert_eq!(agent.welcome["resumed"], true);
    // The one that does not come back shows that the grace time is over.
    reached(&caller(&hub, Binding::JsonRpc, "lost"), id(&begun[1].1), "TASK_STATE_FAILED");
    let client = caller(&hub, Binding::JsonRpc, "silent");
    assert_eq!(state(&client.task(id(&begun[0].1))), "TASK_STATE_SUBMITTED");
    answer(&mut agent, &begun[0].2, "Done");
    reached(&client, id(&begun[0].1), "TASK_STATE_COMPLETED");
}
