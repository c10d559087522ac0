//! The settings that every agent's program has, whatever section of the configuration they stand in.

use super::acp::AcpConfig;
use super::claude::ClaudeConfig;
use super::codex::CodexConfig;
use super::command::CommandConfig;
use super::git::GitConfig;
use super::probe::ProbeConfig;
use super::{AgentConfig, Kind, Span};
use anyhow::{Context, Result, bail, ensure};
use flotilla_worker::command::Bounds;
use flotilla_worker::probe::trial;
use flotilla_worker::supervise::{Limits, is_program};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// With fewer open files some programs cannot even begin.
const FEWEST_FILES: u64 = 16;
/// The longest line a program may print, in bytes.
const LINE: usize = 16 * 1024 * 1024;

/// A section of the configuration that has its own settings, and after them those of all programs. Written out rather than
/// flattened: a section within which another is flattened can no longer refuse keys it does not know.
macro_rules! section {
    (
        $(#[$about:meta])*
        pub struct $name:ident, memory: $memory:tt, processor: $processor:tt {
            $($(#[$of:meta])* pub $own:ident: $type:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$of])* pub $own: $type,)*
            /// Its `PATH`.
            #[serde(default = "super::program::usual_path")]
            pub path: String,
            /// Its home, where it keeps its settings, its sign-in and its sessions; the hub's own if absent, and of a
            /// `command` agent a folder of its own.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub home: Option<std::path::PathBuf>,
            /// Its environment, beside `PATH` and `HOME`: a value, or `env:NAME` for a variable of the hub.
            #[serde(default, skip_serializing)]
            pub env: std::collections::BTreeMap<String, String>,
            #[serde(default)]
            pub git: super::git::GitConfig,
            /// Probe turns, which are paid for; none if absent.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub probe: Option<super::probe::ProbeConfig>,
            /// A run that takes longer is stopped.
            #[serde(default = "super::program::an_hour")]
            pub timeout: super::Span,
            /// A run that prints nothing for so long is stopped.
            #[serde(default = "super::program::ten_minutes")]
            pub silence: super::Span,
            /// Between being asked to end and being ended, also after the answer.
            #[serde(default = "super::program::five_seconds")]
            pub grace: super::Span,
            /// What it may print in all.
            #[serde(default = "super::program::much_output")]
            pub output_bytes: usize,
            /// The memory of a run, in bytes; as much as there is if absent.
            #[serde(default = $memory, skip_serializing_if = "Option::is_none")]
            pub memory_bytes: Option<u64>,
            /// The processor time of a run; as much as it takes if absent.
            #[serde(default = $processor, skip_serializing_if = "Option::is_none")]
            pub processor_time: Option<super::Span>,
            /// The processes of a run and their threads.
            #[serde(default = "super::program::many_processes")]
            pub processes: u64,
            /// Files, sockets and pipes that each process of a run may have open; as many as the hub if absent.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub files: Option<u64>,
        }

        impl $name {
            pub(super) fn shared(&self) -> super::program::Shared<'_> {
                super::program::Shared {
                    path: &self.path,
                    home: self.home.as_deref(),
                    env: &self.env,
                    git: self.git,
                    probe: self.probe.as_ref(),
                    timeout: self.timeout,
                    silence: self.silence,
                    grace: self.grace,
                    output_bytes: self.output_bytes,
                    memory_bytes: self.memory_bytes,
                    processor_time: self.processor_time,
                    processes: self.processes,
                    files: self.files,
                }
            }
        }
    };
}
pub(super) use section;

/// The settings of all programs, wherever they stand.
pub(super) struct Shared<'a> {
    pub path: &'a str,
    pub home: Option<&'a Path>,
    pub env: &'a BTreeMap<String, String>,
    pub git: GitConfig,
    pub probe: Option<&'a ProbeConfig>,
    pub timeout: Span,
    pub silence: Span,
    pub grace: Span,
    pub output_bytes: usize,
    pub memory_bytes: Option<u64>,
    pub processor_time: Option<Span>,
    pub processes: u64,
    pub files: Option<u64>,
}

impl Shared<'_> {
    /// What no run could live with.
    pub fn check(&self) -> Result<()> {
        let nothing = [self.timeout.0.is_zero(), self.silence.0.is_zero(), self.output_bytes == 0];
        if nothing.contains(&true) || self.memory_bytes == Some(0) || self.processor_time == Some(Span::seconds(0)) {
            bail!("timeout, silence, output_bytes, memory_bytes and processor_time must be more than nothing");
        }
        ensure!(self.processes > 0, "processes must be at least 1");
        let files = self.files.unwrap_or(FEWEST_FILES);
        ensure!(files >= FEWEST_FILES, "files must be at least {FEWEST_FILES}: with fewer a program cannot begin");
        self.probe.map_or(Ok(()), ProbeConfig::check)?;
        self.git.check()
    }

    /// All the environment the program gets.
    pub fn environment(&self) -> Result<Vec<(OsString, OsString)>> {
        let mut environment = vec![("PATH".into(), OsString::from(self.path))];
        let home = self.home.map(OsString::from).or_else(|| std::env::var_os("HOME"));
        environment.extend(home.map(|home| ("HOME".into(), home)));
        for (name, value) in self.env {
            let value = match value.strip_prefix("env:") {
                Some(variable) => std::env::var_os(variable)
                    .with_context(|| format!("env.{name}: the environment variable {variable} is not set"))?,
                None => value.into(),
            };
            environment.push((name.into(), value));
        }
        Ok(environment)
    }

    /// A name without a slash is looked for, as a shell does; a path is taken from the folder the program runs in.
    pub fn find(&self, program: &str, folder: &Path) -> Result<PathBuf> {
        if program.contains('/') {
            let file = folder.join(program);
            ensure!(is_program(&file), "program: there is no file {} that may be run", file.display());
            return Ok(file);
        }
        let found = self.path.split(':').map(|place| Path::new(place).join(program)).find(|file| is_program(file));
        found.with_context(|| {
            format!("program: there is no '{program}' in {} that may be run; write the whole path", self.path)
        })
    }

    pub fn bounds(&self) -> Bounds {
        Bounds {
            whole: self.timeout.0,
            silence: self.silence.0,
            output: self.output_bytes,
            line: LINE,
            grace: self.grace.0,
        }
    }

    pub fn limits(&self) -> Limits {
        let (processor, unwatched) = (self.processor_time.map(|time| time.0), self.silence.0.min(self.timeout.0));
        let (processes, files) = (Some(self.processes), self.files);
        Limits { memory: self.memory_bytes, processor, processes, files, unwatched: Some(unwatched) }
    }
}

