//! Pre-built calls over each binding; the message id is patched in place, and every answer is checked.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use serde_json::Value;

use super::proto::{self, Field};
use super::{grpc, http};

/// Digits of the message id that change from call to call.
const DIGITS: usize = 16;
/// What the echo agent is told.
pub const TEXT: &str = "hello from the bench";

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    JsonRpc,
    HttpJson,
    Grpc,
}

impl Binding {
    pub const ALL: [Binding; 3] = [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc];

    pub fn name(self) -> &'static str {
        match self {
            Binding::JsonRpc => "JSON-RPC",
            Binding::HttpJson => "HTTP+JSON",
            Binding::Grpc => "gRPC",
        }
    }
}

/// Where one binding of a server is.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub binding: Binding,
    /// `host:port`
    pub address: String,
    /// The JSON-RPC path, or what stands before `/message:send`.
    pub path: String,
    pub key: Option<String>,
}

/// What an answer must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// A completed task with the text that was sent.
    Echo,
    /// Any result.
    Result,
}

#[derive(Clone)]
pub struct Call {
    binding: Binding,
    expect: Expect,
    /// Whole HTTP/1.1 requests, or framed protobuf messages; taken in turn if there are several.
    bytes: Vec<Vec<u8>>,
    /// Where the changing digits start.
    id_at: Option<usize>,
    head: ::http::Request<()>,
}

