//! Alive, ready, and real numbers.

use crate::cast::{hub, reached, state};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, HubProcess};
use serde_json::json;

fn metrics(hub: &HubProcess) -> String {
    let response = hub.owner(Binding::HttpJson).get("/metrics");
    assert_eq!(response.status, 200);
    assert!(response.header("content-type").is_some_and(|kind| kind.starts_with("text/plain")));
    response.text().to_owned()
}

/// The value of a series, by its name and some of its labels.
fn value(text: &str, name: &str, labels: &[&str]) -> f64 {
    let fits = |line: &&str| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
            && labels.iter().all(|label| line.contains(label))
    };
    let line = text.lines().find(fits).unwrap_or_else(|| panic!("no {name} {labels:?} in\n{text}"));
    line.rsplit_once(' ').and_then(|(_, value)| value.parse().ok()).unwrap_or_else(|| panic!("no number in {line}"))
}

#[test]
fn a_hub_says_that_it_is_alive_and_ready() {
    let hub = hub();
    let stranger = hub.stranger(Binding::HttpJson);
    assert_eq!(stranger.get("/healthz").json(), json!({"status": "ok"}));
    assert_eq!(stranger.get("/readyz").json(), json!({"status": "ready"}));
}

#[test]
fn every_metric_says_what_it_is() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    owner.say("a", "complete");
    owner.call("ListTasks", &json!({"pageSize": 101})).expect_err("refused");
    let text = metrics(&hub);
    let named = |mark: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(mark));
        lines.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    let (typed, helped) = (named("# TYPE "), named("# HELP "));
    assert!(typed.len() >= 15, "{typed:?}");
    assert_eq!(typed, helped);
}

#[test]
fn requests_are_counted_and_timed_by_binding_and_method() {
    let hub = hub();
    for (binding, times) in [(Binding::JsonRpc, 3), (Binding::HttpJson, 2)] {
        for index in 0..times {
            hub.owner(binding).say(&format!("{binding:?}-{index}"), "complete");
        }
    }
    let text = metrics(&hub);
    for (binding, times) in [("binding=\"jsonrpc\"", 3.0), ("binding=\"http_json\"", 2.0)] {
        let labels = [binding, "method=\"SendMessage\""];
        assert_eq!(value(&text, "flotilla_requests_total", &labels), times);
        assert_eq!(value(&text, "flotilla_request_seconds_count", &labels), times);
        assert!(value(&text, "flotilla_request_seconds_sum", &labels) > 0.0);
        assert_eq!(value(&text, "flotilla_request_seconds_bucket", &[binding, labels[1], "le=\"+Inf\""]), times);
    }
}

#[test]
fn tasks_refusals_and_repeats_are_counted() {
    let hub = hub();
    let owner = hub.owner(Binding::JsonRpc);
    for (id, said) in [("a", "complete"), ("b", "complete"), ("b", "complete"), ("c", "fail"), ("d", "reject")] {
        owner.say(id, said);
    }
    owner.call("SendMessage", &message("e", "direct")).expect("a message");
    owner.call("GetTask", &json!({"id": "none"})).expect_err("refused");
    let text = metrics(&hub);
    assert_eq!(value(&text, "flotilla_tasks_opened_total", &[]), 4.0);
    assert_eq!(value(&text, "flotilla_messages_answered_total", &[]), 1.0);
    assert_eq!(value(&text, "flotilla_tasks_ended_total", &["state=\"completed\""]), 2.0);
    assert_eq!(value(&text, "flotilla_tasks_ended_total", &["state=\"failed\""]), 1.0);
    assert_eq!(value(&text, "flotilla_tasks_ended_total", &["state=\"rejected\""]), 1.0);
    assert_eq!(value(&text, "flotilla_sends_deduplicated_total", &[]), 1.0);
    assert_eq!(value(&text, "flotilla_refusals_total", &["reason=\"TASK_NOT_FOUND\"", "binding=\"jsonrpc\""]), 1.0);
}

#[test]
fn streams_and_runs_under_way_are_told() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson);
    let mut stream = owner.stream("SendStreamingMessage", &message("m", "hold")).expect("a stream");
    let task = stream.expect().frame()["task"]["id"].as_str().expect("an id").to_owned();
    reached(&owner, &task, "TASK_STATE_WORKING");
    let text = metrics(&hub);
    assert_eq!(value(&text, "flotilla_streams_open", &[]), 1.0);
    assert_eq!(value(&text, "flotilla_runs_live", &[]), 1.0);
    owner.call("CancelTask", &json!({"id": task})).expect("canceled");
    assert_eq!(state(&stream.rest().last().expect("the end").frame()["statusUpdate"]), "TASK_STATE_CANCELED");
    flotilla_testkit::until("both are over", || {
        let text = metrics(&hub);
        let over = value(&text, "flotilla_streams_open", &[]) == 0.0 && value(&text, "flotilla_runs_live", &[]) == 0.0;
        over.then_some(())
    });
}

#[test]
fn a_connection_that_says_nothing_is_let_go() {
    use std::io::{Read as _, Write as _};
    let hub = crate::cast::hub_with("limits: {head_time: 200ms}");
    for said in ["", "P", "PRI * HT", "GET /healthz HTTP/1.1\r\nHost"] {
        let mut silent = std::net::TcpStream::connect(hub.address()).expect("the hub takes connections");
        silent.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("a deadline can be set");
        silent.write_all(said.as_bytes()).expect("the hub listens");
        let mut answer = Vec::new();
        // Closed or reset, but not waited for.
        let open = |error: std::io::Error| error.kind() != std::io::ErrorKind::ConnectionReset;
        assert!(!silent.read_to_end(&mut answer).is_err_and(open), "still open after {said:?}");
    }
}
