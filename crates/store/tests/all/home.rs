//! Where a store under test lives, and how it is opened there.

use flotilla_core::ports::Store;
use flotilla_store::memory::Memory;
use flotilla_store::sqlite::{Sqlite, Sync};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A place for one store. Opened again after the store was dropped, a durable one holds what it held.
pub trait Home {
    /// Whether events are written down, so that some cannot be.
    const WRITES: bool;

    fn open(&self) -> Arc<dyn Store>;
}

/// SQLite in a file of its own.
pub struct File {
    directory: TempDir,
}

impl File {
    pub fn new() -> Self {
        Self { directory: TempDir::new().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn store(&self) -> PathBuf {
        self.path("flotilla.db")
    }

    /// The names of all files here.
    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Home for File {
    const WRITES: bool = true;

    fn open(&self) -> Arc<dyn Store> {
        Arc::new(Sqlite::open(&self.store(), Sync::Full).unwrap())
    }
}

/// Nowhere: what is in memory only.
pub struct Nowhere;

impl Home for Nowhere {
    const WRITES: bool = false;

    fn open(&self) -> Arc<dyn Store> {
        Arc::new(Memory::new().unwrap())
    }
}
