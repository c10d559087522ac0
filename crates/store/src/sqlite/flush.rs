//! Flushing: what the writer has committed is pressed onto the disk beside it, and only then told.
//!
//! SQLite would do both in one step and let the writer wait for the disk. Here it is at work on the next batch
//! meanwhile: a batch is told when the write-ahead log up to it is flushed, and reads wait for the same.

use crate::herald::{Herald, Outcome};
use flotilla_core::error::Fault;
use flotilla_core::ports::{Done, NotCommitted};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use tokio::sync::watch;

/// Tells who asked for something else than a commit.
pub type Tell = Box<dyn FnOnce(Result<(), Fault>) + Send>;

/// What is told once the flush is done, in the order it was written.
pub enum Told {
    Commits(Vec<(Done, Outcome)>),
    Job(Tell),
}

/// Numbers of batches: reads wait until those they may have seen are flushed.
#[derive(Clone)]
pub struct Progress {
    begun: Arc<AtomicU64>,
    flushed: watch::Sender<Flushed>,
}

#[derive(Clone, Default)]
struct Flushed {
    batch: u64,
    /// Why nothing later will ever be flushed.
    broken: Option<Fault>,
}

impl Progress {
    fn new() -> Self {
        Self { begun: Arc::default(), flushed: watch::Sender::new(Flushed::default()) }
    }

    /// Waits until all that was begun before this call is flushed.
    pub async fn caught_up(&self) -> Result<(), Fault> {
        let begun = self.begun.load(Ordering::SeqCst);
        let settled = |flushed: &Flushed| flushed.batch >= begun;
        if settled(&self.flushed.borrow()) {
            return Ok(());
        }
        let mut flushed = self.flushed.subscribe();
        let flushed = flushed.wait_for(|flushed| settled(flushed) || flushed.broken.is_some()).await;
        match flushed.map_err(|_| Fault::new("the store has stopped"))?.broken.clone() {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }
}

#[derive(Default)]
struct Slot {
    waiting: Vec<Told>,
    /// Whether anything was written since the last flush began.
    dirty: bool,
    /// The last batch among what is waiting.
    batch: u64,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    slot: Mutex<Slot>,
    /// Something was given, taken, or will not come any more.
    changed: Condvar,
}

impl Shared {
    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().expect("no panic while holding the slot")
    }
}

pub struct Flusher {
    shared: Arc<Shared>,
    progress: Progress,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    /// `log` is the write-ahead log to flush; none if the disk may lose the last commits.
    pub fn start(log: Option<&Path>) -> Result<Self, Fault> {
        let failed = |error: std::io::Error| Fault::new(format!("opening the store's log to flush it: {error}"));
        let log = log.map(File::open).transpose().map_err(failed)?;
        let (shared, progress) = (Arc::<Shared>::default(), Progress::new());
        let work = Work { log, herald: Herald::new(), shared: Arc::clone(&shared), flushed: progress.flushed.clone() };
        let thread = std::thread::Builder::new()
            .name("store-flush".into())
            .spawn(move || work.serve())
            .map_err(|error| Fault::new(format!("starting the store's flusher: {error}")))?;
        Ok(Self { shared, progress, thread: Some(thread) })
    }

    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// A batch begins: from now on a read may see what is not flushed yet.
    pub fn begin(&self) {
        self.progress.begun.fetch_add(1, Ordering::SeqCst);
    }

    /// Hands over what is to be told after the next flush.
    pub fn give(&self, told: Told, dirty: bool) {
        let mut slot = self.shared.slot();
        slot.waiting.push(told);
        slot.dirty |= dirty;
        slot.batch = self.progress.begun.load(Ordering::SeqCst);
        drop(slot);
        self.shared.changed.notify_all();
    }

    /// Waits until what was given is being flushed: commits that come meanwhile share the next batch.
    pub fn taken(&self) {
        let slot = self.shared.slot();
        let waited = self.shared.changed.wait_while(slot, |slot| !slot.waiting.is_empty());
        drop(waited.expect("no panic while holding the slot"));
    }
}

