//! Canceling reaches the agent first, and what it answers is what the caller is told.

use super::{before, chained, reason, status, task};
use crate::cast::{hub, id, reached, state};
use flotilla_testkit::client::message;
use flotilla_testkit::{Act, Asked, Binding, StandIn, until};
use serde_json::json;

/// Streams that it works, and holds; `cancel` says what CancelTask is answered with.
fn working(cancel: impl Fn() -> Act + Send + Sync + 'static) -> StandIn {
    StandIn::start(true, move |asked: &Asked| match asked.method.as_str() {
        "SendStreamingMessage" | "SubscribeToTask" => {
            vec![Act::Event(json!({"task": task("t-1", "WORKING")})), Act::Hold]
        }
        "CancelTask" => vec![cancel()],
        "GetTask" => vec![Act::Answer(task("t-1", "WORKING"))],
        other => panic!("nobody asks for {other}"),
    })
}

#[test]
fn the_other_hub_s_task_is_canceled_too() {
    let far = hub();
    for transport in ["JSONRPC", "HTTP+JSON", "GRPC"] {
        let near = chained(&far, "mock", &format!(", transports: ['{transport}']"));
        let client = near.owner(Binding::JsonRpc);
        let task = client.start("m-1", "hold");
        reached(&client, id(&task), "TASK_STATE_WORKING");
        let canceled = client.call("CancelTask", &json!({"id": id(&task)})).expect("a task");
        assert_eq!(state(&canceled), "TASK_STATE_CANCELED");
        let open = far.owner(Binding::JsonRpc).call("ListTasks", &json!({"status": "TASK_STATE_WORKING"}));
        assert_eq!(open.expect("a list")["tasks"], json!([]), "nothing goes on there");
    }
}

#[test]
fn a_task_that_waits_for_its_caller_is_canceled_there() {
    let far = hub();
    let near = chained(&far, "mock", "");
    let client = near.owner(Binding::JsonRpc);
    let task = client.say("m-1", "ask");
    let canceled = client.call("CancelTask", &json!({"id": id(&task)})).expect("a task");
    assert_eq!(state(&canceled), "TASK_STATE_CANCELED");
    let open = far.owner(Binding::JsonRpc).call("ListTasks", &json!({"status": "TASK_STATE_INPUT_REQUIRED"}));
    assert_eq!(open.expect("a list")["tasks"], json!([]));
    let again = client.call("CancelTask", &json!({"id": id(&task)})).expect_err("it has ended");
    assert_eq!(again.reason, "TASK_NOT_CANCELABLE");
}

