//! Puts commits from the journal into the tables: many at a time, when enough have come, when somebody wants to read, or
//! when the first of them has waited a little.

use super::checkpoint::Checkpoints;
use super::journal::entry::Entry;
use super::progress::Progress;
use super::{Sync, apply, fault};
use flotilla_core::error::Fault;
use metrics::{Histogram, histogram};
use rusqlite::Connection;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Commits are put into the tables when so many have gathered,
const MOST: usize = 4_096;
/// or so much,
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// or when the first of them has waited so long.
const OLDEST: Duration = Duration::from_millis(100);
/// What a task other than an apply is taken to write.
const TASK_BYTES: usize = 64 * 1024;
/// When there was nothing to do for so long, the tables are pressed onto the disk.
const PAUSE: Duration = Duration::from_secs(1);
/// And for so long after that: what is kept in memory to do it faster is given back.
const REST: Duration = Duration::from_secs(60);

/// Told why, if the tables do not hold what came before it.
pub type Task = Box<dyn FnOnce(Result<&mut Connection, Fault>) + Send>;

/// What there is to do. A batch does not wake the thread by itself: that would cost more than the batch.
#[derive(Default)]
pub struct Orders {
    list: Mutex<List>,
    changed: Condvar,
}

#[derive(Default)]
struct List {
    gathered: Gathered,
    /// The room of what was put into the tables last, for what gathers next.
    room: Vec<Entry>,
    /// Somebody waits for what has gathered.
    wanted: bool,
    tasks: Vec<Task>,
    ended: bool,
    closed: bool,
}

/// Commits that the journal holds and the tables do not.
#[derive(Default)]
struct Gathered {
    entries: Vec<Entry>,
    bytes: usize,
    /// The number of the last batch.
    through: u64,
    /// When the first of them came.
    since: Option<Instant>,
}

impl Orders {
    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().expect("no panic while holding the orders")
    }

    /// Adds a batch that the journal holds.
    pub fn gather(&self, entries: Vec<Entry>, bytes: usize, number: u64) {
        let mut list = self.list();
        let gathered = &mut list.gathered;
        gathered.entries.extend(entries);
        gathered.bytes += bytes;
        gathered.through = number;
        let first = gathered.since.is_none();
        gathered.since.get_or_insert_with(Instant::now);
        let wake = first || gathered.is_full();
        drop(list);
        if wake {
            self.changed.notify_one();
        }
    }

    /// Somebody waits for what has gathered.
    pub fn apply_now(&self) {
        self.list().wanted = true;
        self.changed.notify_one();
    }

    /// Anything else that must not run beside an apply, after what has gathered.
    pub fn run(&self, task: Task) {
        let mut list = self.list();
        if list.closed {
            drop(list);
            return task(Err(Fault::new("the store has stopped")));
        }
        list.tasks.push(task);
        drop(list);
        self.changed.notify_one();
    }

    /// Nobody does anything any more.
    fn close(&self) {
        let mut list = self.list();
        list.closed = true;
        let left = std::mem::take(&mut list.tasks);
        drop(list);
        left.into_iter().for_each(|task| task(Err(Fault::new("the store has stopped"))));
    }

    pub fn end(&self) {
        self.list().ended = true;
        self.changed.notify_one();
    }

    /// Keeps the room of what is in the tables: to make as much anew each time takes longer than to fill it.
    fn take_room(&self, mut entries: Vec<Entry>) {
        entries.clear();
        self.list().room = entries;
    }

    /// Gives back what nothing has gathered in.
    fn give_room_back(&self) {
        let mut list = self.list();
        let gathered = &mut list.gathered.entries;
        let unused = if gathered.is_empty() { std::mem::take(gathered) } else { Vec::new() };
        let room = std::mem::take(&mut list.room);
        drop(list);
        drop((unused, room));
    }

    /// Waits until there is something to do, or not longer than `patience` if nothing comes.
    fn next(&self, patience: Duration) -> Option<List> {
        let mut list = self.list();
        loop {
            let due = list.due_in();
            if due == Some(Duration::ZERO) {
                let entries = std::mem::take(&mut list.room);
                let gathered = Gathered { entries, ..Gathered::default() };
                return Some(std::mem::replace(&mut list, List { gathered, ..List::default() }));
            }
            let waited = self.changed.wait_timeout(list, due.unwrap_or(patience));
            let (after, waited) = waited.expect("no panic while holding the orders");
            if due.is_none() && waited.timed_out() && after.due_in().is_none() {
                return None;
            }
            list = after;
        }
    }
}

impl List {
    fn due_in(&self) -> Option<Duration> {
        if self.wanted || self.ended || !self.tasks.is_empty() || self.gathered.is_full() {
            return Some(Duration::ZERO);
        }
        self.gathered.since.map(|since| OLDEST.saturating_sub(since.elapsed()))
    }
}

