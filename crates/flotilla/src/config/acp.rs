//! What stands in the configuration of an agent that speaks the Agent Client Protocol (`kind: acp`, `kind: opencode`).

use super::program::{check_folders, reaper, section};
use super::{AgentConfig, Kind, mcp};
use anyhow::{Context, Result, bail};
use flotilla_worker::acp::{Acp, Permission};
use flotilla_worker::sessions::Sessions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

section! {
    /// A program that speaks ACP, how it is started, what its sessions are given and what a run of it may cost.
    pub struct AcpConfig, memory: "super::program::all_memory", processor: "super::program::all_time" {
        /// The program's file, or a name that is looked for in `path`; of an `opencode` agent, `opencode` if absent.
        #[serde(default)]
        pub program: String,
        /// What it is started with; of an `opencode` agent, `acp` if absent.
        #[serde(default)]
        pub arguments: Vec<String>,
        /// Where it works.
        pub folder: PathBuf,
        /// The model of its sessions, by its own names; its own choice if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        /// The mode its sessions are in, by its own names; its own choice if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub mode: Option<String>,
        /// The way of signing in, by its own name, that is asked for before a session is begun.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub sign_in: Option<String>,
        /// Who decides when it asks for leave to use a tool: its owner (`ask`, the default), or nobody: `deny` or `allow`.
        #[serde(default)]
        pub permission: PermissionConfig,
        /// A file that lists MCP servers for its sessions (`mcpServers`, as in a `.mcp.json`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub mcp_config: Option<PathBuf>,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionConfig {
    #[default]
    Ask,
    Deny,
    Allow,
}

impl AgentConfig {
    pub(super) fn check_acp(&self) -> Result<()> {
        for (kind, name, section) in [(Kind::Acp, "acp", &self.acp), (Kind::Opencode, "opencode", &self.opencode)] {
            match section {
                None if self.kind == kind => {
                    bail!("an {name} agent needs '{name}:' with a folder (docs/acp-agent.md shows how)")
                }
                Some(section) if self.kind == kind => section.check(kind).context(name)?,
                Some(_) => bail!("{name}: only an {name} agent takes it; say 'kind: {name}'"),
                None => {}
            }
        }
        Ok(())
    }

    /// The program, ready to be run. `state` is a folder of the agent's own, if anything is kept.
    pub fn acp_program(&self, state: Option<&Path>) -> Result<Acp> {
        let (section, name) = match self.kind {
            Kind::Opencode => (&self.opencode, "opencode"),
            _ => (&self.acp, "acp"),
        };
        let section = section.as_ref().with_context(|| format!("an {name} agent needs '{name}:'"))?;
        section.preset(self.kind).program(state).context(name)
    }
}

impl AcpConfig {
    /// With what a published agent needs to speak ACP.
    fn preset(&self, kind: Kind) -> Self {
        let mut preset = self.clone();
        if kind == Kind::Opencode {
            if preset.program.is_empty() {
                preset.program = "opencode".into();
            }
            if preset.arguments.is_empty() {
                preset.arguments = vec!["acp".into()];
            }
        }
        preset
    }

    fn check(&self, kind: Kind) -> Result<()> {
        if self.preset(kind).program.is_empty() {
            bail!("program: must name a program");
        }
        self.shared().check()
    }

    pub(super) fn check_places(&self) -> Result<()> {
        check_folders([("folder", Some(&self.folder)), ("home", self.home.as_deref())])
    }

    fn program(&self, state: Option<&Path>) -> Result<Acp> {
        let shared = self.shared();
        let environment = shared.environment()?;
        let folder = std::path::absolute(&self.folder).context("folder")?;
        let sessions = Sessions::open(state.map(|state| state.join("sessions.json")));
        Ok(Acp {
            reaper: reaper()?,
            program: shared.find(&self.program, &folder)?,
            arguments: self.arguments.iter().map(OsString::from).collect(),
            mcp_servers: mcp::servers(self.mcp_config.as_deref(), &environment)?,
            environment,
            folder,
            bounds: shared.bounds(),
            limits: shared.limits(),
            model: self.model.clone(),
            mode: self.mode.clone(),
            sign_in: self.sign_in.clone(),
            permission: match self.permission {
                PermissionConfig::Ask => Permission::Ask,
                PermissionConfig::Deny => Permission::Deny,
                PermissionConfig::Allow => Permission::Allow,
            },
            sessions: sessions.map_err(anyhow::Error::msg)?,
            git: self.git.plan(state),
            learned: Arc::default(),
        })
    }
}
