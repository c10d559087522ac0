//! Two keys never see each other's tasks, and "not yours" looks exactly like "not there".

use crate::cast::{CONFIG, hub, id, reached, setup};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, Refusal, Response};
use serde_json::{Value, json};

/// A response without what must differ: the id asked for and the time.
pub fn bare(response: &Response, asked: &str) -> (u16, Vec<(String, String)>, String) {
    let refusal = Refusal::of(response);
    let time = refusal.metadata["timestamp"].as_str().expect("a time");
    let volatile = ["date", "content-length"];
    let headers = response.headers.iter().filter(|(name, _)| !volatile.contains(&name.to_ascii_lowercase().as_str()));
    (response.status, headers.cloned().collect(), response.text().replace(asked, "ID").replace(time, "TIME"))
}

fn on_a_task(task: &str) -> Vec<(&'static str, Value)> {
    let mut reply = message("intruding", "hello");
    reply["message"]["taskId"] = json!(task);
    vec![
        ("GetTask", json!({"id": task})),
        ("GetTask", json!({"id": task, "historyLength": 0})),
        ("CancelTask", json!({"id": task})),
        ("SubscribeToTask", json!({"id": task})),
        ("SendMessage", reply.clone()),
        ("SendStreamingMessage", reply),
    ]
}

pub const NOWHERE: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// Nothing `other` can ask tells a task that is there from one that is not.
fn invisible(other: &Client, task: &str) {
    for client in
        [other.clone(), other.clone().header("last-event-id", "x.1"), other.clone().header("idempotency-key", "k")]
    {
        for ((method, real), (_, unreal)) in on_a_task(task).into_iter().zip(on_a_task(NOWHERE)) {
            let real = client.response(method, &real);
            assert_eq!(Refusal::of(&real).reason, "TASK_NOT_FOUND", "{method}");
            assert_eq!(bare(&real, task), bare(&client.response(method, &unreal), NOWHERE), "{method}");
        }
    }
    let list = other.call("ListTasks", &json!({})).expect("a list");
    assert_eq!((list["totalSize"].as_u64(), list["tasks"].as_array().map(Vec::len)), (Some(0), Some(0)));
}

#[test]
fn another_keys_task_is_not_there_whatever_its_state() {
    for binding in Binding::ALL {
        let hub = hub();
        let alice = hub.caller(binding, "alice");
        let bob = hub.caller(binding, "bob");
        for said in ["hold", "ask", "complete"] {
            let task = alice.start(said, said);
            let wanted = match said {
                "hold" => "TASK_STATE_WORKING",
                "ask" => "TASK_STATE_INPUT_REQUIRED",
                _ => "TASK_STATE_COMPLETED",
            };
            let before = reached(&alice, id(&task), wanted);
            invisible(&bob, id(&task));
            invisible(&hub.owner(binding), id(&task));
            assert_eq!(alice.task(id(&task)), before, "nobody has touched it");
        }
    }
}

#[test]
fn another_keys_context_is_empty() {
    let hub = hub();
    for binding in Binding::ALL {
        let alice = hub.caller(binding, &format!("alice-{binding:?}"));
        let bob = hub.caller(binding, &format!("bob-{binding:?}"));
        let task = alice.say("m", "complete");
        let context = json!({"contextId": task["contextId"]});
        assert_eq!(bob.call("ListTasks", &context).expect("a list")["totalSize"], 0);
        let mut params = message("m", "complete");
        params["message"]["contextId"] = task["contextId"].clone();
        bob.call("SendMessage", &params).expect("a context is only a name");
        for client in [&alice, &bob] {
            assert_eq!(client.call("ListTasks", &context).expect("a list")["totalSize"], 1);
        }
    }
}

#[test]
fn a_page_token_opens_nothing_for_another_key() {
    let hub = hub();
    for binding in Binding::ALL {
        let alice = hub.caller(binding, &format!("alice-{binding:?}"));
        for index in 0..3 {
            alice.say(&format!("m-{index}"), "complete");
        }
        let token = alice.call("ListTasks", &json!({"pageSize": 1})).expect("a page")["nextPageToken"].clone();
        let bob = hub.caller(binding, &format!("bob-{binding:?}"));
        let page = bob.call("ListTasks", &json!({"pageToken": token})).expect("a page");
        assert_eq!((page["totalSize"].as_u64(), page["tasks"].as_array().map(Vec::len)), (Some(0), Some(0)));
    }
}

#[test]
fn strangers_and_keys_do_not_see_each_other() {
    for binding in Binding::ALL {
        let hub = setup().config(CONFIG).arg("--allow-anonymous").start();
        let alice = hub.caller(binding, "alice");
        let hers = alice.say("m", "complete");
        invisible(&hub.stranger(binding), id(&hers));
        let theirs = hub.stranger(binding).say("m", "complete");
        let bob = hub.caller(binding, "bob");
        invisible(&bob, id(&theirs));
    }
}

#[test]
fn the_owners_log_is_for_the_owner_only() {
    let hub = hub();
    let alice = hub.caller(Binding::HttpJson, "alice");
    let task = alice.say("m", "complete");
    let log = |client: &Client, task: &str| client.get(&format!("/api/tasks/{task}/log"));
    assert_eq!(log(&hub.owner(Binding::HttpJson), id(&task)).status, 200);
    for client in [&alice, &hub.caller(Binding::HttpJson, "bob")] {
        let (own, none) = (log(client, id(&task)), log(client, NOWHERE));
        assert_eq!(own.status, 404, "not even for one's own tasks: the agent is not hers");
        assert_eq!(bare(&own, id(&task)), bare(&none, NOWHERE));
    }
    assert_eq!(log(&hub.stranger(Binding::HttpJson), id(&task)).status, 401);
}
