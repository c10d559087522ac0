//! What people may want to hear of at once: workers, tasks, approvals, alerts. Told to whoever listens, and kept by
//! nobody: the logs and the roster are where it can be looked up.

mod veil;

use crate::ids::{AgentId, PrincipalId, TaskId};
use flotilla_protocol::time::Millis;
use flotilla_protocol::usage::Usage;
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use veil::Veil;

/// So many notices a listener may be behind before it misses some.
const BACKLOG: usize = 1024;
/// How long notices go on being kept after the last listener left.
const LINGER: Duration = Duration::from_secs(60);

/// Something changed. Each says whom it concerns, so that a listener shows nobody what is not theirs.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    pub at: Millis,
    /// The principal that owns the agent it is about.
    pub owner: PrincipalId,
    /// The agent it is about.
    pub agent: AgentId,
    pub what: What,
}

impl Notice {
    /// The agents it is about, each with its owner.
    pub fn concerns(&self) -> impl Iterator<Item = (PrincipalId, AgentId)> {
        let worker = match self.what {
            What::Task { worker, .. } => worker,
            _ => None,
        };
        [(self.owner, self.agent)].into_iter().chain(worker)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A worker announced something new, or its health changed; `health` is the word of the roster.
    Worker { worker: Arc<str>, health: &'static str, epoch: Option<u64> },
    /// A task's log grew: its state now, in the protocol's word, and the number of its last event. Work that was sent
    /// to the fleet concerns the worker that does it, too.
    Task { task: TaskId, caller: PrincipalId, state: &'static str, seq: u64, worker: Option<(PrincipalId, AgentId)> },
    /// An owner's decision is wanted, or was made; `state` is the approval's word.
    Approval { approval: Arc<str>, task: TaskId, state: &'static str },
    /// Somebody should look: work that no worker takes, a ceiling that was passed.
    Alert { task: Option<TaskId>, reason: Arc<str>, text: Arc<str> },
    /// A task used something: what was added to the ledger.
    Usage { task: TaskId, usage: Usage },
}

/// The hub's one place to tell and to listen. The latest notices are kept for whoever was cut off and comes back.
#[derive(Debug, Clone, Default)]
pub struct Notices {
    all: Arc<Shared>,
    /// Once more by themselves: who wants only these need not be woken for each task, nor misses one among many.
    alerts: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    listeners: AtomicUsize,
    /// Somebody listened a moment ago, and may come back.
    lingers: AtomicBool,
    kept: Mutex<Kept>,
    told: Notify,
    veil: Veil,
}

#[derive(Debug, Default)]
struct Kept {
    /// The number of the next notice; the first is 0.
    next: u64,
    latest: VecDeque<Arc<Notice>>,
    left_at: Option<Instant>,
}

impl Kept {
    fn oldest(&self) -> u64 {
        self.next - self.latest.len() as u64
    }
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no panic while holding the notices")
    }

    fn tell(&self, notice: Arc<Notice>) {
        let mut kept = self.kept();
        kept.next += 1;
        kept.latest.push_back(notice);
        if kept.latest.len() > BACKLOG {
            kept.latest.pop_front();
        }
        drop(kept);
        self.told.notify_waiters();
    }

    fn listen_from(self: &Arc<Self>, next: u64) -> Listener {
        self.listeners.fetch_add(1, Ordering::AcqRel);
        let next = next.min(self.kept().next);
        Listener { shared: Arc::clone(self), next }
    }
}

impl Notices {
    /// Whether it is worth making a notice at all.
    pub fn has_listeners(&self) -> bool {
        if self.all.listeners.load(Ordering::Acquire) > 0 {
            return true;
        }
        if !self.all.lingers.load(Ordering::Acquire) {
            return false;
        }
        let mut kept = self.all.kept();
        if kept.left_at.is_some_and(|left| left.elapsed() < LINGER) {
            return true;
        }
        // From here on nothing is told, so whoever comes back later has missed something.
        kept.latest.clear();
        kept.next += 1;
        self.all.lingers.store(false, Ordering::Release);
        false
    }

    pub fn tell(&self, notice: Notice) {
        let notice = Arc::new(notice);
        if matches!(notice.what, What::Alert { .. }) {
            self.alerts.tell(Arc::clone(&notice));
        }
        self.all.tell(notice);
    }

    /// What listeners know a notice by. It says nothing of how many others there are.
    pub fn name_of(&self, number: u64) -> u64 {
        self.all.veil.hide(number)
    }

    /// The number of a notice that was told under this name; none if there was none.
    pub fn number_of(&self, name: u64) -> Option<u64> {
        Some(self.all.veil.show(name)).filter(|number| *number < self.all.kept().next)
    }

    /// From now on.
    pub fn listen(&self) -> Listener {
        self.all.listen_from(u64::MAX)
    }

    /// From a notice on; what is no longer kept of it is said to be missed.
    pub fn listen_from(&self, next: u64) -> Listener {
        self.all.listen_from(next)
    }

    /// From now on, and to alerts alone.
    pub fn listen_to_alerts(&self) -> Listener {
        self.alerts.listen_from(u64::MAX)
    }
}

/// What a listener gets next.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    Notice(Arc<Notice>),
    /// It was too slow, and so many are gone: look the rest up.
    Missed(u64),
}

#[derive(Debug)]
pub struct Listener {
    shared: Arc<Shared>,
    next: u64,
}

impl Listener {
    /// Waits for the next. May be dropped while it waits.
    pub async fn next(&mut self) -> Option<Heard> {
        let shared = Arc::clone(&self.shared);
        loop {
            let mut told = pin!(shared.told.notified());
            told.as_mut().enable();
            if let Some(heard) = self.heard() {
                return Some(heard);
            }
            told.await;
        }
    }

    fn heard(&mut self) -> Option<Heard> {
        let kept = self.shared.kept();
        let oldest = kept.oldest();
        if self.next < oldest {
            let missed = oldest - self.next;
            self.next = oldest;
            return Some(Heard::Missed(missed));
        }
        let notice = kept.latest.get(usize::try_from(self.next - oldest).ok()?)?;
        self.next += 1;
        Some(Heard::Notice(Arc::clone(notice)))
    }

    /// The number of the notice it will hear next.
    pub fn position(&self) -> u64 {
        self.next
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.kept().left_at = Some(Instant::now());
        self.shared.lingers.store(true, Ordering::Release);
        self.shared.listeners.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::{BACKLOG, Heard, Notice, Notices, What};
    use crate::ids::{AgentId, PrincipalId};
    use flotilla_protocol::time::Millis;

    fn notice(epoch: u64) -> Notice {
        let what = What::Worker { worker: "w".into(), health: "AVAILABLE", epoch: Some(epoch) };
        Notice { at: Millis(0), owner: PrincipalId(1), agent: AgentId(1), what }
    }

    #[tokio::test]
    async fn an_alert_is_heard_among_however_many_others() {
        let notices = Notices::default();
        let mut alerts = notices.listen_to_alerts();
        assert!(!notices.has_listeners(), "nothing else need be told for it");
        let alert = What::Alert { task: None, reason: "no_worker".into(), text: "nobody takes it".into() };
        let alert = Notice { what: alert, ..notice(0) };
        notices.tell(alert.clone());
        for epoch in 0..2 * BACKLOG as u64 {
            notices.tell(notice(epoch));
        }
        assert!(matches!(alerts.next().await, Some(Heard::Notice(heard)) if *heard == alert));
    }

    #[tokio::test]
    async fn who_listens_hears_and_who_is_slow_is_told_so() {
        let notices = Notices::default();
        assert!(!notices.has_listeners());
        notices.tell(notice(0));
        let mut listener = notices.listen();
        notices.tell(notice(1));
        assert!(matches!(listener.next().await, Some(Heard::Notice(heard)) if *heard == notice(1)));
        for epoch in 0..=BACKLOG as u64 {
            notices.tell(notice(epoch));
        }
        assert_eq!(listener.next().await, Some(Heard::Missed(1)));
        drop(notices);
        assert!(matches!(listener.next().await, Some(Heard::Notice(_))), "what is there is still heard");
    }

    #[tokio::test]
    async fn who_comes_back_soon_misses_nothing() {
        let notices = Notices::default();
        let listener = notices.listen();
        let place = listener.position();
        drop(listener);
        assert!(notices.has_listeners(), "it may come back");
        notices.tell(notice(7));
        let mut again = notices.listen_from(place);
        assert!(matches!(again.next().await, Some(Heard::Notice(heard)) if *heard == notice(7)));
        let ahead = notices.listen_from(99);
        assert_eq!(ahead.position(), 1, "nobody is ahead of what was told");
    }
}
