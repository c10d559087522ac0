//! The command line.

mod agents;
mod announce;
mod approvals;
mod args;
mod asking;
mod auth;
mod card;
mod completion;
mod config;
mod conformance;
mod deliveries;
mod dispatch;
mod doctor;
mod download;
mod failure;
mod fleet;
mod follow;
mod import;
mod keys;
mod ledger;
mod listen;
mod log;
mod output;
mod owner;
mod parts;
mod pretty;
mod push;
mod render;
mod send;
mod session;
mod settings;
mod store;
mod svc_param;
mod task;
mod tokens;
mod tree;
mod usage;
mod watch;
mod why;
mod worker;

use crate::run::{self, Overrides};
use anyhow::Result;
use args::ClientArgs;
use clap::{Args, FromArgMatches as _, Parser, Subcommand};
use failure::Failure;
use flotilla_worker::reaper::{self, Ceiling};
use session::Session;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// A durable hub for AI agents that speaks the A2A protocol, and a client for
/// any agent that does.
#[derive(Debug, Parser)]
#[command(name = "flotilla", bin_name = "flotilla", version, max_term_width = 80, disable_version_flag = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print the version
    #[arg(short = 'v', short_alias = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the hub.
    Serve(Serve),
    /// Show an agent's card.
    Card(card::CardArgs),
    /// Send a message to an agent and wait for what comes of it.
    Send(Box<send::Send>),
    /// Look at tasks and change them.
    Task(task::TaskArgs),
    /// Sign in to an agent.
    Auth(auth::AuthArgs),
    /// Run the official compatibility kit against an agent.
    Conformance(Box<conformance::Conformance>),
    /// Show the settings; check and show the hub's configuration.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Add agents to the hub, find, check and remove them.
    Agents(agents::AgentsArgs),
    /// Give work to the worker of a hub that fits it best.
    Dispatch(Box<dispatch::Dispatch>),
    /// See the hub's workers, follow them, and let one take nothing new.
    Fleet(fleet::FleetArgs),
    /// See where webhooks of the hub stand, try one again or stop it.
    Push(deliveries::PushArgs),
    /// See what agents ask leave for, and answer.
    Approvals(approvals::ApprovalsArgs),
    /// See what agents used: tokens and money.
    Usage(ledger::UsageArgs),
    /// Receive, check and print webhooks, to see what a hub sends.
    Listen(listen::Listen),
    /// Make, list, rotate and revoke keys of the hub.
    Keys(keys::Keys),
    /// Tell another hub, or a registry, of this hub's agents.
    Announce(Box<announce::Announce>),
    /// Write the setup of Hermes or a2a_fleet down as a hub's configuration.
    Import(import::Import),
    /// Copy the store into a file, also while a hub is using it.
    Backup(store::BackupArgs),
    /// Put a backup in the place of the store. The hub must not be running.
    Restore(store::RestoreArgs),
    /// Run this machine's agents for a hub elsewhere.
    Worker(worker::Worker),
    /// Look for what is wrong with the hub and its clients, and say what to do.
    Doctor(doctor::Doctor),
    /// Print a script that completes commands in a shell.
    Completion(completion::Completion),
}

/// Runs a program to its end with everything below it. For the hub itself, once for each run, so nothing else is read.
#[derive(Debug, Parser)]
struct Reap {
    #[arg(long)]
    grace_ms: u64,
    #[arg(long)]
    memory_bytes: Option<u64>,
    #[arg(long)]
    cpu_seconds: Option<u64>,
    #[arg(long)]
    files: Option<u64>,
    #[arg(long)]
    unwatched_ms: Option<u64>,
    program: OsString,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
struct Serve {
    #[command(flatten)]
    settings: HubSettings,
    /// Keep everything in memory: faster, and gone when the hub stops
    #[arg(long)]
    memory: bool,
}

/// What flags and environment add to the hub's configuration file.
#[derive(Debug, Args)]
struct HubSettings {
    #[command(flatten)]
    file: ConfigFile,
    /// Address and port to listen on [default: 127.0.0.1:7420]
    #[arg(long, env = "FLOTILLA_LISTEN", value_name = "ADDRESS", value_parser = args::address)]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    data: DataDir,
    /// Where callers reach the hub, if not at the address it listens on
    #[arg(long, env = "FLOTILLA_PUBLIC_URL")]
    public_url: Option<String>,
    /// Let callers in without a key (on a loopback address only)
    #[arg(long)]
    allow_anonymous: bool,
    /// Let callers in without a key even on an address others can reach
    #[arg(long, requires = "allow_anonymous")]
    allow_anonymous_remote: bool,
    /// Let webhooks go to addresses that are not public, such as 10.0.0.0/8 (may
    /// be given several times)
    #[arg(long = "allow-target", env = "FLOTILLA_ALLOW_TARGET", value_name = "CIDR", value_delimiter = ',')]
    allow_targets: Vec<String>,
}

impl HubSettings {
    fn overrides(self) -> Overrides {
        Overrides {
            config: self.file.path(),
            listen: self.listen,
            data_dir: self.data.data_dir,
            public_url: self.public_url,
            allow_anonymous: self.allow_anonymous,
            allow_anonymous_remote: self.allow_anonymous_remote,
            allow_targets: self.allow_targets,
            memory: false,
        }
    }
}

#[derive(Debug, Args)]
struct ConfigFile {
    /// Configuration file [default: flotilla.yaml here, if there is one]
    #[arg(long, env = "FLOTILLA_CONFIG", value_name = "FILE", global = true)]
    config: Option<PathBuf>,
}

impl ConfigFile {
    fn path(&self) -> Option<PathBuf> {
        let here = PathBuf::from("flotilla.yaml");
        self.config.clone().or_else(|| here.exists().then_some(here))
    }
}

#[derive(Debug, Args)]
struct DataDir {
    /// Where the log is kept [default: the platform's data directory]
    #[arg(long, env = "FLOTILLA_DATA_DIR", value_name = "DIR", global = true)]
    data_dir: Option<PathBuf>,
}

/// Reads the command line and does what it says.
pub fn main() -> ExitCode {
    reaper::seal();
    let words: Vec<_> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == "reap") {
        return Reap::parse_from(&words[1..]).run();
    }
    let parsed = usage::command(&words).try_get_matches_from(&words).and_then(|found| Cli::from_arg_matches(&found));
    match parsed {
        Ok(cli) => cli.run(),
        Err(error) => usage::told(&error, &words),
    }
}

