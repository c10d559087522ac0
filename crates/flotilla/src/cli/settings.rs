//! The client's settings: each has a flag, an environment variable, a line in a `.env` file and a default.

mod dotenv;

use super::failure::Failure;
use crate::config::Span;
use dotenv::File;
use flotilla_outbound::net::address;
use flotilla_outbound::net::redact::MASK;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Everything that can be set outside the command line too. `--stream` is missing on purpose: a caller must write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    AgentCard,
    Output,
    Verbose,
    Transport,
    A2aVersion,
    Async,
    Timeout,
    PollInterval,
    ContextId,
    TaskId,
    Metadata,
    SvcParam,
    Bearer,
    ApiKey,
    ClientId,
    ClientSecret,
    Token,
    AuthCredentials,
    Insecure,
    Debug,
}

impl Setting {
    pub const ALL: [Self; 20] = [
        Self::AgentCard,
        Self::Output,
        Self::Verbose,
        Self::Transport,
        Self::A2aVersion,
        Self::Async,
        Self::Timeout,
        Self::PollInterval,
        Self::ContextId,
        Self::TaskId,
        Self::Metadata,
        Self::SvcParam,
        Self::Bearer,
        Self::ApiKey,
        Self::ClientId,
        Self::ClientSecret,
        Self::Token,
        Self::AuthCredentials,
        Self::Insecure,
        Self::Debug,
    ];

    /// The long flag.
    pub fn flag(self) -> &'static str {
        match self {
            Self::AgentCard => "agent-card",
            Self::Output => "output",
            Self::Verbose => "verbose",
            Self::Transport => "transport",
            Self::A2aVersion => "a2a-version",
            Self::Async => "async",
            Self::Timeout => "timeout",
            Self::PollInterval => "poll-interval",
            Self::ContextId => "context-id",
            Self::TaskId => "task-id",
            Self::Metadata => "metadata",
            Self::SvcParam => "svc-param",
            Self::Bearer => "bearer",
            Self::ApiKey => "api-key",
            Self::ClientId => "client-id",
            Self::ClientSecret => "client-secret",
            Self::Token => "token",
            Self::AuthCredentials => "auth-credentials",
            Self::Insecure => "insecure",
            Self::Debug => "debug",
        }
    }

    /// The variable's name, in the environment and in files.
    pub fn variable(self) -> String {
        format!("A2ACLI_{}", self.flag().to_ascii_uppercase().replace('-', "_"))
    }

    /// What holds when nobody says anything; none where that is nothing at all.
    pub fn default(self) -> Option<&'static str> {
        match self {
            Self::Output => Some("text"),
            Self::Verbose | Self::Async | Self::Insecure | Self::Debug => Some("false"),
            Self::PollInterval => Some("2s"),
            _ => None,
        }
    }

    /// The default in words, where it is not a value.
    pub fn default_in_words(self) -> &'static str {
        match self {
            Self::AgentCard => "the hub (--hub)",
            Self::Transport => "the first in the card that is spoken",
            Self::A2aVersion => "the highest both sides speak",
            Self::Timeout => "none",
            other => other.default().unwrap_or("-"),
        }
    }

    /// A value as it may be shown.
    pub fn shown(self, value: &str) -> String {
        match self {
            _ if self.is_secret() => MASK.to_owned(),
            Self::AgentCard => address::shown(value),
            Self::Metadata => outline(value),
            _ => address::shown_in(value),
        }
    }

    pub fn is_secret(self) -> bool {
        let of_pushes = matches!(self, Self::Token | Self::AuthCredentials);
        of_pushes || matches!(self, Self::Bearer | Self::ApiKey | Self::ClientSecret | Self::SvcParam)
    }
}

/// A JSON object without its values: nothing says which of them are secret.
fn outline(text: &str) -> String {
    fn masked(value: Value) -> Value {
        match value {
            Value::Object(members) => members.into_iter().map(|(name, value)| (name, masked(value))).collect(),
            _ => MASK.into(),
        }
    }
    serde_json::from_str(text).map_or_else(|_| MASK.to_owned(), |value| masked(value).to_string())
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Flag,
    Environment(String),
    File(PathBuf),
    Default,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// What the environment and the files say.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<File>,
}

