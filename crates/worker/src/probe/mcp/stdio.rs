//! An MCP server that is a program: lines of JSON over its standard streams, under the reaper.

use super::Prober;
use super::definition::Program;
use super::talk::{Answer, Problem};
use crate::supervise::{Launch, Limits, Running, Streams, is_program};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinHandle;

/// Between being asked to end and being ended.
const GRACE: Duration = Duration::from_secs(2);
/// The longest line that is read.
const LINE: u64 = 4 * 1024 * 1024;
/// What is kept of standard error, and of a line that is no message.
const WORDS: usize = 4096;

pub struct Pipe {
    running: Running,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// Ends with the program, and holds the last of what it said aside.
    aside: JoinHandle<String>,
    /// The first line that was no message.
    noise: Option<String>,
}

impl Pipe {
    pub fn open(program: &Program, prober: &Prober) -> Result<Self, Problem> {
        let mut environment = prober.environment.clone();
        environment.extend(program.environment.iter().map(|(name, value)| (name.into(), value.into())));
        let path = environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
        let found = find(&program.command, path.unwrap_or_default(), &prober.folder)
            .ok_or_else(|| Problem::Failed(format!("there is no program '{}'", program.command)))?;
        let launch = Launch {
            program: found,
            arguments: program.arguments.iter().map(OsString::from).collect(),
            environment,
            folder: prober.folder.clone(),
            mark: "probe".into(),
            grace: GRACE,
            limits: Limits::default(),
        };
        let (running, streams) = launch.start(&prober.reaper).map_err(Problem::Failed)?;
        let Streams { stdin, stdout, mut stderr } = streams;
        let aside = tokio::spawn(async move {
            let (mut kept, mut buffer) = (Vec::new(), [0; 1024]);
            while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
                kept.extend_from_slice(&buffer[..count]);
                let over = kept.len().saturating_sub(WORDS);
                kept.drain(..over);
            }
            String::from_utf8_lossy(&kept).into_owned()
        });
        Ok(Self { running, stdin, stdout: BufReader::new(stdout), aside, noise: None })
    }

    pub async fn tell(&mut self, message: &Value) -> Result<(), Problem> {
        // One that does not read has ended, or will not answer either; both are seen there.
        let _ = self.stdin.write_all(format!("{message}\n").as_bytes()).await;
        Ok(())
    }

    pub async fn ask(&mut self, message: &Value, id: u64) -> Result<Answer, Problem> {
        self.tell(message).await?;
        loop {
            let mut line = Vec::new();
            let count = (&mut self.stdout).take(LINE).read_until(b'\n', &mut line).await.unwrap_or(0);
            if count == 0 {
                return Err(self.ended().await);
            }
            let line = String::from_utf8_lossy(&line);
            let line = line.trim();
            let Ok(heard) = serde_json::from_str::<Value>(line) else {
                // Some print a greeting first.
                if !line.is_empty() {
                    let words: String = line.chars().filter(|letter| !letter.is_control()).take(WORDS).collect();
                    let words = if words.is_empty() { "what is no text".to_owned() } else { words };
                    self.noise.get_or_insert(words);
                }
                continue;
            };
            if let Some(answer) = Answer::of(&heard, id) {
                return Ok(answer);
            }
            self.serve(&heard).await?;
        }
    }

    /// A server may ask too, and may wait for the answer.
    async fn serve(&mut self, heard: &Value) -> Result<(), Problem> {
        let (Some(id), Some(method)) = (heard.get("id"), heard["method"].as_str()) else { return Ok(()) };
        let answer = match method {
            "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
            _ => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}}),
        };
        self.tell(&answer).await
    }

    pub fn noise(&self) -> Option<String> {
        self.noise.clone()
    }

    async fn ended(&mut self) -> Problem {
        let how = format!("it {}", self.running.stop().await.told());
        let words = (&mut self.aside).await.unwrap_or_default();
        let last = words.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned);
        Problem::Failed(match last.or(self.noise.take()) {
            Some(words) => format!("{how}: {words}"),
            None => how,
        })
    }

    /// Its input ends first, as MCP has it; then it is asked to end, and ended.
    pub async fn close(mut self) {
        drop(self.stdin);
        let mut rest = Vec::new();
        let draining = async {
            // It must be able to say its last.
            while let Ok(1..) = self.stdout.read_buf(&mut rest).await {
                rest.clear();
            }
        };
        let _ = tokio::join!(self.running.stop(), draining);
        self.aside.abort();
    }
}

/// As a shell looks for it; a path is taken from the folder.
fn find(command: &str, path: OsString, folder: &Path) -> Option<std::path::PathBuf> {
    if command.contains('/') {
        return Some(folder.join(command)).filter(|file| is_program(file));
    }
    std::env::split_paths(&path).map(|place| place.join(command)).find(|file| is_program(file))
}
