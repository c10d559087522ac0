//! JSON-RPC over an agent's standard streams, as ACP has it: one message a line, asked and answered from both sides.

use super::Halt;
use crate::command::lines::Heard as Line;
use crate::command::watch::{Reader, Silence};
use crate::command::{Bounds, Talk};
use crate::supervise::Streams;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;

/// Messages that may wait for the agent to read them.
const WAITING: usize = 256;

/// What came from an agent.
#[derive(Debug, PartialEq)]
pub enum Heard {
    Answer {
        id: u64,
        result: Result<Value, Refused>,
    },
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notice {
        method: String,
        params: Value,
    },
    /// What is no message: standard error, and what does not belong on standard output.
    Aside(String),
}

/// An error that an agent answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub code: i64,
    pub message: String,
}

pub struct Wire {
    reader: Reader,
    /// Written by a loop of its own, so that an agent that writes while it is written to does not stop both.
    out: mpsc::Sender<String>,
    asked: u64,
}

impl Wire {
    pub fn new(streams: Streams, bounds: Bounds) -> Self {
        let Streams { mut stdin, stdout, stderr } = streams;
        let (out, mut waiting) = mpsc::channel::<String>(WAITING);
        tokio::spawn(async move {
            while let Some(line) = waiting.recv().await {
                if stdin.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
        Self { reader: Reader::new(stdout, stderr, bounds), out, asked: 0 }
    }

    fn send(&self, message: &Value) -> Result<(), Halt> {
        let sent = self.out.try_send(format!("{message}\n"));
        match sent {
            Err(mpsc::error::TrySendError::Full(_)) => {
                Err(Halt::Failed("the agent does not read what it is told".into()))
            }
            // It has ended, which is heard on the other stream.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
        }
    }

    /// Asks, and gives the number the answer will have.
    pub fn ask(&mut self, method: &str, params: &Value) -> Result<u64, Halt> {
        self.asked += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}))?;
        Ok(self.asked)
    }

    pub fn tell(&self, method: &str, params: &Value) -> Result<(), Halt> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    pub fn answer(&self, id: &Value, result: &Value) -> Result<(), Halt> {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    pub fn refuse(&self, id: &Value, method: &str) -> Result<(), Halt> {
        let message = format!("Method not found: {method}");
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": message}}))
    }

    /// What is said next; none when the agent has ended. Nothing is lost when this is dropped half-way.
    pub async fn next(&mut self) -> Result<Option<Heard>, Silence> {
        loop {
            return Ok(match self.reader.next(Talk::JsonLines).await? {
                None => None,
                Some(Line::Line(line)) if line.trim().is_empty() => continue,
                Some(Line::Line(line)) => Some(read(line)),
                Some(Line::Aside(line) | Line::Text(line)) => Some(Heard::Aside(line)),
            });
        }
    }

    /// Silence is counted from now on: it is not the agent that keeps others waiting.
    pub fn excuse(&mut self) {
        self.reader.excuse();
    }

    /// Says no more, and reads on to the end for nobody.
    pub async fn drain(self) {
        let Self { mut reader, out, .. } = self;
        drop(out);
        reader.drain().await;
    }
}

fn read(line: String) -> Heard {
    let Ok(message) = serde_json::from_str::<Value>(&line) else { return Heard::Aside(line) };
    let id = message.get("id").filter(|id| !id.is_null());
    let params = message.get("params").cloned().unwrap_or_default();
    match (message["method"].as_str().map(str::to_owned), id) {
        (Some(method), Some(id)) => Heard::Request { id: id.clone(), method, params },
        (Some(method), None) => Heard::Notice { method, params },
        (None, Some(id)) => match (id.as_u64(), message.get("error")) {
            (Some(id), None) => Heard::Answer { id, result: Ok(message["result"].clone()) },
            (Some(id), Some(error)) => {
                let code = error["code"].as_i64().unwrap_or_default();
                Heard::Answer { id, result: Err(Refused { code, message: words(error) }) }
            }
            (None, _) => Heard::Aside(line),
        },
        (None, None) => Heard::Aside(line),
    }
}

/// An error's words, with what stands beside them: agents put the reason there.
fn words(error: &Value) -> String {
    let message = error["message"].as_str().unwrap_or("an error without words");
    let data = &error["data"];
    let reason = data.as_str().or(data["details"].as_str()).or(data["message"].as_str());
    match reason {
        Some(reason) if !message.contains(reason) => format!("{message}: {reason}"),
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Heard, Refused, read};
    use serde_json::json;

    #[test]
    fn messages_are_told_apart_and_rubbish_is_kept() {
        let heard = |text: &str| read(text.to_owned());
        assert_eq!(heard(r#"{"id":3,"result":{"a":1}}"#), Heard::Answer { id: 3, result: Ok(json!({"a": 1})) });
        assert_eq!(heard(r#"{"id":3,"result":null}"#), Heard::Answer { id: 3, result: Ok(json!(null)) });
        let error = r#"{"id":3,"error":{"code":-32603,"message":"Internal error","data":{"details":"no model"}}}"#;
        let message = "Internal error: no model".to_owned();
        assert_eq!(heard(error), Heard::Answer { id: 3, result: Err(Refused { code: -32603, message }) });
        let (method, params) = ("m".to_owned(), json!({}));
        assert_eq!(
            heard(r#"{"id":"x","method":"m","params":{}}"#),
            Heard::Request { id: json!("x"), method: method.clone(), params: params.clone() }
        );
        assert_eq!(heard(r#"{"method":"m","params":{}}"#), Heard::Notice { method, params });
        for rubbish in ["hello", "7", r#"{"id":"x","result":1}"#, "{}"] {
            assert_eq!(heard(rubbish), Heard::Aside(rubbish.to_owned()));
        }
    }
}
