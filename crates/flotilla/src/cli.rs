//! The command line.

mod client;
mod config;
mod keys;
mod pretty;
mod store;

use crate::run::{self, Overrides};
use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A durable hub for AI agents that speaks the A2A protocol.
#[derive(Debug, Parser)]
#[command(name = "flotilla", version, about, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the hub.
    Serve(Serve),
    /// Send a message to an agent and wait for what comes of it.
    Send(client::Send),
    /// Look at tasks and change them.
    #[command(subcommand)]
    Task(client::TaskCommand),
    /// Make, list and revoke keys.
    Keys(keys::Keys),
    /// Check and show the configuration, or print its JSON Schema.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Copy the store into a file, also while a hub is using it.
    Backup(store::BackupArgs),
    /// Put a backup in the place of the store. The hub must not be running.
    Restore(store::RestoreArgs),
}

#[derive(Debug, Args)]
struct Serve {
    #[command(flatten)]
    file: ConfigFile,
    /// Address and port to listen on [default: 127.0.0.1:7420]
    #[arg(long, env = "FLOTILLA_LISTEN")]
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
    /// Keep everything in memory: faster, and gone when the hub stops
    #[arg(long)]
    memory: bool,
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

impl Cli {
    pub fn run(self) -> Result<()> {
        match self.command {
            Command::Serve(serve) => run::serve(Overrides {
                config: serve.file.path(),
                listen: serve.listen,
                data_dir: serve.data.data_dir,
                public_url: serve.public_url,
                allow_anonymous: serve.allow_anonymous,
                allow_anonymous_remote: serve.allow_anonymous_remote,
                memory: serve.memory,
            }),
            Command::Send(send) => send.run(),
            Command::Task(task) => task.run(),
            Command::Keys(keys) => keys.run(),
            Command::Config(config) => config.run(),
            Command::Backup(backup) => backup.run(),
            Command::Restore(restore) => restore.run(),
        }
    }
}

/// A small runtime for commands that only wait for one thing.
fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}
