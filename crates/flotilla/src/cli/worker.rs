//! `flotilla worker`: this machine's agents as members of a hub elsewhere (docs/worker.md).

use super::args::ClientArgs;
use super::output::aside;
use super::{doctor, for_agents};
use crate::config::{AgentConfig, Span, WorkerConfig, WorkerFile};
use crate::{assemble, data, telemetry};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use flotilla_protocol::a2a::profile::{Abilities, Ability, Profile};
use flotilla_worker::attach::dial::Hub;
use flotilla_worker::attach::{self, Ended, Find, LocalAgent, Options};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Runs were cut short, or are still to be told of.
const CUT_SHORT: u8 = 3;

#[derive(Debug, Args)]
pub struct Worker {
    #[command(subcommand)]
    command: Option<WorkerCommand>,
    /// The hub's address
    #[arg(long, env = "FLOTILLA_URL", value_name = "URL")]
    hub: Option<String>,
    /// A key with the scope agents:connect
    #[arg(long, env = "FLOTILLA_KEY", value_name = "KEY", hide_env_values = true)]
    key: Option<String>,
    /// A file that holds the key
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    key_file: Option<PathBuf>,
    /// The worker's configuration: its agents [default: worker.yaml here]
    #[arg(long, env = "FLOTILLA_WORKER_CONFIG", value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Where what is not told yet is kept [default: worker in the platform's data
    /// directory]
    #[arg(long, env = "FLOTILLA_WORKER_STATE", value_name = "DIR")]
    state: Option<PathBuf>,
    /// Certificates to trust beside those of this machine
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// How long runs may take to end after SIGTERM, such as 90s [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    drain_timeout: Option<Span>,
}

#[derive(Debug, Subcommand)]
enum WorkerCommand {
    /// Say which agents are there and signed in, which MCP servers answer, and
    /// what would be announced.
    Doctor {
        /// Format of the result: text or json
        #[arg(short, long, value_name = "FORMAT")]
        output: Option<String>,
    },
}

impl Worker {
    fn file(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| PathBuf::from("worker.yaml"))
    }

    pub fn run(self) -> ExitCode {
        if let Some(WorkerCommand::Doctor { output }) = &self.command {
            let client = ClientArgs { output: output.clone(), ..ClientArgs::default() };
            return for_agents(client, async |session| doctor::worker(session, &self.file()).await);
        }
        match self.work() {
            Ok(Ended::Drained) => ExitCode::SUCCESS,
            Ok(Ended::CutShort(untold)) => {
                let rest = match untold {
                    0 => "the hub was told".to_owned(),
                    _ => format!("{untold} are told to the hub at the next start"),
                };
                aside!("flotilla: runs were cut short; {rest}");
                ExitCode::from(CUT_SHORT)
            }
            Err(error) => {
                aside!("flotilla: {error:#}");
                ExitCode::FAILURE
            }
        }
    }

    fn work(self) -> Result<Ended> {
        let file = WorkerFile::load(&self.file())?;
        let worker = &file.worker;
        let url = self.hub.as_ref().or(worker.hub.as_ref()).context("which hub? Say --hub URL, or worker.hub")?;
        let ca = self.ca.as_deref().or(worker.ca.as_deref());
        let hub = Hub::new(url, &self.key(worker)?, ca).map_err(anyhow::Error::msg)?;
        let state = self.state.clone().or_else(|| worker.state.clone());
        let state = state.unwrap_or_else(|| data::default_dir().join("worker"));
        data::create_dir(&state)?;
        let _lock = data::lock_for(&state, "another worker", "--state")?;
        let _level = telemetry::start_log(&file.log)?;
        let drain = self.drain_timeout.unwrap_or(worker.drain).0;
        let options = Options {
            state: state.clone(),
            buffer: worker.buffer_bytes,
            grace: worker.grace.0,
            drain,
            look: worker.look.0,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async move {
            let asked = signals()?;
            let mut agents = Vec::new();
            for (name, agent) in &file.agents {
                let place = state.join("agents").join(name);
                agents.push(local(name, agent, &file.worker, place)?);
            }
            attach::attach(hub, agents, &options, asked).await.map_err(anyhow::Error::msg)
        })
    }

    /// From the command line or the environment, a file, or the configuration.
    fn key(&self, worker: &WorkerConfig) -> Result<String> {
        let read = |file: &Path| {
            let text = std::fs::read_to_string(file).with_context(|| format!("reading the key in {}", file.display()));
            text.map(|text| text.trim().to_owned())
        };
        let key = match (&self.key, &self.key_file, &worker.key, &worker.key_file) {
            (Some(key), ..) => key.clone(),
            (None, Some(file), ..) | (None, None, None, Some(file)) => read(file)?,
            (None, None, Some(key), _) => key.0.clone(),
            (None, None, None, None) => bail!(
                "which key? Make one with 'flotilla keys create NAME --scope agents:connect' at the hub, and say \
                 --key, --key-file, FLOTILLA_KEY or worker.key_file"
            ),
        };
        Ok(key)
    }
}

/// An agent of the configuration, and the way to find its program.
fn local(name: &str, agent: &AgentConfig, worker: &WorkerConfig, state: PathBuf) -> Result<LocalAgent> {
    let skill = |skill: &crate::config::SkillConfig| Ability {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: skill.input_modes.clone(),
        output_modes: skill.output_modes.clone(),
    };
    let usual = Profile::default();
    let profile = Profile {
        name: name.to_owned(),
        description: agent.description.clone(),
        version: agent.version.clone(),
        capabilities: Abilities {
            streaming: agent.streaming.unwrap_or(true),
            push_notifications: agent.push_notifications,
        },
        default_input_modes: agent.input_modes.clone().unwrap_or(usual.default_input_modes),
        default_output_modes: agent.output_modes.clone().unwrap_or(usual.default_output_modes),
        skills: agent.skills.iter().map(skill).collect(),
    };
    let card = serde_json::to_string(&profile)?;
    let found = (agent.clone(), state);
    let find: Find = Arc::new(move || {
        let (agent, state) = found.clone();
        Box::pin(async move {
            let found = assemble::find(&agent, Some(&state)).await;
            found.map_err(|error| format!("{error:#}"))
        })
    });
    Ok(LocalAgent { name: name.to_owned(), card, places: worker.max_concurrent, find })
}

/// One word for each signal that asks this process to stop.
fn signals() -> Result<mpsc::Receiver<()>> {
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    let (say, asked) = mpsc::channel(2);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if say.send(()).await.is_err() {
                return;
            }
        }
    });
    Ok(asked)
}
