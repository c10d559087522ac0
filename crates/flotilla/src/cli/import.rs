//! `flotilla import`: the setup of another program as a configuration of the hub.

use super::output::aside;
use super::session::hub_key;
use super::{block_on, output};
use crate::import::{Draft, fleet, hermes};
use anyhow::{Context as _, Result, anyhow, bail};
use clap::{Args, Subcommand};
use flotilla_outbound::hub::Hub;
use flotilla_outbound::net::redact::Redactor;
use flotilla_outbound::net::{Limits, Net};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct Import {
    #[command(subcommand)]
    from: From,
    /// Write the configuration into a new file [default: standard output]
    #[arg(long = "output", short = 'o', value_name = "FILE", global = true)]
    into: Option<PathBuf>,
    /// Add the agents to the running hub instead, with the key in FLOTILLA_KEY
    #[arg(long, global = true, conflicts_with = "into")]
    add: bool,
    /// The hub they are added to
    #[arg(long, env = "FLOTILLA_URL", value_name = "URL", global = true, default_value = "http://127.0.0.1:7420")]
    hub: String,
}

#[derive(Debug, Subcommand)]
enum From {
    /// Take over the agents of Hermes' A2A plugin: folders with identity.yaml.
    Hermes {
        /// Hermes' home, or the folder that holds the agents
        /// [default: $HERMES_HOME, or ~/.hermes]
        dir: Option<PathBuf>,
    },
    /// Take over the peers in a fleet.yaml of the a2a_fleet plugin.
    Fleet {
        /// The fleet.yaml to read
        file: PathBuf,
    },
}

impl Import {
    pub fn run(&self) -> Result<()> {
        let draft = match &self.from {
            From::Hermes { dir: Some(dir) } => hermes::import(dir)?,
            From::Hermes { dir: None } => match hermes::usual_home() {
                Some(home) => hermes::import(&home)?,
                None => bail!("name Hermes' folder, or set HERMES_HOME"),
            },
            From::Fleet { file } => fleet::import(file)?,
        };
        tell(&draft);
        if draft.agents().next().is_none() {
            bail!("no agent could be taken over; nothing was written");
        }
        if self.add {
            return block_on(add(&self.hub, &draft));
        }
        match &self.into {
            Some(file) => write(file, &draft.yaml()?),
            None => {
                output::line(draft.yaml()?.trim_end());
                Ok(())
            }
        }
    }
}

/// The report is for a person, so that the configuration alone is on standard output.
fn tell(draft: &Draft) {
    if draft.agents().next().is_none() {
        aside!("taken over: nothing");
    }
    for (name, origin) in draft.origins() {
        aside!("taken over: {name} (from {origin})");
    }
    for line in &draft.todo {
        aside!("to do: {line}");
    }
    for line in &draft.left {
        aside!("not taken over: {line}");
    }
}

/// Each on its own: what one is refused for need not concern the others.
async fn add(url: &str, draft: &Draft) -> Result<()> {
    let net = Net::between(Limits::default(), Redactor::new(hub_key()), None).map_err(|error| anyhow!("{error}"))?;
    let hub = Hub::new(net, url, hub_key());
    let mut added = 0;
    for (name, mut settings) in draft.settings() {
        settings["name"] = name.into();
        match hub.add_agent(settings.to_string()).await {
            Ok(_) => {
                output::line(&format!("added: {name}"));
                added += 1;
            }
            Err(error) => aside!("not added: {name}: {error}"),
        }
    }
    if added == 0 {
        bail!("no agent was added to {url}; set FLOTILLA_KEY to a key with the scope admin, or write a file instead");
    }
    Ok(())
}

/// A file that is there is somebody's work.
fn write(file: &Path, text: &str) -> Result<()> {
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let mut opened =
        opened.with_context(|| format!("writing {} (a file that exists is not replaced)", file.display()))?;
    opened.write_all(text.as_bytes()).with_context(|| format!("writing {}", file.display()))?;
    aside!("written: {} (flotilla config check --config {0})", file.display());
    Ok(())
}
