//! A small process between a worker and the program it runs: when the worker is gone, nothing of the program survives.
//!
//! The kernel hands orphans of the program to the reaper, so whatever it starts stays below the reaper, also what left
//! its process group or forked twice. The worker holds the other end of a pipe: end of file means that it is dead.

mod hunt;
pub mod tree;

pub use hunt::strike;

use hunt::strike_below;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, getrlimit, kill_process, prlimit, setrlimit,
};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read, Write as _};
use std::process::{Child, Command, ExitCode};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The environment variable that names the pipe.
pub const PIPE: &str = "FLOTILLA_REAPER_PIPE";
/// The environment variable that marks every process of a run, so that a sweep finds it whatever became of its parents.
pub const MARK: &str = "FLOTILLA_RUN";

/// Has the reaper's allocator reserve nothing: a limit of memory is put on the reaper itself while it starts the program,
/// which fails if the reaper has more.
pub const RESERVE: (&str, &str) = ("MIMALLOC_ARENA_RESERVE", "0");

/// What a byte on the pipe asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Ask all to end, then end them.
    Stop = b's' as isize,
    /// End all at once.
    Kill = b'k' as isize,
}

/// How often it is looked whether the worker is halted.
const GLANCE: Duration = Duration::from_secs(1);
/// How often the tree is looked at again while it is being ended.
const LOOK: Duration = Duration::from_millis(20);
/// What cannot be ended in this time is in the kernel's hands.
const GIVE_UP: Duration = Duration::from_secs(30);
/// The exit code of a program that could not be started.
const NOT_STARTED: u8 = 127;

/// What each process of the run may use.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ceiling {
    pub memory_bytes: Option<u64>,
    pub cpu_seconds: Option<u64>,
    /// Descriptors that are open at once.
    pub files: Option<u64>,
    /// How long all of them go on while the worker is halted.
    pub unwatched: Option<Duration>,
}

/// Between the word that the processor time is used up, and the end.
const LAST_SECONDS: u64 = 5;

/// Nothing but the standard streams goes on to programs that this process starts, whatever it was started with itself.
pub fn seal() {
    close_fds::set_fds_cloexec(3, &[]);
}

/// Runs a program and everything below it to the end.
pub fn main(grace: Duration, ceiling: Ceiling, program: &OsString, arguments: &[OsString]) -> ExitCode {
    match run(grace, ceiling, program, arguments) {
        Ok(code) => ExitCode::from(code),
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "{problem}");
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn run(grace: Duration, ceiling: Ceiling, program: &OsString, arguments: &[OsString]) -> Result<u8, String> {
    let pipe = open_pipe()?;
    let worker = rustix::process::getppid().map_or(0, |worker| worker.as_raw_nonzero().get() as u32);
    // A session of its own: what is typed at the worker's terminal is not for the program, and whatever is below here is
    // known by not being in the worker's. One that leads a group already stays where it is.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| format!("this machine does not let a process adopt orphans: {error}"))?;
    // No thread can be started any more once the program has used up what the machine has of processes.
    let (begin, begun) = mpsc::channel();
    let warden = Warden { pipe: Some(pipe), grace, worker, unwatched: ceiling.unwatched, state: State::Watching(None) };
    let warden = std::thread::Builder::new().spawn(move || begun.recv().map(|()| warden.watch()));
    warden.map_err(|error| format!("the program is not started, as nobody could end it: no thread: {error}"))?;
    let mut command = Command::new(program);
    command.args(arguments).env_remove(PIPE).env_remove(RESERVE.0);
    let started = ceiling.start(&mut command);
    let child = started.map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
    // Not before the limits are off this process again.
    let _ = begin.send(());
    let code = wait(child.id());
    if !clear() {
        // The worker does not take this for an end, and ends what is left.
        let _ = kill_process(getpid(), Signal::KILL);
    }
    Ok(code)
}

impl Ceiling {
    /// Starts a program under it. The program must find it there: what reserves memory at its start goes by it.
    fn start(self, command: &mut Command) -> std::io::Result<Child> {
        let before = self.put_on_self();
        let started = command.spawn();
        for (resource, limit) in before {
            // It was so a moment ago.
            let _ = setrlimit(resource, limit);
        }
        let child = match started {
            // Less than this process holds itself; then the program gets it a moment late.
            Err(error) if error.kind() == ErrorKind::OutOfMemory => command.spawn()?,
            started => started?,
        };
        self.put_on(child.id());
        Ok(child)
    }

    fn limits(self) -> impl Iterator<Item = (Resource, u64, u64)> {
        let memory = self.memory_bytes.map(|most| (Resource::Data, most, most));
        let time = self.cpu_seconds.map(|most| (Resource::Cpu, most, most + LAST_SECONDS));
        let files = self.files.map(|most| (Resource::Nofile, most, most));
        memory.into_iter().chain(time).chain(files)
    }

    /// For what is started next; in a way that can be undone. What was before.
    fn put_on_self(self) -> Vec<(Resource, Rlimit)> {
        let lower = |(resource, most, _): (Resource, u64, u64)| {
            let before = getrlimit(resource);
            let most = before.maximum.map_or(most, |highest| most.min(highest));
            let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: before.maximum });
            (resource, before)
        };
        self.limits().map(lower).collect()
    }

    /// For good, and for all the program starts. The reaper itself must be able to go on.
    fn put_on(self, child: u32) {
        let Some(child) = i32::try_from(child).ok().and_then(Pid::from_raw) else { return };
        for (resource, current, maximum) in self.limits() {
            // A program that has ended already needs none.
            let _ = prlimit(Some(child), resource, Rlimit { current: Some(current), maximum: Some(maximum) });
        }
    }
}

