//! Codex as an agent: `codex exec`, told of a task on standard input, heard in lines of JSON (docs/codex.md).

mod items;

use crate::agent::{Outbox, Stop, Stopped};
use crate::command::aside::LastWords;
use crate::command::lines::{Heard, text_of};
use crate::command::watch::{Reader, Silence};
use crate::command::{Bounds, Talk};
use crate::evidence::site::{Plan, Site};
use crate::sessions::{Held, Sessions};
use crate::supervise::{Exit, Launch, Limits, Streams};
use flotilla_protocol::a2a::model::{Message, TaskState};
use flotilla_protocol::block::Block;
use flotilla_protocol::work::{Assignment, Contents, Report};
use items::{Said, Turn};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::AsyncWriteExt as _;

/// What the program says of a session that it does not have.
const NOT_FOUND: &str = "no rollout found";

/// Where Codex is, what it may do, and what a run may cost.
#[derive(Debug, Clone)]
pub struct Codex {
    /// This program's own file, which runs others under its command `reap`.
    pub reaper: PathBuf,
    pub program: PathBuf,
    /// More options, after those that every run has.
    pub arguments: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    pub folder: PathBuf,
    pub bounds: Bounds,
    pub limits: Limits,
    pub model: Option<String>,
    pub sandbox: Sandbox,
    pub sessions: Arc<Sessions>,
    pub git: Plan,
}

/// What Codex lets its commands do. It asks nobody: what the sandbox does not allow does not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
}

impl Sandbox {
    fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
        }
    }
}

enum Halt {
    Stopped,
    /// The session that was to go on is not there.
    NotFound,
    Failed(String),
}

impl From<Stopped> for Halt {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl Codex {
    pub(crate) async fn work(&self, assignment: &Assignment, outbox: &Outbox, mut stop: Stop) -> Result<(), Stopped> {
        let prompt = match prompt(&assignment.message) {
            Ok(prompt) => prompt,
            Err(problem) => return ended(outbox, TaskState::Rejected, Some(problem)).await,
        };
        outbox.report(Report::status(TaskState::Working)).await?;
        let caller = assignment.caller.to_string();
        let mut held = tokio::select! {
            held = self.sessions.hold(&caller, &assignment.context_id) => held,
            () = stop.asked() => return Err(Stopped),
        };
        let site = match self.git.open(&self.folder, assignment, &self.reaper, self.limits).await {
            Ok(site) => site,
            Err(problem) => return ended(outbox, TaskState::Failed, Some(problem)).await,
        };
        let outbox = &site.listen(outbox);
        let mut result = self.run(assignment, outbox, &mut stop, &site, &mut held, &prompt).await;
        if matches!(result, Err(Halt::NotFound)) {
            let words = "the session is not there any more, and is begun anew";
            outbox.report(Report::Note { blocks: vec![Block::text(words)] }).await?;
            held.lost();
            result = self.run(assignment, outbox, &mut stop, &site, &mut held, &prompt).await;
        }
        for report in site.close(result.is_ok()).await {
            outbox.report(report).await?;
        }
        match result {
            Ok(()) => ended(outbox, TaskState::Completed, None).await,
            Err(Halt::Stopped) => Err(Stopped),
            Err(Halt::NotFound) => ended(outbox, TaskState::Failed, Some("Codex begins no session".into())).await,
            Err(Halt::Failed(problem)) => ended(outbox, TaskState::Failed, Some(problem)).await,
        }
    }

    fn launch(&self, assignment: &Assignment, site: &Site, held: &Held) -> Launch {
        let mut arguments: Vec<OsString> = vec!["exec".into()];
        if let Some(session) = &held.known {
            arguments.extend(["resume".into(), session.into()]);
        }
        let sandbox = format!("sandbox_mode=\"{}\"", self.sandbox.name());
        arguments.extend(["--json".into(), "--skip-git-repo-check".into(), "-c".into(), sandbox.into()]);
        if let Some(model) = &self.model {
            arguments.extend(["-m".into(), model.into()]);
        }
        arguments.extend(self.arguments.iter().cloned());
        // Read from standard input: what a caller says is never an option.
        arguments.push("-".into());
        Launch {
            program: self.program.clone(),
            arguments,
            environment: self.environment.clone(),
            folder: site.folder.clone(),
            mark: format!("{}.{}", assignment.task_id, assignment.run),
            grace: self.bounds.grace,
            limits: self.limits,
        }
    }

