//! The journal in front of the tables: a commit is durable once its batch is in here, and is put into the tables later,
//! together with many others.
//!
//! Two files take turns. One is written from its start again when all it holds is in the tables and the tables are on
//! the disk. When the store is closed in good order the files go away.

mod batch;
pub mod entry;
mod file;
pub mod fuzz;

use super::Sync;
use batch::Batch;
use entry::Entry;
use file::Blocks;
use flotilla_core::error::Fault;
use flotilla_core::log::Epoch;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A file is left for the other one when it has grown to this.
const TURN: usize = 32 * 1024 * 1024;
/// How long a hub waits for the one before it, or for a tool at work on the store.
const PATIENCE: Duration = Duration::from_secs(5);

pub struct Journal {
    files: [Blocks; 2],
    active: usize,
    next: u64,
    header: Vec<u8>,
    scratch: Vec<u8>,
    lock: Lock,
}

impl Journal {
    /// Begins a journal behind the batch `last`. All before it must be in the tables, and they on the disk.
    pub fn begin(store: &Path, sync: Sync, epoch: &Epoch, last: u64, lock: Lock) -> Result<Self, Fault> {
        let [first, second] = paths(store);
        let mut files = [Blocks::open(&first, sync)?, Blocks::open(&second, sync)?];
        let header = batch::header(&epoch.0);
        files[0].begin(&header)?;
        if sync == Sync::Full {
            flush_names(store)?;
        }
        Ok(Self { files, active: 0, next: last + 1, header, scratch: Vec::new(), lock })
    }

    /// Writes a batch and returns its number. `durable` is the last one that the tables on the disk hold.
    pub fn append(&mut self, entries: &[Entry], durable: u64) -> Result<u64, Fault> {
        let number = self.next;
        batch::encode(number, entries, &mut self.scratch);
        let other = 1 - self.active;
        if self.files[self.active].end() + self.scratch.len() > TURN && self.files[other].last <= durable {
            self.files[other].begin(&self.header)?;
            self.active = other;
        }
        self.files[self.active].append(number, &self.scratch)?;
        self.next += 1;
        if self.scratch.capacity() > TURN / 8 {
            self.scratch = Vec::new();
        }
        Ok(number)
    }

    /// The end of a journal whose every batch is in the tables and on the disk.
    pub fn remove(self, store: &Path) {
        remove(store, &self.lock);
    }
}

/// Removes the files of a journal; the one that is locked last.
pub fn remove(store: &Path, _: &Lock) {
    for path in paths(store).iter().rev() {
        if let Err(error) = std::fs::remove_file(path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %path.display(), "removing the store's journal");
        }
    }
}

/// A new file is found again after a power cut only if its directory is on the disk.
fn flush_names(store: &Path) -> Result<(), Fault> {
    let directory = store.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| Fault::new(format!("flushing {}: {error}", directory.display())))
}

/// The files of a store's journal.
pub fn paths(store: &Path) -> [PathBuf; 2] {
    ["-log1", "-log2"].map(|suffix| beside(store, suffix))
}

pub fn beside(store: &Path, suffix: &str) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// The batches that are not in the tables yet, oldest first. `applied` is the last one that is.
pub fn behind(store: &Path, epoch: &Epoch, applied: u64) -> Result<Vec<Batch>, Fault> {
    let mut batches = Vec::new();
    for path in paths(store) {
        batches.extend(file::read(&path, &epoch.0)?.into_iter().filter(|batch| batch.number > applied));
    }
    batches.sort_by_key(|batch| batch.number);
    let expected = applied + 1..;
    if let Some((batch, expected)) = batches.iter().zip(expected).find(|(batch, expected)| batch.number != *expected) {
        let [first, second] = paths(store).map(|path| path.display().to_string());
        return Err(Fault::new(format!(
            "the store's journal goes on at batch {}, but the store ends before batch {expected}: {} is older than its \
             journal. Put the right file back, or move {first} and {second} away to go on without what they hold",
            batch.number,
            store.display(),
        )));
    }
    Ok(batches)
}

/// Held by the one process that may write commits to a store.
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Drop for Lock {
    /// A file that was made only to be locked goes again.
    fn drop(&mut self) {
        if self.file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Lock {
    /// Waits a little for whoever holds it.
    pub fn take(store: &Path) -> Result<Self, Fault> {
        let started = Instant::now();
        loop {
            if let Some(lock) = Self::try_take(store)? {
                return Ok(lock);
            }
            if started.elapsed() >= PATIENCE {
                return Err(Fault::new(format!(
                    "the store {} is in use by another hub; stop that one, or name another directory with --data",
                    store.display()
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn try_take(store: &Path) -> Result<Option<Self>, Fault> {
        let [path, _] = paths(store);
        let failed = |error: std::io::Error| Fault::new(format!("locking the store with {}: {error}", path.display()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // Whoever held it before may have removed the file: a lock on what is no longer there locks nothing.
        let here = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let held = file.metadata().map(here).map_err(failed)?;
        let current = std::fs::metadata(&path).map(here).ok();
        Ok((current == Some(held)).then(|| Self { file, path }))
    }
}