#[test]
fn what_the_agent_refuses_is_refused_and_the_task_goes_on() {
    let agent = working(|| Act::Refuse(-32002, "I never stop"));
    let near = before(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    reached(&client, id(&task), "TASK_STATE_WORKING");
    let refusal = client.call("CancelTask", &json!({"id": id(&task)})).expect_err("a refusal");
    assert_eq!(refusal.reason, "TASK_NOT_CANCELABLE");
    assert!(refusal.message.contains("I never stop"), "{}", refusal.message);
    assert_eq!(state(&client.task(id(&task))), "TASK_STATE_WORKING");
    assert_eq!(agent.asked("CancelTask")[0].params["id"], "t-1", "by the agent's own id");
}

#[test]
fn an_agent_that_goes_on_is_told_to_go_on() {
    let agent = working(|| Act::Answer(task("t-1", "WORKING")));
    let near = before(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    reached(&client, id(&task), "TASK_STATE_WORKING");
    let answered = client.call("CancelTask", &json!({"id": id(&task)})).expect("a task");
    assert_eq!(state(&answered), "TASK_STATE_WORKING");
}

#[test]
fn an_agent_that_does_not_answer_is_not_said_to_have_stopped() {
    for (cancel, told, named) in [
        (Act::Hold, "cannot be reached", "UNAVAILABLE"),
        (Act::HangUp, "cannot be reached", "UNAVAILABLE"),
        (Act::Body(500, "<html>".into()), "broke when it was told to stop", "UNAVAILABLE"),
        (Act::Body(200, "?".into()), "not JSON", "INVALID_AGENT_RESPONSE"),
        (Act::Answer(json!(null)), "cannot be used", "INVALID_AGENT_RESPONSE"),
    ] {
        let agent = working(move || cancel.clone());
        let near = before(&agent, "timeouts: {answer: 300ms}");
        let client = near.owner(Binding::JsonRpc);
        let task = client.start("m-1", "go");
        reached(&client, id(&task), "TASK_STATE_WORKING");
        let refusal = client.call("CancelTask", &json!({"id": id(&task)})).expect_err("a refusal");
        assert!(refusal.message.contains(told), "{}", refusal.message);
        assert_eq!(refusal.reason, named, "{}", refusal.message);
        assert!(!refusal.message.contains("127.0.0.1"), "{}", refusal.message);
        assert_eq!(state(&client.task(id(&task))), "TASK_STATE_WORKING");
    }
}

/// One plain call, whose task nobody here knows the id of: it is searched for.
#[test]
fn a_caller_that_waits_for_the_end_can_have_it_canceled() {
    let stopped = std::sync::Mutex::new(false);
    let told = std::sync::Condvar::new();
    let agent = StandIn::start(false, move |asked: &Asked| match asked.method.as_str() {
        "SendMessage" => {
            let waiting = stopped.lock().expect("no panic");
            drop(told.wait_while(waiting, |stopped| !*stopped).expect("no panic"));
            vec![Act::Answer(json!({"task": task("t-1", "CANCELED")}))]
        }
        "ListTasks" => {
            let mut working = task("t-1", "WORKING");
            working["history"] = json!([{"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "go"}]}]);
            vec![Act::Answer(json!({"tasks": [working], "nextPageToken": "", "pageSize": 50, "totalSize": 1}))]
        }
        "CancelTask" => {
            *stopped.lock().expect("no panic") = true;
            told.notify_all();
            vec![Act::Answer(task("t-1", "CANCELED"))]
        }
        other => panic!("nobody asks for {other}"),
    });
    let near = before(&agent, "");
    let (client, waits) = (near.owner(Binding::JsonRpc), near.owner(Binding::JsonRpc));
    let waiting = std::thread::spawn(move || waits.say("m-1", "go"));
    agent.wait("SendMessage", 1);
    let task = client.start("m-1", "go");
    let canceled = client.call("CancelTask", &json!({"id": id(&task)})).expect("a task");
    assert_eq!(state(&canceled), "TASK_STATE_CANCELED");
    assert_eq!(state(&waiting.join().expect("no panic")), "TASK_STATE_CANCELED");
    assert_eq!((agent.asked("SendMessage").len(), agent.asked("CancelTask").len()), (1, 1));
}

/// An agent that was told to stop need not answer what it was asked before.
#[test]
fn what_the_agent_says_of_a_cancel_counts_though_it_never_answers_the_message() {
    let stopped = |words: &str| {
        let mut stopped = task("t-1", "CANCELED");
        stopped["status"]["message"] = json!({"messageId": "bye", "role": "ROLE_AGENT", "parts": [{"text": words}]});
        stopped
    };
    for is_reply in [false, true] {
        let agent = StandIn::start(false, move |asked: &Asked| match (asked.method.as_str(), asked.nth) {
            ("SendMessage", 0) if is_reply => vec![Act::Answer(json!({"task": task("t-1", "INPUT_REQUIRED")}))],
            ("SendMessage", _) => vec![Act::Hold],
            ("ListTasks", _) if !is_reply => {
                let mut working = task("t-1", "WORKING");
                working["history"] = json!([{"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "go"}]}]);
                vec![Act::Answer(json!({"tasks": [working]}))]
            }
            ("CancelTask", _) => vec![Act::Answer(stopped("Stopped"))],
            (other, _) => panic!("nobody asks for {other}"),
        });
        let near = before(&agent, "");
        let (client, waits) = (near.owner(Binding::JsonRpc), near.owner(Binding::JsonRpc));
        let mut params = message("m-1", "go");
        if is_reply {
            params["message"]["taskId"] = client.say("m-0", "ask")["id"].clone();
        }
        let (said, sends) = (params.clone(), 1 + usize::from(is_reply));
        let waiting = std::thread::spawn(move || waits.call("SendMessage", &said).expect("an answer")["task"].clone());
        agent.wait("SendMessage", sends);
        params["configuration"] = json!({"returnImmediately": true});
        let task = client.call("SendMessage", &params).expect("a receipt")["task"].clone();
        let canceled = client.call("CancelTask", &json!({"id": id(&task)})).expect("a task");
        assert_eq!((state(&canceled), reason(&canceled)), ("TASK_STATE_CANCELED", "Stopped"));
        assert_eq!(state(&waiting.join().expect("no panic")), "TASK_STATE_CANCELED");
        assert_eq!(agent.asked("SendMessage").len(), sends);
    }
}

#[test]
fn what_was_never_sent_is_canceled_at_once() {
    let gone = StandIn::start(true, |_| vec![Act::HangUp]).address;
    // Nobody listens at port 1: each try fails before anything is sent.
    let near = crate::cast::setup()
        .config(&super::config("http://127.0.0.1:1", "retries: {most: 100, first: 1h, longest: 1h}"))
        .start();
    assert_ne!(gone.port(), 1);
    let client = near.owner(Binding::JsonRpc);
    let task = client.start("m-1", "go");
    let canceled = client.call("CancelTask", &json!({"id": id(&task)})).expect("a task");
    assert_eq!(state(&canceled), "TASK_STATE_CANCELED");
}

#[test]
fn the_last_word_of_a_canceled_task_is_the_agent_s() {
    let mut ended = task("t-1", "CANCELED");
    ended["status"]["message"] =
        json!({"messageId": "bye", "role": "ROLE_AGENT", "parts": [{"text": "Stopped half-way"}]});
    ended["artifacts"] = json!([{"artifactId": "half", "parts": [{"text": "half"}]}]);
    let agent = working(move || Act::Answer(ended.clone()));
    let near = before(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let mut stream = client.stream("SendStreamingMessage", &message("m-1", "go")).expect("a stream");
    let task = stream.expect().frame()["task"].clone();
    reached(&client, id(&task), "TASK_STATE_WORKING");
    let canceled = client.call("CancelTask", &json!({"id": id(&task)})).expect("a task");
    assert_eq!((state(&canceled), reason(&canceled)), ("TASK_STATE_CANCELED", "Stopped half-way"));
    assert_eq!(super::texts(&canceled["artifacts"][0]), ["half"]);
    let last = stream.rest().last().expect("events").frame();
    assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(status("t", "CANCELED")["statusUpdate"]["status"], json!({"state": "TASK_STATE_CANCELED"}));
    until("the stream there is given up", || (agent.asked("CancelTask").len() == 1).then_some(()));
}
