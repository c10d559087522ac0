//! Bodies that are never finished, and messages that wait for their agent.

use flotilla_testkit::client::message;
use flotilla_testkit::hostile::RawHttp2;
use flotilla_testkit::{Binding, Client, HubProcess};
use serde_json::json;
use std::time::Duration;

const BODY: usize = 16_000_000;
const TIME: Duration = Duration::from_secs(5);

fn fill(hub: &HubProcess, key: &str, connections: usize, path: &str, more: &[(&str, &str)]) {
    let bearer = format!("Bearer {key}");
    let headers: Vec<_> = [("authorization", bearer.as_str())].into_iter().chain(more.iter().copied()).collect();
    for mut connection in (0..connections).map(|_| RawHttp2::connect(hub.address())).collect::<Vec<_>>() {
        connection.read_on();
        let ids: Vec<u32> = (0..200).map(|_| connection.ask("POST", path, &headers, false)).collect();
        connection.fill(&ids, BODY, TIME);
    }
}

pub fn unfinished_over_http2(hub: &HubProcess, key: &str) {
    fill(hub, key, 2, "/a2a", &[("content-type", "application/json"), ("a2a-version", "1.0")]);
}

pub fn unfinished_over_grpc(hub: &HubProcess, key: &str) {
    let path = "/lf.a2a.v1.A2AService/SendMessage";
    fill(hub, key, 1, path, &[("content-type", "application/grpc"), ("te", "trailers")]);
}

/// Health checks of gRPC need no key.
pub fn unfinished_health_checks(hub: &HubProcess, _key: &str) {
    let headers = [("content-type", "application/grpc"), ("te", "trailers")];
    for path in ["/grpc.health.v1.Health/Check", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"] {
        for mut connection in (0..2).map(|_| RawHttp2::connect(hub.address())).collect::<Vec<_>>() {
            connection.read_on();
            let ids: Vec<u32> = (0..200).map(|_| connection.ask("POST", path, &headers, false)).collect();
            connection.fill(&ids, 3_900_000, Duration::from_secs(2));
        }
    }
}

/// A body that is small as it is written, and large as it is read.
pub fn many_tiny_values(hub: &HubProcess, key: &str) {
    let client = Client::new(hub.address(), Binding::JsonRpc).agent("echo").key(key);
    for tiny in ["{}", r#"{"text":""}"#] {
        let mut request = message("tiny", "x");
        let parts = format!("[{}]", vec![tiny; 15_000_000 / (tiny.len() + 1)].join(","));
        request["message"]["parts"] = serde_json::from_str(&parts).expect("parts");
        let refused = client.call("SendMessage", &request).expect_err("too many parts");
        assert!(refused.message.contains("more than 100000 objects"), "{}", refused.message);
    }
}

pub fn messages_under_way(hub: &HubProcess, key: &str) {
    let client = Client::new(hub.address(), Binding::JsonRpc).agent("hold").key(key);
    let text = "x".repeat(7_000_000);
    for index in 0..30 {
        let mut request = message(&format!("m{index}"), &text);
        request["configuration"] = json!({"returnImmediately": true});
        // Beyond its share the key is refused.
        let _ = client.call("SendMessage", &request);
    }
}
