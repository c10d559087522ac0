//! Checkpoints: moving what is in the write-ahead log into the database file, mostly beside the writer.
//!
//! The bulk is copied and flushed by a thread of its own while commits go on. What came meanwhile is little; the writer
//! copies that itself between two batches, and so the write-ahead log can start over.

use flotilla_core::error::Fault;
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// Batches between checkpoints.
const BATCHES: u32 = 1_000;

pub struct Checkpoints {
    batches: u32,
    /// Asks the thread for a checkpoint.
    ask: Option<Sender<()>>,
    done: Arc<AtomicBool>,
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
    pub fn beside(path: &Path) -> Result<Self, Fault> {
        let connection = Connection::open(path).map_err(super::fault("opening the store for checkpoints"))?;
        connection
            .execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -256;")
            .map_err(super::fault("preparing checkpoints"))?;
        let (ask, asked) = channel();
        let done = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&done);
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".into())
            .spawn(move || {
                while asked.recv().is_ok() {
                    run(&connection);
                    told.store(true, Ordering::Release);
                }
            })
            .map_err(|error| Fault::new(format!("starting the checkpoint thread: {error}")))?;
        Ok(Self { batches: 0, ask: Some(ask), done, thread: Some(thread) })
    }

    /// Called by the writer after each batch.
    pub fn after_batch(&mut self, connection: &Connection) {
        if self.done.swap(false, Ordering::Acquire) {
            run(connection);
            self.batches = 0;
        }
        self.batches += 1;
        if self.batches == BATCHES
            && let Some(ask) = &self.ask
        {
            // If the thread is gone, the log only grows until the next start.
            let _ = ask.send(());
        }
    }

    /// The last act of a writer that stops.
    pub fn finish(connection: &Connection) {
        run(connection);
    }
}

/// Copies what can be copied without waiting for anybody.
fn run(connection: &Connection) {
    if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
        tracing::warn!(%error, "checkpointing the store");
    }
}
