//! What stands in the configuration of an agent that is a program (`kind: command`).

use super::git::own_folder;
use super::program::{Shared, check_folders, reaper, section};
use super::{AgentConfig, Kind};
use anyhow::{Context, Result, bail};
use flotilla_protocol::a2a::model::TaskState;
use flotilla_worker::command::{Program, Talk};
use flotilla_worker::supervise::confined;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

section! {
    /// A program, how it is started, and what a run of it may cost.
    pub struct CommandConfig, memory: "super::program::much_memory", processor: "super::program::much_time" {
        /// The program's file, or a name that is looked for in `path`.
        pub program: String,
        #[serde(default)]
        pub arguments: Vec<String>,
        /// How it speaks: `text` (default) or `json-lines`; see docs/command-agent.md.
        #[serde(default)]
        pub talk: TalkConfig,
        /// Where it is started; a folder of its own in the data directory if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub folder: Option<PathBuf>,
        /// A folder that `folder` may not lead out of, by links either.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub root: Option<PathBuf>,
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
        let root = ("root", self.root.as_deref());
        check_folders([("folder", self.folder.as_deref()), ("home", self.home.as_deref()), root])?;
        match &self.folder {
            Some(folder) => confined(folder, self.root.as_deref()).map(drop).map_err(anyhow::Error::msg),
            None => Ok(()),
        }
    }

    fn ready(&self, state: Option<&Path>) -> Result<Program> {
        let shared = self.shared();
        let place = own_folder(state)?;
        let (work, home) = (place.join("work"), place.join("home"));
        let mut own = Vec::new();
        own.extend(self.folder.is_none().then(|| work.clone()));
        own.extend(self.home.is_none().then(|| home.clone()));
        let folder = self.folder.as_ref().map(std::path::absolute).transpose().context("folder")?;
        // A program is not looked for in a folder that is yet to be made.
        let from = folder.clone().map_or_else(std::env::current_dir, Ok).context("folder")?;
        Ok(Program {
            reaper: reaper()?,
            program: shared.find(&self.program, &from)?,
            arguments: self.arguments.iter().map(OsString::from).collect(),
            environment: Shared { home: shared.home.or(Some(&home)), ..self.shared() }.environment()?,
            folder: folder.unwrap_or(work),
            root: self.root.clone(),
            own,
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