impl Reap {
    fn run(self) -> ExitCode {
        let unwatched = self.unwatched_ms.map(Duration::from_millis);
        let Self { memory_bytes, cpu_seconds, files, .. } = self;
        let ceiling = Ceiling { memory_bytes, cpu_seconds, files, unwatched };
        reaper::main(Duration::from_millis(self.grace_ms), ceiling, &self.program, &self.arguments)
    }
}

impl Cli {
    fn run(self) -> ExitCode {
        match self.command {
            Command::Card(card) => for_agents(card.client.clone(), async |session| card.run(session).await),
            Command::Send(send) => for_agents(send.client.clone(), async |session| send.run(session).await),
            Command::Task(task) => for_agents(task.client.clone(), async |session| task.run(session).await),
            Command::Auth(auth) => for_agents(auth.client.clone(), async |session| auth.run(session).await),
            Command::Conformance(kit) => for_agents(kit.client.clone(), async |session| kit.run(session).await),
            Command::Agents(agents) => for_agents(agents.client(), async |session| agents.run(session).await),
            Command::Push(push) => for_agents(push.client(), async |session| push.run(session).await),
            Command::Approvals(args) => for_agents(args.client(), async |session| args.run(session).await),
            Command::Usage(args) => for_agents(args.client(), async |session| args.run(session).await),
            Command::Dispatch(work) => for_agents(work.client(), async |session| work.run(session).await),
            Command::Fleet(fleet) => for_agents(fleet.client(), async |session| fleet.run(session).await),
            Command::Listen(listen) => for_agents(listen.hub.client(), async |session| listen.run(session).await),
            Command::Doctor(doctor) => for_agents(doctor.client(), async |session| doctor.run(session).await),
            Command::Config(config::ConfigCommand::Show(show)) => {
                for_agents(show.client.clone(), async |session| show.run(session))
            }
            Command::Worker(worker) => worker.run(),
            other => match other.on_this_machine() {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    output::aside!("flotilla: {error:#}");
                    ExitCode::FAILURE
                }
            },
        }
    }
}

impl Command {
    fn on_this_machine(self) -> Result<()> {
        match self {
            Self::Serve(serve) => run::serve(Overrides { memory: serve.memory, ..serve.settings.overrides() }),
            Self::Keys(keys) => keys.run(),
            Self::Config(config::ConfigCommand::Check(settings)) => config::check(*settings),
            Self::Config(config::ConfigCommand::Hub(settings)) => config::hub(*settings),
            Self::Config(config::ConfigCommand::Schema) => config::schema(),
            Self::Announce(announce) => announce.run(),
            Self::Import(import) => import.run(),
            Self::Backup(backup) => backup.run(),
            Self::Restore(restore) => restore.run(),
            Self::Completion(completion) => completion.run(),
            Self::Config(config::ConfigCommand::Show(_))
            | Self::Card(_)
            | Self::Send(_)
            | Self::Task(_)
            | Self::Auth(_)
            | Self::Conformance(_)
            | Self::Agents(_)
            | Self::Push(_)
            | Self::Approvals(_)
            | Self::Usage(_)
            | Self::Fleet(_)
            | Self::Dispatch(_)
            | Self::Listen(_)
            | Self::Doctor(_)
            | Self::Worker(_) => unreachable!("these are run before"),
        }
    }
}

/// Runs a command for agents: its failures have codes, and its wait can be ended.
fn for_agents(args: ClientArgs, work: impl AsyncFnOnce(&Session) -> Result<(), Failure>) -> ExitCode {
    let as_json = usage::wants_json(args.output.as_deref(), args.config.as_deref());
    let done = Session::new(args).and_then(|session| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::internal(format!("the runtime does not start: {error}")))?;
        let command = |words: &str| session.command(words);
        runtime.block_on(session.watch.run(session.timeout, command, work(&session)))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell(as_json);
            ExitCode::from(failure.exit)
        }
    }
}

/// A small runtime for commands that only wait for one thing.
fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}
