//! Live tasks in memory: one sequencer each, and the latest committed changes for those who follow.

use crate::caller::Scope;
use crate::ids::TaskId;
use crate::map::IdMap;
use crate::ports::NotCommitted;
use crate::task::{Head, room};
use flotilla_protocol::event::Change;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

const SHARDS: usize = 64;
/// What a task keeps in memory for its followers; a slower one reads the rest from the store.
const TAIL_CHANGES: usize = 256;
const TAIL_BYTES: usize = 512 * 1024;
/// What all tasks keep together; beyond it each that changes keeps little.
const ALL_TAILS_BYTES: usize = 64 * 1024 * 1024;
const SHORT_TAIL_BYTES: usize = 8 * 1024;

/// A task somebody is working on or looking at.
pub struct Live {
    id: TaskId,
    sequencer: Mutex<Sequencer>,
    wake: Notify,
    /// Woken only when the task comes to rest, or cannot: for those who need nothing in between.
    rest: Notify,
    /// The bytes that all tasks keep for their followers.
    all_tails: Arc<AtomicUsize>,
}

impl Drop for Live {
    fn drop(&mut self) {
        let bytes = self.sequencer().tail_bytes;
        self.all_tails.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[derive(Default)]
pub struct Sequencer {
    loaded: Option<Loaded>,
    tail: VecDeque<(Arc<Change>, usize)>,
    tail_bytes: usize,
    /// Why a commit did not happen that nobody waited for by itself.
    refused: Option<NotCommitted>,
}

pub struct Loaded {
    /// The head after all decisions, committed or on their way.
    pub decided: Head,
    /// The head that may be shown.
    pub committed: Head,
}

impl Sequencer {
    pub fn loaded(&mut self) -> Option<&mut Loaded> {
        self.loaded.as_mut()
    }
}

/// What memory can say about the changes after a cursor.
pub enum Recent {
    Changes(Vec<Arc<Change>>),
    /// Older than what memory holds: ask the store.
    Behind,
    Nothing,
}

impl Live {
    pub fn id(&self) -> TaskId {
        self.id
    }

    pub fn sequencer(&self) -> MutexGuard<'_, Sequencer> {
        self.sequencer.lock().expect("no panic while holding a sequencer")
    }

    pub fn is_loaded(&self) -> bool {
        self.sequencer().loaded.is_some()
    }

    pub fn is_seen_by(&self, scope: Scope) -> bool {
        self.sequencer().loaded.as_ref().is_some_and(|loaded| scope.sees(&loaded.committed))
    }

    pub fn committed(&self) -> Option<Head> {
        self.sequencer().loaded.as_ref().map(|loaded| loaded.committed.clone())
    }

    /// Takes a head from the store, unless memory already knows a later one.
    pub fn load(&self, head: Head) {
        let mut sequencer = self.sequencer();
        match &mut sequencer.loaded {
            Some(loaded) if loaded.committed.version >= head.version => {}
            Some(_) => {
                // Somebody else wrote to the store: what memory held has a hole now.
                sequencer.tail.clear();
                let dropped = std::mem::take(&mut sequencer.tail_bytes);
                self.all_tails.fetch_sub(dropped, Ordering::Relaxed);
                sequencer.loaded = Some(Loaded { decided: head.clone(), committed: head });
            }
            None => sequencer.loaded = Some(Loaded { decided: head.clone(), committed: head }),
        }
    }

    /// Shows a committed change. Whoever follows is to be woken for it.
    pub fn publish(&self, head: Head, change: Arc<Change>, size: usize) {
        let mut sequencer = self.sequencer();
        if let Some(loaded) = sequencer.loaded() {
            loaded.committed = head;
        }
        let size = room::weight(&change.events, size);
        let before = sequencer.tail_bytes;
        let others = self.all_tails.load(Ordering::Relaxed) - before;
        let most = if others < ALL_TAILS_BYTES { TAIL_BYTES } else { SHORT_TAIL_BYTES };
        sequencer.tail_bytes += size;
        sequencer.tail.push_back((change, size));
        while sequencer.tail.len() > TAIL_CHANGES || sequencer.tail_bytes > most {
            let Some((_, dropped)) = sequencer.tail.pop_front() else { break };
            sequencer.tail_bytes -= dropped;
        }
        if sequencer.tail_bytes >= before {
            self.all_tails.fetch_add(sequencer.tail_bytes - before, Ordering::Relaxed);
        } else {
            self.all_tails.fetch_sub(before - sequencer.tail_bytes, Ordering::Relaxed);
        }
    }

    /// Wakes whoever follows, for what was published; `rests` says that the task has come to rest with it.
    pub fn wake(&self, rests: bool) {
        self.wake.notify_waiters();
        if rests {
            self.rest.notify_waiters();
        }
    }

    /// A commit failed: decide again from what is committed. `why` is for whoever waits for the task to rest.
    pub fn forget_decided(&self, why: Option<NotCommitted>) {
        let mut sequencer = self.sequencer();
        if let Some(loaded) = sequencer.loaded() {
            loaded.decided = loaded.committed.clone();
        }
        if why.is_some() {
            sequencer.refused = why;
        }
        drop(sequencer);
        self.wake_all();
    }

    fn wake_all(&self) {
        self.wake(true);
    }

    /// Waits until the task may have come to rest. Register before looking.
    pub fn rested(&self) -> tokio::sync::futures::Notified<'_> {
        self.rest.notified()
    }