/// The pipe is inherited under a number; opening it again by that number needs no trust in it.
fn open_pipe() -> Result<File, String> {
    let number = std::env::var(PIPE).ok().and_then(|text| text.parse::<u32>().ok());
    let number = number.ok_or("this command is used by the hub itself, to run programs")?;
    File::open(format!("/proc/self/fd/{number}")).map_err(|error| format!("the pipe from the hub: {error}"))
}

/// Waits for the program itself, and takes in orphans on the way.
fn wait(child: u32) -> u8 {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() as u32 == child => return code(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return NOT_STARTED,
        }
    }
}

/// As a shell tells it.
fn code(status: WaitStatus) -> u8 {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128u8.saturating_add(signal as u8),
        (None, None) => NOT_STARTED,
    }
}

/// Ends the program when the worker says so, or is gone or halted.
struct Warden {
    /// None once nobody is at its other end.
    pipe: Option<File>,
    grace: Duration,
    worker: u32,
    unwatched: Option<Duration>,
    state: State,
}

enum State {
    /// Since when the worker is halted.
    Watching(Option<Instant>),
    /// All are asked to end, and are ended at that time.
    Asking(Instant, HashSet<tree::Process>),
    /// Since then.
    Ending(Instant),
}

impl Warden {
    /// This process ends when nothing is left, and the thread with it.
    fn watch(mut self) -> ! {
        loop {
            match self.hear() {
                Some(Order::Stop) if matches!(self.state, State::Watching(_)) => {
                    self.state = State::Asking(Instant::now() + self.grace, HashSet::new());
                }
                Some(Order::Stop) | None => {}
                Some(Order::Kill) => self.end(),
            }
            self.act();
        }
    }

    fn end(&mut self) {
        if !matches!(self.state, State::Ending(_)) {
            self.state = State::Ending(Instant::now());
        }
    }

    fn act(&mut self) {
        match &mut self.state {
            State::Watching(halted) => {
                let Some(most) = self.unwatched else { return };
                // A worker that is halted keeps no time, and a run may have halted it.
                *halted = tree::is_stopped(self.worker).then(|| halted.unwrap_or_else(Instant::now));
                if halted.is_some_and(|since| since.elapsed() >= most) {
                    self.end();
                    self.act();
                }
            }
            State::Asking(until, _) if Instant::now() >= *until => {
                self.end();
                self.act();
            }
            State::Asking(_, asked) => {
                for process in tree::below(std::process::id()) {
                    if asked.insert(process) {
                        process.signal(Signal::TERM);
                    }
                }
            }
            State::Ending(_) => drop(strike_below()),
        }
    }

    /// Waits for the worker's next order, until it is time to look again. A worker that is gone wants all ended.
    fn hear(&mut self) -> Option<Order> {
        let patience = match &self.state {
            State::Watching(_) => self.unwatched.map(|_| GLANCE),
            State::Ending(since) if since.elapsed() > GIVE_UP => Some(GLANCE),
            State::Asking(..) | State::Ending(_) => Some(LOOK),
        };
        let Some(pipe) = &mut self.pipe else {
            std::thread::sleep(patience.unwrap_or(LOOK));
            return None;
        };
        let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
        match poll(&mut [PollFd::new(&*pipe, PollFlags::IN)], patience.as_ref()) {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
        let mut order = [0];
        match pipe.read(&mut order) {
            Ok(1) if order[0] == Order::Stop as u8 => Some(Order::Stop),
            Ok(1) if order[0] == Order::Kill as u8 => Some(Order::Kill),
            Err(error) if error.kind() == ErrorKind::Interrupted => None,
            _ => {
                self.pipe = None;
                Some(Order::Kill)
            }
        }
    }
}

/// Whatever the program left behind goes with it. A look at the machine's processes may miss one whose parent ends at that
/// moment; that this process has no child any more, dead or alive, is the proof that nothing is below it. Says whether it
/// is so.
fn clear() -> bool {
    let started = Instant::now();
    while started.elapsed() < GIVE_UP {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return true,
            }
        }
        let left = strike_below();
        std::thread::sleep(if left.is_empty() { Duration::from_millis(1) } else { LOOK });
    }
    false
}
