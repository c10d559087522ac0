//! Any program as an agent: told of a task on standard input, heard on standard output (docs/command-agent.md).

pub(crate) mod aside;
pub(crate) mod lines;
pub(crate) mod watch;

use crate::agent::{Outbox, Stop, Stopped};
use crate::evidence::site::{Plan, Site};
use crate::supervise::{Exit, Launch, Limits, Running, Streams, confined};
use aside::LastWords;
use flotilla_protocol::a2a::model::{Artifact, TaskState};
use flotilla_protocol::block::Block;
use flotilla_protocol::work::{Assignment, Contents, Report};
use lines::{Heard, Line};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use watch::{Reader, Silence};

/// How a program speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Talk {
    /// It is given the message's text, and what it prints is the result.
    Text,
    /// One JSON object a line, both ways.
    JsonLines,
}

/// A program that does an agent's work, once for each message.
#[derive(Debug, Clone)]
pub struct Program {
    /// This program's own file, which runs others under its command `reap`.
    pub reaper: PathBuf,
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// All the environment it gets.
    pub environment: Vec<(OsString, OsString)>,
    pub folder: PathBuf,
    /// The folder may not lead out of this one.
    pub root: Option<PathBuf>,
    /// Folders that are the agent's own, and made for it.
    pub own: Vec<PathBuf>,
    pub talk: Talk,
    pub bounds: Bounds,
    pub limits: Limits,
    pub git: Plan,
    /// What an exit code means, beside 0 for done and all others for failed.
    pub exits: BTreeMap<u8, TaskState>,
}

/// What a run may cost.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub whole: Duration,
    /// Without a word on either stream.
    pub silence: Duration,
    pub output: usize,
    pub line: usize,
    /// Between being asked to end and being ended.
    pub grace: Duration,
}

/// Why a run went no further.
enum Halt {
    Stopped,
    Failed(String),
}

impl From<Stopped> for Halt {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// What was heard of a run so far.
#[derive(Default)]
struct Course {
    /// What ends the turn, as the program said it.
    last: Option<Report>,
    /// Text was printed, so its artifact is open.
    printed: bool,
    last_words: LastWords,
}

/// How a run ended, and a program that said so and is not gone yet.
struct Ended {
    last: Report,
    lingering: Option<(Running, Reader)>,
}

impl Program {
    pub(crate) async fn work(&self, assignment: &Assignment, outbox: &Outbox, mut stop: Stop) -> Result<(), Stopped> {
        let site = match self.open(assignment).await {
            Ok(site) => site,
            Err(problem) => {
                // Folders are the owner's to know.
                outbox.report(Report::Note { blocks: vec![Block::text(&problem)] }).await?;
                let words = "The agent cannot be started now. Its owner sees why in the task's log.".to_owned();
                return outbox.report(failed(words)).await;
            }
        };
        let outbox = &site.listen(outbox);
        let mut course = Course::default();
        let ended = self.run(assignment, outbox, &mut stop, &site, &mut course).await;
        let (last, mut lingering) = match ended {
            Ok(Ended { last, lingering }) => (last, lingering),
            Err(Halt::Stopped) => {
                for report in site.close(false).await {
                    outbox.report(report).await?;
                }
                return Err(Stopped);
            }
            Err(Halt::Failed(problem)) => (failed(problem), None),
        };
        // Its word ends the turn, even if the program lingers; where git is asked afterwards, as soon as it is gone.
        let (is_watched, is_done) = (site.is_watched(), is_done(&last));
        if is_watched {
            end(&mut lingering).await;
        }
        let mut told = Ok(());
        for report in site.end(last, is_done).await {
            told = told.and(outbox.report(report).await);
        }
        end(&mut lingering).await;
        told
    }

    /// Where it works, wherever links lead now.
    async fn open(&self, assignment: &Assignment) -> Result<Site, String> {
        for folder in &self.own {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|error| format!("the folder {} cannot be made: {error}", folder.display()))?;
        }
        let folder = confined(&self.folder, self.root.as_deref())?;
        self.git.open(&folder, assignment, &self.reaper, self.limits).await
    }

    /// Runs the program to its end, or to its word on how it went.
    async fn run(
        &self,
        assignment: &Assignment,
        outbox: &Outbox,
        stop: &mut Stop,
        site: &Site,
        course: &mut Course,
    ) -> Result<Ended, Halt> {
        let said = match self.talk {
            Talk::Text => lines::text_of(&assignment.message),
            Talk::JsonLines => lines::task_line(assignment).map_err(Halt::Failed)?,
        };
        // One that speaks for itself may want to give a direct answer.
        if self.talk == Talk::Text {
            outbox.report(Report::status(TaskState::Working)).await?;
        }
        let (mut running, streams) = self.launch(assignment, site).start(&self.reaper).map_err(Halt::Failed)?;
        let Streams { mut stdin, stdout, stderr } = streams;
        let telling = async move {
            // A program need not read what it is told.
            let _ = stdin.write_all(said.as_bytes()).await;
            let _ = stdin.shutdown().await;
        };
        let mut reader = Reader::new(stdout, stderr, self.bounds);
        let talking = async {
            self.hear(&mut reader, pin!(telling), assignment, outbox, course).await?;
            running.meter().look();
            // One that said how it went is not waited for here.
            let exit = if course.last.is_some() { None } else { Some(running.ended().await) };
            Ok(exit)
        };
        let exit = tokio::select! {
            exit = talking => exit,
            () = stop.asked() => Err(Halt::Stopped),
            () = tokio::time::sleep(self.bounds.whole) => {
                let seconds = self.bounds.whole.as_secs();
                Err(Halt::Failed(format!("the program did not end within {seconds} s and was stopped")))
            }
        };
        let exit = match exit {
            Ok(exit) => exit,
            Err(halt) => {
                let used = running.meter().look();
                let last_words = async {
                    // What it said before it heard that it is to stop is its caller's still.
                    if matches!(halt, Halt::Stopped) {
                        let _ = self.hear(&mut reader, pin!(std::future::ready(())), assignment, outbox, course).await;
                    }
                    // The rest is nobody's, but it must be able to say it.
                    reader.drain().await;
                };
                let (_, ()) = tokio::join!(running.stop(), last_words);
                note(outbox, used.block()).await?;
                return Err(halt);
            }
        };
        // Whoever does not listen any more is met again below, when nothing of the program is left.
        let _ = note(outbox, running.meter().used().block()).await;
        match (exit, course.last.take()) {
            (None, Some(last)) => Ok(Ended { last, lingering: Some((running, reader)) }),
            (exit, _) => {
                let last = self.end(exit.unwrap_or(Exit::Unknown), assignment, outbox, course).await?;
                Ok(Ended { last, lingering: None })
            }
        }
    }

