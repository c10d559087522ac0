//! Claude Code as an agent: run headless, spoken to in lines of JSON over pipes (docs/claude-code.md).

mod calls;
mod facts;
mod frame;
mod installed;
mod options;
mod permission;
mod pipe;
mod prompt;
mod run;
mod session;
mod turn;

#[cfg(test)]
mod tests;

pub use facts::Facts;
pub use installed::Installed;
pub use options::Wishes;

use crate::agent::{Outbox, Stop, Stopped};
use crate::command::Bounds;
use crate::evidence::site::Plan;
use crate::supervise::{Launch, Limits, Recorded, Records, Running, Streams, confined};
use flotilla_protocol::a2a::model::{Message, TaskState};
use flotilla_protocol::block::Block;
use flotilla_protocol::wire::Json;
use flotilla_protocol::work::{Assignment, Contents, Report};
use run::{Ended, Halt, Run};
use session::{Held, Sessions};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Where Claude Code is, what it is given, and what a run may cost.
#[derive(Debug, Clone)]
pub struct Settings {
    /// This program's own file, which runs others under its command `reap`.
    pub reaper: PathBuf,
    pub program: PathBuf,
    /// All the environment it gets.
    pub environment: Vec<(OsString, OsString)>,
    pub folder: PathBuf,
    /// The folder may not lead out of this one.
    pub root: Option<PathBuf>,
    pub bounds: Bounds,
    pub limits: Limits,
    pub git: Plan,
    pub wishes: Wishes,
    /// Where conversations and runs are on record; none forgets them with this process.
    pub state: Option<PathBuf>,
}

/// An installed Claude Code that can do what is asked of it.
#[derive(Debug)]
pub struct Claude {
    pub(crate) settings: Settings,
    installed: Installed,
    sessions: Sessions,
    records: Option<Records>,
    facts: Mutex<Option<Facts>>,
}

impl Claude {
    /// Asks the program what it can do. An error says which setting is the problem.
    pub async fn find(settings: Settings) -> Result<Self, String> {
        settings.working_folder()?;
        let installed = Installed::ask(&settings).await?;
        settings.wishes.check(&installed)?;
        let sessions = Sessions::open(settings.state.as_ref().map(|state| state.join("sessions.json")))?;
        let records = settings.records()?;
        Ok(Self { settings, installed, sessions, records, facts: Mutex::default() })
    }

    pub fn version(&self) -> &str {
        &self.installed.version
    }

    /// Whether what a caller says during a run is told to it at once.
    pub fn takes_more(&self) -> bool {
        self.settings.wishes.steer
    }

    /// The form that the program itself holds its reply to a message to: its owner's, or else that of the contract the
    /// message comes under, if the program can.
    pub(crate) fn schema(&self, message: &Message) -> Option<Json> {
        self.settings.wishes.json_schema.clone().or_else(|| self.installed.contracted(message))
    }

    /// What the latest session said of itself.
    pub fn facts(&self) -> Option<Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn learn(&self, change: impl FnOnce(&mut Option<Facts>)) {
        change(&mut self.facts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) async fn work(&self, assignment: &Assignment, outbox: &Outbox, mut stop: Stop) -> Result<(), Stopped> {
        let said = match prompt::user_line(&assignment.message, &uuid::Uuid::new_v4().to_string()) {
            Ok(line) => line,
            Err(problem) => {
                let contents = Some(Contents::text(problem));
                return outbox.report(Report::Status { state: TaskState::Rejected, contents, metadata: None }).await;
            }
        };
        outbox.report(Report::status(TaskState::Working)).await?;
        let caller = assignment.caller.to_string();
        let mut held = tokio::select! {
            held = self.sessions.hold(&caller, &assignment.context_id) => held,
            () = stop.asked() => return Err(Stopped),
        };
        let mut run = Run::new(self, assignment, outbox, stop.take_more());
        let ended = match run.open().await {
            Ok(()) => self.tries(&mut run, &mut held, &said, &mut stop).await,
            Err(halt) => Err(halt),
        };
        match ended {
            Ok(()) => run.settle(None).await,
            Err(Halt::Stopped) => run.rest().await.and(Err(Stopped)),
            Err(Halt::Failed(problem)) => run.fail(&problem).await,
        }
    }

    /// What is remembered of a conversation and what the program knows of it may differ, so the other way is tried once.
    async fn tries(&self, run: &mut Run<'_>, held: &mut Held, said: &str, stop: &mut Stop) -> Result<(), Halt> {
        for _ in 0..3 {
            let problem = match run.go(held, said, stop).await? {
                Ended::Done => return Ok(()),
                Ended::InUse => {
                    held.is_known = true;
                    "the conversation exists already, and is gone on with"
                }
                Ended::NotFound => {
                    held.lost();
                    "the conversation is not there any more, and is begun anew"
                }
            };
            run.note(vec![Block::text(problem)]).await?;
        }
        Err(Halt::Failed("Claude Code neither begins the conversation nor goes on with it.".into()))
    }

    /// Puts a run on record, and starts it.
    fn start(
        &self,
        assignment: &Assignment,
        held: &Held,
        folder: &Path,
    ) -> Result<(Option<Recorded>, Running, Streams), String> {
        let launch = self.launch(assignment, held, folder);
        let recorded = self.records.as_ref().map(|records| records.record(&launch.mark)).transpose();
        let recorded = recorded.map_err(|error| format!("the run cannot be put on record: {error}"))?;
        let (running, streams) = launch.start(&self.settings.reaper)?;
        Ok((recorded, running, streams))
    }

    fn launch(&self, assignment: &Assignment, held: &Held, folder: &Path) -> Launch {
        let settings = &self.settings;
        let wishes = Wishes { json_schema: self.schema(&assignment.message), ..settings.wishes.clone() };
        Launch {
            program: settings.program.clone(),
            arguments: wishes.arguments(&self.installed, held, assignment.max_cost_usd),
            environment: settings.environment.clone(),
            folder: folder.to_owned(),
            mark: format!("{}.{}", assignment.task_id, assignment.run),
            grace: settings.bounds.grace,
            limits: settings.limits,
        }
    }
}

impl Settings {
    /// Opens the record of runs, which ends what a former worker left.
    fn records(&self) -> Result<Option<Records>, String> {
        let Some(state) = &self.state else { return Ok(None) };
        let folder = state.join("runs");
        let (records, ended) =
            Records::open(folder.clone()).map_err(|error| format!("the folder {}: {error}", folder.display()))?;
        if ended > 0 {
            tracing::warn!(processes = ended, "ended what runs of a former worker left behind");
        }
        Ok(Some(records))
    }

    /// The folder as it is now, wherever links lead.
    fn working_folder(&self) -> Result<PathBuf, String> {
        confined(&self.folder, self.root.as_deref())
    }
}
