//! Workers that take nothing new for a while: drained by their owner, or paused with their account.

use super::{Fleet, roster};
use crate::ports::Clock;
use flotilla_protocol::time::Millis;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::Mutex;
use tokio::sync::futures::Notified;

/// What keeps a worker from taking anything new, in words for every caller.
pub(crate) struct Rest {
    pub reason: String,
    /// When that is over, if it is known.
    pub until: Option<Millis>,
}

impl Fleet {
    fn entry<T>(&self, worker: &str, read: impl FnOnce(&roster::Entry) -> Option<T>) -> Option<T> {
        if !self.populated.load(Ordering::Relaxed) {
            return None;
        }
        self.state().workers.get(worker).and_then(read)
    }

    pub(crate) fn rest(&self, worker: &str, clock: &dyn Clock) -> Option<Rest> {
        self.entry(worker, |entry| {
            if entry.worker.draining {
                let reason = "The agent is draining: it takes nothing new now. The message waits for it.";
                return Some(Rest { reason: reason.to_owned(), until: None });
            }
            let until = entry.worker.pause(clock.now())?.until;
            let reason = format!(
                "The usage limit of the agent's account is reached: it takes nothing new until {until}. The message \
                 waits for it."
            );
            Some(Rest { reason, until: Some(until) })
        })
    }

    /// Where plain messages that begin something with a worker come in, one after the other.
    pub(crate) fn gate(&self, worker: &str) -> Option<Arc<Mutex<()>>> {
        self.entry(worker, |entry| Some(Arc::clone(&entry.gate)))
    }

    /// Waits until a worker may take something new that did not.
    pub(crate) fn relieved(&self) -> Notified<'_> {
        self.relief.notified()
    }
}
