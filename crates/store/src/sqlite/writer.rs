//! The one writer: a thread that takes all waiting commits into one transaction, flushes, then tells each.

use super::checkpoint::Checkpoints;
use super::send::Sends;
use super::{fault, task};
use crate::herald::{Herald, Outcome};
use flotilla_core::error::Fault;
use flotilla_core::ports::{Commit, Later, NotCommitted};
use metrics::{Counter, Histogram, counter, histogram};
use rusqlite::{Connection, params};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::oneshot;

/// Most commits in one transaction.
const BATCH: usize = 256;
type Task = Box<dyn FnOnce(&mut Connection, &mut Sends) + Send>;

enum Job {
    Commit(Box<Commit>),
    /// Anything else that must not run beside a commit.
    Run(Task),
}

pub struct Writer {
    jobs: Option<Sender<Job>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub fn start(connection: Connection, checkpoints: Checkpoints) -> Result<Self, Fault> {
        let (jobs, inbox) = channel();
        let mut desk = Desk::new(connection, checkpoints);
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || desk.serve(&inbox))
            .map_err(|error| Fault::new(format!("starting the store's writer: {error}")))?;
        Ok(Self { jobs: Some(jobs), thread: Mutex::new(Some(thread)) })
    }

    pub fn commit(&self, commit: Commit) {
        if let Err(refused) = self.send(Job::Commit(Box::new(commit)))
            && let Job::Commit(commit) = refused
        {
            let stopped = NotCommitted::Failed(Fault::new("the store has stopped"));
            // Told from elsewhere: the caller may hold what it would need to hear it.
            std::thread::spawn(move || (commit.done)(Err(stopped)));
        }
    }

    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection, &mut Sends) -> Result<T, Fault> + Send + 'static,
    ) -> Later<T> {
        let (tell, told) = oneshot::channel();
        // If nobody waits for the answer any more, it is dropped.
        let task: Task = Box::new(move |connection, sends| drop(tell.send(job(connection, sends))));
        let sent = self.send(Job::Run(task)).is_ok();
        Box::pin(async move {
            let stopped = || Fault::new("the store has stopped");
            if !sent {
                return Err(stopped());
            }
            told.await.map_err(|_| stopped())?
        })
    }

    fn send(&self, job: Job) -> Result<(), Job> {
        match &self.jobs {
            Some(jobs) => jobs.send(job).map_err(|refused| refused.0),
            None => Err(job),
        }
    }
}

impl Drop for Writer {
    /// Lets the thread finish what it was given.
    fn drop(&mut self) {
        self.jobs = None;
        if let Ok(mut thread) = self.thread.lock()
            && let Some(thread) = thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

/// The writer thread's own things.
struct Desk {
    connection: Connection,
    sends: Sends,
    herald: Herald,
    checkpoints: Checkpoints,
    commits: Counter,
    batch_size: Histogram,
    commit_seconds: Histogram,
}

impl Desk {
    fn new(connection: Connection, checkpoints: Checkpoints) -> Self {
        connection.set_prepared_statement_cache_capacity(64);
        Self {
            connection,
            sends: Sends::default(),
            herald: Herald::new(),
            checkpoints,
            commits: counter!("flotilla_store_transactions_total"),
            batch_size: histogram!("flotilla_store_batch_commits"),
            commit_seconds: histogram!("flotilla_store_transaction_seconds"),
        }
    }

    fn serve(&mut self, inbox: &Receiver<Job>) {
        let mut waiting: Vec<Commit> = Vec::with_capacity(BATCH);
        while let Ok(job) = inbox.recv() {
            let mut next = Some(job);
            while let Some(job) = next.take() {
                match job {
                    Job::Commit(commit) => {
                        waiting.push(*commit);
                        if waiting.len() < BATCH {
                            next = inbox.try_recv().ok();
                        }
                    }
                    Job::Run(task) => {
                        self.commit_all(&mut waiting);
                        task(&mut self.connection, &mut self.sends);
                    }
                }
            }
            self.commit_all(&mut waiting);
        }
        Checkpoints::finish(&self.connection);
    }

    /// One transaction for all. If it fails as a whole, each is tried alone, so that one cannot sink the others.
    fn commit_all(&mut self, waiting: &mut Vec<Commit>) {
        if waiting.is_empty() {
            return;
        }
        let started = Instant::now();
        let results = match write_batch(&self.connection, &mut self.sends, waiting) {
            Ok(results) => results,
            Err(failed) if waiting.len() == 1 => vec![Err(NotCommitted::Failed(failed))],
            Err(_) => self.one_by_one(waiting),
        };
        self.commits.increment(1);
        self.batch_size.record(waiting.len() as f64);
        self.commit_seconds.record(started.elapsed().as_secs_f64());
        self.herald.announce(waiting.drain(..).map(|commit| commit.done).zip(results).collect());
        self.checkpoints.after_batch(&self.connection);
    }

    fn one_by_one(&mut self, waiting: &[Commit]) -> Vec<Outcome> {
        let alone = |one| match write_batch(&self.connection, &mut self.sends, one) {
            Ok(mut results) => results.pop().unwrap_or(Ok(())),
            Err(failed) => Err(NotCommitted::Failed(failed)),
        };
        waiting.chunks(1).map(alone).collect()
    }
}

/// One transaction, begun and ended by statements that are kept: parsing them anew would cost as much as a commit.
fn write_batch(connection: &Connection, sends: &mut Sends, batch: &[Commit]) -> Result<Vec<Outcome>, Fault> {
    let run = |sql| connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
    run("BEGIN IMMEDIATE").map_err(fault("beginning a transaction"))?;
    let written = write_all(connection, sends, batch).and_then(|results| {
        run("COMMIT").map_err(fault("committing"))?;
        Ok(results)
    });
    if written.is_ok() {
        sends.committed();
    } else {
        sends.rolled_back();
        // A transaction that failed may have ended itself already.
        if !connection.is_autocommit() {
            run("ROLLBACK").map_err(fault("rolling back"))?;
        }
    }
    written
}

fn write_all(connection: &Connection, sends: &mut Sends, batch: &[Commit]) -> Result<Vec<Outcome>, Fault> {
    let mut counts: HashMap<(i64, i64, u8), i64> = HashMap::new();
    let mut results = Vec::with_capacity(batch.len());
    for commit in batch {
        let result = task::write(connection, sends, commit)?;
        if result.is_ok() {
            let head = &commit.head;
            let mut count = |state, by| *counts.entry((head.principal.0, head.agent.0, state)).or_default() += by;
            if let Some(before) = commit.state_before {
                count(before, -1);
            }
            count(head.state_code(), 1);
        }
        results.push(result);
    }
    add_counts(connection, &counts)?;
    Ok(results)
}

/// The counters move in the same transaction as the tasks they count.
pub fn add_counts(connection: &Connection, counts: &HashMap<(i64, i64, u8), i64>) -> Result<(), Fault> {
    let mut statement = connection
        .prepare_cached(
            "INSERT INTO counters (principal, agent, state, n) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET n = n + excluded.n",
        )
        .map_err(fault("counting tasks"))?;
    for (&(principal, agent, state), &by) in counts.iter().filter(|(_, by)| **by != 0) {
        statement.execute(params![principal, agent, state, by]).map_err(fault("counting tasks"))?;
    }
    Ok(())
}
