//! Programs under supervision: started under a reaper, spoken to over pipes, ended whole.

mod memory;
mod strays;
mod sweep;
mod usage;
mod vigil;

pub use sweep::{Recorded, Records, end_marked};
pub use usage::{Excess, Meter, Used};

use crate::reaper::{MARK, Order, PIPE, RESERVE};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use vigil::Vigil;

/// A program to be run, with all it is given: nothing of this process's own environment goes with it.
#[derive(Debug, Clone)]
pub struct Launch {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    pub folder: PathBuf,
    /// What the processes of the run are marked with, so that a sweep finds them.
    pub mark: String,
    /// How long the program has between being asked to end and being ended.
    pub grace: Duration,
    pub limits: Limits,
}

/// What a run is held to: the kernel holds each process of it to this, and the worker all of them together, by looking
/// every second. None is as much as this process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Bytes it may write to. What a program only reserves does not count.
    pub memory: Option<u64>,
    /// Time on a processor.
    pub processor: Option<Duration>,
    /// Processes and threads of all together.
    pub processes: Option<u64>,
    /// Descriptors that each process may have open.
    pub files: Option<u64>,
    /// How long it goes on while the worker is halted, so that nobody keeps its time.
    pub unwatched: Option<Duration>,
}

impl Limits {
    fn arguments(self) -> impl Iterator<Item = String> {
        let memory = self.memory.map(|bytes| format!("--memory-bytes={bytes}"));
        let processor = self.processor.map(|time| format!("--cpu-seconds={}", time.as_secs().max(1)));
        let files = self.files.map(|most| format!("--files={most}"));
        let unwatched = self.unwatched.map(|time| format!("--unwatched-ms={}", time.as_millis()));
        memory.into_iter().chain(processor).chain(files).chain(unwatched)
    }
}

/// How long a reaper has to end everything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether there is a file that somebody may run.
pub fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

/// A folder as it is now, wherever links lead; not if they lead out of `root`.
pub fn confined(folder: &Path, root: Option<&Path>) -> Result<PathBuf, String> {
    let real = |name: &str, folder: &Path| {
        std::fs::canonicalize(folder).map_err(|error| format!("{name}: {}: {error}", folder.display()))
    };
    let folder = real("folder", folder)?;
    match root.map(|root| real("root", root)).transpose()? {
        Some(root) if !folder.starts_with(&root) => {
            Err(format!("folder: {} is not in {}", folder.display(), root.display()))
        }
        _ => Ok(folder),
    }
}

/// A running program with everything below it. Dropping it ends all of it at once.
pub struct Running {
    /// Closed, by this process or by its death, it ends all.
    pipe: Option<Arc<File>>,
    /// How it ended, once nothing of it is left.
    end: watch::Receiver<Option<Exit>>,
    meter: Meter,
    grace: Duration,
}

/// The program's standard streams.
pub struct Streams {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(u8),
    /// A signal, as a shell counts: 128 and its number.
    Signal(u8),
    /// It never ran.
    NotStarted,
    /// It was ended because it used too much.
    TooMuch(Excess),
    /// The reaper itself was ended from outside. What it watched over was ended then.
    Unknown,
}

impl Exit {
    /// In words that follow the name of the program.
    pub fn told(self) -> String {
        match self {
            Self::Code(code) => format!("ended with exit code {code}"),
            Self::Signal(number) => format!("was ended by signal {number}"),
            Self::NotStarted => "could not be run".into(),
            Self::TooMuch(excess) => format!("and what it started used more than {excess}, and were stopped"),
            Self::Unknown => {
                "was stopped, because the process that watches over it was killed or halted from outside (when a machine \
                 has no memory left, its kernel kills)"
                    .into()
            }
        }
    }
}

impl Launch {
    /// Starts the program. `reaper` is this program's own file, which knows the command `reap`.
    pub fn start(&self, reaper: &Path) -> Result<(Running, Streams), String> {
        let told = |what: &'static str| move |error: rustix::io::Errno| format!("{what}: {error}");
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).map_err(told("no pipe can be made"))?;
        // Only the end that is read: a copy of it in another child does no harm, one of the other would keep all alive.
        fcntl_setfd(&theirs, FdFlags::empty()).map_err(told("the pipe cannot be handed over"))?;
        let mut command = Command::new(reaper);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env(MARK, &self.mark).env(PIPE, theirs.as_raw_fd().to_string()).env(RESERVE.0, RESERVE.1);
        command.arg("reap").arg("--grace-ms").arg(self.grace.as_millis().to_string()).args(self.limits.arguments());
        command.arg("--").arg(&self.program).args(&self.arguments).current_dir(&self.folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let folder = self.folder.display();
        let started = strays::spawn(&mut command);
        let mut reaper = started.map_err(|error| format!("no program can be started in {folder}: {error}"))?;
        drop(theirs);
        let streams = (reaper.stdin.take(), reaper.stdout.take(), reaper.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else { return Err("no pipes to the program".into()) };
        let (pipe, (tell, end)) = (Arc::new(File::from(ours)), watch::channel(None));
        let meter = Meter::new(reaper.id());
        let watched = Vigil { mark: self.mark.clone(), limits: self.limits, meter: meter.clone() };
        tokio::spawn(watched.keep(reaper, Arc::downgrade(&pipe), tell));
        Ok((Running { pipe: Some(pipe), end, meter, grace: self.grace }, Streams { stdin, stdout, stderr }))
    }
}

impl Running {
    /// What it uses, with everything below it.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Asks the program to end, and ends it after the grace; returns when nothing of it is left.
    pub async fn stop(&mut self) -> Exit {
        self.order(Order::Stop);
        self.ended_within(self.grace + PATIENCE).await
    }

    /// Ends everything now; returns when nothing of it is left.
    pub async fn kill(&mut self) -> Exit {
        self.order(Order::Kill);
        self.pipe = None;
        self.ended_within(PATIENCE).await
    }

    /// Waits until the program has ended and nothing of it is left.
    pub async fn ended(&mut self) -> Exit {
        // Nobody tells it any more when this process itself is about to end.
        self.end.wait_for(Option::is_some).await.ok().and_then(|end| *end).unwrap_or(Exit::Unknown)
    }

    /// Kills a reaper that has not ended the run in time, since the run may have hindered it. The vigil then kills the run.
    async fn ended_within(&mut self, patience: Duration) -> Exit {
        if tokio::time::timeout(patience, self.ended()).await.is_err() {
            self.meter.end_reaper();
        }
        self.ended().await
    }

    fn order(&mut self, order: Order) {
        if let Some(pipe) = &self.pipe {
            say(pipe, order);
        }
    }
}

fn say(mut pipe: &File, order: Order) {
    // A reaper that is gone has nothing left to end.
    let _ = pipe.write_all(&[order as u8]);
}