    /// Why the task's first commit did not happen, once.
    pub fn take_refused(&self) -> Option<NotCommitted> {
        self.sequencer().refused.take()
    }

    /// Waits until something may have changed. Register before looking: a wake is only a hint.
    pub fn woken(&self) -> tokio::sync::futures::Notified<'_> {
        self.wake.notified()
    }

    /// Changes with events after the owner's `seq`.
    pub fn after(&self, seq: u64) -> Recent {
        self.recent(seq, |head| head.seq, |change| change.last_seq(), |change| change.first_seq)
    }

    /// Changes with events after a peer's `peer_seq`.
    pub fn after_peer(&self, peer_seq: u64) -> Recent {
        self.recent(peer_seq, |head| head.peer_seq, |change| change.last_peer_seq(), |change| change.first_peer_seq)
    }

    fn recent(
        &self,
        cursor: u64,
        at: impl Fn(&Head) -> u64,
        last: impl Fn(&Change) -> u64,
        first: impl Fn(&Change) -> u64,
    ) -> Recent {
        let sequencer = self.sequencer();
        let Some(loaded) = &sequencer.loaded else { return Recent::Behind };
        if cursor >= at(&loaded.committed) {
            return Recent::Nothing;
        }
        match sequencer.tail.front() {
            Some((oldest, _)) if first(oldest) <= cursor + 1 => {
                let start = sequencer.tail.partition_point(|(change, _)| last(change) <= cursor);
                Recent::Changes(sequencer.tail.iter().skip(start).map(|(change, _)| Arc::clone(change)).collect())
            }
            _ => Recent::Behind,
        }
    }

    /// The whole log, if memory holds all of it.
    pub fn whole(&self) -> Option<(Head, Vec<Arc<Change>>)> {
        let sequencer = self.sequencer();
        let head = sequencer.loaded.as_ref()?.committed.clone();
        let (oldest, _) = sequencer.tail.front()?;
        (oldest.first_seq == 1).then(|| (head, sequencer.tail.iter().map(|(change, _)| Arc::clone(change)).collect()))
    }
}

struct Entry {
    live: Arc<Live>,
    holders: usize,
}

type Shard = Mutex<IdMap<TaskId, Entry>>;

/// All live tasks. One is kept exactly as long as somebody holds it.
pub struct Lives {
    shards: Vec<Shard>,
    all_tails: Arc<AtomicUsize>,
}

impl Default for Lives {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), all_tails: Arc::default() }
    }
}

impl Lives {
    /// The last byte of an id is random, so it spreads well.
    fn shard(&self, id: TaskId) -> MutexGuard<'_, IdMap<TaskId, Entry>> {
        let index = usize::from(id.bytes()[15]) % SHARDS;
        self.shards[index].lock().expect("no panic while holding a shard")
    }

    pub fn acquire(self: &Arc<Self>, id: TaskId) -> LiveRef {
        let live = {
            let mut shard = self.shard(id);
            let entry = shard.entry(id).or_insert_with(|| Entry {
                live: Arc::new(Live {
                    id,
                    sequencer: Mutex::default(),
                    wake: Notify::new(),
                    rest: Notify::new(),
                    all_tails: Arc::clone(&self.all_tails),
                }),
                holders: 0,
            });
            entry.holders += 1;
            Arc::clone(&entry.live)
        };
        LiveRef { lives: Arc::clone(self), live }
    }

    /// A task if it is in memory, without holding it there.
    pub fn find(&self, id: TaskId) -> Option<Arc<Live>> {
        self.shard(id).get(&id).map(|entry| Arc::clone(&entry.live))
    }

    /// Wakes everyone who follows anything.
    pub fn wake_all(&self) {
        for shard in &self.shards {
            for entry in shard.lock().expect("no panic while holding a shard").values() {
                entry.live.wake_all();
            }
        }
    }

    /// All that are in memory now. They are not held: whoever goes on with one acquires it.
    pub fn all(&self) -> Vec<Arc<Live>> {
        let lives = |shard: &Shard| -> Vec<Arc<Live>> {
            let entries = shard.lock().expect("no panic while holding a shard");
            entries.values().map(|entry| Arc::clone(&entry.live)).collect()
        };
        self.shards.iter().flat_map(lives).collect()
    }

    /// How many tasks are in memory.
    pub fn count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().expect("no panic while holding a shard").len()).sum()
    }
}

/// A hold on a live task.
pub struct LiveRef {
    lives: Arc<Lives>,
    live: Arc<Live>,
}

impl Deref for LiveRef {
    type Target = Live;
    fn deref(&self) -> &Live {
        &self.live
    }
}

impl Clone for LiveRef {
    fn clone(&self) -> Self {
        if let Some(entry) = self.lives.shard(self.live.id).get_mut(&self.live.id) {
            entry.holders += 1;
        }
        Self { lives: Arc::clone(&self.lives), live: Arc::clone(&self.live) }
    }
}

impl Drop for LiveRef {
    fn drop(&mut self) {
        let mut shard = self.lives.shard(self.live.id);
        if let Some(entry) = shard.get_mut(&self.live.id) {
            entry.holders -= 1;
            if entry.holders == 0 {
                shard.remove(&self.live.id);
            }
        }
    }
}
