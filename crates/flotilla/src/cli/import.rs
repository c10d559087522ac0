//! `flotilla import`: the setup of another program as a configuration of the hub.

use crate::import::{Draft, fleet, hermes};
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct Import {
    #[command(subcommand)]
    from: From,
    /// Write the configuration into a new file [default: standard output]
    #[arg(long, short = 'o', value_name = "FILE", global = true)]
    output: Option<PathBuf>,
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
    Fleet { file: PathBuf },
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
        match &self.output {
            Some(file) => write(file, &draft.yaml()?),
            None => {
                print!("{}", draft.yaml()?);
                Ok(())
            }
        }
    }
}

/// The report is for a person, so that the configuration alone is on standard output.
fn tell(draft: &Draft) {
    let agents: Vec<&str> = draft.agents().collect();
    eprintln!("taken over: {}", if agents.is_empty() { "nothing".to_owned() } else { agents.join(", ") });
    for line in &draft.todo {
        eprintln!("to do: {line}");
    }
    for line in &draft.left {
        eprintln!("not taken over: {line}");
    }
}

/// A file that is there is somebody's work.
fn write(file: &Path, text: &str) -> Result<()> {
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let mut opened =
        opened.with_context(|| format!("writing {} (a file that exists is not replaced)", file.display()))?;
    opened.write_all(text.as_bytes()).with_context(|| format!("writing {}", file.display()))?;
    eprintln!("written: {} (flotilla config check --config {0})", file.display());
    Ok(())
}
