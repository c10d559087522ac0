//! What stands in the configuration of an agent that is a program (`kind: command`).

use super::program::{check_folders, reaper, section};
use super::{AgentConfig, Kind};
use anyhow::{Context, Result, bail};
use flotilla_protocol::a2a::model::TaskState;
use flotilla_worker::command::{Program, Talk};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

section! {
    /// A program, how it is started, and what a run of it may cost.
    pub struct CommandConfig, memory: "super::program::all_memory", processor: "super::program::all_time" {
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
        /// What exit codes mean; 0 is `completed` and all others `failed` if absent.
        #[serde(default)]
        pub exits: BTreeMap<u8, ExitState>,
    }
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

impl AgentConfig {
    pub(super) fn check_command(&self) -> Result<()> {
        match (self.kind, &self.command) {
            (Kind::Command, None) => bail!("a command agent needs 'command:' (docs/command-agent.md shows how)"),
            (Kind::Command, Some(command)) => command.check().context("command"),
            (_, Some(_)) => bail!("command: only a command agent takes one; say 'kind: command'"),
            (_, None) => Ok(()),
        }
    }

    /// The program, ready to be run. `state` is a folder of the agent's own, if anything is kept.
    pub fn program(&self, state: Option<&Path>) -> Result<Program> {
        self.command.as_ref().context("a command agent needs 'command:'")?.ready(state).context("command")
    }
}

impl CommandConfig {
    fn check(&self) -> Result<()> {
        if self.program.is_empty() {
            bail!("program: must name a program");
        }
        self.shared().check()
    }

    pub(super) fn check_places(&self) -> Result<()> {
        check_folders([("folder", self.folder.as_deref()), ("home", self.home.as_deref())])
    }

    fn ready(&self, state: Option<&Path>) -> Result<Program> {
        let shared = self.shared();
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            None => std::env::current_dir().context("folder")?,
        };
        Ok(Program {
            reaper: reaper()?,
            program: shared.find(&self.program, &folder)?,
            arguments: self.arguments.iter().map(OsString::from).collect(),
            environment: shared.environment()?,
            folder,
            talk: match self.talk {
                TalkConfig::Text => Talk::Text,
                TalkConfig::JsonLines => Talk::JsonLines,
            },
            bounds: shared.bounds(),
            limits: shared.limits(),
            git: shared.git.plan(state),
            exits: self.exits.iter().map(|(code, state)| (*code, state.of_task())).collect(),
        })
    }
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
