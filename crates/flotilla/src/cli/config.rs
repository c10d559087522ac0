//! `flotilla config`: check, show, schema.

use super::ConfigFile;
use crate::config::Config;
use anyhow::Result;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Say whether the configuration is right, and what is wrong with it.
    Check(ConfigFile),
    /// Show the configuration with every default filled in, secrets masked.
    Show(ConfigFile),
    /// Print the JSON Schema of the configuration, for editors.
    Schema,
}

impl ConfigCommand {
    pub fn run(self) -> Result<()> {
        match self {
            Self::Check(file) => {
                let path = file.path();
                let config = Config::load(path.as_deref())?;
                config.check_anonymous()?;
                let name = path.map_or_else(|| "the defaults (no file)".to_owned(), |path| path.display().to_string());
                println!("{name}: ok, agents: {}", config.agent_names().join(", "));
            }
            Self::Show(file) => {
                let config = Config::load(file.path().as_deref())?;
                println!("{}", serde_saphyr::to_string(&config)?);
            }
            Self::Schema => println!("{}", serde_json::to_string_pretty(&schemars::schema_for!(Config))?),
        }
        Ok(())
    }
}
