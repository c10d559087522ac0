//! Deadlines: the tasks that end by themselves, in the order of their time.

use super::{Hub, LiveRef};
use crate::caller::Scope;
use crate::error::Error;
use crate::fleet::settings::after;
use crate::ids::TaskId;
use crate::task::{Command, Head};
use flotilla_protocol::time::Millis;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// How many are ended at once.
const BATCH: usize = 256;
/// The clock is looked at this often at least, for it may be set while nobody looks.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// How long to wait before a task that could not be ended is tried again.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Deadlines {
    due: Mutex<BTreeSet<(Millis, TaskId)>>,
    sooner: Notify,
}

impl Deadlines {
    fn due(&self) -> MutexGuard<'_, BTreeSet<(Millis, TaskId)>> {
        self.due.lock().expect("no panic while holding the deadlines")
    }

    /// A task's deadline came, moved or went; it goes when the task ends.
    pub fn changed(&self, task: TaskId, before: Option<Millis>, after: Option<Millis>) {
        if before == after {
            return;
        }
        let mut due = self.due();
        if let Some(before) = before {
            due.remove(&(before, task));
        }
        if let Some(after) = after {
            due.insert((after, task));
            if due.first() == Some(&(after, task)) {
                self.sooner.notify_one();
            }
        }
    }

    fn passed(&self, now: Millis) -> Vec<(Millis, TaskId)> {
        self.due().iter().take_while(|(at, _)| *at <= now).take(BATCH).copied().collect()
    }

    fn next(&self) -> Option<Millis> {
        self.due().first().map(|(at, _)| *at)
    }
}

impl Hub {
    /// Ends all tasks whose deadline has passed. Says when to come again; none if nobody has a deadline.
    pub(crate) async fn end_overdue(self: &Arc<Self>) -> Option<Duration> {
        loop {
            let passed = self.deadlines.passed(self.clock.now());
            if passed.is_empty() {
                let left = self.deadlines.next()?.0.saturating_sub(self.clock.now().0);
                let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
                return Some(left.min(LONGEST_WAIT));
            }
            let mut ending = JoinSet::new();
            for (at, task) in passed {
                let hub = Arc::clone(self);
                ending.spawn(async move { hub.end_by_deadline(at, task).await });
            }
            if ending.join_all().await.contains(&false) {
                return Some(PAUSE);
            }
        }
    }

    /// False if it could not be told in the log yet.
    async fn end_by_deadline(self: &Arc<Self>, at: Millis, task: TaskId) -> bool {
        let ended = match self.find(Scope::Admin, task).await {
            // Whoever looks for a worker has the policy to go through at its end; one that was found in that moment is
            // told then that it is too late.
            Ok(Some(live)) if self.is_sought_until(&live, self.clock.now()).await => {
                self.deadlines.changed(task, Some(at), Some(after(self.clock.now(), PAUSE)));
                return true;
            }
            Ok(Some(live)) => {
                let ended = self.end(&live, || Command::Overdue { now: self.clock.now() }).await;
                if let (Ok(Some(_)), Some(head)) = (&ended, live.committed()) {
                    tracing::info!(%task, trace = %head.trace_id(), deadline = %at, "a task's deadline passed");
                    self.call_off(live.clone(), head);
                }
                ended.map(|_| ())
            }
            Ok(None) => Ok(()),
            Err(fault) => Err(Error::from(fault)),
        };
        match ended {
            Ok(()) => {
                self.deadlines.changed(task, Some(at), None);
                true
            }
            Err(error) => {
                tracing::error!(%task, %error, "a task whose deadline passed is not ended yet; trying again");
                false
            }
        }
    }

    /// The task has ended here, whatever an agent elsewhere makes of being told.
    pub(super) fn call_off(self: &Arc<Self>, live: LiveRef, head: Head) {
        let hub = Arc::clone(self);
        self.runtime.spawn(async move {
            if let Err(error) = hub.stop(&live, &head).await {
                let (task, trace) = (head.id, head.trace_id());
                tracing::warn!(%task, %trace, %error, "an agent may go on after its task has ended");
            }
        });
    }

    /// Waits until a deadline comes that is sooner than all others.
    pub(crate) async fn deadline_set(&self) {
        self.deadlines.sooner.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::Deadlines;
    use crate::ids::TaskId;
    use flotilla_protocol::time::Millis;

    #[test]
    fn the_first_is_due_first_and_what_ended_is_not_due() {
        let deadlines = Deadlines::default();
        let [late, soon, moved] = [TaskId::fresh(), TaskId::fresh(), TaskId::fresh()];
        deadlines.changed(late, None, Some(Millis(30)));
        deadlines.changed(soon, None, Some(Millis(10)));
        deadlines.changed(moved, None, Some(Millis(5)));
        deadlines.changed(moved, Some(Millis(5)), Some(Millis(20)));
        assert_eq!((deadlines.next(), deadlines.passed(Millis(9))), (Some(Millis(10)), Vec::new()));
        assert_eq!(deadlines.passed(Millis(20)), [(Millis(10), soon), (Millis(20), moved)]);
        deadlines.changed(soon, Some(Millis(10)), None);
        deadlines.changed(moved, Some(Millis(20)), None);
        assert_eq!(deadlines.passed(Millis(30)), [(Millis(30), late)]);
    }
}
