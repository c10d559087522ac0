//! The HTTP+JSON binding (spec 11).

pub mod old;

use super::error::{ClientError, Told};
use super::frame::{Frame, Frames};
use super::{Client, Dialect, dialect, jsonrpc, operation};
use crate::net::sse::Events;
use crate::net::{Outgoing, Received};
use flotilla_protocol::a2a::request::{ListTasksRequest, PushConfigRequest, Request};
use flotilla_protocol::v03::Form;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, Response};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::atomic::Ordering;
use std::time::Duration;

const A2A_JSON: &str = "application/a2a+json";
/// What may stand in a path segment as it is.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

pub fn escape(text: &str) -> String {
    utf8_percent_encode(text, KEPT).to_string()
}

/// A text as one segment of a path. What an address drops or follows would lead somewhere else.
pub fn segment(text: &str) -> Result<String, ClientError> {
    match text {
        "" | "." | ".." => {
            let text = format!("'{text}' is no id or name; it would lead to another place. Give the one you mean.");
            Err(ClientError::Id(text))
        }
        _ => Ok(escape(text)),
    }
}

/// The verb, the path and, for those that take one, whether the request is the body.
fn target(request: &Request) -> Result<(Method, String, bool), ClientError> {
    let push = |task: &str| segment(task).map(|task| format!("/tasks/{task}/pushNotificationConfigs"));
    let one = |r: &PushConfigRequest| Ok::<_, ClientError>(format!("{}/{}", push(&r.task_id)?, segment(&r.id)?));
    Ok(match request {
        Request::SendMessage(_) => (Method::POST, "/message:send".into(), true),
        Request::SendStreamingMessage(_) => (Method::POST, "/message:stream".into(), true),
        Request::GetTask(r) => {
            let history = r.history_length.map(|n| format!("?historyLength={}", n.0)).unwrap_or_default();
            (Method::GET, format!("/tasks/{}{history}", segment(&r.id)?), false)
        }
        Request::ListTasks(r) => (Method::GET, format!("/tasks{}", list_query(r)), false),
        Request::CancelTask(r) => (Method::POST, format!("/tasks/{}:cancel", segment(&r.id)?), true),
        Request::SubscribeToTask(r) => (Method::GET, format!("/tasks/{}:subscribe", segment(&r.id)?), false),
        Request::CreatePushConfig(r) => (Method::POST, push(&r.task_id)?, true),
        Request::GetPushConfig(r) => (Method::GET, one(r)?, false),
        Request::ListPushConfigs(r) => {
            let size = r.page_size.map(|n| format!("pageSize={}", n.0));
            let token = (!r.page_token.is_empty()).then(|| format!("pageToken={}", escape(&r.page_token)));
            (Method::GET, format!("{}{}", push(&r.task_id)?, query([size, token])), false)
        }
        Request::DeletePushConfig(r) => (Method::DELETE, one(r)?, false),
        Request::GetExtendedAgentCard(_) => (Method::GET, "/extendedAgentCard".into(), false),
    })
}

fn list_query(r: &ListTasksRequest) -> String {
    let text = |name: &str, value: &str| (!value.is_empty()).then(|| format!("{name}={}", escape(value)));
    let state = if r.status == Default::default() { "" } else { r.status.name() };
    query([
        text("contextId", &r.context_id),
        text("status", state),
        r.page_size.map(|n| format!("pageSize={}", n.0)),
        text("pageToken", &r.page_token),
        r.history_length.map(|n| format!("historyLength={}", n.0)),
        r.status_timestamp_after.map(|at| format!("statusTimestampAfter={}", escape(&at.to_string()))),
        r.include_artifacts.then(|| "includeArtifacts=true".to_owned()),
    ])
}

