//! The one writer: checks all waiting commits, flushes them to the journal together, then tells each. It is a thread,
//! and for a commit that comes alone whoever made it.

use super::applier::Applier;
use super::courtesy::Courtesy;
use super::journal::entry::Entry;
use super::journal::{BLOCK, Journal};
use super::known::Known;
use super::progress::Progress;
use super::queue::{Job, Queue};
use super::send::{self, Sends};
use super::sweep;
use crate::herald::{self, Herald, Outcome};
use flotilla_core::error::Fault;
use flotilla_core::ids::TaskId;
use flotilla_core::ports::{Commit, Dedupe, Digest, Done, Later, NotCommitted, Retention, Sent, Swept};
use metrics::{Counter, Histogram, counter, histogram};
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Most commits in one batch.
const BATCH: usize = 256;
/// A batch is flushed when it holds so much.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// How much may wait to be put into the tables.
const WAITING_BYTES: usize = 32 * 1024 * 1024;

pub struct Writer {
    queue: Arc<Queue>,
    place: Place,
    herald: Herald,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Between the thread and those who make commits. Empty once the thread has cleared it away.
type Place = Arc<Mutex<Option<Desk>>>;

impl Writer {
    pub fn start(desk: Desk) -> Result<Self, Fault> {
        // With one worker all else would wait for the disk too.
        let makers_wait = Handle::try_current().is_ok_and(|runtime| runtime.metrics().num_workers() > 1);
        let queue = Arc::new(Queue::new(makers_wait));
        let herald = desk.herald.clone();
        let place = Arc::new(Mutex::new(Some(desk)));
        let (jobs, desk) = (Arc::clone(&queue), Arc::clone(&place));
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || serve(&jobs, &desk))
            .map_err(|error| Fault::new(format!("starting the store's writer: {error}")))?;
        Ok(Self { queue, place, herald, thread: Mutex::new(Some(thread)) })
    }

    /// True if whoever made it has to attend to it.
    pub fn commit(&self, commit: Commit) -> bool {
        match self.queue.push(Job::Commit(Box::new(commit))) {
            Ok(is_makers) => is_makers,
            Err(Job::Commit(commit)) => {
                let stopped = NotCommitted::Failed(Fault::new("the store has stopped"));
                // Told from elsewhere: the caller may hold what it would need to hear it.
                std::thread::spawn(move || (commit.done)(Err(stopped)));
                false
            }
            Err(_) => false,
        }
    }

    /// The part of whoever made a commit that came alone.
    pub fn attend(&self) {
        let end = AtEnd(&self.queue, false);
        let told = with(&self.place, |desk| desk.serve_quickly(&self.queue));
        // Not at the desk: whoever is told may drop the store, which waits for the desk to be cleared.
        self.herald.tell(told.unwrap_or_default());
        drop(end);
        self.queue.hand_over();
    }

    /// Changes the tables, after all commits made before.
    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Later<T> {
        let (tell, told) = oneshot::channel();
        // If nobody waits for the answer any more, it is dropped.
        self.later(Job::Run(Box::new(move |tables| drop(tell.send(tables.and_then(job))))), told)
    }

    pub fn sent(&self, key: Digest) -> Later<Option<Sent>> {
        self.errand(move |desk| desk.sent(&key))
    }

    pub fn sweep(&self, retention: Retention) -> Later<Swept> {
        self.errand(move |desk| desk.sweep(retention))
    }

    fn errand<T: Send + 'static>(&self, job: impl FnOnce(&mut Desk) -> Result<T, Fault> + Send + 'static) -> Later<T> {
        let (tell, told) = oneshot::channel();
        self.later(Job::Errand(Box::new(move |desk| drop(tell.send(job(desk))))), told)
    }

    fn later<T: Send + 'static>(&self, job: Job, told: oneshot::Receiver<Result<T, Fault>>) -> Later<T> {
        let sent = self.queue.push(job).is_ok();
        Box::pin(async move {
            let stopped = || Fault::new("the store has stopped");
            if !sent {
                return Err(stopped());
            }
            told.await.map_err(|_| stopped())?
        })
    }
}

