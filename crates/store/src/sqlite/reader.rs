//! Readers: a few threads beside the writer, each with a connection of its own that sees only what is committed.
//!
//! As many as work at once on most machines: reads that come together wait in line for one, which costs less than a
//! connection for each, and a thread that finds the next read waiting need not be woken for it.

use super::fault;
use flotilla_core::error::Fault;
use flotilla_core::ports::Later;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// How many read at once.
pub const MOST: usize = 4;

type Job = Box<dyn FnOnce(Result<&mut Connection, Fault>) + Send>;

pub struct Readers(Arc<Desk>);

struct Desk {
    path: PathBuf,
    /// Threads at once.
    most: usize,
    line: Mutex<Line>,
    came: Condvar,
}

#[derive(Default)]
struct Line {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: Vec<JoinHandle<()>>,
    closed: bool,
}

impl Readers {
    pub fn new(path: PathBuf, most: usize) -> Self {
        Self(Arc::new(Desk { path, most, line: Mutex::default(), came: Condvar::new() }))
    }

    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Later<T> {
        let (answer, answered) = oneshot::channel();
        let queued = self.0.queue(Box::new(move |connection| {
            // Nobody waits for the answer any more.
            if !answer.is_closed() {
                let _ = answer.send(connection.and_then(job));
            }
        }));
        Box::pin(async move {
            queued?;
            answered.await.unwrap_or_else(|_| Err(Fault::new("reading the store: a read broke off")))
        })
    }
}

/// The last to close a store puts its files in order, and a reader cannot: all are gone before the writer goes.
impl Drop for Readers {
    fn drop(&mut self) {
        let threads = {
            let mut line = self.0.line();
            line.closed = true;
            std::mem::take(&mut line.threads)
        };
        self.0.came.notify_all();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Desk {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().expect("no panic while holding the readers' line")
    }

    fn queue(self: &Arc<Self>, job: Job) -> Result<(), Fault> {
        let mut line = self.line();
        if line.jobs.len() >= line.idle && line.threads.len() < self.most {
            match self.start() {
                Ok(thread) => line.threads.push(thread),
                // Those that are there do the work, only later.
                Err(why) if line.threads.is_empty() => return Err(why),
                Err(_) => {}
            }
        }
        line.jobs.push_back(job);
        let wake = line.idle > 0;
        drop(line);
        if wake {
            self.came.notify_one();
        }
        Ok(())
    }

    fn start(self: &Arc<Self>) -> Result<JoinHandle<()>, Fault> {
        let desk = Arc::clone(self);
        let thread = std::thread::Builder::new().name("reader".to_owned()).spawn(move || desk.work());
        thread.map_err(|error| Fault::new(format!("starting a reader of the store: {error}")))
    }

    fn work(&self) {
        let mut open_one = None;
        while let Some(job) = self.next() {
            if open_one.is_none() {
                open_one = match open(&self.path) {
                    Ok(connection) => Some(connection),
                    Err(why) => {
                        job(Err(why));
                        continue;
                    }
                };
            }
            let Some(connection) = open_one.as_mut() else { continue };
            // Whoever waits is told, as the answer's sender goes with the job; what it left behind is not read from.
            if catch_unwind(AssertUnwindSafe(|| job(Ok(connection)))).is_err() {
                open_one = None;
            }
        }
    }

    /// The next read; none when the store is closed.
    fn next(&self) -> Option<Job> {
        let mut line = self.line();
        loop {
            if let Some(job) = line.jobs.pop_front() {
                return Some(job);
            }
            if line.closed {
                return None;
            }
            line.idle += 1;
            line = self.came.wait(line).expect("no panic while holding the readers' line");
            line.idle -= 1;
        }
    }
}

pub fn open(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fault("opening the store to read"))?;
    connection
        .execute_batch("PRAGMA busy_timeout = 10000; PRAGMA cache_size = -4000; PRAGMA mmap_size = 268435456;")
        .map_err(fault("preparing a reader"))?;
    connection.set_prepared_statement_cache_capacity(32);
    plan_once(&connection)?;
    Ok(connection)
}