fn query<const N: usize>(pairs: [Option<String>; N]) -> String {
    let pairs: Vec<String> = pairs.into_iter().flatten().collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// A path below an address, without a certain end of that. A query of the address goes along.
fn below(address: &str, end: &str, path: &str) -> String {
    let (base, query) = address.split_once('?').unwrap_or((address, ""));
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix(end).unwrap_or(base);
    match (query, path.contains('?')) {
        ("", _) => format!("{base}{path}"),
        (query, true) => format!("{base}{path}&{query}"),
        (query, false) => format!("{base}{path}?{query}"),
    }
}

/// The tenant stands in the path (spec 11.3), so the body does not repeat it.
fn request(client: &Client, asked: &Request) -> Result<Outgoing, ClientError> {
    let interface = &client.choice.interface;
    let (verb, path, has_body) = target(asked)?;
    let tenant = match interface.tenant.as_str() {
        "" => String::new(),
        tenant => format!("/{}", segment(tenant)?),
    };
    let url = below(&interface.url, "", &format!("{tenant}{path}"));
    let body = if has_body {
        let mut bare = asked.clone();
        operation::set_tenant(&mut bare, "");
        Some(operation::json(&bare)?)
    } else {
        None
    };
    Ok(client.outgoing(verb, url, body, A2A_JSON))
}

pub async fn call(client: &Client, asked: &Request, patience: Option<Duration>) -> Result<String, ClientError> {
    match client.dialect() {
        Dialect::Current => whole(client, asked, client.exchange(|| request(client, asked), patience).await?),
        Dialect::Old => {
            let response = start(client, asked, None, patience).await?;
            let json = whole(client, asked, client.net.received(response).await?)?;
            dialect::upgraded(asked.method(), &json, client.files())
        }
    }
}

/// Asks, in 0.3 once more in its other form if the first was not understood.
async fn start(
    client: &Client,
    asked: &Request,
    stream: Option<Option<&str>>,
    patience: Option<Duration>,
) -> Result<Response, ClientError> {
    let made = |form: Option<Form>| {
        let mut outgoing = match form {
            Some(form) => old::request(client, asked, form)?,
            None => request(client, asked)?,
        };
        if let Some(after) = stream {
            outgoing.headers.push(("Accept".into(), "text/event-stream".into()));
            outgoing.headers.extend(after.map(|after| ("Last-Event-ID".into(), after.to_owned())));
        }
        Ok(outgoing)
    };
    let send = async |form| client.start(|| made(form), patience).await;
    if client.dialect() == Dialect::Current {
        return send(None).await;
    }
    if client.kind_form.load(Ordering::Relaxed) {
        return send(Some(Form::Kind)).await;
    }
    let first = send(Some(Form::Proto)).await?;
    if !old::is_misunderstood(asked, first.status().as_u16()) {
        return Ok(first);
    }
    let second = send(Some(Form::Kind)).await?;
    let understood = second.status().is_success();
    client.kind_form.store(understood, Ordering::Relaxed);
    Ok(if understood { second } else { first })
}

fn whole(
    client: &Client,
    asked: &Request,
    Received { status, headers, text }: Received,
) -> Result<String, ClientError> {
    let retry = Told::retry_in(&headers);
    if status.is_success() {
        // What is gone leaves nothing to say; every other answer says something.
        let says_nothing = text.is_empty() && matches!(asked, Request::DeletePushConfig(_));
        return Ok(if says_nothing { "{}".to_owned() } else { text });
    }
    let http = status.as_u16();
    let told = old::refusal(client, &text, http).unwrap_or_else(|| refusal(&text, Some(http)));
    Err(Told { retry, ..told }.into_error(client.shows_credential()))
}

/// The `google.rpc.Status` form (spec 11.6), that of 0.3, which is the error itself with the code of JSON-RPC, or whatever
/// stood in their place. Within a stream there is no HTTP status, which would count more than a code of JSON-RPC.
fn refusal(text: &str, http: Option<u16>) -> Told {
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    let is_bare = !body["code"].is_null() && body["message"].is_string();
    let error = if is_bare { &body } else { &body["error"] };
    let by_status = || match http {
        Some(status) => Told::words(status, text),
        None => error.as_str().unwrap_or_default().to_owned(),
    };
    let message = error["message"].as_str().map_or_else(by_status, str::to_owned);
    let rpc = error["code"].as_i64().filter(|code| *code < 0 && http.is_none());
    let http = http.or_else(|| error["code"].as_u64().and_then(|code| u16::try_from(code).ok()));
    let grpc = error["status"].as_str().map(str::to_owned);
    Told { message, reason: Told::reason_in(&error["details"]), rpc, http, grpc, ..Told::default() }
}

/// A stream's event, unless it is an error that ends it: in one of its own, or by its code and words, which in 1.0 and in
/// 0.3 are no message.
pub fn unrefused(data: String) -> Result<String, ClientError> {
    #[derive(Deserialize)]
    struct Signs<'a> {
        error: Option<IgnoredAny>,
        code: Option<IgnoredAny>,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
    }
    let is_error = serde_json::from_str::<Signs<'_>>(&data).is_ok_and(|signs| {
        let is_told = || signs.message.is_some_and(|message| message.get().starts_with('"'));
        signs.error.is_some() || signs.code.is_some() && is_told()
    });
    if is_error { Err(refusal(&data, None).into_error(true)) } else { Ok(data) }
}

