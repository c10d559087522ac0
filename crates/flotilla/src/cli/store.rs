//! `flotilla backup` and `flotilla restore`.

use super::keys::{data_dir, store_in};
use super::{ConfigFile, DataDir, output};
use crate::data;
use anyhow::{Result, bail};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The new file to write
    file: PathBuf,
    #[command(flatten)]
    data: DataDir,
    #[command(flatten)]
    config: ConfigFile,
}

impl BackupArgs {
    pub fn run(self) -> Result<()> {
        let store = store_in(&data_dir(&self.data, &self.config)?)?;
        flotilla_store::sqlite::backup(&store, &self.file)?;
        output::line(&format!("{} holds a copy of {}.", self.file.display(), store.display()));
        Ok(())
    }
}

#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The backup to restore
    file: PathBuf,
    /// Replace the store that is there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    data: DataDir,
    #[command(flatten)]
    config: ConfigFile,
}

impl RestoreArgs {
    pub fn run(self) -> Result<()> {
        if !self.file.exists() {
            bail!("{} does not exist; name a file that 'flotilla backup' wrote", self.file.display());
        }
        let dir = data_dir(&self.data, &self.config)?;
        data::create_dir(&dir)?;
        let _lock = data::lock(&dir)?;
        flotilla_store::sqlite::restore(&self.file, &data::store_file(&dir), self.force)?;
        output::line(&format!(
            "{} is restored. Streams resumed with old cursors start with the whole task.",
            dir.display()
        ));
        Ok(())
    }
}
