//! The JSON-RPC 2.0 envelope (spec 9.3), read with its parameters left unparsed.

use crate::a2a::error::{Reason, Refusal};
use crate::time::Millis;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A request; `id` is kept as it came so that it can be echoed exactly.
#[derive(Debug, Deserialize)]
pub struct Envelope<'a> {
    #[serde(borrow, default)]
    pub jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Refusal> {
        if bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[') {
            let text = "Batches are not part of A2A: send one request object per call.";
            return Err(Refusal::new(Reason::InvalidRequest, text));
        }
        serde_json::from_slice(bytes).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => {
                let text = "Not a JSON-RPC 2.0 request: send one object with jsonrpc, id, method and params.";
                Refusal::new(Reason::InvalidRequest, text)
            }
            _ => Refusal::new(Reason::ParseError, format!("The body is not valid JSON: {error}.")),
        })
    }

    /// The id to answer under: a string, a number or null.
    pub fn answer_id(&self) -> Result<&'a str, Refusal> {
        let id = self.id.map_or("null", RawValue::get);
        match id.as_bytes().first() {
            Some(b'"' | b'-' | b'0'..=b'9' | b'n') => Ok(id),
            _ => Err(Refusal::new(Reason::InvalidRequest, "The request's id must be a string, a number or null.")),
        }
    }

    /// The method's name, once the envelope is known to be JSON-RPC 2.0.
    pub fn method_name(&self) -> Result<String, Refusal> {
        if self.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
            return Err(Refusal::new(Reason::InvalidRequest, "The request must say \"jsonrpc\": \"2.0\"."));
        }
        let name = self.method.and_then(|raw| serde_json::from_str(raw.get()).ok());
        name.ok_or_else(|| Refusal::new(Reason::InvalidRequest, "The request must name a method as a string."))
    }

    /// The parameters as JSON text; absent ones are an empty object.
    pub fn params_text(&self) -> Result<&'a str, Refusal> {
        let text = self.params.map_or("{}", RawValue::get);
        match text.as_bytes().first() {
            Some(b'{') => Ok(text),
            Some(b'n') => Ok("{}"),
            _ => Err(Refusal::invalid("params", "must be an object; A2A has no positional parameters")),
        }
    }
}

/// Writes `{"jsonrpc":"2.0","id":…,"result":…}`, the result by whoever knows its form.
pub fn write_result(
    out: &mut Vec<u8>,
    id: &str,
    result: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(b",\"result\":");
    result(out)?;
    out.push(b'}');
    Ok(())
}

/// The same as a body of its own.
pub fn result(
    id: &str,
    result: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = Vec::with_capacity(512);
    write_result(&mut out, id, result)?;
    Ok(out)
}

/// The error object of a refusal, under the request's id.
pub fn error(id: &str, refusal: &Refusal, now: Millis) -> Vec<u8> {
    let body = serde_json::json!({
        "code": refusal.reason.row().rpc,
        "message": refusal.message,
        "data": refusal.details(now),
    });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{body}}}").into_bytes()
}