impl Drop for Writer {
    /// Lets the thread finish what it was given.
    fn drop(&mut self) {
        self.queue.close();
        if let Ok(mut thread) = self.thread.lock()
            && let Some(thread) = thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

/// The thread's part.
fn serve(queue: &Queue, place: &Place) {
    let _end = AtEnd(queue, true);
    // Not before the store is open: there may be many.
    let mut ready = with(place, Desk::load_sends).unwrap_or(false);
    while ready && queue.wait_turn() {
        ready = with(place, |desk| desk.serve(queue)).is_some();
    }
    if let Some(desk) = place.lock().ok().and_then(|mut place| place.take()) {
        desk.finish();
    }
}

/// None if there is no desk any more.
fn with<T>(place: &Place, work: impl FnOnce(&mut Desk) -> T) -> Option<T> {
    place.lock().ok()?.as_mut().map(work)
}

/// Nobody waits for a writer that is gone, whichever part of it failed.
struct AtEnd<'a>(&'a Queue, bool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        if self.1 || std::thread::panicking() {
            self.0.abandon();
        }
    }
}

/// What the writer works with, whoever it is.
pub struct Desk {
    /// None for a tool: it changes tables, but makes no commits.
    journal: Option<Journal>,
    tables: Applier,
    progress: Arc<Progress>,
    /// To look up what memory does not know.
    connection: Connection,
    known: Known,
    sends: Sends,
    herald: Herald,
    batch: Batch,
    courtesy: Courtesy,
    flushes: Counter,
    batch_size: Histogram,
    flush_seconds: Histogram,
}

/// Commits on their way to the journal.
#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    /// How to take each of them back: its task's version before it.
    before: Vec<(TaskId, u64)>,
    bytes: usize,
    /// Whom to tell, in the order they came; what is refused already is not among the entries.
    told: Vec<(Done, Option<NotCommitted>)>,
}

impl Batch {
    /// With room for as many as this one holds: the next one is likely to be as large.
    fn next(&self) -> Self {
        Self {
            entries: Vec::with_capacity(self.entries.len()),
            before: Vec::with_capacity(self.before.len()),
            bytes: 0,
            told: Vec::with_capacity(self.told.len()),
        }
    }
}

impl Desk {
    pub fn new(
        journal: Option<Journal>,
        tables: Applier,
        progress: Arc<Progress>,
        connection: Connection,
    ) -> Result<Self, Fault> {
        Ok(Self {
            journal,
            tables,
            progress,
            known: Known::new(&connection)?,
            sends: Sends::default(),
            connection,
            herald: Herald::new(),
            batch: Batch::default(),
            courtesy: Courtesy::new(Instant::now()),
            flushes: counter!("flotilla_store_flushes_total"),
            batch_size: histogram!("flotilla_store_batch_commits"),
            flush_seconds: histogram!("flotilla_store_flush_seconds"),
        })
    }

    fn load_sends(&mut self) -> bool {
        match Sends::load(&self.connection) {
            Ok(sends) => self.sends = sends,
            Err(fault) => {
                tracing::error!(%fault, "the store takes no commits");
                return false;
            }
        }
        true
    }

    /// Until nothing waits.
    fn serve(&mut self, queue: &Queue) {
        self.courtesy.give_way();
        while let Some(job) = queue.take() {
            match job {
                Job::Commit(commit) => {
                    self.take(*commit);
                    if self.batch.told.len() < BATCH && self.batch.bytes < BATCH_BYTES {
                        continue;
                    }
                    self.flush();
                }
                Job::Errand(errand) => {
                    self.flush();
                    errand(self);
                }
                Job::Run(task) => {
                    self.flush();
                    self.tables.orders.run(task);
                }
            }
        }
        self.flush();
    }

    /// Flushes what waits now, as far as it need not wait for more than the disk.
    fn serve_quickly(&mut self, queue: &Queue) -> herald::Batch {
        if !self.progress.has_room(WAITING_BYTES) {
            return Vec::new();
        }
        while self.batch.told.len() < BATCH
            && self.batch.bytes < BATCH_BYTES
            && let Some(commit) = queue.take_quick(|commit| !self.may_be_known(commit))
        {
            self.take(*commit);
        }
        self.keep()
    }

    /// Whether tables have to be asked about it.
    fn may_be_known(&self, commit: &Commit) -> bool {
        commit.dedupe.as_ref().is_some_and(|dedupe| self.sends.row(&dedupe.key).is_some())
    }

    fn finish(self) {
        let Self { journal, tables, connection, .. } = self;
        let path = connection.path().map(PathBuf::from);
        drop(connection);
        tables.orders.end();
        let all_kept = tables.thread.join().unwrap_or(false);
        if let (true, Some(journal), Some(path)) = (all_kept, journal, path) {
            journal.remove(&path);
        }
    }

