//! `flotilla keys`: who may call this hub. Works on the data directory, whether or not a hub is running on it.

use super::output::aside;
use super::{ConfigFile, DataDir, block_on, output};
use crate::clock::SystemClock;
use crate::config::{Config, Span};
use crate::{data, signing};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use flotilla_core::error::Error;
use flotilla_core::key::{FullName, KeyRecord};
use flotilla_core::keyring::{self, Made, Order};
use flotilla_core::ports::{Clock as _, Store as _};
use flotilla_core::rights::{Right, Rights};
use flotilla_protocol::time::Millis;
use flotilla_store::sqlite::Sqlite;
use std::path::{Path, PathBuf};

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
    /// Make a key and print it, once. Its tasks are seen by nobody else.
    Create(Create),
    /// List the keys, without the keys themselves.
    List,
    /// Make a key that may do the same as an old one, and print it, once.
    Rotate {
        /// The key to replace
        #[arg(value_name = "[WORKSPACE/]NAME", value_parser = FullName::parse)]
        name: FullName,
        /// How long the old key still works
        #[arg(long, value_name = "TIME", default_value = "1d", value_parser = Span::parse)]
        overlap: Span,
        /// How long the new key works [default: as long as the old one was to]
        #[arg(long, value_name = "TIME", value_parser = Span::parse)]
        expires: Option<Span>,
    },
    /// Sign cards with a new key; a running hub does within a second.
    RotateSigning {
        /// How long the old key still signs beside it, for those who pinned it
        #[arg(long, value_name = "TIME", default_value = "7d", value_parser = Span::parse)]
        overlap: Span,
    },
    /// Refuse a key from now on (a running hub knows within a second).
    Revoke {
        /// The key to refuse
        #[arg(value_name = "[WORKSPACE/]NAME", value_parser = FullName::parse)]
        name: FullName,
    },
}

#[derive(Debug, Clone, Args)]
struct Create {
    /// The key's name, and that of whom it stands for
    #[arg(value_name = "[WORKSPACE/]NAME", value_parser = FullName::parse)]
    name: FullName,
    /// Let it stand for somebody else of the workspace, who may have other keys
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// What it may be used for (may be given several times): agents:read,
    /// tasks:read, tasks:write, push:write, agents:connect, agents:write,
    /// approvals:write, admin [default: the first four]
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',')]
    scopes: Vec<Right>,
    /// Let it call only this agent (may be given several times)
    #[arg(long = "agent", value_name = "AGENT")]
    agents: Vec<String>,
    /// How long it works: 12h, 30d [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    expires: Option<Span>,
}

impl Keys {
    pub fn run(self) -> Result<()> {
        let store = self.open()?;
        match self.command.clone() {
            KeysCommand::RotateSigning { overlap } => self.rotate_signing(overlap),
            KeysCommand::Create(create) => {
                self.note_unknown(&create.agents);
                block_on(create.run(&store))
            }
            KeysCommand::List => block_on(list(&store)),
            KeysCommand::Rotate { name, overlap, expires } => block_on(async {
                let now = SystemClock.now();
                let made = keyring::rotate(&store, now, &name, overlap.0, after(now, expires)).await.map_err(told)?;
                show(&made);
                aside!("The key '{name}' works for at most {overlap} more.");
                tell(made.note);
                Ok(())
            }),
            KeysCommand::Revoke { name } => block_on(async {
                let note = keyring::revoke(&store, SystemClock.now(), &name).await.map_err(told)?;
                output::line(&format!("The key '{name}' is revoked."));
                tell(note);
                Ok(())
            }),
        }
    }

    fn rotate_signing(&self, overlap: Span) -> Result<()> {
        let dir = data_dir(&self.data, &self.file)?;
        data::create(&dir)?;
        let ring = signing::rotate(&dir, SystemClock.now(), overlap.0)?;
        output::line("Cards are signed with a new key.");
        match ring.keys.len() {
            1 => aside!("No older key is in use."),
            _ => aside!("The old one signs beside it for {overlap}; those who pinned it need the new one by then."),
        }
        Ok(())
    }

