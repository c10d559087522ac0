//! The handshake of MCP and a ping, the same over every wire.

use super::events::Stream;
use super::http::Post;
use super::stdio::Pipe;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The newest version that begins with a handshake.
const VERSION: &str = "2025-11-25";
/// The version that does without one.
pub const STATELESS: &str = "2026-07-28";

/// A server that answers.
#[derive(Debug)]
pub struct Greeted {
    /// Of the ping.
    pub latency: Duration,
    pub detail: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Problem {
    Slow(String),
    NeedsAuth(String),
    Failed(String),
}

/// What a server answered to a request.
#[derive(Debug, PartialEq)]
pub enum Answer {
    Result(Value),
    Error { code: i64, message: String },
}

impl Answer {
    /// The answer to a request, if this message is one.
    pub fn of(message: &Value, id: u64) -> Option<Self> {
        if message["jsonrpc"] != "2.0" || message["id"] != id {
            return None;
        }
        match (message.get("result"), message.get("error")) {
            (Some(result), None) => Some(Self::Result(result.clone())),
            (None, Some(error)) => {
                let message = error["message"].as_str().unwrap_or("an error without words").to_owned();
                Some(Self::Error { code: error["code"].as_i64().unwrap_or_default(), message })
            }
            _ => None,
        }
    }
}

pub enum Wire {
    Stdio(Box<Pipe>),
    Http(Box<Post>),
    Sse(Box<Stream>),
}

impl Wire {
    async fn ask(&mut self, id: u64, method: &str, params: Value) -> Result<Answer, Problem> {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        match self {
            Self::Stdio(pipe) => pipe.ask(&message, id).await,
            Self::Http(post) => post.ask(&message, id).await,
            Self::Sse(stream) => stream.ask(&message, id).await,
        }
    }

    async fn tell(&mut self, method: &str) -> Result<(), Problem> {
        let message = json!({"jsonrpc": "2.0", "method": method});
        match self {
            Self::Stdio(pipe) => pipe.tell(&message).await,
            Self::Http(post) => post.tell(&message).await,
            Self::Sse(stream) => stream.tell(&message).await,
        }
    }

    /// What was agreed on goes with all that follows.
    fn agree(&mut self, version: &str) {
        if let Self::Http(post) = self {
            post.agree(version);
        }
    }

    /// What a server that is too slow has said so far, if that tells more than silence.
    fn noise(&self) -> Option<String> {
        match self {
            Self::Stdio(pipe) => pipe.noise(),
            Self::Http(_) | Self::Sse(_) => None,
        }
    }

    /// Leaves the server; one that was started here is ended.
    pub async fn close(self) {
        match self {
            Self::Stdio(pipe) => pipe.close().await,
            Self::Http(post) => post.close().await,
            Self::Sse(_) => {}
        }
    }
}

/// Waits for something, but not for ever.
pub async fn within<T>(
    limit: Duration,
    what: &str,
    step: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    match tokio::time::timeout(limit, step).await {
        Ok(done) => done,
        Err(_) => Err(Problem::Slow(format!("{what} took more than {} ms", limit.as_millis()))),
    }
}

/// How a server took the handshake.
pub enum Greeting {
    Done(Greeted),
    /// It answered with an error, as those do that know no handshake.
    Refused(String),
}

pub async fn greet(wire: &mut Wire, limit: Duration) -> Result<Greeting, Problem> {
    let greeting = within(limit, "the handshake", initialize(wire)).await;
    let greeting = match (greeting, wire.noise()) {
        (Err(Problem::Slow(slow)), Some(noise)) => Err(Problem::Failed(format!("{slow}; it said: {noise}"))),
        (greeting, _) => greeting,
    };
    if let Some(error) = greeting? {
        return Ok(Greeting::Refused(error));
    }
    let started = Instant::now();
    let ping = within(limit, "the ping", wire.ask(2, "ping", json!({}))).await?;
    // A refusal is an answer too: somebody is there.
    let detail = match ping {
        Answer::Result(_) => None,
        Answer::Error { message, .. } => Some(format!("it does not take a ping: {message}")),
    };
    Ok(Greeting::Done(Greeted { latency: started.elapsed(), detail }))
}

/// Says what went wrong if the server answered with an error.
async fn initialize(wire: &mut Wire) -> Result<Option<String>, Problem> {
    let params = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client()});
    match wire.ask(1, "initialize", params).await? {
        Answer::Error { code, message } => Ok(Some(format!("{message} ({code})"))),
        Answer::Result(result) => {
            let Some(version) = result["protocolVersion"].as_str() else {
                return Err(Problem::Failed("its answer to the handshake names no protocolVersion".into()));
            };
            wire.agree(version);
            wire.tell("notifications/initialized").await?;
            Ok(None)
        }
    }
}

/// Servers of the version that has no handshake say what they are when asked.
pub async fn discover(wire: &mut Wire, limit: Duration) -> Result<Greeted, Problem> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": client(),
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    wire.agree(STATELESS);
    let started = Instant::now();
    match within(limit, "the discovery", wire.ask(3, "server/discover", json!({"_meta": meta}))).await? {
        Answer::Result(_) => Ok(Greeted { latency: started.elapsed(), detail: None }),
        Answer::Error { message, .. } => Err(Problem::Failed(message)),
    }
}

fn client() -> Value {
    json!({"name": "flotilla", "version": env!("CARGO_PKG_VERSION")})
}
