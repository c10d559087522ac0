//! Whether an agent's program is there, which one it is, and whether it is signed in, asked of the program itself.

use crate::supervise::{Exit, Launch, Limits, Streams};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;

/// What is read of an answer, in bytes.
const MUCH: u64 = 1024 * 1024;
/// Between being asked to end and being ended.
const GRACE: Duration = Duration::from_secs(2);

/// How a program is asked what it is. No file of its own is read, least of all its credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// `--version`, and `login status`, which ends with 0 if it is signed in.
    Codex,
    /// `--version`, and `auth status`, which ends with 0 if it is signed in, where its help lists that.
    Claude,
    /// By the handshake of the protocol.
    Acp,
}

/// A program, as a run of it would be started.
#[derive(Debug, Clone)]
pub struct Asked {
    pub reaper: PathBuf,
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    pub folder: PathBuf,
    pub limit: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Presence {
    /// The program's own words for which one it is.
    pub version: Option<String>,
    /// None where the program does not tell.
    pub signed_in: Option<bool>,
    /// Why it could not be asked; says what was seen.
    pub problem: Option<String>,
}

/// What a program last said of itself. It is asked again when its file is another, or it gave no answer.
#[derive(Debug)]
pub struct Known {
    product: Product,
    asked: Asked,
    last: Mutex<Option<(Option<SystemTime>, Presence)>>,
}

impl Known {
    pub fn new(product: Product, asked: Asked) -> Arc<Self> {
        Arc::new(Self { product, asked, last: Mutex::default() })
    }

    pub async fn presence(&self) -> Presence {
        let file = std::fs::metadata(&self.asked.program).and_then(|file| file.modified()).ok();
        let mut last = self.last.lock().await;
        match &*last {
            Some((seen, presence)) if *seen == file && presence.problem.is_none() => presence.clone(),
            _ => {
                let presence = self.product.presence(&self.asked).await;
                *last = Some((file, presence.clone()));
                presence
            }
        }
    }
}

impl Product {
    pub async fn presence(self, asked: &Asked) -> Presence {
        if self == Self::Acp {
            return match asked.introduction().await {
                Ok(version) => Presence { version: Some(version), ..Presence::default() },
                Err(problem) => Presence { problem: Some(problem), ..Presence::default() },
            };
        }
        let version = match asked.run(&["--version"]).await {
            Ok((Exit::Code(0), printed)) => printed.lines().next().unwrap_or_default().trim().to_owned(),
            Ok((exit, printed)) => {
                let shown: String = printed.chars().take(200).collect();
                let problem = Some(format!("{} --version ended with {exit:?}: {shown}", asked.program.display()));
                return Presence { problem, ..Presence::default() };
            }
            Err(problem) => return Presence { problem: Some(problem), ..Presence::default() },
        };
        let status: &[&str] = match self {
            Self::Codex => &["login", "status"],
            // What a version does not know as a command, it would take for a prompt.
            Self::Claude if asked.lists("auth").await => &["auth", "status"],
            Self::Claude | Self::Acp => &[],
        };
        let signed_in = match status {
            [] => None,
            words => match asked.run(words).await {
                Ok((Exit::Code(code), _)) => Some(code == 0),
                _ => None,
            },
        };
        Presence { version: Some(version), signed_in, problem: None }
    }
}

impl Asked {
    fn launch(&self, arguments: Vec<OsString>) -> Launch {
        Launch {
            program: self.program.clone(),
            arguments,
            environment: self.environment.clone(),
            folder: self.folder.clone(),
            mark: "probe".into(),
            grace: GRACE,
            limits: Limits::default(),
        }
    }

    /// How the program ended, and what it printed; on standard error only if it printed nothing else.
    async fn run(&self, arguments: &[&str]) -> Result<(Exit, String), String> {
        self.run_with(arguments.iter().map(OsString::from).collect()).await
    }

    async fn run_with(&self, arguments: Vec<OsString>) -> Result<(Exit, String), String> {
        let launch = self.launch(arguments);
        let (mut running, Streams { stdin, stdout, stderr }) = launch.start(&self.reaper)?;
        drop(stdin);
        let answer = async {
            let (out, err) = tokio::join!(read(stdout), read(stderr));
            (running.ended().await, if out.trim().is_empty() { err } else { out })
        };
        match tokio::time::timeout(self.limit, answer).await {
            Ok((Exit::NotStarted, said)) => Err(format!("{} cannot be run: {said}", self.program.display())),
            Ok(answer) => Ok(answer),
            Err(_) => {
                running.stop().await;
                Err(format!("{} gave no answer within {} s", self.program.display(), self.limit.as_secs()))
            }
        }
    }

    /// The same with the arguments it is given.
    pub(super) async fn run_as_given(&self) -> Result<(Exit, String), String> {
        self.run_with(self.arguments.clone()).await
    }

    /// Whether the program's help has this command.
    async fn lists(&self, command: &str) -> bool {
        let listed = |help: &str| help.lines().any(|line| line.split_whitespace().next() == Some(command));
        matches!(self.run(&["--help"]).await, Ok((Exit::Code(0), help)) if listed(&help))
    }

    /// What an ACP agent says it is.
    async fn introduction(&self) -> Result<String, String> {
        let (mut running, Streams { mut stdin, stdout, mut stderr }) =
            self.launch(self.arguments.clone()).start(&self.reaper)?;
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": 1, "clientCapabilities": {},
            "clientInfo": {"name": "flotilla", "version": env!("CARGO_PKG_VERSION")},
        }});
        let answer = async {
            let _ = stdin.write_all(format!("{hello}\n").as_bytes()).await;
            let mut lines = BufReader::new(stdout.take(MUCH)).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let heard: Value = serde_json::from_str(&line).unwrap_or_default();
                if heard["id"] == 1 {
                    return Some(heard);
                }
            }
            None
        };
        // What it says aside is read, so that it can say it.
        let aside = async {
            let mut buffer = [0; 1024];
            while let Ok(1..) = stderr.read(&mut buffer).await {}
            std::future::pending::<()>().await;
        };
        let heard = tokio::select! {
            heard = tokio::time::timeout(self.limit, answer) => heard,
            () = aside => Ok(None),
        };
        running.stop().await;
        let program = self.program.display();
        match heard {
            Err(_) => Err(format!("{program} did not answer the handshake within {} s", self.limit.as_secs())),
            Ok(None) => Err(format!("{program} ended without an answer to the handshake")),
            Ok(Some(heard)) if heard["error"].is_object() => Err(format!(
                "{program} refused the handshake: {}",
                heard["error"]["message"].as_str().unwrap_or_default()
            )),
            Ok(Some(heard)) => Ok(introduced(&heard["result"])),
        }
    }
}

fn introduced(result: &Value) -> String {
    let info = &result["agentInfo"];
    match (info["name"].as_str(), info["version"].as_str()) {
        (Some(name), Some(version)) => format!("{name} {version}"),
        (Some(name), None) => name.to_owned(),
        _ => "an agent that does not say what it is".into(),
    }
}

async fn read(from: impl AsyncRead + Unpin) -> String {
    let mut read = Vec::new();
    let _ = from.take(MUCH).read_to_end(&mut read).await;
    String::from_utf8_lossy(&read).into_owned()
}
