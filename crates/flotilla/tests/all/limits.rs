//! Limits: what is allowed at the edge of each, what is refused beyond it, and how.

mod callers;
mod requests;
mod tasks;

use flotilla_testkit::{Binding, HubProcess, Refusal};

/// How a refusal looks in each binding: reason, JSON-RPC code with its HTTP status, HTTP status of HTTP+JSON.
type Row = (&'static str, (i64, u16), u16);

const TOO_LARGE: Row = ("PAYLOAD_TOO_LARGE", (-32600, 413), 413);
const INVALID_REQUEST: Row = ("INVALID_REQUEST", (-32600, 200), 400);
const INVALID_PARAMS: Row = ("INVALID_PARAMS", (-32602, 200), 400);
const FULL: Row = ("UNSUPPORTED_OPERATION", (-32004, 200), 400);
const EXHAUSTED: Row = ("RESOURCE_EXHAUSTED", (-32013, 429), 429);

/// A refusal has the codes of its row and names the limit and its value.
fn is_over(binding: Binding, refusal: &Refusal, (limit, most): (&str, &str), row: Row) {
    let (reason, rpc, http) = row;
    let expected = match binding {
        Binding::JsonRpc => rpc,
        Binding::HttpJson => (http.into(), http),
    };
    assert_eq!((refusal.reason.as_str(), (refusal.code, refusal.http)), (reason, expected), "{binding:?} {refusal:?}");
    assert_eq!((&refusal.metadata["limit"], &refusal.metadata["limitValue"]), (&limit.into(), &most.into()));
    assert!(refusal.message.contains(most), "the text tells the value: {}", refusal.message);
}

fn metrics(hub: &HubProcess) -> String {
    hub.stranger(Binding::HttpJson).get("/metrics").text().to_owned()
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
