//! The program with a home, a directory and an environment of its own.

use flotilla_testkit::process::OWNER;
use flotilla_testkit::{Binding, HubProcess, until};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// The one document on standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.out.lines().map(parse).collect()
    }

    /// The value of the first field with this label.
    #[track_caller]
    pub fn field(&self, label: &str) -> &str {
        let start = format!("{label}: ");
        let found = self.out.lines().find_map(|line| line.strip_prefix(&start));
        found.unwrap_or_else(|| panic!("no {label} in {self:?}"))
    }

    /// The code of the error envelope.
    #[track_caller]
    pub fn error(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_else(|| panic!("no code in {self:?}")).to_owned()
    }
}

/// A user's place: home and working directory.
pub struct Place {
    dir: TempDir,
    env: Vec<(String, String)>,
}

impl Place {
    pub fn new() -> Self {
        Self { dir: flotilla_testkit::scratch(), env: Vec::new() }
    }

    /// A place where the hub and its owner's key are known.
    pub fn at(hub: &HubProcess) -> Self {
        Self::new().env("FLOTILLA_URL", &hub.url()).env("FLOTILLA_KEY", OWNER)
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file; its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.dir().join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory can be made");
        std::fs::write(&path, content).expect("a file can be written");
        path.display().to_string()
    }

    fn command(&self, args: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_flotilla"), args)
    }

    /// Runs a line as a person types it.
    pub fn typed(&self, line: &str) -> Ran {
        finish(self.program("sh", &["-c", line]).spawn().expect("a shell can be started"))
    }

    fn program(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if ["FLOTILLA_", "A2ACLI_", "A2A_"].iter().any(|prefix| name.starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        command.args(args).current_dir(self.dir()).env("HOME", self.dir().join("home"));
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        finish(self.start(args))
    }

    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).spawn().expect("the program can be started")
    }

    pub fn run_with_input(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().expect("the program can be started");
        child.stdin.take().expect("standard input").write_all(input).expect("input can be written");
        finish(child)
    }

    /// The result of a command that must end well.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        let args = [args, &["-o", "json"]].concat();
        self.run(&args).ok().json()
    }

    #[track_caller]
    pub fn lines(&self, args: &[&str]) -> Vec<Value> {
        let args = [args, &["-o", "json", "--stream"]].concat();
        self.run(&args).ok().lines()
    }
}

/// Waits until the hub has so many streams open.
pub fn streams(hub: &HubProcess, count: usize) {
    let expected = format!("flotilla_streams_open {count}");
    until(&expected, || {
        let metrics = hub.owner(Binding::HttpJson).get("/metrics");
        metrics.text().lines().any(|line| line == expected).then_some(())
    });
}

/// Waits for a started program, but not for ever.
pub fn finish(mut child: Child) -> Ran {
    let out = drain(child.stdout.take());
    let err = drain(child.stderr.take());
    let status = until("the program ends", || child.try_wait().expect("the process can be asked"));
    let read = |thread: std::thread::JoinHandle<String>| thread.join().expect("reading does not panic");
    Ran { code: status.code().unwrap_or(-1), out: read(out), err: read(err) }
}

fn drain(stream: Option<impl std::io::Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