    fn launch(&self, assignment: &Assignment, site: &Site) -> Launch {
        Launch {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            environment: self.environment.clone(),
            folder: site.folder.clone(),
            mark: format!("{}.{}", assignment.task_id, assignment.run),
            grace: self.bounds.grace,
            limits: self.limits,
        }
    }

    /// Until the program has said how it went, or says no more.
    async fn hear(
        &self,
        reader: &mut Reader,
        mut telling: Pin<&mut impl Future<Output = ()>>,
        assignment: &Assignment,
        outbox: &Outbox,
        course: &mut Course,
    ) -> Result<(), Halt> {
        let mut told = false;
        while course.last.is_none() {
            let next = tokio::select! {
                biased;
                () = &mut telling, if !told => {
                    told = true;
                    continue;
                }
                next = reader.next(self.talk) => next,
            };
            let heard = match next {
                Ok(Some(heard)) => heard,
                Ok(None) => return Ok(()),
                Err(Silence::Quiet) => {
                    let seconds = self.bounds.silence.as_secs();
                    return Err(Halt::Failed(format!("the program said nothing for {seconds} s and was stopped")));
                }
                Err(Silence::TooMuch(what)) => return Err(Halt::Failed(format!("the program was stopped: {what}"))),
            };
            match heard {
                Heard::Aside(text) => {
                    course.last_words.take(&text);
                    outbox.report(Report::Note { blocks: vec![Block::text(&text)] }).await?;
                }
                Heard::Text(text) => {
                    outbox.report(printed(assignment, text, course.printed, false)).await?;
                    course.printed = true;
                }
                Heard::Line(line) => self.take(&line, outbox, course).await?,
            }
        }
        Ok(())
    }

    async fn take(&self, line: &str, outbox: &Outbox, course: &mut Course) -> Result<(), Halt> {
        let read = Line::read(line).and_then(|read| Ok((read.ends_turn(), read.into_report()?)));
        let (ends, report) = read.map_err(|problem| {
            let shown: String = line.chars().take(200).collect();
            Halt::Failed(format!("the program printed a line that is not understood ({problem}): {shown}"))
        })?;
        if ends {
            course.last = Some(report);
            return Ok(());
        }
        Ok(outbox.report(report).await?)
    }

    /// What an end comes to that the program said nothing of.
    async fn end(
        &self,
        exit: Exit,
        assignment: &Assignment,
        outbox: &Outbox,
        course: &mut Course,
    ) -> Result<Report, Halt> {
        if course.printed {
            outbox.report(printed(assignment, String::new(), true, true)).await?;
        }
        let words = course.last_words.told();
        let told = |problem: String| if words.is_empty() { problem } else { format!("{problem}: {words}") };
        let state = match exit {
            Exit::Code(code) => match self.exits.get(&code) {
                Some(state) => *state,
                None if code == 0 => TaskState::Completed,
                None => return Err(Halt::Failed(told(format!("the program ended with exit code {code}")))),
            },
            exit => return Err(Halt::Failed(told(format!("the program {}", exit.told())))),
        };
        let contents = (state != TaskState::Completed && !words.is_empty()).then(|| Contents::text(words));
        Ok(Report::Status { state, contents, metadata: None })
    }
}

/// Asks a program to end that has said how it went; returns when nothing of it is left.
async fn end(lingering: &mut Option<(Running, Reader)>) {
    if let Some((mut running, mut reader)) = lingering.take() {
        tokio::join!(running.stop(), reader.drain());
    }
}

fn failed(words: String) -> Report {
    Report::Status { state: TaskState::Failed, contents: Some(Contents::text(words)), metadata: None }
}

fn is_done(report: &Report) -> bool {
    matches!(report, Report::Answer { .. } | Report::Status { state: TaskState::Completed, .. })
}

async fn note(outbox: &Outbox, block: Option<Block>) -> Result<(), Stopped> {
    match block {
        Some(block) => outbox.report(Report::Note { blocks: vec![block] }).await,
        None => Ok(()),
    }
}

/// What a program prints, as one artifact that grows.
fn printed(assignment: &Assignment, text: String, append: bool, last_chunk: bool) -> Report {
    let artifact_id = format!("output-{}", assignment.turn);
    let artifact = Box::new(Artifact { artifact_id, name: "output".into(), ..Artifact::default() });
    let contents = if text.is_empty() { Contents::Parts(Vec::new()) } else { Contents::text(text) };
    Report::Artifact { artifact, contents, append, last_chunk, metadata: None }
}