    /// Checks a commit and puts it into the batch.
    fn take(&mut self, mut commit: Commit) {
        let refused = self.check(&mut commit).err();
        self.batch.told.push((commit.done, refused));
    }

    fn check(&mut self, commit: &mut Commit) -> Outcome {
        let (id, version) = (commit.head.id, commit.head.version);
        if let Some(Dedupe { key, .. }) = &commit.dedupe
            && let Some(sent) = self.sent(key).map_err(NotCommitted::Failed)?
        {
            return Err(NotCommitted::Duplicate(sent));
        }
        let before = self.known.version(&self.connection, id).map_err(NotCommitted::Failed)?;
        if before + 1 != version {
            return Err(NotCommitted::Stale);
        }
        let entry = Entry::of(commit, |dedupe| self.sends.add(&dedupe.key)).map_err(NotCommitted::Failed)?;
        self.known.set(id, version);
        self.batch.bytes += entry.size();
        self.batch.before.push((id, before));
        self.batch.entries.push(entry);
        Ok(())
    }

    /// Flushes the batch, hands it on to the tables, and tells everybody.
    fn flush(&mut self) {
        let told = self.keep();
        self.herald.announce(told);
    }

    /// Flushes the batch and hands it on to the tables; nobody has been told yet.
    fn keep(&mut self) -> herald::Batch {
        if self.batch.told.is_empty() {
            return Vec::new();
        }
        let started = Instant::now();
        let next = self.batch.next();
        let Batch { entries, before, bytes, told } = std::mem::replace(&mut self.batch, next);
        let count = entries.len();
        self.courtesy.last_batch = count;
        // As many as the journal takes for it, so that what is counted is also what its files hold.
        let bytes = bytes.next_multiple_of(BLOCK);
        let written = if entries.is_empty() { Ok(()) } else { self.write(entries, &before, bytes) };
        if count > 0 && written.is_ok() {
            self.flushes.increment(1);
            self.batch_size.record(count as f64);
            self.flush_seconds.record(started.elapsed().as_secs_f64());
        }
        let outcome = |refused: Option<NotCommitted>| match (refused, &written) {
            (Some(refused), _) => Err(refused),
            (None, Err(fault)) => Err(NotCommitted::Failed(fault.clone())),
            (None, Ok(())) => Ok(()),
        };
        told.into_iter().map(|(done, refused)| (done, outcome(refused))).collect()
    }

    fn write(&mut self, entries: Vec<Entry>, before: &[(TaskId, u64)], bytes: usize) -> Result<(), Fault> {
        let room = self.progress.wait_room(WAITING_BYTES);
        match room.and_then(|()| self.append(&entries)) {
            Ok(number) => {
                self.progress.waits(bytes);
                self.tables.orders.gather(entries, bytes, number);
                self.progress.wrote(number);
                Ok(())
            }
            Err(fault) => {
                self.take_back(&entries, before);
                Err(fault)
            }
        }
    }

    fn append(&mut self, entries: &[Entry]) -> Result<u64, Fault> {
        let journal = self.journal.as_mut().ok_or_else(|| Fault::new("a tool makes no commits"))?;
        journal.append(entries, self.progress.durable())
    }

    /// As if they had never come.
    fn take_back(&mut self, entries: &[Entry], before: &[(TaskId, u64)]) {
        for (entry, (id, version)) in entries.iter().zip(before).rev() {
            if let Some(send) = &entry.send {
                self.sends.take_back(&send.dedupe.key);
            }
            match version {
                0 => self.known.forget(*id),
                _ => self.known.set(*id, *version),
            }
        }
    }

    /// A key that was used before is rare: then what is on its way to the tables is waited for.
    fn sent(&mut self, key: &Digest) -> Result<Option<Sent>, Fault> {
        let Some(row) = self.sends.row(key) else { return Ok(None) };
        self.flush();
        self.tables.orders.apply_now();
        self.progress.wait_applied(self.progress.written())?;
        send::find(&self.connection, row, key)
    }

    /// Nothing is accepted meanwhile, so that what is removed is not changed.
    fn sweep(&mut self, retention: Retention) -> Result<Swept, Fault> {
        let (tell, told) = channel();
        let job = move |tables: &mut Connection| sweep::sweep(tables, &retention);
        self.tables.orders.run(Box::new(move |tables| drop(tell.send(tables.and_then(job)))));
        let removed = told.recv().map_err(|_| Fault::new("the store has stopped"))??;
        removed.tasks.iter().for_each(|id| self.known.forget(*id));
        self.sends.forget(&removed.sends);
        Ok(removed.swept)
    }
}
