//! Any program as an agent: told of a task on standard input, heard on standard output (docs/command-agent.md).

pub(crate) mod lines;
pub(crate) mod watch;

use crate::agent::{Outbox, Stop, Stopped};
use crate::evidence::site::Plan;
use crate::supervise::{Exit, Launch, Limits, Streams};
use flotilla_protocol::a2a::model::{Artifact, TaskState};
use flotilla_protocol::block::Block;
use flotilla_protocol::work::{Assignment, Contents, Report};
use lines::{Heard, Line};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
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

/// The last lines on standard error that are told when a program fails.
const LAST_WORDS: usize = 5;

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
    /// A state that ends the turn was reported.
    settled: bool,
    /// Text was printed, so its artifact is open.
    printed: bool,
    last_words: VecDeque<String>,
}

impl Program {
    pub(crate) async fn work(&self, assignment: &Assignment, outbox: &Outbox, stop: Stop) -> Result<(), Stopped> {
        let mut course = Course::default();
        let last = match self.run(assignment, outbox, stop, &mut course).await {
            Ok(()) => return Ok(()),
            Err(Halt::Stopped) => return Err(Stopped),
            Err(Halt::Failed(problem)) => problem,
        };
        if course.settled {
            let blocks = vec![Block::text(&last)];
            return outbox.report(Report::Note { blocks }).await;
        }
        let contents = Some(Contents::text(last));
        outbox.report(Report::Status { state: TaskState::Failed, contents, metadata: None }).await
    }

    async fn run(
        &self,
        assignment: &Assignment,
        outbox: &Outbox,
        mut stop: Stop,
        course: &mut Course,
    ) -> Result<(), Halt> {
        let launch = Launch {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            environment: self.environment.clone(),
            folder: self.folder.clone(),
            mark: format!("{}.{}", assignment.task_id, assignment.run),
            grace: self.bounds.grace,
            limits: self.limits,
        };
        let (mut running, streams) = launch.start(&self.reaper).map_err(Halt::Failed)?;
        // One that speaks for itself may want to give a direct answer.
        if self.talk == Talk::Text {
            outbox.report(Report::status(TaskState::Working)).await?;
        }
        let Streams { mut stdin, stdout, stderr } = streams;
        let said = match self.talk {
            Talk::Text => lines::text_of(&assignment.message),
            Talk::JsonLines => lines::task_line(assignment).map_err(Halt::Failed)?,
        };
        let telling = async move {
            // A program need not read what it is told.
            let _ = stdin.write_all(said.as_bytes()).await;
            let _ = stdin.shutdown().await;
        };
        let mut reader = Reader::new(stdout, stderr, self.bounds);
        let talking = async {
            let hearing = self.hear(&mut reader, assignment, outbox, course);
            let ((), heard) = tokio::join!(telling, hearing);
            heard?;
            Ok(running.ended().await)
        };
        let exit = tokio::select! {
            exit = talking => exit,
            () = stop.asked() => Err(Halt::Stopped),
            () = tokio::time::sleep(self.bounds.whole) => {
                let seconds = self.bounds.whole.as_secs();
                Err(Halt::Failed(format!("the program did not end within {seconds} s and was stopped")))
            }
        };
        match exit {
            Ok(exit) => self.end(exit, assignment, outbox, course).await,
            Err(halt) => {
                // What it says on its way out is nobody's any more, but it must be able to say it.
                let (_, ()) = tokio::join!(running.stop(), reader.drain());
                Err(halt)
            }
        }
    }

    async fn hear(
        &self,
        reader: &mut Reader,
        assignment: &Assignment,
        outbox: &Outbox,
        course: &mut Course,
    ) -> Result<(), Halt> {
        loop {
            let heard = match reader.next(self.talk).await {
                Ok(Some(heard)) => heard,
                Ok(None) => return Ok(()),
                Err(Silence::Quiet) => {
                    let seconds = self.bounds.silence.as_secs();
                    return Err(Halt::Failed(format!("the program said nothing for {seconds} s and was stopped")));
                }
                Err(Silence::TooMuch(what)) => return Err(Halt::Failed(format!("the program was stopped: {what}"))),
            };
            match heard {
                Heard::Aside(line) => {
                    course.last_words.push_back(line.clone());
                    if course.last_words.len() > LAST_WORDS {
                        course.last_words.pop_front();
                    }
                    outbox.report(Report::Note { blocks: vec![Block::text(&line)] }).await?;
                }
                Heard::Text(text) => {
                    outbox.report(printed(assignment, text, course.printed, false)).await?;
                    course.printed = true;
                }
                Heard::Line(line) => self.take(&line, outbox, course).await?,
            }
        }
    }

    /// What was said after the turn's end changes nothing, so it is not passed on.
    async fn take(&self, line: &str, outbox: &Outbox, course: &mut Course) -> Result<(), Halt> {
        if course.settled {
            return Ok(());
        }
        let read = Line::read(line).and_then(|read| Ok((read.ends_turn(), read.into_report()?)));
        let (ends, report) = read.map_err(|problem| {
            let shown: String = line.chars().take(200).collect();
            Halt::Failed(format!("the program printed a line that is not understood ({problem}): {shown}"))
        })?;
        course.settled = ends;
        Ok(outbox.report(report).await?)
    }

    async fn end(&self, exit: Exit, assignment: &Assignment, outbox: &Outbox, course: &mut Course) -> Result<(), Halt> {
        if course.printed {
            outbox.report(printed(assignment, String::new(), true, true)).await?;
        }
        if course.settled {
            return Ok(());
        }
        let words = course.last_words.make_contiguous().join("\n");
        let told = |problem: String| if words.is_empty() { problem } else { format!("{problem}: {words}") };
        let state = match exit {
            Exit::Code(code) => match self.exits.get(&code) {
                Some(state) => *state,
                None if code == 0 => TaskState::Completed,
                None => return Err(Halt::Failed(told(format!("the program ended with exit code {code}")))),
            },
            Exit::Signal(number) => {
                return Err(Halt::Failed(told(format!("the program was ended by signal {number}"))));
            }
            Exit::NotStarted => return Err(Halt::Failed(told("the program could not be run".into()))),
            Exit::Unknown => return Err(Halt::Failed(told("nobody knows how the program ended".into()))),
        };
        let contents = (state != TaskState::Completed && !words.is_empty()).then(|| Contents::text(words));
        course.settled = true;
        Ok(outbox.report(Report::Status { state, contents, metadata: None }).await?)
    }
}

/// What a program prints, as one artifact that grows.
fn printed(assignment: &Assignment, text: String, append: bool, last_chunk: bool) -> Report {
    let artifact_id = format!("output-{}", assignment.turn);
    let artifact = Box::new(Artifact { artifact_id, name: "output".into(), ..Artifact::default() });
    let contents = if text.is_empty() { Contents::Parts(Vec::new()) } else { Contents::text(text) };
    Report::Artifact { artifact, contents, append, last_chunk, metadata: None }
}