    /// A key for an agent that is yet to come is fine, a mistyped one is not.
    fn note_unknown(&self, agents: &[String]) {
        let Ok(config) = Config::load(self.file.path().as_deref()) else { return };
        let known = config.agent_names();
        for agent in agents.iter().filter(|agent| !known.contains(&agent.as_str())) {
            aside!("Note: the configuration has no agent '{agent}' (it has: {}).", known.join(", "));
        }
    }

    fn open(&self) -> Result<Sqlite> {
        let dir = data_dir(&self.data, &self.file)?;
        let makes = matches!(self.command, KeysCommand::Create(_) | KeysCommand::RotateSigning { .. });
        if !makes {
            store_in(&dir)?;
        }
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

/// The store that is in a directory.
pub fn store_in(dir: &Path) -> Result<PathBuf> {
    let store = data::store_file(dir);
    if !store.exists() {
        let dir = dir.display();
        bail!("there is no store in {dir}; name its directory with --data-dir, as for 'flotilla serve'");
    }
    Ok(store)
}

fn after(now: Millis, span: Option<Span>) -> Option<Millis> {
    span.map(|Span(length)| Millis(now.0.saturating_add(i64::try_from(length.as_millis()).unwrap_or(i64::MAX))))
}

/// What the core has to say, as a mistake of the command line.
fn told(error: Error) -> anyhow::Error {
    match error {
        Error::Refused(refusal) => anyhow::Error::msg(refusal.message),
        Error::Failed(fault) => fault.into(),
    }
}

/// What else is to be done.
fn tell(note: Option<&str>) {
    if let Some(note) = note {
        aside!("{note}");
    }
}

/// Prints the key itself to standard output, and what is to be said of it beside.
fn show(made: &Made) {
    output::line(&made.secret);
    let until = made.record.expires_at.map(|end| format!(" It works until {end}.")).unwrap_or_default();
    aside!("The key '{}' is shown only this once: keep it.{until}", made.record.name);
}

impl Create {
    async fn run(self, store: &Sqlite) -> Result<()> {
        let now = SystemClock.now();
        let known = store.keys().await?;
        let workspace = self.name.workspace.clone();
        let order = Order {
            name: self.name,
            principal: self.principal,
            rights: if self.scopes.is_empty() { Rights::CALLER } else { Rights::of(self.scopes) },
            agents: (!self.agents.is_empty()).then_some(self.agents),
            expires_at: after(now, self.expires),
        };
        show(&keyring::create(store, now, order).await.map_err(told)?);
        let others = known.iter().any(|key| key.name.workspace == workspace);
        if !others && workspace != FullName::owner().workspace {
            aside!("It is the first key of the workspace '{workspace}'.");
        }
        Ok(())
    }
}

async fn list(store: &Sqlite) -> Result<()> {
    let now = SystemClock.now();
    output::line(&format!(
        "{:<24} {:<16} {:<26} {:<34} {:<24} SCOPES",
        "NAME", "PRINCIPAL", "CREATED", "STATE", "AGENTS"
    ));
    for key in store.keys().await? {
        let agents = key.agents.as_ref().map_or_else(|| "all".to_owned(), |agents| agents.join(", "));
        output::line(&format!(
            "{:<24} {:<16} {:<26} {:<34} {agents:<24} {}",
            key.name.to_string(),
            key.principal.name,
            key.created_at.to_string(),
            state(&key, now),
            key.rights.names().join(", ")
        ));
    }
    Ok(())
}

fn state(key: &KeyRecord, now: Millis) -> String {
    match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {at}"),
        (None, Some(end)) if end <= now => format!("expired {end}"),
        (None, Some(end)) => format!("until {end}"),
        (None, None) => "in use".to_owned(),
    }
}
