//! What stands in the configuration of an agent that is Codex (`kind: codex`).

use super::program::{check_folders, reaper, section};
use super::{AgentConfig, Kind};
use anyhow::{Context, Result, bail};
use flotilla_worker::codex::{Codex, Sandbox};
use flotilla_worker::sessions::Sessions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

section! {
    /// Codex, how it is started, what it may do and what a run of it may cost.
    pub struct CodexConfig, memory: "super::program::all_memory", processor: "super::program::all_time" {
        /// The program's file, or a name that is looked for in `path`.
        #[serde(default = "codex")]
        pub program: String,
        /// More options for `codex exec`, such as `[-c, 'model_reasoning_effort="high"']`.
        #[serde(default)]
        pub arguments: Vec<String>,
        /// Where it works.
        pub folder: PathBuf,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        /// What its commands may do: `read-only`, `workspace-write` (default) or `danger-full-access`.
        #[serde(default)]
        pub sandbox: SandboxConfig,
    }
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
        self.shared().check()
    }

    pub(super) fn check_places(&self) -> Result<()> {
        check_folders([("folder", Some(&self.folder)), ("home", self.home.as_deref())])
    }

    fn program(&self, state: Option<&Path>) -> Result<Codex> {
        let shared = self.shared();
        let folder = std::path::absolute(&self.folder).context("folder")?;
        let sessions = Sessions::open(state.map(|state| state.join("sessions.json")));
        Ok(Codex {
            reaper: reaper()?,
            program: shared.find(&self.program, &folder)?,
            arguments: self.arguments.iter().map(OsString::from).collect(),
            environment: shared.environment()?,
            folder,
            bounds: shared.bounds(),
            limits: shared.limits(),
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
