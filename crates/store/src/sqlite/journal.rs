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
pub use batch::Batch;
use entry::Entry;
pub use file::BLOCK;
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
    epoch: Epoch,
    scratch: Vec<u8>,
    /// The last batch was not taken: the next one has its number, and must have its place.
    refused: bool,
    lock: Lock,
}

impl Journal {
    /// Begins a journal behind the batch `last`. All before it must be in the tables, and they on the disk.
    pub fn begin(store: &Path, sync: Sync, epoch: &Epoch, last: u64, lock: Lock) -> Result<Self, Fault> {
        let [first, second] = paths(store);
        let mut files = [Blocks::open(&first, sync)?, Blocks::open(&second, sync)?];
        files[0].begin(&epoch.0)?;
        if sync == Sync::Full {
            flush_names(store)?;
        }
        Ok(Self { files, active: 0, next: last + 1, epoch: epoch.clone(), scratch: Vec::new(), refused: false, lock })
    }

    /// Writes a batch and returns its number. `durable` is the last one that the tables on the disk hold.
    pub fn append(&mut self, entries: &[Entry], durable: u64) -> Result<u64, Fault> {
        let number = self.next;
        batch::encode(number, entries, &mut self.scratch);
        let other = 1 - self.active;
        let full = self.files[self.active].end() + self.scratch.len() > TURN;
        if full && !self.refused && self.files[other].last <= durable {
            self.files[other].begin(&self.epoch.0)?;
            self.active = other;
        }
        let file = &mut self.files[self.active];
        batch::seal(&mut self.scratch, file.salt);
        let appended = file.append(number, &self.scratch);
        self.refused = appended.is_err();
        appended?;
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
    let (mut batches, mut loose) = (Vec::new(), false);
    for path in paths(store) {
        let mut contents = file::read(&path, &epoch.0, applied)?;
        loose |= contents.loose && !contents.batches.is_empty();
        batches.append(&mut contents.batches);
    }
    batches.sort_by_key(|batch| batch.number);
    let whole = batches.iter().zip(applied + 1..).take_while(|(batch, expected)| batch.number == *expected).count();
    if let Some(batch) = batches.get(whole) {
        if !loose {
            return Err(gap(store, batch.number, applied + whole as u64 + 1));
        }
        tracing::warn!(
            after = applied + whole as u64,
            "the last commits before a power cut are lost: store.sync is normal"
        );
        batches.truncate(whole);
    }
    Ok(batches)
}

fn gap(store: &Path, found: u64, expected: u64) -> Fault {
    let [first, second] = paths(store).map(|path| path.display().to_string());
    Fault::new(format!(
        "the store's journal goes on at batch {found}, but the store ends before batch {expected}: {} is older than its \
         journal. Put the right file back, or move {first} and {second} away to go on without what they hold",
        store.display(),
    ))
}

/// Held by the one process that may write commits to a store.
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Drop for Lock {
    /// A file that was made only to be locked goes again; not one that took its place.
    fn drop(&mut self) {
        if self.file.metadata().is_ok_and(|metadata| metadata.len() == 0) && self.is_there() {
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
                    "the store {} is in use by another hub; stop that one, or name another directory with --data-dir",
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
        let lock = Self { file, path };
        Ok(lock.is_there().then_some(lock))
    }

    fn is_there(&self) -> bool {
        let here = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let held = self.file.metadata().map(here);
        let current = std::fs::metadata(&self.path).map(here);
        matches!((held, current), (Ok(held), Ok(current)) if held == current)
    }
}
