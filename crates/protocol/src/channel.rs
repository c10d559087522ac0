//! The channel: JSON-RPC 2.0 over any two-way pipe that keeps frames apart, one object in each (docs/bindings/channel.md).

use crate::a2a::error::{Reason, Refusal};
use crate::jsonrpc::Envelope;
use crate::time::Millis;
use crate::wire::Json;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// What cards call this binding (spec 5.8).
pub const BINDING: &str = "urn:flotilla:binding:channel:1.0";
/// The subprotocol that says: JSON-RPC of A2A 1.0, in both directions.
pub const SUBPROTOCOL: &str = "a2a.v1";
/// The same for 0.3.
pub const SUBPROTOCOL_03: &str = "a2a.v0.3";

/// A frame's members, each as it was written. Which of them are there says what it is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "said")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "said")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stream_end: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cancel_stream: Option<&'a RawValue>,
    #[serde(borrow, default)]
    service_params: Option<&'a RawValue>,
    /// Frames of the hub's own, which are no JSON-RPC.
    #[serde(rename = "type", borrow, default)]
    kind: Option<&'a RawValue>,
}

/// A member that is there, though it be null.
fn said<'de: 'a, 'a, D: serde::Deserializer<'de>>(reader: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(reader).map(Some)
}

/// Service parameters of a request (spec 3.2.6); those of the connection count where it names none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Service<'a>(Option<&'a RawValue>);

impl Service<'_> {
    /// Read for a request that is known already: what is wrong with them is an answer to it.
    pub fn read(&self) -> Result<BTreeMap<String, String>, Refusal> {
        let Some(said) = self.0 else { return Ok(BTreeMap::new()) };
        serde_json::from_str(said.get()).map_err(|error| {
            let text = format!("must be an object of texts, such as {{\"A2A-Version\": \"1.0\"}}: {error}");
            Refusal::invalid("serviceParams", text)
        })
    }
}

/// One frame, told apart.
#[derive(Debug)]
pub enum Frame<'a> {
    Request {
        envelope: Envelope<'a>,
        service: Service<'a>,
    },
    /// The peer wants no more of a stream.
    CancelStream {
        id: &'a str,
    },
    Result {
        id: &'a str,
        result: &'a str,
    },
    Error {
        id: &'a str,
        error: Failure,
    },
    StreamEnd {
        id: &'a str,
    },
    /// An answer that says nothing, and what is wrong with it.
    NoAnswer {
        id: &'a str,
        refusal: Refusal,
    },
    /// A frame of the hub's own; `kind` is its `type`.
    Hub {
        kind: String,
    },
}

/// A peer's error object, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Failure {
    #[serde(default)]
    pub code: i64,
    #[serde(default)]
    pub message: String,
}

impl<'a> Frame<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Refusal> {
        if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            return Err(Refusal::new(
                Reason::InvalidRequest,
                "A frame is one JSON object: batches are not part of A2A.",
            ));
        }
        let members: Members = serde_json::from_slice(bytes).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => {
                Refusal::new(Reason::InvalidRequest, "A frame is one JSON object, with jsonrpc or type in it.")
            }
            _ => Refusal::new(Reason::ParseError, format!("The frame is not valid JSON: {error}.")),
        })?;
        if members.jsonrpc.is_none() {
            let kind = members.kind.and_then(|kind| serde_json::from_str(kind.get()).ok());
            let wrong = || Refusal::new(Reason::InvalidRequest, "The frame has neither jsonrpc nor a type.");
            return Ok(Self::Hub { kind: kind.ok_or_else(wrong)? });
        }
        Self::of(members)
    }

    fn of(members: Members<'a>) -> Result<Self, Refusal> {
        let Members { jsonrpc, id, method, params, .. } = members;
        let envelope = Envelope { jsonrpc, id, method, params };
        let id = envelope.answer_id()?;
        if members.method.is_some() {
            return Ok(Self::Request { envelope, service: Service(members.service_params) });
        }
        let is_set = |member: Option<&RawValue>| member.is_some_and(|said| said.get() == "true");
        if is_set(members.cancel_stream) {
            return Ok(Self::CancelStream { id });
        }
        if let Some(error) = members.error {
            let wrong = || Refusal::new(Reason::InvalidRequest, "An error is an object with a code and a message.");
            return Ok(match serde_json::from_str(error.get()) {
                Ok(error) => Self::Error { id, error },
                Err(_) => Self::NoAnswer { id, refusal: wrong() },
            });
        }
        match (is_set(members.stream_end), members.result) {
            (true, result) if result.is_none_or(|result| result.get() == "null") => Ok(Self::StreamEnd { id }),
            (_, Some(result)) => Ok(Self::Result { id, result: result.get() }),
            _ => {
                let text = "A JSON-RPC frame is a request (method), a response (result or error), or a control frame \
                            (streamEnd, cancelStream).";
                Ok(Self::NoAnswer { id, refusal: Refusal::new(Reason::InvalidRequest, text) })
            }
        }
    }
}