    async fn run(
        &self,
        assignment: &Assignment,
        outbox: &Outbox,
        stop: &mut Stop,
        site: &Site,
        held: &mut Held,
        prompt: &str,
    ) -> Result<(), Halt> {
        let launch = self.launch(assignment, site, held);
        let (mut running, streams) = launch.start(&self.reaper).map_err(Halt::Failed)?;
        let Streams { mut stdin, stdout, stderr } = streams;
        let telling = async move {
            let _ = stdin.write_all(prompt.as_bytes()).await;
            let _ = stdin.shutdown().await;
        };
        let mut reader = Reader::new(stdout, stderr, self.bounds);
        let mut course = Course { turn: Turn::new(assignment.turn), settled: None, last_words: LastWords::default() };
        let talking = async {
            let ((), heard) = tokio::join!(telling, self.hear(&mut reader, outbox, held, &mut course));
            heard
        };
        let heard = tokio::select! {
            heard = talking => heard,
            () = stop.asked() => Err(Halt::Stopped),
            () = tokio::time::sleep(self.bounds.whole) => {
                let seconds = self.bounds.whole.as_secs();
                Err(Halt::Failed(format!("Codex did not end within {seconds} s and was stopped")))
            }
        };
        // The turn is over, whether the program sees that or not.
        let used = running.meter().look().block();
        let (exit, ()) = tokio::join!(running.stop(), reader.drain());
        if let Some(report) = course.turn.end() {
            outbox.report(report).await?;
        }
        if let Some(used) = used {
            outbox.report(Report::Note { blocks: vec![used] }).await?;
        }
        heard?;
        match course.settled {
            Some(Ok(())) => Ok(()),
            Some(Err(problem)) => Err(Halt::Failed(problem)),
            None => Err(told(exit, &course.last_words, held.known.is_some())),
        }
    }

    /// Until the turn is over, or the program is.
    async fn hear(
        &self,
        reader: &mut Reader,
        outbox: &Outbox,
        held: &mut Held,
        course: &mut Course,
    ) -> Result<(), Halt> {
        loop {
            let line = match reader.next(Talk::JsonLines).await {
                Ok(Some(Heard::Line(line))) => line,
                Ok(Some(Heard::Aside(words) | Heard::Text(words))) => {
                    outbox.report(Report::Note { blocks: vec![Block::text(&words)] }).await?;
                    course.last_words.take(&words);
                    continue;
                }
                Ok(None) => return Ok(()),
                Err(Silence::Quiet) => {
                    let seconds = self.bounds.silence.as_secs();
                    return Err(Halt::Failed(format!("Codex said nothing for {seconds} s and was stopped")));
                }
                Err(Silence::TooMuch(what)) => return Err(Halt::Failed(format!("Codex was stopped: {what}"))),
            };
            match course.turn.hear(&line, &held.memo) {
                Said::Session(session) => held.begun(&session),
                Said::Reports(reports) => {
                    for report in reports {
                        outbox.report(report).await?;
                    }
                }
                Said::Done { reports, total } => {
                    for report in reports {
                        outbox.report(report).await?;
                    }
                    held.remember(total);
                    course.settled = Some(Ok(()));
                    return Ok(());
                }
                Said::Failed(problem) => {
                    course.settled = Some(Err(problem));
                    return Ok(());
                }
            }
        }
    }
}

/// What was heard of a run so far.
struct Course {
    turn: Turn,
    settled: Option<Result<(), String>>,
    last_words: LastWords,
}

async fn ended(outbox: &Outbox, state: TaskState, words: Option<String>) -> Result<(), Stopped> {
    outbox.report(Report::Status { state, contents: words.map(Contents::text), metadata: None }).await
}

fn told(exit: Exit, last_words: &LastWords, is_resumed: bool) -> Halt {
    let words = last_words.told();
    if is_resumed && words.contains(NOT_FOUND) {
        return Halt::NotFound;
    }
    let how = format!("Codex {}", exit.told());
    Halt::Failed(if words.is_empty() { how } else { format!("{how}: {words}") })
}

/// Codex reads text and nothing else from its input.
fn prompt(message: &Message) -> Result<String, String> {
    if let Some(part) = message.parts.iter().find(|part| part.raw.is_some() || part.url.is_some()) {
        let name = if part.filename.is_empty() { "a file" } else { part.filename.as_str() };
        return Err(format!("the agent takes no files; leave {name} out, or send it as text"));
    }
    let mut texts = vec![text_of(message)];
    let data = message.parts.iter().filter_map(|part| part.data.0.as_ref());
    texts.extend(data.map(|data| data.text().to_owned()));
    let prompt = texts.join("\n");
    if prompt.trim().is_empty() { Err("the message says nothing; write what is to be done".into()) } else { Ok(prompt) }
}
