//! Agents that redirect the calls to them: followed within their origin, and named otherwise.

use super::{before, done, reason, status, task};
use crate::cast::{id, reached, setup, state};
use flotilla_testkit::{Act, Asked, Binding, HubProcess, StandIn};
use serde_json::{Value, json};

fn led_to(status: u16, location: &'static str) -> Vec<Act> {
    vec![Act::Header(location), Act::Body(status, String::new())]
}

/// A card that names `/a2a`, over a binding.
fn below(binding: &'static str, streaming: bool) -> impl Fn(&str) -> Value {
    move |url| {
        let mut card = flotilla_testkit::stand_in::card(&format!("{url}/a2a"), streaming);
        card["supportedInterfaces"][0]["protocolBinding"] = json!(binding);
        card
    }
}

/// What the owner of the hub reads in the log of a task.
fn log(near: &HubProcess, task: &Value) -> String {
    near.owner(Binding::JsonRpc).get(&format!("/api/tasks/{}/log", id(task))).text().to_owned()
}

/// As Starlette does for what is mounted: the same path with a slash.
#[test]
fn a_call_is_made_where_a_redirect_of_the_same_origin_leads() {
    for code in [307, 308] {
        let agent = StandIn::with_card(below("JSONRPC", true), move |asked: &Asked| {
            let is_there = asked.path == "/a2a/";
            match asked.method.as_str() {
                _ if !is_there => led_to(code, "location: /a2a/"),
                "SendStreamingMessage" => {
                    vec![Act::Event(json!({"task": task("t-1", "WORKING")})), Act::Event(status("t-1", "COMPLETED"))]
                }
                "GetTask" => vec![Act::Answer(task("t-1", "COMPLETED"))],
                _ => done("t-1"),
            }
        });
        let url = format!("url: '{}', auth: {{bearer: 'env:FAR_KEY'}}", agent.url());
        let config = format!("hub: {{default_agent: far}}\nagents:\n  far: {{kind: a2a, {url}}}\n");
        let near = setup().config(&config).env("FAR_KEY", "s3cret").start();
        let client = near.owner(Binding::JsonRpc);
        assert_eq!(state(&client.say("m-1", "go")), "TASK_STATE_COMPLETED");
        let watched = client.start("m-2", "go");
        reached(&client, id(&watched), "TASK_STATE_COMPLETED");
        let sends = [agent.asked("SendMessage"), agent.asked("SendStreamingMessage")];
        for sends in sends {
            assert_eq!(sends.iter().map(|asked| asked.path.as_str()).collect::<Vec<_>>(), ["/a2a", "/a2a/"]);
            assert_eq!(sends[0].body, sends[1].body, "the same message");
            for name in ["authorization", "idempotency-key", "a2a-version", "content-type", "traceparent"] {
                assert!(sends[0].header(name).is_some() && sends[0].header(name) == sends[1].header(name), "{name}");
            }
        }
    }
}

#[test]
fn the_paths_of_http_json_may_lead_on_too() {
    let agent = StandIn::with_card(below("HTTP+JSON", false), |asked: &Asked| match asked.path.as_str() {
        "/a2a/message:send" => led_to(307, "location: /a2a/message:send/"),
        "/a2a/message:send/" => vec![Act::Body(200, json!({"task": task("t-1", "COMPLETED")}).to_string())],
        _ => vec![Act::Body(404, "{}".into())],
    });
    let near = before(&agent, "");
    assert_eq!(state(&near.owner(Binding::JsonRpc).say("m-1", "go")), "TASK_STATE_COMPLETED");
}

#[test]
fn a_redirect_that_is_not_followed_is_named() {
    for (code, location, told) in [
        (302, "location: /a2a/", "/a2a/, where calls do not follow it; the agent's card has to name that address"),
        (307, "location: /a2a", "it redirects more than 3 times"),
        (308, "x-nothing: here", "it redirects to nowhere"),
    ] {
        let agent = StandIn::with_card(below("JSONRPC", false), move |_: &Asked| led_to(code, location));
        let near = before(&agent, "");
        let task = near.owner(Binding::JsonRpc).say("m-1", "go");
        assert_eq!(state(&task), "TASK_STATE_FAILED");
        let shown = format!("cannot be called: HTTP {code}: it redirects calls elsewhere");
        assert!(reason(&task).ends_with(&shown), "where, and what to do, is its owner's to know: {}", reason(&task));
        assert!(log(&near, &task).contains(told), "{}", log(&near, &task));
    }
}

#[test]
fn a_call_does_not_follow_a_redirect_to_another_origin() {
    let elsewhere = StandIn::start(false, |_| done("t-1"));
    let location: &'static str = format!("location: {}/a2a", elsewhere.url()).leak();
    let agent = StandIn::with_card(below("JSONRPC", false), move |_: &Asked| led_to(307, location));
    let near = before(&agent, "");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_FAILED");
    assert!(reason(&task).ends_with("HTTP 307: it redirects calls elsewhere"), "{}", reason(&task));
    let told = format!("it redirects to {}/a2a, of another origin", elsewhere.url());
    assert!(log(&near, &task).contains(&told), "its owner is told where");
    assert!(elsewhere.asked("SendMessage").is_empty());
}
