//! The desk: every active hook in memory, who of them has something to deliver, and when the others are due.

use super::lanes::Lanes;
use super::{Hook, Schedule};
use crate::ids::{HookId, TaskId};
use flotilla_protocol::time::Millis;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Deliveries under way at once, to all origins together.
const MOST: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing to deliver.
    Idle,
    /// Waits for its turn.
    Ready,
    Running,
    /// Waits for its time.
    Waiting(Instant),
}

struct Entry {
    hook: Hook,
    phase: Phase,
    /// Something happened while it was running.
    again: bool,
    /// Artifacts its receiver knows of.
    introduced: HashSet<String>,
}

#[derive(Default)]
struct Hooks {
    entries: HashMap<HookId, Entry>,
    tasks: HashMap<TaskId, Vec<HookId>>,
    due: BTreeSet<(Instant, HookId)>,
}

/// Where a hook stands after its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rest {
    /// All that is there is told.
    Idle,
    /// There is more; others first.
    More,
    Wait(Duration),
    /// Done, parked, disabled or removed: not to be thought of any more.
    Over,
}

/// A hook in hand.
pub struct Taken {
    pub hook: Hook,
    pub introduced: HashSet<String>,
    /// Where it was in line, whatever its target has become since.
    lane: Arc<str>,
}

pub struct Desk {
    inner: Mutex<(Hooks, Lanes)>,
    /// How many hooks there are: a hub without any pays nothing for them.
    count: AtomicUsize,
    wake: Notify,
    /// Told when nothing is on its way any more.
    landed: Notify,
}

impl Default for Desk {
    fn default() -> Self {
        Self {
            inner: Mutex::new((Hooks::default(), Lanes::new(MOST))),
            count: AtomicUsize::new(0),
            wake: Notify::new(),
            landed: Notify::new(),
        }
    }
}

impl Desk {
    fn inner(&self) -> MutexGuard<'_, (Hooks, Lanes)> {
        self.inner.lock().expect("no panic while holding the desk")
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Takes a hook in, or its new form in the place of the old one.
    pub fn add(&self, hook: Hook) {
        let mut inner = self.inner();
        let (hooks, _) = &mut *inner;
        if let Some(entry) = hooks.entries.get_mut(&hook.uid) {
            if let Phase::Waiting(at) = entry.phase {
                hooks.due.remove(&(at, hook.uid));
                entry.phase = Phase::Idle;
            }
            entry.hook = hook;
            return;
        }
        hooks.tasks.entry(hook.task).or_default().push(hook.uid);
        let entry = Entry { hook, phase: Phase::Idle, again: false, introduced: HashSet::new() };
        hooks.entries.insert(entry.hook.uid, entry);
        self.count.store(hooks.entries.len(), Ordering::Relaxed);
    }

    pub fn remove(&self, id: HookId) {
        let mut inner = self.inner();
        self.forget(&mut inner.0, id);
    }

    fn forget(&self, hooks: &mut Hooks, id: HookId) {
        let Some(entry) = hooks.entries.remove(&id) else { return };
        if let Phase::Waiting(at) = entry.phase {
            hooks.due.remove(&(at, id));
        }
        if let Some(others) = hooks.tasks.get_mut(&entry.hook.task) {
            others.retain(|other| *other != id);
            if others.is_empty() {
                hooks.tasks.remove(&entry.hook.task);
            }
        }
        self.count.store(hooks.entries.len(), Ordering::Relaxed);
    }

    /// Something a peer may see happened in a task.
    pub fn changed(&self, task: TaskId) {
        if self.count() == 0 {
            return;
        }
        let mut inner = self.inner();
        let (hooks, lanes) = &mut *inner;
        let Some(ids) = hooks.tasks.get(&task) else { return };
        for id in ids {
            let Some(entry) = hooks.entries.get_mut(id) else { continue };
            match entry.phase {
                Phase::Idle => {
                    entry.phase = Phase::Ready;
                    lanes.put(entry.hook.principal, &entry.hook.target.origin, *id);
                }
                Phase::Running => entry.again = true,
                Phase::Ready | Phase::Waiting(_) => {}
            }
        }
        drop(inner);
        self.wake.notify_one();
    }

