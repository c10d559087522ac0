//! The configuration of `flotilla worker`: which of this machine's agents it runs, and for which hub.

use super::{AgentConfig, Dedupe, Kind, Log, OnLost, Secret, Span, Visibility, environment, explain};
use anyhow::{Context, Result, bail};
use flotilla_core::registry::check_name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The whole file. Unknown keys are errors.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerFile {
    pub worker: WorkerConfig,
    pub log: Log,
    /// The agents by name, as in the hub's configuration.
    pub agents: BTreeMap<String, AgentConfig>,
}

/// The worker itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerConfig {
    /// Where the hub is, such as `https://hub.example.com`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hub: Option<String>,
    /// A key with the scope `agents:connect`. Write `${NAME}` for a variable of the environment rather than the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Secret>,
    /// A file that holds the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// A file with certificates to trust beside those of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// Where what is not told yet is kept; `worker` in the platform's data directory if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
    /// How long programs run on without a hub before they are ended.
    pub grace: Span,
    /// How long runs may take to end when the worker is asked to stop.
    pub drain: Span,
    /// How often agents, their MCP servers and their repositories are looked at.
    pub look: Span,
    /// How much of what is not told yet is kept, in bytes.
    #[schemars(range(min = 65_536))]
    pub buffer_bytes: u64,
    /// Runs that each agent has at once.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_concurrent: usize,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            hub: None,
            key: None,
            key_file: None,
            ca: None,
            state: None,
            grace: Span::seconds(600),
            drain: Span::seconds(60),
            look: Span::seconds(60),
            buffer_bytes: 64 * 1024 * 1024,
            max_concurrent: 16,
        }
    }
}

impl WorkerFile {
    pub fn load(path: &Path) -> Result<Self> {
        let reading = || format!("reading {} (--config names another file; docs/worker.md shows one)", path.display());
        let text = std::fs::read_to_string(path).with_context(reading)?;
        let file = Self::parse(&text).with_context(|| path.display().to_string())?;
        file.check().with_context(|| path.display().to_string())?;
        Ok(file)
    }

    pub fn parse(text: &str) -> Result<Self> {
        let filled = environment::fill(text, |name| std::env::var(name).ok())?;
        let text = &filled.text;
        serde_saphyr::from_str(text).map_err(|error| explain::plainly(&filled.mask(&error.to_string()), text))
    }

    fn check(&self) -> Result<()> {
        if self.agents.is_empty() {
            bail!("agents: name at least one; docs/worker.md shows how");
        }
        for (name, agent) in &self.agents {
            check_name(name).map_err(anyhow::Error::msg)?;
            agent.check().and_then(|()| agent.check_worker()).with_context(|| format!("agents.{name}"))?;
        }
        let worker = &self.worker;
        if worker.key.is_some() && worker.key_file.is_some() {
            bail!("worker.key and worker.key_file: write one of them");
        }
        if worker.look.0.is_zero() {
            bail!("worker.look must be longer than nothing");
        }
        if worker.buffer_bytes < 65_536 || worker.max_concurrent == 0 {
            bail!("worker.buffer_bytes must be at least 65536, and worker.max_concurrent at least 1");
        }
        Ok(())
    }
}

impl AgentConfig {
    /// What only a hub can do for an agent has no meaning at a worker.
    fn check_worker(&self) -> Result<()> {
        match self.kind {
            Kind::Socket => bail!("kind: a 'socket' agent connects by itself; a worker has nothing to run"),
            Kind::A2a => bail!("kind: an 'a2a' agent is called by the hub; put it into the hub's configuration"),
            _ => {}
        }
        let of_the_hub = [
            ("owner", self.owner.is_some()),
            ("visibility", self.visibility != Visibility::default()),
            ("dedupe", self.dedupe != Dedupe::default()),
            ("on_lost", self.on_lost != OnLost::default()),
            ("extensions", !self.extensions.is_empty()),
            ("extended", self.extended.is_some()),
        ];
        if let Some((name, _)) = of_the_hub.iter().find(|(_, is_set)| *is_set) {
            bail!("{name}: is the hub's to say: put the agent into its configuration with 'kind: socket' and {name}");
        }
        Ok(())
    }
}
