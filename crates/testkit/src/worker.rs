//! The real worker as a process: started for a hub, killed, told to stop, started again on the same state.

use crate::process::HubProcess;
use crate::wait::until;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

pub struct WorkerProcess {
    /// The program with its arguments, as it is started each time.
    make: Box<dyn Fn() -> Command>,
    log: PathBuf,
    state: PathBuf,
    child: Option<Child>,
}

impl HubProcess {
    /// A worker of this hub under a name of its own, not started yet. `url` is where it is to find the hub.
    pub fn worker(&self, name: &str, url: &str, key: &str, config: &str) -> WorkerProcess {
        let folder = self.dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let (file, state, log) = (folder.join("worker.yaml"), folder.join("state"), folder.join("stderr"));
        std::fs::write(&file, config).expect("the configuration can be written");
        let (setup, url, key, at) = (self.setup().clone(), url.to_owned(), key.to_owned(), state.clone());
        let make = Box::new(move || {
            let mut command = setup.bare(&folder);
            command.args(["worker", "--hub", &url, "--config"]).arg(&file).arg("--state").arg(&at);
            command.env("FLOTILLA_KEY", &key).stdout(Stdio::null());
            command
        });
        WorkerProcess { make, log, state, child: None }
    }
}

impl WorkerProcess {
    pub fn start(&mut self) {
        self.start_with(&[]);
    }

    pub fn start_with(&mut self, args: &[&str]) {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log);
        let mut command = (self.make)();
        command.args(args).stderr(log.expect("the log file can be opened"));
        self.child = Some(command.spawn().expect("the worker's program can be started"));
    }

    /// What it wrote to standard error, over all starts.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Where it keeps what is not told yet.
    pub fn state(&self) -> &Path {
        &self.state
    }

    pub fn id(&self) -> u32 {
        self.child.as_ref().expect("the worker is running").id()
    }

    /// Sends a signal by name: TERM, STOP.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("sh").arg("-c").arg(format!("kill -{name} {}", self.id())).status();
        assert!(sent.expect("sh can be started").success(), "SIG{name} could not be sent to the worker");
    }

    /// SIGKILL: no chance to say good-bye.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Waits for the process to end of its own accord.
    pub fn ended(&mut self) -> ExitStatus {
        let child = self.child.as_mut().expect("the worker is running");
        let status = until("the worker ends", || child.try_wait().expect("the process can be asked"));
        self.child = None;
        status
    }

    /// The memory it holds now, in bytes, as Linux tells it.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("Linux tells of processes");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has memory");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of kB");
        kib * 1024
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("the worker's log:\n{}", self.log());
        }
    }
}
