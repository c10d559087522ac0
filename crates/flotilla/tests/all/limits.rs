//! Limits: what is allowed at the edge of each, what is refused beyond it, and how.

mod callers;
mod connections;
mod heads;
mod rates;
mod requests;
mod slow;
mod tasks;

use flotilla_testkit::{Binding, HubProcess, Refusal, Request, Response, http, http2};
use std::net::SocketAddr;

/// How a refusal looks in each binding: reason, JSON-RPC code with its HTTP status, HTTP status of HTTP+JSON, gRPC code.
type Row = (&'static str, (i64, u16), u16, i64);

const TOO_LARGE: Row = ("PAYLOAD_TOO_LARGE", (-32600, 413), 413, 8);
const INVALID_REQUEST: Row = ("INVALID_REQUEST", (-32600, 200), 400, 3);
const INVALID_PARAMS: Row = ("INVALID_PARAMS", (-32602, 200), 400, 3);
const FULL: Row = ("UNSUPPORTED_OPERATION", (-32004, 200), 400, 9);
const HEADERS: Row = ("HEADERS_TOO_LARGE", (-32600, 431), 431, 8);
const TIMEOUT: Row = ("REQUEST_TIMEOUT", (-32600, 408), 408, 4);
const NO_HOST: Row = ("HOST_REQUIRED", (-32600, 400), 400, 3);
const UNAVAILABLE: Row = ("UNAVAILABLE", (-32603, 503), 503, 14);
const EXHAUSTED: Row = ("RESOURCE_EXHAUSTED", (-32013, 429), 429, 8);

/// A refusal has the codes of its row.
fn has_codes(binding: Binding, refusal: &Refusal, (reason, rpc, http, grpc): Row) {
    let expected = match binding {
        Binding::JsonRpc => rpc,
        Binding::HttpJson => (http.into(), http),
        Binding::Grpc => (grpc, 200),
    };
    assert_eq!((refusal.reason.as_str(), (refusal.code, refusal.http)), (reason, expected), "{binding:?} {refusal:?}");
}

/// It has them, and names the limit and its value.
fn is_over(binding: Binding, refusal: &Refusal, (limit, most): (&str, &str), row: Row) {
    has_codes(binding, refusal, row);
    assert_eq!((&refusal.metadata["limit"], &refusal.metadata["limitValue"]), (&limit.into(), &most.into()));
    assert!(refusal.message.contains(most), "the text tells the value: {}", refusal.message);
}

type Send = fn(SocketAddr, &Request) -> Response;

/// The versions of HTTP a binding is spoken over.
pub fn versions(binding: Binding) -> &'static [(&'static str, Send)] {
    const BOTH: [(&str, Send); 2] = [("HTTP/2", http2::send), ("HTTP/1.1", http::send)];
    if binding == Binding::Grpc { &BOTH[..1] } else { &BOTH }
}

/// How many pairs of a binding and a version there are.
fn ways() -> u64 {
    Binding::ALL.into_iter().map(|binding| versions(binding).len() as u64).sum()
}

/// An answer that is no refusal.
pub fn is_accepted(response: &Response) -> bool {
    let refused = response.header("grpc-status").is_some_and(|code| code != "0");
    let body = String::from_utf8_lossy(&response.body);
    response.status == 200 && !refused && !body.contains("\"error\"")
}

fn metrics(hub: &HubProcess) -> String {
    hub.owner(Binding::HttpJson).get("/metrics").text().to_owned()
}

/// How often a limit was gone beyond, over all bindings.
fn counted(hub: &HubProcess, metric: &str, limit: &str) -> u64 {
    let text = metrics(hub);
    let label = format!("limit=\"{limit}\"");
    let series = text.lines().filter(|line| line.starts_with(&format!("{metric}{{")) && line.contains(&label));
    series.map(|line| line.rsplit_once(' ').and_then(|(_, value)| value.parse::<u64>().ok()).expect("a number")).sum()
}

fn over(hub: &HubProcess, limit: &str) -> u64 {
    counted(hub, "flotilla_over_limit_total", limit)
}