/// Reads in one transaction. Its two statements are prepared once for all reads, which a `Transaction` does not do.
pub fn at_one_moment<T>(
    connection: &mut Connection,
    job: impl FnOnce(&mut Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let run = |connection: &Connection, sql| connection.prepare_cached(sql).and_then(|mut cached| cached.execute([]));
    run(connection, "BEGIN").map_err(fault("beginning to read"))?;
    let answer = job(connection);
    let ended = run(connection, "COMMIT").or_else(|_| run(connection, "ROLLBACK"));
    ended.map_err(fault("ending to read"))?;
    answer
}

/// Without this, SQLite plans a statement anew for every value that could make a difference, as each 0 or 1 that a
/// column is compared with might: ids of callers and agents begin there.
pub fn plan_once(connection: &Connection) -> Result<(), Fault> {
    let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true);
    set.map(|_| ()).map_err(fault("having statements planned once"))
}

#[cfg(test)]
mod tests {
    use super::{MOST, Readers, open};
    use crate::sqlite::{Sync, open_file, schema};
    use flotilla_core::error::Fault;
    use rusqlite::{Connection, StatementStatus};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Barrier};

    fn store() -> (tempfile::TempDir, Readers) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (n); INSERT INTO t VALUES (7)").unwrap();
        (folder, Readers::new(path, MOST))
    }

    fn number(connection: &mut Connection) -> Result<i64, Fault> {
        connection.query_row("SELECT n FROM t", [], |row| row.get(0)).map_err(super::fault("reading"))
    }

    #[tokio::test]
    async fn reads_that_come_together_are_all_answered_by_a_few_at_once() {
        let (_folder, readers) = store();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let together = Arc::new(Barrier::new(MOST));
        let reads: Vec<_> = (0..50 * MOST)
            .map(|_| {
                let (now, most, together) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&together));
                readers.run(move |connection| {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    together.wait();
                    now.fetch_sub(1, Ordering::SeqCst);
                    number(connection)
                })
            })
            .collect();
        for read in reads {
            assert_eq!(read.await.unwrap(), 7);
        }
        assert_eq!(most.load(Ordering::SeqCst), MOST);
    }

    #[test]
    fn statements_are_planned_once_whatever_they_are_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut writing = open_file(&path, Sync::Full).unwrap();
        schema::migrate(&mut writing).unwrap();
        for connection in [writing, open(&path).unwrap()] {
            let listing = "SELECT id FROM tasks INDEXED BY tasks_by_status WHERE principal = ? AND agent = ? \
                           AND state = ? AND state BETWEEN 1 AND 8 ORDER BY status_at DESC, id DESC LIMIT 51";
            let mut statement = connection.prepare(listing).unwrap();
            for number in [1, 0, 7, 1] {
                assert!(!statement.exists([number, number, 3]).unwrap());
            }
            assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        }
    }

    #[tokio::test]
    async fn a_read_that_panics_says_so_and_harms_no_other() {
        let (_folder, readers) = store();
        for _ in 0..3 * MOST {
            let broken = readers.run(|_| -> Result<(), Fault> { panic!("on purpose") });
            assert!(broken.await.unwrap_err().to_string().contains("broke off"));
            assert_eq!(readers.run(number).await.unwrap(), 7);
        }
    }

    #[tokio::test]
    async fn a_store_that_cannot_be_opened_is_told_and_read_once_it_can() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let readers = Readers::new(path.clone(), MOST);
        assert!(readers.run(number).await.unwrap_err().to_string().contains("opening the store to read"));
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (n); INSERT INTO t VALUES (7)").unwrap();
        assert_eq!(readers.run(number).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_read_nobody_waits_for_is_left_out_and_closing_waits_for_those_under_way() {
        let (_folder, readers) = store();
        let (gate, ran) = (Arc::new(Barrier::new(MOST + 1)), Arc::new(AtomicUsize::new(0)));
        let busy: Vec<_> = (0..MOST)
            .map(|_| {
                let gate = Arc::clone(&gate);
                readers.run(move |_| {
                    gate.wait();
                    Ok(())
                })
            })
            .collect();
        let counted = |ran: &Arc<AtomicUsize>| {
            let ran = Arc::clone(ran);
            readers.run(move |_| Ok(ran.fetch_add(1, Ordering::SeqCst)))
        };
        drop(counted(&ran));
        let kept = counted(&ran);
        gate.wait();
        for read in busy {
            read.await.unwrap();
        }
        kept.await.unwrap();
        drop(readers);
        assert_eq!(ran.load(Ordering::SeqCst), 1);
    }
}
