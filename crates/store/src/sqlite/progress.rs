//! How far commits have come: written to the journal, put into the tables, and the tables pressed onto the disk.

use flotilla_core::error::Fault;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

#[derive(Default)]
pub struct Progress {
    /// The last batch that may be shown.
    written: AtomicU64,
    tables: Mutex<Tables>,
    moved: Condvar,
    /// The last batch that the tables on the disk hold.
    durable: AtomicU64,
}

#[derive(Default)]
struct Tables {
    applied: u64,
    /// Why the tables cannot be written at the moment.
    failing: Option<Fault>,
    /// What is written to the journal only.
    waiting_bytes: usize,
}

impl Tables {
    fn has_room(&self, most: usize) -> bool {
        self.waiting_bytes <= most && self.failing.is_none()
    }
}

impl Progress {
    pub fn starting_at(last: u64) -> Self {
        let tables = Mutex::new(Tables { applied: last, ..Tables::default() });
        Self { written: last.into(), tables, moved: Condvar::new(), durable: last.into() }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().expect("no panic while holding the progress")
    }

    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Counts a batch, before it is handed on to the tables.
    pub fn waits(&self, bytes: usize) {
        self.tables().waiting_bytes += bytes;
    }

    /// A batch may be shown: it has been handed on, so that who asks for it need only have it applied.
    pub fn wrote(&self, number: u64) {
        self.written.store(number, Ordering::Release);
    }

    pub fn applied(&self) -> u64 {
        self.tables().applied
    }

    pub fn apply_went_well(&self, through: u64, bytes: usize) {
        let mut tables = self.tables();
        tables.applied = through;
        tables.failing = None;
        tables.waiting_bytes = tables.waiting_bytes.saturating_sub(bytes);
        drop(tables);
        self.moved.notify_all();
    }

    pub fn apply_failed(&self, why: Fault) {
        self.tables().failing = Some(why);
        self.moved.notify_all();
    }

    pub fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    pub fn pressed(&self, through: u64) {
        self.durable.fetch_max(through, Ordering::AcqRel);
    }

    /// Waits until the tables hold a batch; says why not if they cannot be written.
    pub fn wait_applied(&self, number: u64) -> Result<(), Fault> {
        self.wait(|tables| tables.applied >= number)
    }

    /// Waits until no more than `most` bytes wait for the tables.
    pub fn wait_room(&self, most: usize) -> Result<(), Fault> {
        self.wait(|tables| tables.has_room(most))
    }

    pub fn has_room(&self, most: usize) -> bool {
        self.tables().has_room(most)
    }

    fn wait(&self, enough: impl Fn(&Tables) -> bool) -> Result<(), Fault> {
        let mut tables = self.tables();
        loop {
            if enough(&tables) {
                return Ok(());
            }
            if let Some(why) = &tables.failing {
                return Err(why.clone());
            }
            // Woken whenever something moves; the time is a net below that.
            let waited = self.moved.wait_timeout(tables, Duration::from_secs(1));
            tables = waited.expect("no panic while holding the progress").0;
        }
    }
}
