//! What waits for the writer, and whose turn it is to see to it: the writer's thread or, for a commit that comes alone,
//! whoever made it.
//!
//! To wake a thread and to be woken by it takes nearly as long as the flush itself. So while commits come one by one,
//! each is flushed by the task that brought it. Once one comes while another is under way, it is the thread's turn,
//! until they come alone again: meanwhile the runtime has better to do than to wait for a disk.

use super::applier::Task;
use super::writer::Desk;
use flotilla_core::ports::Commit;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

pub type Errand = Box<dyn FnOnce(&mut Desk) + Send>;

pub enum Job {
    Commit(Box<Commit>),
    /// Something that needs what the writer knows.
    Errand(Errand),
    /// Anything else that must not run beside a change of the tables.
    Run(Task),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Nobody,
    /// Of whoever made a commit that came alone.
    Maker,
    Thread,
}

pub struct Queue {
    waiting: Mutex<Waiting>,
    /// For the thread: its turn has come, or the end.
    changed: Condvar,
    /// Whether whoever makes a commit may wait for the disk.
    makers_wait: bool,
}

struct Waiting {
    jobs: VecDeque<Job>,
    turn: Turn,
    /// How many the thread took in its turn.
    taken: usize,
    /// Whether the one before came alone.
    alone: bool,
    closed: bool,
}

impl Queue {
    /// The thread has the first turn: it makes ready before anything is taken.
    pub fn new(makers_wait: bool) -> Self {
        let waiting =
            Mutex::new(Waiting { jobs: VecDeque::new(), turn: Turn::Thread, taken: 0, alone: true, closed: false });
        Self { waiting, changed: Condvar::new(), makers_wait }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no panic while holding the queue")
    }

    /// True if it is whose job it is who sees to it, until `hand_over`. Gives the job back if nobody takes any more.
    pub fn push(&self, job: Job) -> Result<bool, Job> {
        let mut waiting = self.waiting();
        if waiting.closed {
            return Err(job);
        }
        let is_commit = matches!(job, Job::Commit(_));
        waiting.jobs.push_back(job);
        if waiting.turn != Turn::Nobody {
            return Ok(false);
        }
        let is_makers = self.makers_wait && is_commit && waiting.alone;
        if is_makers {
            waiting.turn = Turn::Maker;
        } else {
            self.call_thread(waiting);
        }
        Ok(is_makers)
    }

    fn call_thread(&self, mut waiting: MutexGuard<'_, Waiting>) {
        (waiting.turn, waiting.taken) = (Turn::Thread, 0);
        drop(waiting);
        self.changed.notify_one();
    }

    /// Waits for the thread's turn. False at the end, when nothing is left.
    pub fn wait_turn(&self) -> bool {
        let mut waiting = self.waiting();
        loop {
            match waiting.turn {
                Turn::Thread if !waiting.jobs.is_empty() => return true,
                // Whoever made it may have ended before it came to that.
                _ if waiting.closed && waiting.jobs.is_empty() => return false,
                _ if waiting.closed => {
                    waiting.turn = Turn::Thread;
                    return true;
                }
                Turn::Thread => (waiting.turn, waiting.alone) = (Turn::Nobody, waiting.taken <= 1),
                Turn::Nobody | Turn::Maker => {}
            }
            waiting = self.changed.wait(waiting).expect("no panic while holding the queue");
        }
    }

    pub fn take(&self) -> Option<Job> {
        let mut waiting = self.waiting();
        let job = waiting.jobs.pop_front();
        waiting.taken += usize::from(job.is_some());
        job
    }

    /// The next job, if it is a commit that `quick` finds so.
    pub fn take_quick(&self, quick: impl FnOnce(&Commit) -> bool) -> Option<Box<Commit>> {
        let mut waiting = self.waiting();
        match waiting.jobs.pop_front() {
            Some(Job::Commit(commit)) if quick(&commit) => Some(commit),
            Some(other) => {
                waiting.jobs.push_front(other);
                None
            }
            None => None,
        }
    }

    /// A maker's turn ends: the thread sees to what has come meanwhile.
    pub fn hand_over(&self) {
        let mut waiting = self.waiting();
        match (waiting.turn, waiting.jobs.is_empty()) {
            (Turn::Maker, true) => (waiting.turn, waiting.alone) = (Turn::Nobody, true),
            (Turn::Maker, false) => self.call_thread(waiting),
            (Turn::Nobody | Turn::Thread, _) => {}
        }
    }

    /// Takes nothing new.
    pub fn close(&self) {
        self.waiting().closed = true;
        self.changed.notify_one();
    }

    /// Takes nothing new, and drops what waits.
    pub fn abandon(&self) {
        let mut waiting = self.waiting();
        waiting.closed = true;
        let left = std::mem::take(&mut waiting.jobs);
        drop(waiting);
        self.changed.notify_one();
        drop(left);
    }
}
