//! The real hub as a process: started, killed, told to stop, started again on the same data.

use crate::client::{Binding, Client};
use crate::http::{self, Request};
use crate::scratch::scratch;
use crate::wait::{PATIENCE, until};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use tempfile::TempDir;

/// The owner's key of every hub under test.
pub const OWNER: &str = "flk_00000000000000000000000000000000000000000000000000000000000000aa";

/// How a hub is to be started.
#[derive(Debug, Clone)]
pub struct Setup {
    binary: PathBuf,
    config: Option<String>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    listen: String,
}

impl Setup {
    /// `binary` is what cargo calls `CARGO_BIN_EXE_flotilla`.
    pub fn new(binary: &str) -> Self {
        let env = vec![("FLOTILLA_OWNER_KEY".to_owned(), OWNER.to_owned())];
        let listen = "127.0.0.1:0".to_owned();
        Self { binary: binary.into(), config: None, args: Vec::new(), env, listen }
    }

    #[must_use]
    pub fn config(self, text: &str) -> Self {
        Self { config: Some(text.to_owned()), ..self }
    }

    #[must_use]
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn listen(self, address: &str) -> Self {
        Self { listen: address.to_owned(), ..self }
    }

    pub fn start(self) -> HubProcess {
        let dir = scratch();
        if let Some(config) = &self.config {
            std::fs::write(dir.path().join("hub.yaml"), config).expect("the configuration can be written");
        }
        let data = dir.path().join("data");
        let mut hub = HubProcess { setup: self, dir, data, child: None, address: None, banner: Vec::new() };
        hub.launch();
        hub
    }

    /// Starts a hub that is expected to give up at once; what it said.
    pub fn refused(self) -> String {
        let dir = scratch();
        let data = dir.path().join("data");
        self.refused_on(dir.path(), &data)
    }

    fn refused_on(&self, dir: &Path, data: &Path) -> String {
        if let Some(config) = &self.config {
            std::fs::write(dir.join("hub.yaml"), config).expect("the configuration can be written");
        }
        let output = finish(self.command(dir, data, &self.listen).stdout(Stdio::piped()).stderr(Stdio::piped()));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "the hub was expected to give up, but ended well: {said}");
        said
    }

    fn command(&self, dir: &Path, data: &Path, listen: &str) -> Command {
        let mut command = self.bare(dir);
        command.arg("serve").arg("--listen").arg(listen).arg("--data-dir").arg(data).args(&self.args);
        if self.config.is_some() {
            command.arg("--config").arg(dir.join("hub.yaml"));
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The program in a directory of its own, with nothing of this process's settings.
    pub(crate) fn bare(&self, dir: &Path) -> Command {
        let mut command = Command::new(&self.binary);
        command.current_dir(dir).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("FLOTILLA_") || name.starts_with("A2A_") {
                command.env_remove(name);
            }
        }
        command.env_remove("RUST_LOG");
        command
    }
}

pub struct HubProcess {
    setup: Setup,
    dir: TempDir,
    data: PathBuf,
    child: Option<Child>,
    address: Option<SocketAddr>,
    /// What the hub wrote to standard output when it started.
    pub banner: Vec<String>,
}

impl HubProcess {
    fn launch(&mut self) {
        // A port that was just given up may be taken by someone's outgoing connection for a moment.
        until("the hub starts", || self.try_launch());
        until("the hub is ready", || {
            let ready = http::try_send(self.address(), &Request::get("/readyz")).ok()?;
            // A hub that speaks TLS alone says so in the clear; the test has to go on from there.
            (ready.status == 200 || ready.text().contains("speaks TLS")).then_some(())
        });
    }