impl AgentConfig {
    /// What must be on this machine before the agent's program can run.
    pub fn check_places(&self) -> Result<()> {
        let (name, checked) = match self.kind {
            Kind::Command => ("command", self.command.as_ref().map(CommandConfig::check_places)),
            Kind::Acp => ("acp", self.acp.as_deref().map(AcpConfig::check_places)),
            Kind::Opencode => ("opencode", self.opencode.as_deref().map(AcpConfig::check_places)),
            Kind::Codex => ("codex", self.codex.as_deref().map(CodexConfig::check_places)),
            Kind::ClaudeCode => ("claude_code", self.claude_code.as_deref().map(ClaudeConfig::check_places)),
            Kind::Echo | Kind::Script | Kind::Socket | Kind::A2a => return Ok(()),
        };
        checked.unwrap_or(Ok(())).context(name)
    }

    /// When and how probe turns are wanted, if they are.
    pub fn probe_terms(&self) -> Option<trial::Terms> {
        let shared = match self.kind {
            Kind::Command => self.command.as_ref().map(CommandConfig::shared),
            Kind::Acp => self.acp.as_deref().map(AcpConfig::shared),
            Kind::Opencode => self.opencode.as_deref().map(AcpConfig::shared),
            Kind::Codex => self.codex.as_deref().map(CodexConfig::shared),
            Kind::ClaudeCode => self.claude_code.as_deref().map(ClaudeConfig::shared),
            Kind::Echo | Kind::Script | Kind::Socket | Kind::A2a => None,
        };
        shared?.probe.map(ProbeConfig::terms)
    }
}

/// Folders that a section names must be there. That they are not yet is no mistake of the file's.
pub(super) fn check_folders<const N: usize>(folders: [(&str, Option<&Path>); N]) -> Result<()> {
    for (name, folder) in folders {
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            bail!("{name}: {} is not a folder", folder.display());
        }
    }
    Ok(())
}

/// This program's own file, which runs others under its command `reap`.
pub(super) fn reaper() -> Result<PathBuf> {
    std::env::current_exe().context("this program's own file")
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

pub(super) fn much_memory() -> Option<u64> {
    Some(8 << 30)
}

pub(super) fn much_time() -> Option<Span> {
    Some(Span::seconds(4 * 3600))
}

pub(super) fn many_processes() -> u64 {
    2048
}

pub(super) fn all_memory() -> Option<u64> {
    None
}

pub(super) fn all_time() -> Option<Span> {
    None
}