    /// A hook has something to do now, or at the time it was told to wait for.
    pub fn start(&self, id: HookId, schedule: &Schedule, now: Millis) {
        let mut inner = self.inner();
        let (hooks, lanes) = &mut *inner;
        let Some(entry) = hooks.entries.get_mut(&id) else { return };
        match (entry.phase, entry.hook.next_at) {
            (Phase::Running, _) => entry.again = true,
            (Phase::Idle, Some(at)) => {
                let at = Instant::now() + schedule.left(at, now);
                entry.phase = Phase::Waiting(at);
                hooks.due.insert((at, id));
            }
            (Phase::Idle, None) => {
                entry.phase = Phase::Ready;
                lanes.put(entry.hook.principal, &entry.hook.target.origin, id);
            }
            (Phase::Ready | Phase::Waiting(_), _) => {}
        }
        drop(inner);
        self.wake.notify_one();
    }

    /// The next hook to deliver for; the caller must say when it is through with it.
    pub fn take(&self) -> Option<Taken> {
        let mut inner = self.inner();
        let (hooks, lanes) = &mut *inner;
        loop {
            let (id, principal, origin) = lanes.take()?;
            if let Some(entry) = hooks.entries.get_mut(&id).filter(|entry| entry.phase == Phase::Ready) {
                entry.phase = Phase::Running;
                entry.again = false;
                let introduced = std::mem::take(&mut entry.introduced);
                return Some(Taken { hook: entry.hook.clone(), introduced, lane: origin });
            }
            // Removed while it waited for its turn.
            lanes.done(principal, &origin, None);
        }
    }

    /// Whether a hook is still the one that was taken.
    pub fn is_current(&self, hook: &Hook) -> bool {
        self.inner().0.entries.get(&hook.uid).is_some_and(|entry| entry.hook.generation == hook.generation)
    }

    /// Puts a hook back after its turn. `went` says how its last delivery went, if there was one.
    pub fn put_back(&self, Taken { hook, introduced, lane }: Taken, rest: Rest, went: Option<bool>) {
        let (id, principal) = (hook.uid, hook.principal);
        let mut inner = self.inner();
        let (hooks, lanes) = &mut *inner;
        let mut over = false;
        if let Some(entry) = hooks.entries.get_mut(&id) {
            let same = entry.hook.generation == hook.generation;
            let rest = if same { rest } else { Rest::More };
            if same {
                entry.hook = hook;
                entry.introduced = introduced;
            }
            let now = Instant::now();
            entry.phase = match rest {
                Rest::Idle if !entry.again => Phase::Idle,
                Rest::Idle | Rest::More => Phase::Ready,
                Rest::Wait(delay) => Phase::Waiting(now + delay),
                Rest::Over => Phase::Idle,
            };
            over = rest == Rest::Over;
            match entry.phase {
                Phase::Ready => lanes.put(entry.hook.principal, &entry.hook.target.origin, id),
                Phase::Waiting(at) => drop(hooks.due.insert((at, id))),
                Phase::Idle | Phase::Running => {}
            }
        }
        lanes.done(principal, &lane, went);
        let landed = lanes.is_idle();
        if over {
            self.forget(hooks, id);
        }
        drop(inner);
        if landed {
            self.landed.notify_waiters();
        }
        self.wake.notify_one();
    }

    /// Makes those ready whose time has come; when the next one's will.
    pub fn ring(&self) -> Option<Instant> {
        let mut inner = self.inner();
        let (hooks, lanes) = &mut *inner;
        let now = Instant::now();
        while let Some((at, id)) = hooks.due.first().copied() {
            if at > now {
                return Some(at);
            }
            hooks.due.pop_first();
            if let Some(entry) = hooks.entries.get_mut(&id) {
                entry.phase = Phase::Ready;
                lanes.put(entry.hook.principal, &entry.hook.target.origin, id);
            }
        }
        None
    }

