//! The JSON-RPC binding (spec 9).

use super::error::{ClientError, Told};
use super::frame::{Frame, Frames};
use super::{Client, Dialect, dialect, operation};
use crate::net::sse::Events;
use crate::net::{Outgoing, Received};
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::method::Method as Called;
use flotilla_protocol::a2a::request::Request;
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::v03;
use reqwest::{Method, Response};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use std::time::Duration;

/// The id of every request: one call has one answer here, whatever goes on beside it.
const ID: u8 = 1;
/// Characters that are shown of another id.
const SHOWN: usize = 40;

#[derive(Deserialize)]
#[serde(expecting = "an object with 'result' or 'error'")]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Failure>,
    #[serde(default)]
    jsonrpc: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with 'code' and 'message'")]
struct Failure {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Value,
}

fn request(client: &Client, request: &Request) -> Result<Outgoing, ClientError> {
    let (method, params) = match client.dialect() {
        Dialect::Current => (request.method().name(), operation::json(request)?),
        Dialect::Old => {
            let is_mixed = client.choice.dialect == Dialect::Current;
            (v03::method::name(request.method()), operation::old_json(request, is_mixed)?)
        }
    };
    let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{ID},\"method\":\"{method}\",\"params\":{params}}}");
    let url = place(&client.choice.interface.url, request.method());
    Ok(client.outgoing(Method::POST, url, Some(body), "application/json"))
}

/// What is before the operation that an address names, where it names one.
pub fn base_of_operation(url: &str) -> Option<&str> {
    ["/message:stream", "/message:send"].iter().find_map(|operation| url.strip_suffix(operation))
}

/// Where a method is called. Cards of Agno name the address of one operation of HTTP+JSON, where JSON-RPC is taken; other
/// operations are beside it.
fn place(url: &str, method: Called) -> String {
    let base = base_of_operation(url);
    let operation = match method {
        Called::SendMessage => "message:send",
        Called::SendStreamingMessage => "message:stream",
        Called::GetTask => "tasks:get",
        Called::CancelTask => "tasks:cancel",
        _ => return url.to_owned(),
    };
    base.map_or_else(|| url.to_owned(), |base| format!("{base}/{operation}"))
}

pub async fn call(client: &Client, asked: &Request, patience: Option<Duration>) -> Result<String, ClientError> {
    let received = client.exchange(|| request(client, asked), patience).await?;
    let dialect = client.dialect();
    let json = whole(client, &received)?;
    in_current(dialect, asked.method(), json)
}

/// The answer as 1.0 has it.
fn in_current(dialect: Dialect, method: Called, json: String) -> Result<String, ClientError> {
    match dialect {
        Dialect::Current => Ok(json),
        Dialect::Old => dialect::upgraded(method, &json, Files::Text),
    }
}

/// The result of an answer that comes in one piece.
fn whole(client: &Client, Received { status, headers, text }: &Received) -> Result<String, ClientError> {
    let retry = Told::retry_in(headers);
    let http = (!status.is_success()).then(|| status.as_u16());
    result(text, http).map_err(|told| match told {
        Unanswered::Refused(told) => Told { retry, ..told }.into_error(client.shows_credential()),
        Unanswered::Malformed(error) => error,
    })
}

/// Why there is no result.
enum Unanswered {
    Refused(Told),
    Malformed(ClientError),
}

/// The result in an event of a stream; none in one that only says that the stream ends, as some add.
pub fn event(text: &str) -> Result<Option<String>, ClientError> {
    if matches!(text.trim(), "{}" | "[DONE]") {
        return Ok(None);
    }
    result(text, None).map(Some).map_err(|told| match told {
        Unanswered::Refused(told) => told.into_error(true),
        Unanswered::Malformed(error) => error,
    })
}

/// The result in an envelope, or the error; `http` is the status of an answer that was no success.
fn result(text: &str, http: Option<u16>) -> Result<String, Unanswered> {
    let by_http = |status: u16| {
        Unanswered::Refused(Told { message: Told::words(status, text), http: Some(status), ..Told::default() })
    };
    if http.is_none() && text.trim_start().starts_with('[') {
        return Err(Unanswered::Malformed(ClientError::malformed("it is a JSON array, and should be one answer")));
    }
    let envelope: Envelope<'_> = match serde_json::from_str(text) {
        Ok(envelope) => envelope,
        Err(error) => {
            return Err(http.map_or_else(|| Unanswered::Malformed(ClientError::unparsed(text, &error)), by_http));
        }
    };
    if envelope.error.is_some() && envelope.result.is_some() {
        let problem = "it holds result and error, and may hold one of them";
        return Err(Unanswered::Malformed(ClientError::malformed(problem)));
    }
    if let Some(failure) = envelope.error {
        // Who is not known or not allowed is told by HTTP; JSON-RPC has no code for it.
        let refused = http.filter(|status| matches!(status, 401 | 403));
        let rpc = if refused.is_some() { None } else { Some(failure.code) };
        let by_http = match http {
            Some(429) => Some(Reason::ResourceExhausted),
            Some(413) => Some(Reason::PayloadTooLarge),
            _ => None,
        };
        let by_http = by_http.map(|reason| reason.row().reason.to_owned());
        let reason = if refused.is_some() { None } else { by_http.or_else(|| Told::reason_in(&failure.data)) };
        return Err(Unanswered::Refused(Told {
            message: failure.message,
            reason,
            rpc,
            http: refused,
            ..Told::default()
        }));
    }
    if let Some(status) = http {
        return Err(by_http(status));
    }
    // Some leave the envelope out, in streams above all.
    if envelope.jsonrpc.is_none() && envelope.result.is_none() {
        return Ok(text.to_owned());
    }
    check_id(envelope.id).map_err(Unanswered::Malformed)?;
    Ok(envelope.result.map_or("null", RawValue::get).to_owned())
}

/// Of two calls under way, an answer under another id is that of the other. One without an id can only be this one's.
fn check_id(id: Option<&RawValue>) -> Result<(), ClientError> {
    match id.map(RawValue::get) {
        None | Some("null" | "1" | "\"1\"") => Ok(()),
        Some(other) => {
            let shown: String = other.chars().take(SHOWN).collect();
            Err(ClientError::malformed(format!("id: it is {shown}, and that of the request is {ID}")))
        }
    }
}

pub async fn open(client: &Client, asked: &Request, after: Option<&str>) -> Result<Frames, ClientError> {
    let made = || {
        let mut outgoing = request(client, asked)?;
        outgoing.headers.push(("Accept".into(), "text/event-stream".into()));
        outgoing.headers.extend(after.map(|after| ("Last-Event-ID".into(), after.to_owned())));
        Ok(outgoing)
    };
    let response = client.start(made, operation::patience(client, asked)).await?;
    if is_stream(&response) {
        return Ok(Frames::JsonRpc(Events::new(client.net.clone(), response), client.dialect()));
    }
    let json = whole(client, &client.net.received(response).await?)?;
    Ok(Frames::Single(Some(Box::new(Frame::read_in(client.dialect(), Files::Text, None, &json)?))))
}

/// Whether a stream was answered with one.
pub fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    response.status().is_success() && kind.starts_with("text/event-stream")
}
