//! The `git` program, called so that it runs nothing else, asks nobody and does not outstay its time.

use super::programs::{Settings, settings};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

/// Settings of a repository that would start other programs, or have git overlook a file that was changed, and what stands in
/// their place.
const SAFE: [&str; 11] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.editor=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.untrackedCache=false",
    "core.commitGraph=false",
];
/// What one call may print, in bytes.
const MUCH: u64 = 32 * 1024 * 1024;

/// One place that git is asked about.
#[derive(Debug, Clone)]
pub struct Git {
    folder: PathBuf,
    limit: Duration,
}

/// Why git has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The folder is in no repository, which is no fault.
    NoRepository,
    /// In words; what git said stands in it.
    Failed(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoRepository => f.write_str("the folder is in no git repository"),
            Self::Failed(problem) => f.write_str(problem),
        }
    }
}

impl Git {
    pub fn new(folder: &Path, limit: Duration) -> Self {
        Self { folder: folder.to_owned(), limit }
    }

    /// The same, in another folder.
    pub fn at(&self, folder: &Path) -> Self {
        Self::new(folder, self.limit)
    }

    /// What git prints; an exit code that is not 0 is trouble.
    pub async fn ask(&self, arguments: &[&str]) -> Result<Vec<u8>, Trouble> {
        let (code, printed, said) = self.run(arguments).await?;
        match code {
            Some(0) => Ok(printed),
            _ => Err(Trouble::Failed(format!("git {}: {}", verb(arguments), first_lines(&said)))),
        }
    }

    /// The first line that git prints, without its end.
    pub async fn line(&self, arguments: &[&str]) -> Result<String, Trouble> {
        let printed = self.ask(arguments).await?;
        Ok(String::from_utf8_lossy(&printed).lines().next().unwrap_or_default().to_owned())
    }

    /// Whether git says yes (exit code 0).
    pub async fn is(&self, arguments: &[&str]) -> Result<bool, Trouble> {
        Ok(self.run(arguments).await?.0 == Some(0))
    }

    /// The repository's settings are read before each call: a run that is under way may change them at any time.
    async fn run(&self, arguments: &[&str]) -> Result<(Option<i32>, Vec<u8>, String), Trouble> {
        let (_, printed, _) = self.call(&["config", "--list", "--show-scope", "-z"], &BTreeMap::new()).await?;
        match settings(&printed) {
            Settings::Instead(instead) => self.call(arguments, &instead).await,
            Settings::Conditional(name) => Err(Trouble::Failed(format!(
                "the repository's own settings have '{name}', under which git may start any program: remove it, or put \
                 it into the settings of the worker's user"
            ))),
        }
    }

    async fn call(
        &self,
        arguments: &[&str],
        instead: &BTreeMap<OsString, OsString>,
    ) -> Result<(Option<i32>, Vec<u8>, String), Trouble> {
        let failed = |problem: String| Trouble::Failed(format!("git {}: {problem}", verb(arguments)));
        let mut command = Command::new("git");
        command.env_clear().envs(["PATH", "HOME"].iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs([("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")]);
        // A repository may say that its missing objects are to be fetched, by any program. This overrules what it allows.
        command.env("GIT_ALLOW_PROTOCOL", "none");
        // A run may put another object in the place of a commit, so that nothing seems to have changed, or other parents.
        command.envs([("GIT_NO_REPLACE_OBJECTS", "1"), ("GIT_GRAFT_FILE", "/dev/null/none")]);
        command.env("GIT_CONFIG_COUNT", instead.len().to_string());
        for (number, (name, value)) in instead.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{number}"), name).env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        command.arg("--no-pager").args(SAFE.iter().flat_map(|setting| ["-c", setting])).args(arguments);
        command.current_dir(&self.folder).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound if self.folder.is_dir() => failed("there is no git program in PATH".into()),
            _ => failed(format!("in {}: {error}", self.folder.display())),
        })?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let answer = async {
            let (printed, said) = tokio::join!(read(out), read(err));
            (child.wait().await, printed, said)
        };
        let Ok((status, printed, said)) = tokio::time::timeout(self.limit, answer).await else {
            return Err(failed(format!("gave no answer within {} s", self.limit.as_secs())));
        };
        if printed.len() as u64 == MUCH {
            return Err(failed(format!("printed more than {MUCH} bytes")));
        }
        let said = String::from_utf8_lossy(&said).into_owned();
        if said.contains("not a git repository") {
            return Err(Trouble::NoRepository);
        }
        let status = status.map_err(|error| failed(error.to_string()))?;
        Ok((status.code(), printed, said))
    }
}

async fn read(from: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut read = Vec::new();
    if let Some(from) = from {
        let _ = from.take(MUCH).read_to_end(&mut read).await;
    }
    read
}

fn verb<'a>(arguments: &[&'a str]) -> &'a str {
    arguments.first().copied().unwrap_or_default()
}

fn first_lines(said: &str) -> String {
    said.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect::<Vec<_>>().join("; ")
}

/// The pieces of an answer that ends each with a NUL.
pub fn pieces(printed: &[u8]) -> impl Iterator<Item = String> {
    printed
        .split(|byte| *byte == 0)
        .filter(|piece| !piece.is_empty())
        .map(|piece| String::from_utf8_lossy(piece).into_owned())
}