    /// Waits until nothing is on its way.
    pub async fn landed(&self) {
        loop {
            let mut landed = pin!(self.landed.notified());
            landed.as_mut().enable();
            if self.inner().1.is_idle() {
                return;
            }
            landed.await;
        }
    }

    /// Waits until there may be something to do.
    pub async fn woken(&self) {
        self.wake.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::{Desk, Rest};
    use crate::ids::{AgentId, HookId, PrincipalId, TaskId};
    use crate::push::{Hook, HookChange, HookState, Schedule, Target};
    use flotilla_protocol::a2a::push::PushOptions;
    use flotilla_protocol::time::Millis;
    use std::time::Duration;

    fn hook(task: TaskId, origin: &str) -> Hook {
        let target = Target { url: origin.into(), origin: origin.into(), scheme: String::new(), sealed: Vec::new() };
        Hook {
            uid: HookId::fresh(),
            task,
            id: "a".into(),
            principal: PrincipalId::OWNER,
            agent: AgentId(1),
            owner: PrincipalId::OWNER,
            target,
            options: PushOptions::default(),
            version: Default::default(),
            created_at: Millis(0),
            cursor: 0,
            state: HookState::Active,
            held: false,
            failures: 0,
            next_at: None,
            attempts: 0,
            reason: String::new(),
            generation: 0,
        }
    }

    #[test]
    fn what_happens_during_a_turn_leads_to_another() {
        let (desk, task) = (Desk::default(), TaskId::fresh());
        desk.add(hook(task, "a"));
        assert!(desk.take().is_none(), "nothing has happened");
        desk.changed(task);
        desk.changed(task);
        let taken = desk.take().expect("its turn");
        assert!(desk.take().is_none(), "one turn at a time");
        desk.changed(task);
        desk.put_back(taken, Rest::Idle, Some(true));
        let taken = desk.take().expect("another turn");
        desk.put_back(taken, Rest::Idle, Some(true));
        assert!(desk.take().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_waits_is_taken_when_its_time_has_come() {
        let (desk, task) = (Desk::default(), TaskId::fresh());
        desk.add(hook(task, "a"));
        desk.changed(task);
        let taken = desk.take().expect("its turn");
        desk.put_back(taken, Rest::Wait(Duration::from_secs(300)), Some(false));
        desk.changed(task);
        assert!(desk.ring().is_some() && desk.take().is_none(), "news do not make it hurry");
        tokio::time::advance(Duration::from_secs(301)).await;
        assert!(desk.ring().is_none() && desk.take().is_some());
    }

    #[test]
    fn one_that_moves_to_another_origin_gives_its_place_back() {
        let (desk, task) = (Desk::default(), TaskId::fresh());
        let first = hook(task, "a");
        desk.add(first.clone());
        for round in 0..100 {
            desk.changed(task);
            let mut moved = first.renewed(&hook(task, if round % 2 == 0 { "b" } else { "a" }));
            moved.generation = round + 1;
            desk.add(moved);
            let taken = desk.take().expect("a place is free");
            desk.put_back(taken, Rest::Idle, Some(true));
        }
    }

    #[test]
    fn one_that_is_changed_or_removed_meanwhile_is_not_put_back_as_it_was() {
        let (desk, task) = (Desk::default(), TaskId::fresh());
        let mut one = hook(task, "a");
        desk.add(one.clone());
        desk.changed(task);
        let taken = desk.take().expect("its turn");
        HookChange::Redeliver { after: Some(0) }.apply(&mut one);
        desk.add(one.clone());
        desk.start(one.uid, &Schedule::default(), Millis(0));
        assert!(!desk.is_current(&taken.hook));
        desk.put_back(taken, Rest::Over, Some(true));
        let taken = desk.take().expect("another turn in its new form");
        assert_eq!(taken.hook.generation, 1);
        desk.remove(one.uid);
        desk.put_back(taken, Rest::More, Some(true));
        desk.changed(task);
        assert!(desk.take().is_none() && desk.count() == 0, "it stays away");
    }
}
