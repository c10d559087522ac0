//! MCP servers, asked whether they answer: a real handshake and a ping, each within a time.

pub mod definition;
mod events;
mod http;
mod secrets;
mod stdio;
mod talk;

use definition::Definition;
use flotilla_protocol::fleet::announce::{McpStatus, Observation};
use flotilla_protocol::time::Millis;
use secrets::Secrets;
use std::ffi::OsString;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use talk::{Greeted, Greeting, Problem, Wire};
use tokio::sync::Semaphore;

/// Letters of a problem that are told.
const TOLD: usize = 300;
/// After so long it is a server's own matter how long it takes, and another is asked beside it.
const LONG: Duration = Duration::from_secs(2);

/// Who asks, and within what.
#[derive(Debug, Clone)]
pub struct Prober {
    /// This program's own file, which runs others under its command `reap`.
    pub reaper: PathBuf,
    /// The environment of the agent, which its servers get too.
    pub environment: Vec<(OsString, OsString)>,
    pub folder: PathBuf,
    /// For each step: starting with the handshake, and the ping.
    pub limit: Duration,
    /// For those that are asked at once: to start them costs this machine something.
    pub room: Arc<Semaphore>,
}

impl Prober {
    /// Asks one, when it is its turn; nothing of one that is started for it is left. One that takes long gives up
    /// its place, so that it keeps nobody else from being asked.
    pub async fn ask(&self, definition: &Definition) -> Observation {
        let place = self.room.acquire().await;
        let mut asking = pin!(self.ask_now(definition));
        match tokio::time::timeout(LONG, &mut asking).await {
            Ok(observation) => observation,
            Err(_) => {
                drop(place);
                asking.await
            }
        }
    }

    async fn ask_now(&self, definition: &Definition) -> Observation {
        let mut seen = match definition {
            Definition::Disabled => observed(McpStatus::Disabled, None, None),
            Definition::Other(kind) => {
                observed(McpStatus::Unknown, None, Some(format!("servers of type '{kind}' cannot be asked")))
            }
            Definition::Wrong(problem) => observed(McpStatus::Failed, None, Some(problem.clone())),
            Definition::Stdio(_) | Definition::Http(_) | Definition::Sse(_) => told(self.talk(definition).await),
        };
        if let Some(detail) = &mut seen.detail {
            let masked = Secrets::of(definition, &self.environment).mask(detail);
            // Not before: half of a secret would not be known as one.
            *detail = masked.chars().take(TOLD).collect();
        }
        seen
    }

    async fn talk(&self, definition: &Definition) -> Result<Greeted, Problem> {
        let mut wire = self.open(definition).await?;
        let greeting = talk::greet(&mut wire, self.limit).await;
        wire.close().await;
        let error = match greeting? {
            Greeting::Done(greeted) => return Ok(greeted),
            Greeting::Refused(error) => error,
        };
        // A server that refused the handshake may be gone with it, so it is asked anew.
        let mut wire = self.open(definition).await?;
        let discovered = talk::discover(&mut wire, self.limit).await;
        wire.close().await;
        discovered.map_err(|problem| match problem {
            Problem::Failed(_) => Problem::Failed(format!("it refused the handshake: {error}")),
            other => other,
        })
    }

    async fn open(&self, definition: &Definition) -> Result<Wire, Problem> {
        Ok(match definition {
            Definition::Stdio(program) => Wire::Stdio(Box::new(stdio::Pipe::open(program, self)?)),
            Definition::Http(place) => Wire::Http(Box::new(http::Post::open(place)?)),
            Definition::Sse(place) => {
                let opened = talk::within(self.limit, "the stream", events::Stream::open(place)).await?;
                Wire::Sse(Box::new(opened))
            }
            Definition::Disabled | Definition::Other(_) | Definition::Wrong(_) => {
                return Err(Problem::Failed("there is nothing to open".into()));
            }
        })
    }
}

fn told(result: Result<Greeted, Problem>) -> Observation {
    match result {
        Ok(greeted) => observed(McpStatus::Ok, Some(greeted.latency), greeted.detail),
        Err(Problem::Slow(detail)) => observed(McpStatus::Timeout, None, Some(detail)),
        Err(Problem::NeedsAuth(detail)) => observed(McpStatus::NeedsAuth, None, Some(detail)),
        Err(Problem::Failed(detail)) => observed(McpStatus::Failed, None, Some(detail)),
    }
}

fn observed(status: McpStatus, latency: Option<Duration>, detail: Option<String>) -> Observation {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    Observation {
        status,
        observed_at: now.and_then(|now| Some(Millis(i64::try_from(now.as_millis()).ok()?))),
        latency_ms: latency.and_then(|latency| u64::try_from(latency.as_millis()).ok()),
        detail,
        more: Default::default(),
    }
}
