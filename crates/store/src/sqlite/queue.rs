//! What waits for the writer, and whose turn it is to see to it: the writer's thread or, for a commit that comes alone,
//! whoever made it.
//!
//! To wake a thread and to be woken by it takes nearly as long as the flush itself. So while commits come one by one,
//! each is flushed by the task that brought it. Once one comes while another is under way, it is the thread's turn,
//! until a few in a row have come alone again: meanwhile the runtime has better to do than to wait for a disk.

use super::applier::Task;
use super::writer::Desk;
use flotilla_core::ports::Commit;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

/// So many commits in a row must have come alone. Among many callers one comes alone by chance, and the next does not.
const LONELY: u32 = 4;

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
    /// How many in a row have come alone.
    alone: u32,
    closed: bool,
}

impl Waiting {
    /// A turn is over.
    fn rest(&mut self, came_alone: bool) {
        self.turn = Turn::Nobody;
        self.alone = if came_alone { self.alone.saturating_add(1) } else { 0 };
    }
}

impl Queue {
    /// The thread has the first turn: it makes ready before anything is taken.
    pub fn new(makers_wait: bool) -> Self {
        let waiting =
            Mutex::new(Waiting { jobs: VecDeque::new(), turn: Turn::Thread, taken: 0, alone: LONELY, closed: false });
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
        let is_makers = self.makers_wait && is_commit && waiting.alone >= LONELY;
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
                Turn::Thread => {
                    let came_alone = waiting.taken <= 1;
                    waiting.rest(came_alone);
                }
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
        if waiting.turn != Turn::Maker {
            return;
        }
        let came_alone = waiting.jobs.is_empty();
        waiting.rest(came_alone);
        if !came_alone {
            self.call_thread(waiting);
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

#[cfg(test)]
mod tests {
    use super::{Job, LONELY, Queue, Turn};
    use flotilla_core::ids::{AgentId, PrincipalId, TaskId};
    use flotilla_core::ports::Commit;
    use flotilla_core::task::Head;
    use flotilla_protocol::event::Change;
    use flotilla_protocol::time::Millis;
    use std::sync::Arc;

    fn commit() -> Job {
        let head = Head::new(TaskId::fresh(), PrincipalId(1), AgentId(1), PrincipalId(1), "a context".into());
        let change = Arc::new(Change { first_seq: 1, first_peer_seq: 1, at: Millis(1), events: Vec::new() });
        let done = Box::new(|_| ());
        Job::Commit(Box::new(Commit { head, state_before: None, change, body: Vec::new(), dedupe: None, done }))
    }

    /// Whether a commit that comes now, and alone, is for whoever made it.
    fn is_makers(queue: &Queue) -> bool {
        while queue.waiting().turn != Turn::Nobody {
            std::thread::yield_now();
        }
        queue.push(commit()).is_ok_and(|is_makers| is_makers)
    }

    #[test]
    fn makers_see_to_commits_that_come_alone_a_few_times_in_a_row() {
        let queue = Arc::new(Queue::new(true));
        let jobs = Arc::clone(&queue);
        let thread = std::thread::spawn(move || {
            while jobs.wait_turn() {
                while jobs.take().is_some() {}
            }
        });
        for _ in 0..3 {
            assert!(is_makers(&queue));
            assert!(queue.take_quick(|_| true).is_some());
            queue.hand_over();
        }
        assert!(is_makers(&queue));
        assert!(queue.push(commit()).is_ok_and(|is_makers| !is_makers), "another one is under way");
        assert!(queue.take_quick(|_| true).is_some());
        queue.hand_over();
        // The other one had the thread for itself.
        for _ in 1..LONELY {
            assert!(!is_makers(&queue));
        }
        assert!(is_makers(&queue));
        queue.close();
        thread.join().unwrap();
    }
}
