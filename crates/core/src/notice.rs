//! What people may want to hear of at once: workers, tasks, approvals, alerts. Told to whoever listens, and kept by
//! nobody: the logs and the roster are where it can be looked up.

use crate::ids::{AgentId, PrincipalId, TaskId};
use flotilla_protocol::time::Millis;
use std::sync::Arc;
use tokio::sync::broadcast;

/// So many notices a listener may be behind before it misses some.
const BACKLOG: usize = 1024;

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

#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A worker announced something new, or its health changed; `health` is the word of the roster.
    Worker { worker: Arc<str>, health: &'static str, epoch: Option<u64> },
    /// A task's log grew: its state now, in the protocol's word, and the number of its last event.
    Task { task: TaskId, caller: PrincipalId, state: &'static str, seq: u64 },
    /// An owner's decision is wanted, or was made; `state` is the approval's word.
    Approval { approval: Arc<str>, task: TaskId, state: &'static str },
    /// Somebody should look: work that no worker takes, a ceiling that was passed.
    Alert { task: Option<TaskId>, reason: Arc<str>, text: Arc<str> },
}

/// The hub's one place to tell and to listen.
#[derive(Debug, Clone)]
pub struct Notices {
    sender: broadcast::Sender<Arc<Notice>>,
}

impl Default for Notices {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(BACKLOG) }
    }
}

impl Notices {
    /// Whether it is worth making a notice at all.
    pub fn has_listeners(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    pub fn tell(&self, notice: Notice) {
        // Nobody listens: nobody misses it.
        let _ = self.sender.send(Arc::new(notice));
    }

    pub fn listen(&self) -> Listener {
        Listener { receiver: self.sender.subscribe() }
    }
}

/// What a listener gets next.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    Notice(Arc<Notice>),
    /// It was too slow, and so many are gone: look the rest up.
    Missed(u64),
}

pub struct Listener {
    receiver: broadcast::Receiver<Arc<Notice>>,
}

impl Listener {
    /// Waits for the next; none when the hub is gone. May be dropped while it waits.
    pub async fn next(&mut self) -> Option<Heard> {
        match self.receiver.recv().await {
            Ok(notice) => Some(Heard::Notice(notice)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Heard::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
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
}
