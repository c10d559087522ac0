//! Agents that speak the Agent Client Protocol over their standard streams (docs/acp-agent.md).

mod choice;
mod conversation;
mod facts;
mod permission;
mod prompt;
mod servers;
mod turn;
mod wire;

pub use facts::{Facts, Learned};
pub use permission::Permission;

use crate::agent::{Outbox, Stop, Stopped};
use crate::command::Bounds;
use crate::command::aside::LastWords;
use crate::evidence::site::{Plan, Site};
use crate::probe::mcp::definition::Definition;
use crate::sessions::Sessions;
use crate::supervise::{Exit, Launch, Limits, Running};
use conversation::Conversation;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::block::Block;
use flotilla_protocol::work::{Assignment, Contents, Report};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wire::Wire;

/// How long an agent may take to end by itself when nobody speaks to it any more.
const FAREWELL: Duration = Duration::from_secs(2);

/// An agent's program, started for each message, and what its sessions are given.
#[derive(Debug, Clone)]
pub struct Acp {
    /// This program's own file, which runs others under its command `reap`.
    pub reaper: PathBuf,
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// All the environment it gets.
    pub environment: Vec<(OsString, OsString)>,
    pub folder: PathBuf,
    pub bounds: Bounds,
    pub limits: Limits,
    /// The model and the mode of its sessions, by its own names; its own choice if absent.
    pub model: Option<String>,
    pub mode: Option<String>,
    /// The way to sign in that is asked for before a session is begun.
    pub sign_in: Option<String>,
    pub permission: Permission,
    /// Servers that its sessions are given.
    pub mcp_servers: BTreeMap<String, Definition>,
    pub sessions: Arc<Sessions>,
    pub git: Plan,
    pub learned: Arc<Learned>,
}

/// Why a run went no further.
#[derive(Debug)]
enum Halt {
    Stopped,
    /// The program ended when it should not have.
    Ended,
    Failed(String),
    /// The message cannot be worked on; says what to change.
    Rejected(String),
}

impl From<Stopped> for Halt {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// How a turn ended.
struct Outcome {
    state: TaskState,
    words: Option<String>,
}

impl Acp {
    pub(crate) async fn work(&self, assignment: &Assignment, outbox: &Outbox, mut stop: Stop) -> Result<(), Stopped> {
        outbox.report(Report::status(TaskState::Working)).await?;
        let caller = assignment.caller.to_string();
        let mut held = tokio::select! {
            held = self.sessions.hold(&caller, &assignment.context_id) => held,
            () = stop.asked() => return Err(Stopped),
        };
        let site = match self.git.open(&self.folder, assignment, &self.reaper, self.limits).await {
            Ok(site) => site,
            Err(problem) => return ended(outbox, Outcome::failed(problem)).await,
        };
        let outbox = &site.listen(outbox);
        let mut last_words = LastWords::default();
        let result = self.run(assignment, outbox, &mut stop, &site, &mut held, &mut last_words).await;
        let is_done = result.as_ref().is_ok_and(|outcome| outcome.state == TaskState::Completed);
        for report in site.close(is_done).await {
            outbox.report(report).await?;
        }
        match result {
            Ok(outcome) => ended(outbox, outcome).await,
            Err(Halt::Stopped) => Err(Stopped),
            Err(Halt::Rejected(words)) => {
                ended(outbox, Outcome { state: TaskState::Rejected, words: Some(words) }).await
            }
            Err(Halt::Failed(problem)) => ended(outbox, Outcome::failed(problem)).await,
            Err(Halt::Ended) => ended(outbox, Outcome::failed("the agent's program ended in the middle".into())).await,
        }
    }

    async fn run(
        &self,
        assignment: &Assignment,
        outbox: &Outbox,
        stop: &mut Stop,
        site: &Site,
        held: &mut crate::sessions::Held,
        last_words: &mut LastWords,
    ) -> Result<Outcome, Halt> {
        let launch = Launch {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            environment: self.environment.clone(),
            folder: site.folder.clone(),
            mark: format!("{}.{}", assignment.task_id, assignment.run),
            grace: self.bounds.grace,
            limits: self.limits,
        };
        let (mut running, streams) = launch.start(&self.reaper).map_err(Halt::Failed)?;
        let wire = Wire::new(streams, self.bounds);
        let mut conversation = Conversation::new(self, wire, assignment, outbox, held, last_words);
        let result = tokio::select! {
            result = conversation.hold(&site.folder) => result,
            () = stop.asked() => Err(Halt::Stopped),
            () = tokio::time::sleep(self.bounds.whole) => {
                let seconds = self.bounds.whole.as_secs();
                Err(Halt::Failed(format!("the agent did not end its turn within {seconds} s and was stopped")))
            }
        };
        let mut reports = match &result {
            Ok(_) => Vec::new(),
            Err(_) => conversation.break_off(self.bounds.grace).await,
        };
        let wire = conversation.leave();
        reports.extend(running.meter().look().block().map(|used| Report::Note { blocks: vec![used] }));
        for report in reports {
            outbox.report(report).await?;
        }
        let exit = end(&mut running, wire, result.is_ok()).await;
        match result {
            Err(Halt::Ended) => Err(Halt::Failed(told(exit, last_words))),
            result => result,
        }
    }
}

impl Outcome {
    fn failed(problem: String) -> Self {
        Self { state: TaskState::Failed, words: Some(problem) }
    }
}

async fn ended(outbox: &Outbox, Outcome { state, words }: Outcome) -> Result<(), Stopped> {
    outbox.report(Report::Status { state, contents: words.map(Contents::text), metadata: None }).await
}

/// Its input ends first. An agent that did its work may have something to put away, and gets a moment for it; then it is
/// asked to end, and ended.
async fn end(running: &mut Running, wire: Wire, is_done: bool) -> Exit {
    let draining = wire.drain();
    let ending = async {
        let patience = if is_done { FAREWELL } else { Duration::ZERO };
        match tokio::time::timeout(patience, running.ended()).await {
            Ok(exit) => exit,
            Err(_) => running.stop().await,
        }
    };
    tokio::join!(ending, draining).0
}

fn told(exit: Exit, last_words: &LastWords) -> String {
    let how = format!("the agent's program {}", exit.told());
    let words = last_words.told();
    if words.is_empty() { how } else { format!("{how}: {words}") }
}

fn aside(words: &str) -> Report {
    Report::Note { blocks: vec![Block::text(words)] }
}