impl Call {
    /// A blocking SendMessage to the echo agent.
    pub fn send(endpoint: &Endpoint) -> Result<Call> {
        // The first half of the id tells this run from others against the same store.
        let run = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let prefix = format!("{run:016x}");
        let id = format!("{prefix}{:0DIGITS$}", 0);
        let message =
            format!(r#"{{"message":{{"messageId":"{id}","role":"ROLE_USER","parts":[{{"text":"{TEXT}"}}]}}}}"#);
        let bytes = match endpoint.binding {
            Binding::JsonRpc => request(endpoint, &endpoint.path, &rpc("SendMessage", &message)),
            Binding::HttpJson => request(endpoint, &format!("{}/message:send", endpoint.path), &message),
            Binding::Grpc => grpc::framed(&send_message(&id)),
        };
        let id_at = memchr::memmem::find(&bytes, prefix.as_bytes()).map(|start| start + prefix.len());
        Ok(Call {
            binding: endpoint.binding,
            expect: Expect::Echo,
            bytes: vec![bytes],
            id_at,
            head: grpc_head(endpoint)?,
        })
    }

    /// A JSON-RPC call that is the same each time.
    pub fn rpc(endpoint: &Endpoint, method: &str, params: &str) -> Result<Call> {
        ensure!(endpoint.binding == Binding::JsonRpc, "only JSON-RPC is built here");
        let bytes = request(endpoint, &endpoint.path, &rpc(method, params));
        Ok(Call {
            binding: endpoint.binding,
            expect: Expect::Result,
            bytes: vec![bytes],
            id_at: None,
            head: grpc_head(endpoint)?,
        })
    }

    /// Several calls to the same endpoint as one that makes them in turn.
    pub fn in_turn(calls: Vec<Call>) -> Result<Call> {
        let mut first = calls.first().context("no call to make")?.clone();
        first.bytes = calls.into_iter().flat_map(|call| call.bytes).collect();
        Ok(first)
    }

    /// The bytes to send, with message id number `sequence` if there is one.
    pub fn stamp(&mut self, sequence: u64) -> &[u8] {
        let turn = (sequence % self.bytes.len() as u64) as usize;
        let bytes = &mut self.bytes[turn];
        if let Some(start) = self.id_at {
            let mut digits = &mut bytes[start..start + DIGITS];
            // Sixteen hex digits hold any u64, so this cannot run out of room.
            let _ = write!(digits, "{sequence:0DIGITS$x}");
        }
        bytes
    }

    /// Looks for what the answer must hold: cheap enough for every answer.
    fn check(&self, body: &[u8]) -> Result<()> {
        let found = |text: &str| memchr::memmem::find(body, text.as_bytes()).is_some();
        let right = match (self.binding, self.expect) {
            (Binding::Grpc, _) => {
                // SendMessageResponse.task.status.state is COMPLETED.
                proto::walk(body, &[1, 3, 1]) == Some(Field::Number(3)) && found(TEXT)
            }
            (_, Expect::Echo) => found(r#""TASK_STATE_COMPLETED""#) && found(TEXT),
            (_, Expect::Result) => found(r#""result""#),
        };
        ensure!(right, "a wrong answer: {}", String::from_utf8_lossy(body));
        Ok(())
    }

    /// Reads the whole answer, as is done once before a measurement.
    pub fn check_strictly(&self, body: &[u8]) -> Result<()> {
        self.check(body)?;
        if self.binding == Binding::Grpc {
            // task.artifacts.parts.text
            let text = proto::walk(body, &[1, 4, 4, 1]);
            ensure!(text == Some(Field::Bytes(TEXT.as_bytes())), "the artifact does not hold the text: {text:?}");
            return Ok(());
        }
        let answer: Value = serde_json::from_slice(body).context("the answer is not JSON")?;
        let result = if self.binding == Binding::JsonRpc { &answer["result"] } else { &answer };
        match self.expect {
            Expect::Result => ensure!(!result.is_null(), "no result in {answer}"),
            Expect::Echo => {
                let task = &result["task"];
                ensure!(task["status"]["state"] == "TASK_STATE_COMPLETED", "no completed task in {answer}");
                ensure!(task["artifacts"][0]["parts"][0]["text"] == TEXT, "no artifact with the text in {answer}");
            }
        }
        Ok(())
    }
}

fn rpc(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

/// A whole POST request.
pub fn request(endpoint: &Endpoint, path: &str, body: &str) -> Vec<u8> {
    let authorization = endpoint.key.as_ref().map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n\
         {authorization}Content-Length: {}\r\n\r\n",
        endpoint.address,
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// A JSON-RPC request whose answer is a stream.
pub fn stream_request(endpoint: &Endpoint, method: &str, params: &Value) -> Vec<u8> {
    request(endpoint, &endpoint.path, &rpc(method, &params.to_string()))
}

/// `SendMessageRequest{message: {message_id, role: USER, parts: [{text}]}}`
fn send_message(id: &str) -> Vec<u8> {
    let (mut part, mut message, mut request) = (Vec::new(), Vec::new(), Vec::new());
    proto::put(&mut part, 1, TEXT.as_bytes());
    proto::put(&mut message, 1, id.as_bytes());
    proto::put_number(&mut message, 4, 1);
    proto::put(&mut message, 5, &part);
    proto::put(&mut request, 2, &message);
    request
}

fn grpc_head(endpoint: &Endpoint) -> Result<::http::Request<()>> {
    let mut head = ::http::Request::post(format!("http://{}/lf.a2a.v1.A2AService/SendMessage", endpoint.address))
        .version(::http::Version::HTTP_2)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("a2a-version", "1.0");
    if let Some(key) = &endpoint.key {
        head = head.header("authorization", format!("Bearer {key}"));
    }
    head.body(()).context("request head")
}

/// One connection of either kind, with one call under way at a time.
pub enum Channel {
    Http(http::Connection),
    Grpc(grpc::Connection),
}

impl Channel {
    pub async fn open(endpoint: &Endpoint) -> Result<Channel> {
        Ok(match endpoint.binding {
            Binding::JsonRpc | Binding::HttpJson => Channel::Http(http::Connection::open(&endpoint.address).await?),
            Binding::Grpc => Channel::Grpc(grpc::Connection::open(&endpoint.address).await?),
        })
    }

    /// Makes the call and checks the answer, which is left in `body`.
    pub async fn call(&mut self, call: &mut Call, sequence: u64, body: &mut Vec<u8>) -> Result<()> {
        match self {
            Channel::Http(connection) => {
                let status = connection.call(call.stamp(sequence), body).await?;
                if status != 200 {
                    let said = String::from_utf8_lossy(body);
                    bail!(
                        "status {status}: {}",
                        if said.trim().is_empty() { "nothing more was said" } else { said.trim() }
                    );
                }
            }
            Channel::Grpc(connection) => {
                let message = Bytes::copy_from_slice(call.stamp(sequence));
                connection.call(&call.head, message, body).await?;
            }
        }
        call.check(body)
    }

    /// Whether the server will take no further call on this connection.
    pub fn is_closing(&self) -> bool {
        matches!(self, Channel::Http(connection) if connection.closing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(binding: Binding) -> Endpoint {
        Endpoint { binding, address: "localhost:1".into(), path: String::new(), key: Some("k".into()) }
    }

    #[test]
    fn stamping_changes_only_the_message_id() {
        for binding in Binding::ALL {
            let mut call = Call::send(&endpoint(binding)).unwrap();
            let first = call.stamp(0).to_vec();
            let second = call.stamp(u64::MAX).to_vec();
            let changed: Vec<usize> = (0..first.len()).filter(|at| first[*at] != second[*at]).collect();
            assert_eq!(changed.len(), DIGITS);
            assert_eq!(changed[DIGITS - 1] - changed[0], DIGITS - 1);
            assert_ne!(call.stamp(1).to_vec(), first);
        }
    }

    #[test]
    fn wrong_answers_are_noticed() {
        let call = Call::send(&endpoint(Binding::JsonRpc)).unwrap();
        let answer = |state: &str, text: &str| {
            format!(
                r#"{{"result":{{"task":{{"status":{{"state":"{state}"}},"artifacts":[{{"parts":[{{"text":"{text}"}}]}}]}}}}}}"#
            )
        };
        assert!(call.check_strictly(answer("TASK_STATE_COMPLETED", TEXT).as_bytes()).is_ok());
        assert!(call.check_strictly(answer("TASK_STATE_WORKING", TEXT).as_bytes()).is_err());
        assert!(call.check_strictly(answer("TASK_STATE_COMPLETED", "other").as_bytes()).is_err());
        assert!(call.check_strictly(format!("TASK_STATE_COMPLETED {TEXT}").as_bytes()).is_err());
    }
}
