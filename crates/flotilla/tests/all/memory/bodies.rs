//! Bodies that are never finished, and messages that wait for their agent.

use super::{attack, hub};
use flotilla_testkit::client::message;
use flotilla_testkit::hostile::RawHttp2;
use flotilla_testkit::{Binding, Client};
use std::time::Duration;

const BODY: usize = 16_000_000;

#[test]
fn unfinished_bodies_of_one_key_are_bounded() {
    let hub = hub();
    attack("unfinished bodies over HTTP/2", &hub, |key| {
        let bearer = format!("Bearer {key}");
        let headers =
            [("authorization", bearer.as_str()), ("content-type", "application/json"), ("a2a-version", "1.0")];
        let mut connections: Vec<RawHttp2> = (0..3).map(|_| RawHttp2::connect(hub.address())).collect();
        for connection in &mut connections {
            connection.read_on();
            let ids: Vec<u32> = (0..200).map(|_| connection.ask("POST", "/a2a", &headers, false)).collect();
            connection.fill(&ids, BODY, Duration::from_secs(6));
        }
    });
}

#[test]
fn unfinished_bodies_over_grpc_are_bounded() {
    let hub = hub();
    attack("unfinished bodies over gRPC", &hub, |key| {
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/grpc"), ("te", "trailers")];
        let mut connection = RawHttp2::connect(hub.address());
        connection.read_on();
        let path = "/lf.a2a.v1.A2AService/SendMessage";
        let ids: Vec<u32> = (0..200).map(|_| connection.ask("POST", path, &headers, false)).collect();
        connection.fill(&ids, BODY, Duration::from_secs(6));
    });
}

#[test]
fn messages_whose_runs_are_not_over_are_bounded() {
    let hub = hub();
    attack("messages under way", &hub, |key| {
        let client = Client::new(hub.address(), Binding::JsonRpc).agent("hold").key(key);
        let text = "x".repeat(7_000_000);
        for index in 0..150 {
            let mut request = message(&format!("m{index}"), &text);
            request["configuration"] = serde_json::json!({"returnImmediately": true});
            // Beyond its share the key is refused.
            let _ = client.call("SendMessage", &request);
        }
    });
}
