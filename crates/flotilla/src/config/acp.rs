//! What stands in the configuration of an agent that speaks the Agent Client Protocol (`kind: acp`, `kind: opencode`).

use super::command::{LINE, an_hour, find, five_seconds, much_output, ten_minutes, usual_path, variables};
use super::git::GitConfig;
use super::{AgentConfig, Kind, Span, mcp};
use anyhow::{Context, Result, bail};
use flotilla_worker::acp::{Acp, Permission};
use flotilla_worker::command::Bounds;
use flotilla_worker::sessions::Sessions;
use flotilla_worker::supervise::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A program that speaks ACP, how it is started, what its sessions are given and what a run of it may cost.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcpConfig {
    /// The program's file, or a name that is looked for in `path`; of an `opencode` agent, `opencode` if absent.
    #[serde(default)]
    pub program: String,
    /// What it is started with; of an `opencode` agent, `acp` if absent.
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

    /// All the environment the program gets.
    fn environment(&self) -> Result<Vec<(OsString, OsString)>> {
        let mut environment = vec![("PATH".into(), OsString::from(&self.path))];
        let home = self.home.clone().map(OsString::from).or_else(|| std::env::var_os("HOME"));
        environment.extend(home.map(|home| ("HOME".into(), home)));
        environment.extend(variables(&self.env)?);
        Ok(environment)
    }

    fn program(&self, state: Option<&Path>) -> Result<Acp> {
        let environment = self.environment()?;
        let folder = std::path::absolute(&self.folder).context("folder")?;
        let sessions = Sessions::open(state.map(|state| state.join("sessions.json")));
        Ok(Acp {
            reaper: std::env::current_exe().context("this program's own file")?,
            program: find(&self.program, &self.path, &folder)?,
            arguments: self.arguments.iter().map(OsString::from).collect(),
            mcp_servers: mcp::servers(self.mcp_config.as_deref(), &environment)?,
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
