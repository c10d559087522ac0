//! The head of a request: how long it may be, and what it must say.

use super::{HEADERS, NO_HOST, Send, has_codes, is_accepted, is_over, over, versions, ways};
use crate::cast::hub_with;
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, Refusal, Request, Response};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

fn padded(client: &Client, id: &str, bytes: usize) -> Request {
    client.request_over_http2("SendMessage", &message(id, "complete")).header("x-padding", &"x".repeat(bytes))
}

/// How much padding makes the head exactly as long as allowed: the refusal of a longer one tells its size.
fn room(client: &Client, send: Send, most: usize) -> usize {
    let refusal = Refusal::of(&send(client.address, &padded(client, "room", most)));
    let size = refusal.message.split(' ').find_map(|word| word.parse::<usize>().ok()).expect("the text tells the size");
    most - (size - most)
}

#[test]
fn a_head_may_be_as_long_as_the_limit_and_no_longer() {
    let hub = hub_with("limits: {header_bytes: 4000}");
    for binding in Binding::ALL {
        for (version, send) in versions(binding) {
            let owner = hub.owner(binding);
            let room = room(&owner, *send, 4000);
            let fits = send(owner.address, &padded(&owner, &format!("{binding:?}-{version}"), room));
            assert!(is_accepted(&fits), "{version} {fits:?}");
            let response = send(owner.address, &padded(&owner, "more", room + 1));
            is_over(binding, &Refusal::of(&response), ("header_bytes", "4000"), HEADERS);
            // So long that it is not read to its end: there is a status, but no form.
            let response = send(owner.address, &padded(&owner, "more", 4000 + 20 * 1024));
            assert_eq!(response.status, 431, "{version}");
        }
    }
    assert!(over(&hub, "header_bytes") >= 2 * ways());
}

#[test]
fn a_target_counts_too() {
    let hub = hub_with("limits: {header_bytes: 4000}");
    for (version, send) in versions(Binding::HttpJson) {
        let response = send(hub.address(), &Request::get(&format!("/healthz?{}", "x".repeat(4000))));
        assert_eq!(response.status, 431, "{version}");
    }
}

/// Sends a head as it is and reads the answer to its end.
fn raw(address: SocketAddr, head: &str) -> Response {
    let mut stream = TcpStream::connect(address).expect("the hub takes connections");
    stream.set_read_timeout(Some(flotilla_testkit::wait::PATIENCE)).expect("a deadline can be set");
    stream.write_all(head.as_bytes()).expect("the hub listens");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("the hub answers and closes");
    let text = String::from_utf8(bytes).expect("an answer is text");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    Response { status, headers: Vec::new(), body: body.into() }
}

#[test]
fn a_request_names_its_host_once() {
    let hub = hub_with("limits: {}");
    for binding in Binding::JSON {
        let path = if binding == Binding::JsonRpc { "/a2a" } else { "/message:send" };
        for hosts in ["", "Host: a\r\nHost: b\r\n"] {
            let head = format!("POST {path} HTTP/1.1\r\n{hosts}Connection: close\r\nContent-Length: 0\r\n\r\n");
            has_codes(binding, &Refusal::of(&raw(hub.address(), &head)), NO_HOST);
        }
    }
    let alive = |head: &str| raw(hub.address(), head).status;
    assert_eq!(alive("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"), 400);
    assert_eq!(alive("GET /healthz HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n"), 200);
    assert_eq!(alive("GET /healthz HTTP/1.0\r\n\r\n"), 200, "HTTP/1.0 knows no Host");
}
