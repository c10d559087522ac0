//! Checkpoints: pressing the tables onto the disk, and moving what is in their write-ahead log into the database file.
//!
//! The bulk is done by a thread of its own while commits go on. What came meanwhile is little; the writer of the tables
//! copies that itself, and so the write-ahead log can start over.

use super::journal::beside;
use super::progress::Progress;
use flotilla_core::error::Fault;
use rusqlite::Connection;
use rusqlite::ffi::SQLITE_IOERR_FSYNC;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// Transactions between checkpoints, at most.
const TRANSACTIONS: u32 = 1_000;
/// About how much goes into the tables between checkpoints.
const BYTES: usize = 12 * 1024 * 1024;

pub struct Checkpoints {
    transactions: u32,
    bytes: usize,
    asked: bool,
    /// Asks the thread for a checkpoint.
    ask: Option<Sender<()>>,
    done: Arc<AtomicBool>,
    /// The disk has refused something, so what was pressed before it may not be there: the journal is kept.
    failed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Checkpoints {
    /// When this is gone, so is the thread's connection: the last one to close puts the files in order.
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Checkpoints {
    pub fn of(path: &Path, progress: Arc<Progress>) -> Result<Self, Fault> {
        let connection = Connection::open(path).map_err(super::fault("opening the store for checkpoints"))?;
        connection
            .execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -256;")
            .map_err(super::fault("preparing checkpoints"))?;
        let (ask, asked) = channel();
        let done = Arc::new(AtomicBool::new(false));
        let failed = Arc::new(AtomicBool::new(false));
        let (told, fails, path) = (Arc::clone(&done), Arc::clone(&failed), path.to_owned());
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".into())
            .spawn(move || {
                let mut presser = Presser { path, log: None, failed: fails };
                while asked.recv().is_ok() {
                    let applied = progress.applied();
                    if presser.press() {
                        progress.pressed(applied);
                    }
                    copy(&connection, &presser.failed);
                    told.store(true, Ordering::Release);
                }
            })
            .map_err(|error| Fault::new(format!("starting the checkpoint thread: {error}")))?;
        Ok(Self { transactions: 0, bytes: 0, asked: false, ask: Some(ask), done, failed, thread: Some(thread) })
    }

    /// Called after each transaction of so many bytes.
    pub fn after(&mut self, connection: &Connection, bytes: usize) {
        self.complete(connection);
        self.transactions += 1;
        self.bytes += bytes;
        if !self.asked
            && (self.transactions >= TRANSACTIONS || self.bytes >= BYTES)
            && let Some(ask) = &self.ask
        {
            self.asked = true;
            // If the thread is gone, the logs only grow until the next start.
            let _ = ask.send(());
        }
    }

    /// Copies what came while the thread was at it.
    pub fn complete(&mut self, connection: &Connection) {
        if self.done.swap(false, Ordering::Acquire) {
            copy(connection, &self.failed);
            (self.transactions, self.bytes, self.asked) = (0, 0, false);
        }
    }

    /// The last act of a writer that stops. Returns whether all is on the disk.
    pub fn finish(&self, connection: &Connection) -> bool {
        copy(connection, &self.failed);
        let path = connection.path().map(PathBuf::from);
        path.is_some_and(|path| press(&path).inspect_err(warn).is_ok()) && !self.failed.load(Ordering::Acquire)
    }
}

/// Presses the tables' write-ahead log onto the disk, through one descriptor: a system reports an error of writing only
/// once to each. After one, nothing is known of what came before, and the journal is kept until the next start.
struct Presser {
    path: PathBuf,
    log: Option<File>,
    failed: Arc<AtomicBool>,
}

impl Presser {
    fn press(&mut self) -> bool {
        if self.log.is_none() {
            self.log = File::open(beside(&self.path, "-wal")).ok();
        }
        let Some(log) = &self.log else { return false };
        if let Err(error) = log.sync_data() {
            note_failure(&self.failed, &error);
        }
        !self.failed.load(Ordering::Acquire)
    }
}

fn note_failure(failed: &AtomicBool, error: &dyn std::error::Error) {
    if !failed.swap(true, Ordering::AcqRel) {
        tracing::error!(%error, "the tables cannot be flushed; the journal is kept until the hub is started again");
    }
}

fn warn(fault: &Fault) {
    tracing::warn!(%fault, "pressing the tables onto the disk");
}

/// Flushes the tables' write-ahead log: what was committed to them is on the disk then, there or in the database file.
pub fn press(store: &Path) -> Result<(), Fault> {
    let path = beside(store, "-wal");
    match File::open(&path).and_then(|log| log.sync_data()) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Fault::new(format!("flushing {}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

/// Copies what can be copied without waiting for anybody. A disk that is full keeps the copy from being made, and loses
/// nothing; only a flush that failed does.
fn copy(connection: &Connection, failed: &AtomicBool) {
    match connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
        Ok(()) => {}
        Err(error) if error.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_IOERR_FSYNC) => {
            note_failure(failed, &error);
        }
        Err(error) => tracing::warn!(%error, "checkpointing the store"),
    }
}
