//! What stands in the configuration of an agent that is Codex (`kind: codex`).

use super::command::{LINE, an_hour, find, five_seconds, much_output, ten_minutes, usual_path, variables};
use super::git::GitConfig;
use super::{AgentConfig, Kind, Span};
use anyhow::{Context, Result, bail};
use flotilla_worker::codex::{Codex, Sandbox};
use flotilla_worker::command::Bounds;
use flotilla_worker::sessions::Sessions;
use flotilla_worker::supervise::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Codex, how it is started, what it may do and what a run of it may cost.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodexConfig {
    /// The program's file, or a name that is looked for in `path`.
    #[serde(default = "codex")]
    pub program: String,
    /// More options for `codex exec`, such as `[-c, 'model_reasoning_effort="high"']`.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Where it works.
    pub folder: PathBuf,
    /// Its `PATH`.
    #[serde(default = "usual_path")]
    pub path: String,
    /// Its home, where it keeps its settings, its sign-in and its sessions; the hub's own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<PathBuf>,
    /// Its environment, beside `PATH` and `HOME`: a value, or `env:NAME` for a variable of the hub.
    #[serde(default, skip_serializing)]
    pub env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What its commands may do: `read-only`, `workspace-write` (default) or `danger-full-access`.
    #[serde(default)]
    pub sandbox: SandboxConfig,
    #[serde(default)]
    pub git: GitConfig,
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
    /// The memory of each process of a run, in bytes; as much as there is if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The processor time of each process of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_time: Option<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxConfig {
    ReadOnly,
    #[default]
    WorkspaceWrite,
    DangerFullAccess,
}

fn codex() -> String {
    "codex".into()
}

impl AgentConfig {
    pub(super) fn check_codex(&self) -> Result<()> {
        match (self.kind, &self.codex) {
            (Kind::Codex, None) => bail!("a codex agent needs 'codex:' with a folder (docs/codex.md shows how)"),
            (Kind::Codex, Some(codex)) => codex.check().context("codex"),
            (_, Some(_)) => bail!("codex: only a codex agent takes it; say 'kind: codex'"),
            (_, None) => Ok(()),
        }
    }

    /// Codex, ready to be run. `state` is a folder of the agent's own, if anything is kept.
    pub fn codex_program(&self, state: Option<&Path>) -> Result<Codex> {
        self.codex.as_ref().context("a codex agent needs 'codex:'")?.program(state).context("codex")
    }
}

impl CodexConfig {
    fn check(&self) -> Result<()> {
        if self.program.is_empty() {
            bail!("program: must name a program");
        }
        if self.timeout.0.is_zero() || self.silence.0.is_zero() || self.output_bytes == 0 {
            bail!("timeout, silence and output_bytes must be more than nothing");
        }
        for (name, folder) in [("folder", Some(&self.folder)), ("home", self.home.as_ref())] {
            if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
                bail!("{name}: {} is not a folder", folder.display());
            }
        }
        self.git.check()
    }

    fn program(&self, state: Option<&Path>) -> Result<Codex> {
        let mut environment = vec![("PATH".into(), OsString::from(&self.path))];
        let home = self.home.clone().map(OsString::from).or_else(|| std::env::var_os("HOME"));
        environment.extend(home.map(|home| ("HOME".into(), home)));
        environment.extend(variables(&self.env)?);
        let folder = std::path::absolute(&self.folder).context("folder")?;
        let sessions = Sessions::open(state.map(|state| state.join("sessions.json")));
        Ok(Codex {
            reaper: std::env::current_exe().context("this program's own file")?,
            program: find(&self.program, &self.path, &folder)?,
            arguments: self.arguments.iter().map(OsString::from).collect(),
            environment,
            folder,
            bounds: Bounds {
                whole: self.timeout.0,
                silence: self.silence.0,
                output: self.output_bytes,
                line: LINE,
                grace: self.grace.0,
            },
            limits: Limits { memory: self.memory_bytes, processor: self.processor_time.map(|time| time.0) },
            model: self.model.clone(),
            sandbox: match self.sandbox {
                SandboxConfig::ReadOnly => Sandbox::ReadOnly,
                SandboxConfig::WorkspaceWrite => Sandbox::WorkspaceWrite,
                SandboxConfig::DangerFullAccess => Sandbox::DangerFullAccess,
            },
            sessions: sessions.map_err(anyhow::Error::msg)?,
            git: self.git.plan(state),
        })
    }
}
