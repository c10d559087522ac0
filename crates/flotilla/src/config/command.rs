//! What stands in the configuration of an agent that is a program (`kind: command`).

use super::{AgentConfig, Kind, Span};
use anyhow::{Context, Result, bail};
use flotilla_protocol::a2a::model::TaskState;
use flotilla_worker::command::{Bounds, Program, Talk};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The longest line a program may print, in bytes.
pub(super) const LINE: usize = 16 * 1024 * 1024;

/// A program, how it is started, and what a run of it may cost.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandConfig {
    /// The program's file, or a name that is looked for in `path`.
    pub program: String,
    #[serde(default)]
    pub arguments: Vec<String>,
    /// How it speaks: `text` (default) or `json-lines`; see docs/command-agent.md.
    #[serde(default)]
    pub talk: TalkConfig,
    /// Where it is started; the hub's own folder if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Its `PATH`.
    #[serde(default = "usual_path")]
    pub path: String,
    /// Its environment, beside `PATH` and `HOME`: a value, or `env:NAME` for a variable of the hub.
    #[serde(default, skip_serializing)]
    pub env: BTreeMap<String, String>,
    /// A run that takes longer is stopped.
    #[serde(default = "an_hour")]
    pub timeout: Span,
    /// A run that prints nothing for so long is stopped.
    #[serde(default = "ten_minutes")]
    pub silence: Span,
    /// Between being asked to end and being ended.
    #[serde(default = "five_seconds")]
    pub grace: Span,
    /// What it may print in all.
    #[serde(default = "much_output")]
    pub output_bytes: usize,
    /// What exit codes mean; 0 is `completed` and all others `failed` if absent.
    #[serde(default)]
    pub exits: BTreeMap<u8, ExitState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TalkConfig {
    #[default]
    Text,
    JsonLines,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExitState {
    Completed,
    Failed,
    Rejected,
    InputRequired,
    AuthRequired,
}

pub(super) fn usual_path() -> String {
    "/usr/local/bin:/usr/bin:/bin".into()
}

pub(super) fn an_hour() -> Span {
    Span::seconds(3600)
}

pub(super) fn ten_minutes() -> Span {
    Span::seconds(600)
}

pub(super) fn five_seconds() -> Span {
    Span::seconds(5)
}

pub(super) fn much_output() -> usize {
    64 * 1024 * 1024
}

impl AgentConfig {
    pub(super) fn check_command(&self) -> Result<()> {
        match (self.kind, &self.command) {
            (Kind::Command, None) => bail!("a command agent needs 'command:' (docs/command-agent.md shows how)"),
            (Kind::Command, Some(command)) => command.check(),
            (_, Some(_)) => bail!("command: only a command agent takes one; say 'kind: command'"),
            (_, None) => Ok(()),
        }
    }

    /// The program, ready to be run.
    pub fn program(&self) -> Result<Program> {
        let command = self.command.as_ref().context("a command agent needs 'command:'")?;
        let mut environment = vec![("PATH".into(), OsString::from(&command.path))];
        environment.extend(std::env::var_os("HOME").map(|home| ("HOME".into(), home)));
        environment.extend(variables(&command.env).context("command")?);
        let folder = match &command.folder {
            Some(folder) => folder.clone(),
            None => std::env::current_dir().context("command.folder")?,
        };
        Ok(Program {
            reaper: std::env::current_exe().context("this program's own file")?,
            program: find(&command.program, &command.path, &folder).context("command")?,
            arguments: command.arguments.iter().map(OsString::from).collect(),
            environment,
            folder,
            talk: match command.talk {
                TalkConfig::Text => Talk::Text,
                TalkConfig::JsonLines => Talk::JsonLines,
            },
            bounds: Bounds {
                whole: command.timeout.0,
                silence: command.silence.0,
                output: command.output_bytes,
                line: LINE,
                grace: command.grace.0,
            },
            root: None,
            limits: flotilla_worker::supervise::Limits::default(),
            git: super::git::GitConfig::default().plan(None),
            exits: command.exits.iter().map(|(code, state)| (*code, state.of_task())).collect(),
        })
    }
}

impl CommandConfig {
    fn check(&self) -> Result<()> {
        if self.program.is_empty() {
            bail!("command.program: must name a program");
        }
        if self.timeout.0.is_zero() || self.silence.0.is_zero() || self.output_bytes == 0 {
            bail!("command.timeout, silence and output_bytes must be more than nothing");
        }
        if let Some(folder) = self.folder.as_deref().filter(|folder| !folder.is_dir()) {
            bail!("command.folder: {} is not a folder", folder.display());
        }
        Ok(())
    }
}

/// What a program is given beside the usual: values, or variables of the hub by name.
pub(super) fn variables(env: &BTreeMap<String, String>) -> Result<Vec<(OsString, OsString)>> {
    let variable = |(name, value): (&String, &String)| {
        let value = match value.strip_prefix("env:") {
            Some(variable) => std::env::var_os(variable)
                .with_context(|| format!("env.{name}: the environment variable {variable} is not set"))?,
            None => value.into(),
        };
        Ok((name.into(), value))
    };
    env.iter().map(variable).collect()
}

/// A name without a slash is looked for, as a shell does; a path is taken from the folder the program runs in.
pub(super) fn find(program: &str, path: &str, folder: &Path) -> Result<PathBuf> {
    let found = if program.contains('/') {
        Some(folder.join(program)).filter(|file| file.is_file())
    } else {
        path.split(':').map(|place| Path::new(place).join(program)).find(|file| file.is_file())
    };
    found.with_context(|| format!("program: there is no '{program}' in {path}; write the whole path"))
}

impl ExitState {
    fn of_task(self) -> TaskState {
        match self {
            Self::Completed => TaskState::Completed,
            Self::Failed => TaskState::Failed,
            Self::Rejected => TaskState::Rejected,
            Self::InputRequired => TaskState::InputRequired,
            Self::AuthRequired => TaskState::AuthRequired,
        }
    }
}