    fn try_launch(&mut self) -> Option<()> {
        let listen = self.address.map_or_else(|| self.setup.listen.clone(), |address| address.to_string());
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log_file());
        let mut command = self.setup.command(self.dir.path(), &self.data, &listen);
        command.stdout(Stdio::piped()).stderr(log.expect("the log file can be opened"));
        let mut child = command.spawn().expect("the hub's program can be started");
        let stdout = child.stdout.take().expect("standard output is piped");
        let (sender, lines) = mpsc::channel();
        // Drained to the end: a closed pipe would be the hub's problem.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        self.child = Some(child);
        self.banner.clear();
        loop {
            match lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    let last = line.contains("message:send");
                    self.banner.push(line);
                    if last {
                        break;
                    }
                }
                Err(_) if self.log().contains("listening on") && self.address.is_some() => {
                    self.kill();
                    return None;
                }
                Err(error) => panic!("the hub did not start ({error}): {}", self.log()),
            }
        }
        self.address = Some(self.told_address());
        Some(())
    }

    fn told_address(&self) -> SocketAddr {
        let log = self.log();
        let told = self.banner.iter().find_map(|line| line.trim().strip_prefix("JSON-RPC"));
        let url = told.unwrap_or_else(|| panic!("no JSON-RPC line in {:?}; {log}", self.banner)).trim();
        let bare = url
            .trim_start_matches("https://")
            .trim_start_matches("http://")
            .trim_end_matches("/a2a")
            .replace("localhost", "127.0.0.1");
        match bare.parse() {
            Ok(address) => address,
            // A public URL says nothing of the address listened on; then the test has chosen one.
            Err(_) => self.setup.listen.parse().expect("an address to listen on"),
        }
    }

    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    pub fn address(&self) -> SocketAddr {
        self.address.expect("the hub has told its address")
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The hub's data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// A directory for this test's files.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn log_file(&self) -> PathBuf {
        self.dir.path().join("stderr")
    }

    /// What the hub wrote to standard error, over all starts.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    pub fn owner_key(&self) -> &'static str {
        OWNER
    }

    /// A caller without a key.
    pub fn stranger(&self, binding: Binding) -> Client {
        Client::new(self.address(), binding)
    }

    /// A caller with the owner's key.
    pub fn owner(&self, binding: Binding) -> Client {
        self.stranger(binding).key(OWNER)
    }

    /// A caller with a key of its own, made on the running hub.
    pub fn caller(&self, binding: Binding, name: &str) -> Client {
        self.stranger(binding).key(&self.key(name, &[]))
    }

    /// Makes a key, limited to some agents or not.
    pub fn key(&self, name: &str, agents: &[&str]) -> String {
        let mut args = vec![name];
        for agent in agents {
            args.extend(["--agent", agent]);
        }
        self.make_key(&args)
    }

    /// Makes a key with `flotilla keys create` and these arguments.
    pub fn make_key(&self, args: &[&str]) -> String {
        let args: Vec<&str> = ["keys", "create"].iter().chain(args).copied().collect();
        self.cli_ok(&args).trim().to_owned()
    }

    /// Runs the program against this hub: its address, its data directory and the owner's key are set.
    pub fn cli(&self, args: &[&str]) -> Output {
        let mut command = self.setup.bare(self.dir.path());
        command.args(args).env("FLOTILLA_URL", self.url()).env("FLOTILLA_KEY", OWNER);
        command.env("FLOTILLA_DATA_DIR", &self.data);
        finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// The output of a command that must end well.
    pub fn cli_ok(&self, args: &[&str]) -> String {
        let output = self.cli(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "flotilla {args:?}: {said}");
        String::from_utf8(output.stdout).expect("the program writes text")
    }

    /// Starts a second hub on the same data directory, which must give up; what it said.
    pub fn second_refused(&self) -> String {
        self.setup.clone().listen("127.0.0.1:0").refused_on(self.dir.path(), &self.data)
    }

    /// Puts another configuration in place; it counts after SIGHUP or the next start.
    pub fn write_config(&self, text: &str) {
        assert!(self.setup.config.is_some(), "the hub was started without a configuration");
        std::fs::write(self.dir.path().join("hub.yaml"), text).expect("the configuration can be written");
    }

    /// The most memory the hub has held so far, in bytes, as Linux tells it.
    pub fn peak_memory(&self) -> u64 {
        let pid = self.child.as_ref().expect("the hub is running").id();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("Linux tells of its processes");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a process has a peak");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of kB");
        kib * 1024
    }

    /// Sends a signal by name: HUP, TERM.
    pub fn signal(&self, name: &str) {
        let pid = self.child.as_ref().expect("the hub is running").id();
        let sent = Command::new("sh").arg("-c").arg(format!("kill -{name} {pid}")).status();
        assert!(sent.expect("sh can be started").success(), "SIG{name} could not be sent to the hub");
    }

    /// The number of the hub's process.
    pub fn process(&self) -> u32 {
        self.child.as_ref().expect("the hub runs").id()
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
        let child = self.child.as_mut().expect("the hub is running");
        let status = until("the hub ends", || child.try_wait().expect("the process can be asked"));
        self.child = None;
        status
    }

    /// SIGTERM, then waits.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.ended()
    }

    /// Starts it again with another preset of the owner's key.
    pub fn preset(&mut self, key: &str) {
        self.setup.env.retain(|(name, _)| name != "FLOTILLA_OWNER_KEY");
        self.setup.env.push(("FLOTILLA_OWNER_KEY".to_owned(), key.to_owned()));
        self.launch();
    }

    /// Another value of a variable, from the next start on.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.setup = self.setup.clone().env(name, value);
    }

    /// Kills the hub if it runs and starts it again on the same data and the same port.
    pub fn restart(&mut self) {
        self.kill();
        self.launch();
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("the hub's log:\n{}", self.log());
        }
    }
}

/// Runs a command to its end, within the usual patience.
fn finish(command: &mut Command) -> Output {
    let mut child = command.spawn().expect("the program can be started");
    let streams = (child.stdout.take(), child.stderr.take());
    let read = |stream: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut stream) = stream {
                let _ = stream.read_to_end(&mut bytes);
            }
            bytes
        })
    };
    let stdout = read(streams.0.map(|stream| Box::new(stream) as _));
    let stderr = read(streams.1.map(|stream| Box::new(stream) as _));
    let deadline = std::time::Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().expect("the process can be asked") {
            break status;
        }
        if std::time::Instant::now() > deadline {
            let _ = child.kill();
            panic!("a command did not end within {PATIENCE:?}");
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    };
    let joined = |thread: std::thread::JoinHandle<Vec<u8>>| thread.join().expect("reading does not panic");
    Output { status, stdout: joined(stdout), stderr: joined(stderr) }
}