pub async fn open(client: &Client, asked: &Request, after: Option<&str>) -> Result<Frames, ClientError> {
    let response = start(client, asked, Some(after), operation::patience(client, asked)).await?;
    let dialect = client.dialect();
    if jsonrpc::is_stream(&response) {
        return Ok(Frames::HttpJson(Events::new(client.net.clone(), response), dialect, client.files()));
    }
    let json = whole(client, asked, client.net.received(response).await?)?;
    Ok(Frames::Single(Some(Box::new(Frame::read_in(dialect, client.files(), None, &json)?))))
}

#[cfg(test)]
mod tests {
    use super::super::error::name_of;
    use super::{ClientError, refusal, target, unrefused};
    use flotilla_protocol::a2a::model::TaskState;
    use flotilla_protocol::a2a::request::{ListTasksRequest, PushConfigRequest, Request};
    use flotilla_protocol::wire::Int32;

    #[test]
    fn a_query_of_the_address_goes_along() {
        for (address, end, path, expected) in [
            ("http://a/x/", "", "/message:send", "http://a/x/message:send"),
            ("http://a/x/?key=k", "", "/message:send", "http://a/x/message:send?key=k"),
            ("http://a/x?key=k", "", "/tasks/t?historyLength=1", "http://a/x/tasks/t?historyLength=1&key=k"),
            ("http://a/v1?key=k", "/v1", "/v1/card", "http://a/v1/card?key=k"),
        ] {
            assert_eq!(super::below(address, end, path), expected);
        }
    }

    #[test]
    fn an_error_within_a_stream_is_told_by_its_code_and_words() {
        for (event, expected) in [
            (r#"{"code":-32603,"message":"mid fail"}"#, "InternalError: mid fail"),
            (r#"{"code":-32005,"message":"no pictures","data":{}}"#, "ContentTypeNotSupportedError: no pictures"),
            (r#"{"error":{"code":500,"message":"it broke"}}"#, "InternalError: it broke"),
            (r#"{"error":{"code":-32004,"message":"not so"}}"#, "UnsupportedOperationError: not so"),
            (r#"{"error":"boom"}"#, "InternalError: boom"),
            (r#"{"code":"INTERNAL","message":"boom"}"#, "InternalError: boom"),
        ] {
            let ClientError::Refused { reason, message, .. } = unrefused(event.to_owned()).unwrap_err() else {
                panic!("{event}");
            };
            assert_eq!(format!("{}: {message}", name_of(reason)), expected);
        }
        for event in [
            r#"{"message":{"messageId":"m"}}"#,
            r#"{"message":"words"}"#,
            r#"{"task":{"error":1,"code":2}}"#,
            r#"{"kind":"message","code":1,"parts":[]}"#,
            "not JSON",
        ] {
            assert_eq!(unrefused(event.to_owned()).as_deref(), Ok(event));
        }
    }

    #[test]
    fn a_status_counts_more_than_a_code_of_another_binding() {
        for body in [r#"{"error":{"code":-32603,"message":"no"}}"#, r#"{"code":-32603,"message":"no"}"#] {
            let told = |http| refusal(body, Some(http)).into_error(true);
            assert!(matches!(told(401), ClientError::AuthFailed { .. }), "{body}");
            assert!(matches!(told(429), ClientError::Exhausted { .. }), "{body}");
            assert!(matches!(told(502), ClientError::Broken(_)), "{body}");
            assert!(told(413).is_about_size(), "{body}");
        }
    }

    #[test]
    fn paths_carry_what_they_name() {
        let list = ListTasksRequest {
            context_id: "a b".into(),
            status: TaskState::Working,
            page_size: Some(Int32(2)),
            ..ListTasksRequest::default()
        };
        let path = |request: &Request| target(request).map(|(_, path, _)| path);
        assert_eq!(
            path(&Request::ListTasks(list)).unwrap(),
            "/tasks?contextId=a%20b&status=TASK_STATE_WORKING&pageSize=2"
        );
        assert_eq!(path(&Request::ListTasks(ListTasksRequest::default())).unwrap(), "/tasks");
        let push = PushConfigRequest { task_id: "t/1".into(), id: "c".into(), ..PushConfigRequest::default() };
        assert_eq!(path(&Request::DeletePushConfig(push)).unwrap(), "/tasks/t%2F1/pushNotificationConfigs/c");
        for id in ["", ".", ".."] {
            let push = PushConfigRequest { task_id: "t".into(), id: id.into(), ..PushConfigRequest::default() };
            assert!(path(&Request::GetPushConfig(push)).is_err(), "'{id}' leads elsewhere");
        }
    }
}