/// A request, as the hub makes it of an agent.
pub fn request<T: Serialize>(id: &str, method: &str, params: &T, service: &BTreeMap<&str, String>) -> Option<String> {
    let (params, id) = (Json::of(params).ok()?, Json::of(id).ok()?);
    let frame = serde_json::json!({
        "jsonrpc": "2.0", "id": id, "method": method, "params": params, "serviceParams": service,
    });
    serde_json::to_string(&frame).ok()
}

/// A result; one of a stream says where its reader then stands.
pub fn result<T: Serialize + ?Sized>(id: &str, result: &T, cursor: Option<&str>) -> Result<String, serde_json::Error> {
    let cursor = match cursor {
        Some(cursor) => format!(",\"cursor\":{}", serde_json::to_string(cursor)?),
        None => String::new(),
    };
    Ok(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{}{cursor}}}", serde_json::to_string(result)?))
}

pub fn error(id: &str, refusal: &Refusal, now: Millis) -> String {
    String::from_utf8(crate::jsonrpc::error(id, refusal, now)).unwrap_or_default()
}

pub fn stream_end(id: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"streamEnd\":true}}")
}

pub fn cancel_stream(id: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"cancelStream\":true}}", serde_json::json!(id))
}

#[cfg(test)]
mod tests {
    use super::{Frame, cancel_stream, request, result, stream_end};
    use serde_json::json;
    use std::collections::BTreeMap;

    fn told(text: &str) -> String {
        match Frame::parse(text.as_bytes()) {
            Ok(Frame::Request { envelope, service }) => {
                let service = service.read().map_err(|refusal| refusal.message);
                format!("request {} {service:?}", envelope.method_name().unwrap())
            }
            Ok(Frame::CancelStream { id }) => format!("cancel {id}"),
            Ok(Frame::Result { id, result }) => format!("result {id} {result}"),
            Ok(Frame::Error { id, error }) => format!("error {id} {} {}", error.code, error.message),
            Ok(Frame::StreamEnd { id }) => format!("end {id}"),
            Ok(Frame::NoAnswer { id, refusal }) => format!("nothing {id} {}", refusal.reason.row().reason),
            Ok(Frame::Hub { kind }) => format!("hub {kind}"),
            Err(refusal) => refusal.reason.row().reason.to_owned(),
        }
    }

    #[test]
    fn frames_are_told_apart_by_their_members() {
        for (frame, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}"#, "request GetTask Ok({})"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"X","serviceParams":{"A2A-Version":"1.0"}}"#,
                r#"request X Ok({"A2A-Version": "1.0"})"#,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"X","serviceParams":null}"#, "request X Ok({})"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"X","cancelStream":"x","streamEnd":1}"#, "request X Ok({})"),
            (r#"{"jsonrpc":"2.0","id":"a","cancelStream":true}"#, r#"cancel "a""#),
            (r#"{"jsonrpc":"2.0","id":7,"result":{"task":{}}}"#, r#"result 7 {"task":{}}"#),
            (r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"no"}}"#, "error 7 -32001 no"),
            (r#"{"jsonrpc":"2.0","id":7,"streamEnd":true}"#, "end 7"),
            (r#"{"jsonrpc":"2.0","id":7,"result":null}"#, "result 7 null"),
            (r#"{"jsonrpc":"2.0","id":7,"result":null,"streamEnd":true}"#, "end 7"),
            (r#"{"type":"ping"}"#, "hub ping"),
            (r#"{"jsonrpc":"2.0","id":7}"#, "nothing 7 INVALID_REQUEST"),
            (r#"{"jsonrpc":"2.0","id":7,"error":5}"#, "nothing 7 INVALID_REQUEST"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"X"}"#, "INVALID_REQUEST"),
            (r#"[{"jsonrpc":"2.0"}]"#, "INVALID_REQUEST"),
            (r#"{"id":7}"#, "INVALID_REQUEST"),
            ("{", "INVALID_JSON"),
        ] {
            assert_eq!(told(frame), expected, "{frame}");
        }
    }

    #[test]
    fn wrong_service_parameters_are_a_matter_of_their_request() {
        for said in [r#""x""#, r#"{"A2A-Version":1}"#, "[]", "true"] {
            let told = told(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"X","serviceParams":{said}}}"#));
            assert!(told.starts_with("request X Err") && told.contains("serviceParams"), "{said}: {told}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let service = BTreeMap::from([("A2A-Version", "1.0".to_owned())]);
        let made = request("r-1", "SendMessage", &json!({"n": 1.0}), &service).unwrap();
        assert_eq!(told(&made), r#"request SendMessage Ok({"A2A-Version": "1.0"})"#);
        assert!(made.contains(r#"{"n":1.0}"#), "{made}");
        assert_eq!(told(&result("7", &json!({"a": 1}), Some("e.3")).unwrap()), r#"result 7 {"a":1}"#);
        assert_eq!(told(&stream_end("7")), "end 7");
        assert_eq!(told(&cancel_stream("x")), r#"cancel "x""#);
    }
}
