//! Programs under supervision: started under a reaper, spoken to over pipes, ended whole.

mod sweep;
mod usage;

pub use sweep::{Recorded, Records};
pub use usage::Used;

use crate::reaper::{MARK, Order, PIPE};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

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

/// What the kernel holds each process of a run to; none is as much as this process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Bytes it may write to. What a program only reserves does not count.
    pub memory: Option<u64>,
    /// Time on a processor.
    pub processor: Option<Duration>,
}

impl Limits {
    fn arguments(self) -> impl Iterator<Item = String> {
        let memory = self.memory.map(|bytes| format!("--memory-bytes={bytes}"));
        let processor = self.processor.map(|time| format!("--cpu-seconds={}", time.as_secs().max(1)));
        memory.into_iter().chain(processor)
    }
}

/// A running program with everything below it. Dropping it ends all of it at once.
pub struct Running {
    reaper: Child,
    /// Closed, by this process or by its death, it ends all.
    pipe: Option<File>,
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
    /// The reaper itself was ended from outside.
    Unknown,
}

impl Launch {
    /// Starts the program. `reaper` is this program's own file, which knows the command `reap`.
    pub fn start(&self, reaper: &std::path::Path) -> Result<(Running, Streams), String> {
        let told = |what: &'static str| move |error: rustix::io::Errno| format!("{what}: {error}");
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).map_err(told("no pipe can be made"))?;
        // Only the end that is read: a copy of it in another child does no harm, one of the other would keep all alive.
        fcntl_setfd(&theirs, FdFlags::empty()).map_err(told("the pipe cannot be handed over"))?;
        let mut command = Command::new(reaper);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env(MARK, &self.mark).env(PIPE, theirs.as_raw_fd().to_string());
        command.arg("reap").arg("--grace-ms").arg(self.grace.as_millis().to_string()).args(self.limits.arguments());
        command.arg("--").arg(&self.program).args(&self.arguments).current_dir(&self.folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A key typed at this process's terminal is not for it.
        command.process_group(0);
        let folder = self.folder.display();
        let mut reaper = command.spawn().map_err(|error| format!("no program can be started in {folder}: {error}"))?;
        drop(theirs);
        let streams = (reaper.stdin.take(), reaper.stdout.take(), reaper.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else { return Err("no pipes to the program".into()) };
        Ok((Running { reaper, pipe: Some(File::from(ours)) }, Streams { stdin, stdout, stderr }))
    }
}

impl Running {
    /// The reaper's number; everything of the run is below it.
    pub fn id(&self) -> Option<u32> {
        self.reaper.id()
    }

    /// Asks the program to end, and ends it after the grace; returns when nothing of it is left.
    pub async fn stop(&mut self) -> Exit {
        self.order(Order::Stop);
        self.ended().await
    }

    /// Ends everything now; returns when nothing of it is left.
    pub async fn kill(&mut self) -> Exit {
        self.order(Order::Kill);
        self.pipe = None;
        self.ended().await
    }

    /// Waits until the program has ended and nothing of it is left.
    pub async fn ended(&mut self) -> Exit {
        use std::os::unix::process::ExitStatusExt as _;
        let Ok(status) = self.reaper.wait().await else { return Exit::Unknown };
        match status.code().and_then(|code| u8::try_from(code).ok()) {
            Some(127) => Exit::NotStarted,
            Some(code @ 129..=192) => Exit::Signal(code - 128),
            Some(code) => Exit::Code(code),
            None => {
                tracing::warn!(signal = ?status.signal(), "a reaper was ended from outside");
                Exit::Unknown
            }
        }
    }

    fn order(&mut self, order: Order) {
        if let Some(pipe) = &mut self.pipe {
            // A reaper that is gone has nothing left to end.
            let _ = pipe.write_all(&[order as u8]);
        }
    }
}
