//! The data directory: where it is, what is in it, and who may use it.

use anyhow::{Context, Result, bail};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// The directory when none is named: the platform's place for a program's data.
pub fn default_dir() -> PathBuf {
    let env = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    env("XDG_DATA_HOME")
        .or_else(|| env("HOME").map(|home| home.join(".local/share")))
        .unwrap_or_else(|| PathBuf::from("."))
        .join("flotilla")
}

pub fn store_file(dir: &Path) -> PathBuf {
    dir.join("flotilla.db")
}

/// Creates the directory and the store's file, readable by their user only. The directory may have been there before, and
/// open to others; what SQLite puts beside the file gets the file's mode.
pub fn create(dir: &Path) -> Result<()> {
    create_dir(dir)?;
    open_own(&store_file(dir)).map(drop)
}

/// Opens a file, which is readable by its user only if it is new.
fn open_own(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path).with_context(|| format!("opening {}", path.display()))
}

/// Creates the directory, readable by its user only.
pub fn create_dir(dir: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(dir).with_context(|| format!("creating the data directory {}", dir.display()))
}

/// Where agents on this machine keep what is theirs: the data directory, or, if nothing is kept, one that goes with this.
pub enum Folder {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Folder {
    pub fn of_agents(dir: Option<&Path>) -> Result<Self> {
        match dir {
            Some(dir) => Ok(Self::Kept(dir.to_owned())),
            None => {
                let made = tempfile::Builder::new().prefix("flotilla-").tempdir();
                made.map(Self::Temporary).context("making a folder for agents among the temporary files")
            }
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Kept(dir) => dir,
            Self::Temporary(dir) => dir.path(),
        }
    }
}

/// Held while a hub uses the directory: two hubs on one store would each think they are alone.
pub struct Lock {
    _file: File,
}

pub fn lock(dir: &Path) -> Result<Lock> {
    lock_for(dir, "another hub", "--data-dir")
}

/// The same for any program; `who` may have it already, and `flag` chooses another directory.
pub fn lock_for(dir: &Path, who: &str, flag: &str) -> Result<Lock> {
    let path = dir.join("flotilla.lock");
    let file = open_own(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock { _file: file }),
        Err(TryLockError::WouldBlock) => {
            bail!("{who} is using {}; stop it, or choose another directory with {flag}", dir.display())
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("locking {}", path.display())),
    }
}