impl Gathered {
    fn is_full(&self) -> bool {
        self.entries.len() >= MOST || self.bytes >= MOST_BYTES
    }

    fn add(&mut self, mut later: Self) {
        if self.entries.is_empty() {
            *self = later;
            return;
        }
        if !later.entries.is_empty() {
            self.entries.append(&mut later.entries);
            self.bytes += later.bytes;
            self.through = later.through;
        }
    }
}

pub struct Applier {
    pub orders: Arc<Orders>,
    /// Returns whether everything is in the tables and they are on the disk.
    pub thread: JoinHandle<bool>,
}

pub fn start(
    connection: Connection,
    sync: Sync,
    progress: Arc<Progress>,
    checkpoints: Checkpoints,
) -> Result<Applier, Fault> {
    connection.set_prepared_statement_cache_capacity(64);
    let orders = Arc::new(Orders::default());
    let apply_seconds = histogram!("flotilla_store_apply_seconds");
    let behind = Gathered::default();
    let mut desk = Desk {
        connection,
        sync,
        progress,
        checkpoints,
        behind,
        failing: false,
        apply_seconds,
        orders: Arc::clone(&orders),
    };
    let thread = std::thread::Builder::new()
        .name("store-tables".into())
        .spawn(move || desk.serve())
        .map_err(|error| Fault::new(format!("starting the thread for the tables: {error}")))?;
    Ok(Applier { orders, thread })
}

struct Desk {
    connection: Connection,
    sync: Sync,
    progress: Arc<Progress>,
    checkpoints: Checkpoints,
    /// What is being put into the tables.
    behind: Gathered,
    failing: bool,
    apply_seconds: Histogram,
    orders: Arc<Orders>,
}

impl Drop for Desk {
    /// Nobody waits for a thread that is gone.
    fn drop(&mut self) {
        self.progress.apply_failed(Fault::new("the store has stopped"));
        self.orders.close();
    }
}

impl Desk {
    fn serve(&mut self) -> bool {
        let orders = Arc::clone(&self.orders);
        let mut patience = Duration::MAX;
        loop {
            let Some(List { gathered, tasks, ended, .. }) = orders.next(patience) else {
                patience = self.rest(patience);
                continue;
            };
            patience = PAUSE;
            self.behind.add(gathered);
            let applied = self.apply();
            for task in tasks {
                match &applied {
                    Ok(()) => self.run(task),
                    Err(fault) => task(Err(fault.clone())),
                }
            }
            if ended {
                return applied.is_ok() && self.checkpoints.finish(&self.connection);
            }
            if applied.is_err() {
                orders.list().gathered.since.get_or_insert_with(Instant::now);
            }
        }
    }

    /// What cannot be put into the tables now is tried again: the journal holds it.
    fn apply(&mut self) -> Result<(), Fault> {
        if self.behind.entries.is_empty() {
            return Ok(());
        }
        let started = Instant::now();
        let applied = apply::apply(&self.connection, &self.behind.entries, self.behind.through);
        match &applied {
            Ok(()) => {
                self.failing = false;
                self.apply_seconds.record(started.elapsed().as_secs_f64());
                let Gathered { entries, bytes, through, .. } = std::mem::take(&mut self.behind);
                self.progress.apply_went_well(through, bytes);
                self.orders.take_room(entries);
                self.checkpoints.after(&self.connection, bytes);
            }
            Err(fault) => {
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::error!(%fault, "commits are in the journal but not in the tables; trying until they are");
                }
                self.progress.apply_failed(fault.clone());
            }
        }
        applied
    }

    /// There was nothing to do for `waited`. Returns how long to wait for something now.
    fn rest(&mut self, waited: Duration) -> Duration {
        if waited == PAUSE {
            self.checkpoints.complete(&self.connection);
            return REST;
        }
        self.orders.give_room_back();
        if let Err(error) = self.connection.execute_batch("PRAGMA shrink_memory") {
            tracing::warn!(%error, "giving back the tables' memory");
        }
        Duration::MAX
    }

    /// What is not in the journal is flushed by the tables' own log.
    fn run(&mut self, task: Task) {
        match flush(&self.connection, self.sync) {
            Ok(()) => task(Ok(&mut self.connection)),
            Err(fault) => task(Err(fault)),
        }
        self.checkpoints.after(&self.connection, TASK_BYTES);
        if let Err(fault) = flush(&self.connection, Sync::Normal) {
            tracing::warn!(%fault, "the tables are flushed more often than they need to be");
        }
    }
}

/// How transactions are flushed from now on.
fn flush(connection: &Connection, sync: Sync) -> Result<(), Fault> {
    let chosen = connection.execute_batch(&format!("PRAGMA synchronous = {}", sync.name()));
    chosen.map_err(fault("choosing how to flush"))
}