impl Sources {
    /// The file named, or the nearest `.env` above; then the global one.
    pub fn load(config: Option<&Path>) -> Result<Self, Failure> {
        let local = match config {
            Some(path) => Some(File::read(path).map_err(|problem| {
                Failure::usage(format!("--config {}: {problem}", path.display()))
                    .hint("--config names a .env file with lines such as A2ACLI_AGENT_CARD=https://example.com")
            })?),
            None => nearest(),
        };
        let global = global_file().and_then(|path| File::read(&path).ok());
        Ok(Self { files: local.into_iter().chain(global).collect() })
    }

    /// Flag, environment, local file, global file, default: the first that says something.
    pub fn resolve(&self, setting: Setting, flag: Option<String>) -> (Option<String>, Source) {
        if flag.is_some() {
            return (flag, Source::Flag);
        }
        let name = setting.variable();
        if let Some(value) = std::env::var(&name).ok().filter(|value| !value.is_empty()) {
            return (Some(value), Source::Environment(name));
        }
        for file in &self.files {
            if let Some(value) = file.get(&name) {
                return (Some(value.to_owned()), Source::File(file.path.clone()));
            }
        }
        (setting.default().map(str::to_owned), Source::Default)
    }

    pub fn value(&self, setting: Setting, flag: Option<String>) -> Option<String> {
        self.resolve(setting, flag).0
    }

    /// How a setting was said: by its flag, in the environment, or in a file.
    pub fn said(&self, setting: Setting, by_flag: bool) -> String {
        match self.resolve(setting, None).1 {
            Source::Environment(name) if !by_flag => name,
            Source::File(path) if !by_flag => format!("{} in {}", setting.variable(), path.display()),
            _ => format!("--{}", setting.flag()),
        }
    }

    pub fn truth(&self, setting: Setting, flag: Option<bool>) -> Result<bool, Failure> {
        let value = self.value(setting, flag.map(|truth| truth.to_string())).unwrap_or_default();
        match value.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Ok(true),
            "" | "0" | "false" | "no" | "off" => Ok(false),
            _ => Err(Failure::usage(format!("{}: '{value}' is neither true nor false", self.said(setting, false)))),
        }
    }

    pub fn length(&self, setting: Setting, flag: Option<String>) -> Result<Option<Duration>, Failure> {
        let said = self.said(setting, flag.is_some());
        let Some(text) = self.value(setting, flag) else { return Ok(None) };
        length(&text).map(Some).map_err(|problem| Failure::usage(format!("{said}: {problem}")))
    }

    /// A list: the flag's values, or one text with `separator` between them.
    pub fn list(&self, setting: Setting, flags: &[String], separator: char) -> Vec<String> {
        if !flags.is_empty() {
            return flags.to_vec();
        }
        let text = self.value(setting, None).unwrap_or_default();
        text.split(separator).map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    /// Files that hold a secret and can be read by others.
    pub fn exposed(&self) -> Vec<&Path> {
        let secret = |file: &&File| {
            Setting::ALL.iter().any(|setting| setting.is_secret() && file.get(&setting.variable()).is_some())
        };
        self.files.iter().filter(secret).filter(|file| file.is_exposed()).map(|file| file.path.as_path()).collect()
    }

    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }
}

/// A number and a unit, or a number of seconds.
fn length(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && (0.0..1e9).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Span::parse(text).map(|span| span.0),
    }
}

/// Where the client keeps what lasts: its own settings and tokens, never a task.
pub fn directory() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|home| !home.is_empty()).map(|home| PathBuf::from(home).join(".config/a2a-cli"))
}

/// Where cards are kept for as long as their servers allow.
pub fn cache() -> Option<PathBuf> {
    std::env::var_os("HOME")
        .filter(|home| !home.is_empty())
        .map(|home| PathBuf::from(home).join(".cache/a2a-cli/cards"))
}

fn global_file() -> Option<PathBuf> {
    directory().map(|directory| directory.join(".env"))
}

fn nearest() -> Option<File> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().find_map(|directory| File::read(&directory.join(".env")).ok())
}
