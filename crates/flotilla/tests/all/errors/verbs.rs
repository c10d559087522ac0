//! HTTP's own rules: verbs, paths, media types of answers.

use crate::cast::{hub, id};
use flotilla_testkit::{Binding, Request};
use serde_json::json;

#[test]
fn a_wrong_verb_is_told_the_right_ones() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    for (target, allowed, wrong) in [
        ("/message:send", "POST", &["GET", "PUT", "DELETE", "PATCH"][..]),
        ("/message:stream", "POST", &["GET", "DELETE"]),
        ("/tasks", "GET", &["POST", "DELETE"]),
        ("/tasks/x", "GET", &["POST", "DELETE", "PUT"]),
        ("/tasks/x:cancel", "POST", &["GET", "DELETE"]),
        ("/tasks/x:subscribe", "GET, POST", &["DELETE", "PUT"]),
        ("/tasks/x/pushNotificationConfigs", "GET, POST", &["DELETE", "PUT"]),
        ("/tasks/x/pushNotificationConfigs/c", "GET, DELETE", &["POST", "PUT"]),
        ("/extendedAgentCard", "GET", &["POST"]),
        ("/agents/echo/message:send", "POST", &["GET"]),
        ("/echo/tasks", "GET", &["POST"]),
        ("/a2a", "POST", &["GET", "PUT", "DELETE"]),
        ("/rpc", "POST", &["GET"]),
        ("/", "POST", &["GET", "DELETE"]),
        ("/agents/echo", "POST", &["GET"]),
        ("/agents/echo/a2a", "POST", &["GET"]),
        ("/.well-known/agent-card.json", "GET, HEAD", &["POST", "DELETE"]),
        ("/agents/echo/.well-known/agent-card.json", "GET, HEAD", &["POST"]),
    ] {
        for verb in wrong {
            let response = owner.send(Request::new(verb, target));
            assert_eq!((response.status, response.header("allow")), (405, Some(allowed)), "{verb} {target}");
        }
    }
}

#[test]
fn the_refusal_of_a_verb_has_the_same_code_in_its_body() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    for (verb, target) in [("GET", "/message:send"), ("DELETE", "/tasks/x"), ("GET", "/a2a")] {
        let response = owner.send(Request::new(verb, target));
        assert_eq!((response.status, &response.json()["error"]["code"]), (405, &json!(405)), "{verb} {target}");
    }
}

#[test]
fn the_hubs_own_paths_know_their_verbs_too() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let task = owner.say("m", "complete");
    let log = format!("/api/tasks/{}/log", id(&task));
    for target in ["/healthz", "/readyz", "/metrics", log.as_str()] {
        for verb in ["POST", "DELETE"] {
            let response = owner.send(Request::new(verb, target));
            assert_eq!(response.status, 405, "{verb} {target}");
            assert!(response.header("allow").is_some_and(|allowed| allowed.contains("GET")), "{verb} {target}");
        }
    }
}

#[test]
fn a_path_that_leads_nowhere_is_not_found() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    for target in ["/nothing", "/tasks/a/b", "/message:nothing", "/tasks/x/pushNotificationConfigs/c/d"] {
        for verb in ["GET", "POST"] {
            assert_eq!(owner.send(Request::new(verb, target)).status, 404, "{verb} {target}");
        }
    }
}

#[test]
fn an_answer_is_of_the_media_type_its_caller_speaks() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let answered = |accept: Option<&str>, target: &str| {
        let request = Request::get(target);
        let request = accept.map_or(request.clone(), |accept| request.header("accept", accept));
        owner.send(request).header("content-type").map(str::to_owned)
    };
    for target in ["/tasks", "/tasks/none"] {
        assert_eq!(answered(None, target).as_deref(), Some("application/a2a+json"));
        assert_eq!(answered(Some("application/a2a+json"), target).as_deref(), Some("application/a2a+json"));
        assert_eq!(answered(Some("application/json"), target).as_deref(), Some("application/json"));
        assert_eq!(answered(Some("*/*"), target).as_deref(), Some("application/a2a+json"));
    }
    let rpc = hub.owner(Binding::JsonRpc).response("ListTasks", &json!({}));
    assert_eq!(rpc.header("content-type"), Some("application/json"));
}
