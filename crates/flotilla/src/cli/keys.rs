//! `flotilla keys`: who may call this hub. Works on the data directory, whether or not a hub is running on it.

use super::{ConfigFile, DataDir, block_on};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::data;
use crate::run::generate_key;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use flotilla_core::access::{KeyRecord, sha256};
use flotilla_core::ids::PrincipalId;
use flotilla_core::ports::{Clock as _, Store as _};
use flotilla_core::registry::check_name;
use flotilla_store::sqlite::Sqlite;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Keys {
    #[command(subcommand)]
    command: KeysCommand,
    #[command(flatten)]
    data: DataDir,
    #[command(flatten)]
    file: ConfigFile,
}

#[derive(Debug, Clone, Subcommand)]
enum KeysCommand {
    /// Make a key and print it, once. Its tasks are seen by no other key.
    Create {
        name: String,
        /// Let the key call only this agent (may be given several times)
        #[arg(long = "agent", value_name = "AGENT")]
        agents: Vec<String>,
    },
    /// List the keys, without the keys themselves.
    List,
    /// Refuse a key from now on (a running hub knows within a second).
    Revoke { name: String },
}

impl Keys {
    pub fn run(self) -> Result<()> {
        let store = self.open()?;
        match self.command.clone() {
            KeysCommand::Create { name, agents } => {
                self.note_unknown(&agents);
                block_on(create(&store, name, agents))
            }
            KeysCommand::List => block_on(list(&store)),
            KeysCommand::Revoke { name } => block_on(async {
                if !store.revoke_key(&name, SystemClock.now()).await? {
                    bail!("there is no key '{name}' in use; 'flotilla keys list' shows those there are");
                }
                println!("The key '{name}' is revoked.");
                Ok(())
            }),
        }
    }

    /// A key for an agent that is yet to come is fine, a mistyped one is not.
    fn note_unknown(&self, agents: &[String]) {
        let Ok(config) = Config::load(self.file.path().as_deref()) else { return };
        let known = config.agent_names();
        for agent in agents.iter().filter(|agent| !known.contains(&agent.as_str())) {
            eprintln!("Note: the configuration has no agent '{agent}' (it has: {}).", known.join(", "));
        }
    }

    fn open(&self) -> Result<Sqlite> {
        let dir = data_dir(&self.data, &self.file)?;
        data::create(&dir)?;
        Ok(Sqlite::open_beside(&data::store_file(&dir))?)
    }
}

/// The directory a command works on: flag or environment, then configuration, then the default.
pub fn data_dir(data: &DataDir, file: &ConfigFile) -> Result<PathBuf> {
    if let Some(dir) = &data.data_dir {
        return Ok(dir.clone());
    }
    let configured = Config::load(file.path().as_deref()).context("looking for the data directory")?;
    Ok(configured.hub.data_dir.unwrap_or_else(data::default_dir))
}

async fn create(store: &Sqlite, name: String, agents: Vec<String>) -> Result<()> {
    // A key's name follows the rules of an agent's: it is shown in the same places.
    check_name(&name).map_err(|problem| anyhow::anyhow!(problem.replace("an agent's name", "a key's name")))?;
    let key = generate_key()?;
    let record = KeyRecord {
        name: name.clone(),
        hash: sha256(key.as_bytes()),
        principal: PrincipalId(0),
        admin: false,
        agents: (!agents.is_empty()).then_some(agents),
        created_at: SystemClock.now(),
        revoked_at: None,
    };
    if !store.add_key(record).await? {
        bail!("there is or was a key '{name}' already; choose another name");
    }
    println!("{key}");
    eprintln!("The key '{name}' is shown only this once: keep it.");
    Ok(())
}

async fn list(store: &Sqlite) -> Result<()> {
    println!("{:<24} {:<26} {:<26} AGENTS", "NAME", "CREATED", "REVOKED");
    for key in store.keys().await? {
        let revoked = key.revoked_at.map_or_else(|| "-".to_owned(), |at| at.to_string());
        let agents = match (&key.agents, key.admin) {
            (_, true) => "all (owner)".to_owned(),
            (Some(agents), _) => agents.join(", "),
            (None, _) => "all".to_owned(),
        };
        println!("{:<24} {:<26} {revoked:<26} {agents}", key.name, key.created_at.to_string());
    }
    Ok(())
}