impl Drop for Flusher {
    /// Lets the thread flush and tell what it was given.
    fn drop(&mut self) {
        self.shared.slot().closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The flushing thread's own things.
struct Work {
    log: Option<File>,
    herald: Herald,
    shared: Arc<Shared>,
    flushed: watch::Sender<Flushed>,
}

impl Work {
    fn serve(self) {
        // A flush that failed once cannot be trusted to succeed later: what it should have kept may be gone.
        let mut broken: Option<Fault> = None;
        while let Some((waiting, batch, dirty)) = self.next() {
            if dirty && broken.is_none() {
                broken = self.flush().err();
            }
            self.flushed.send_modify(|flushed| match &broken {
                None => flushed.batch = batch,
                Some(fault) => flushed.broken = Some(fault.clone()),
            });
            for told in waiting {
                self.tell(told, broken.as_ref());
            }
        }
    }

    fn next(&self) -> Option<(Vec<Told>, u64, bool)> {
        let slot = self.shared.slot();
        let idle = |slot: &mut Slot| slot.waiting.is_empty() && !slot.closed;
        let mut slot = self.shared.changed.wait_while(slot, idle).expect("no panic while holding the slot");
        if slot.waiting.is_empty() {
            return None;
        }
        let taken = (std::mem::take(&mut slot.waiting), slot.batch, std::mem::take(&mut slot.dirty));
        drop(slot);
        self.shared.changed.notify_all();
        Some(taken)
    }

    fn flush(&self) -> Result<(), Fault> {
        let Some(log) = &self.log else { return Ok(()) };
        log.sync_data().map_err(|error| {
            tracing::error!(%error, "flushing the store; nothing more is kept until the hub is started again");
            Fault::new(format!("flushing the store: {error}"))
        })
    }

    fn tell(&self, told: Told, broken: Option<&Fault>) {
        match (told, broken) {
            (Told::Commits(batch), None) => self.herald.announce(batch),
            (Told::Commits(batch), Some(fault)) => {
                let lost = |(done, _)| (done, Err(NotCommitted::Failed(fault.clone())));
                self.herald.announce(batch.into_iter().map(lost).collect());
            }
            (Told::Job(tell), None) => tell(Ok(())),
            (Told::Job(tell), Some(fault)) => tell(Err(fault.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Flusher, Told};
    use flotilla_core::error::Fault;
    use flotilla_core::ports::NotCommitted;
    use std::path::Path;
    use std::sync::mpsc::channel;

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_not_flushed_is_not_told_as_kept() {
        // A device that cannot be flushed stands for a disk that fails.
        let flusher = Flusher::start(Some(Path::new("/dev/null"))).expect("a flusher");
        let progress = flusher.progress();
        progress.caught_up().await.expect("nothing was begun");
        let (tell, told) = channel();
        flusher.begin();
        let done = Box::new(move |outcome| {
            let _ = tell.send(matches!(outcome, Err(NotCommitted::Failed(_))));
        });
        flusher.give(Told::Commits(vec![(done, Ok(()))]), true);
        assert!(told.recv().expect("told"), "the commit is not acknowledged");
        progress.caught_up().await.expect_err("and nobody may read it");
        let (tell, told) = channel();
        flusher.begin();
        let job = Box::new(move |flushed: Result<(), Fault>| tell.send(flushed.is_err()).expect("heard"));
        flusher.give(Told::Job(job), false);
        assert!(told.recv().expect("told"), "nothing works after that: the hub says that it is not ready");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_waits_is_told_before_the_flusher_goes() {
        let flusher = Flusher::start(None).expect("a flusher");
        let (tell, told) = channel();
        for number in 0..100 {
            let tell = tell.clone();
            flusher.begin();
            let job = move |flushed: Result<(), Fault>| tell.send((number, flushed.is_ok())).expect("heard");
            flusher.give(Told::Job(Box::new(job)), true);
        }
        drop(flusher);
        let told: Vec<(i32, bool)> = told.try_iter().collect();
        assert_eq!(told, (0..100).map(|number| (number, true)).collect::<Vec<_>>());
    }
}
