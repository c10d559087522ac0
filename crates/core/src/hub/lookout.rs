//! The lookout: an agent elsewhere may go on by itself with a task that waits for its caller, so it is looked at.

use super::trail::folded;
use super::{Hub, LiveRef};
use crate::caller::Scope;
use crate::error::{Error, Fault};
use crate::fleet::FLEET;
use crate::fleet::contract::Past;
use crate::ids::{AgentId, TaskId};
use crate::map::IdMap;
use crate::ports::{Look, Waiting};
use crate::project::Fold;
use crate::task::{Command, Head};
use flotilla_protocol::a2a::model::Message;
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::held::Held;
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::Upstream;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// The first look, and the pauses between looks: half as long as the task has waited, within these bounds.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// Logs that are read at once.
const READS: usize = 16;

pub struct Lookout {
    /// Whoever looks, by task. One that is done stays until the task waits no more.
    looking: Mutex<IdMap<TaskId, AbortHandle>>,
    reads: Semaphore,
}

impl Default for Lookout {
    fn default() -> Self {
        Self { looking: Mutex::default(), reads: Semaphore::new(READS) }
    }
}

impl Lookout {
    fn looking(&self) -> MutexGuard<'_, IdMap<TaskId, AbortHandle>> {
        self.looking.lock().expect("no panic while holding the lookout")
    }

    fn put(&self, task: TaskId, looks: Option<AbortHandle>) {
        let mut looking = self.looking();
        let before = match looks {
            Some(looks) => looking.insert(task, looks),
            None => looking.remove(&task),
        };
        if let Some(before) = before {
            before.abort();
        }
    }
}

/// A task as it waits, who had it last if the hub chose, and when its caller last said something.
struct Waits {
    head: Head,
    upstream: Upstream,
    said: Option<Arc<Message>>,
    artifacts: Arc<HashMap<String, Held>>,
    worker: Option<Arc<str>>,
    asked_at: Millis,
}

impl Hub {
    /// A task that waits for its caller from now on is looked after, and one that does not is left alone.
    pub(super) fn look_after(self: &Arc<Self>, head: &Head, was_waiting: bool) {
        if head.waits_for_caller() && self.may_look(head.agent) {
            self.look_out(head.id, FIRST);
        } else if was_waiting {
            self.lookout.put(head.id, None);
        }
    }

    /// The same for all that waited when the hub stopped.
    pub(super) async fn look_after_all(self: &Arc<Self>) -> Result<(), Fault> {
        for (task, agent) in self.store.waiting().await? {
            if self.may_look(agent) {
                self.look_out(task, Duration::ZERO);
            }
        }
        Ok(())
    }

    fn may_look(&self, agent: AgentId) -> bool {
        self.registry.load().by_id(agent).is_some_and(|agent| agent.name == FLEET || agent.link.believed().is_some())
    }

    fn look_out(self: &Arc<Self>, task: TaskId, first: Duration) {
        let hub = Arc::clone(self);
        let looks = self.runtime.spawn(async move {
            tokio::time::sleep(first).await;
            if let Err(error) = hub.keep_looking(task).await {
                tracing::error!(%task, %error, "a task that waits for its caller is not looked after any more");
            }
        });
        self.lookout.put(task, Some(looks.abort_handle()));
    }

    async fn keep_looking(self: &Arc<Self>, task: TaskId) -> Result<(), Error> {
        let Some(waits) = self.how_it_waits(task).await? else { return Ok(()) };
        let Waits { head, upstream, said, artifacts, worker, asked_at } = waits;
        loop {
            // Another may be in its place by now, reached in another way.
            let registry = self.registry();
            let agent = worker.as_ref().map_or_else(|| registry.by_id(head.agent), |name| registry.by_name(name));
            let Some(agent) = agent.cloned() else { return Ok(()) };
            let (waited, state) = (self.since(asked_at), head.state);
            let (said, artifacts) = (said.clone(), Arc::clone(&artifacts));
            let lineage = self.lineage(&head, &agent, head.run);
            let waiting = Waiting { upstream: upstream.clone(), lineage, state, said, artifacts, waited };
            match agent.link.look(waiting).await {
                Look::Over => return Ok(()),
                Look::Still => {}
                // The next start looks again.
                Look::Moved if self.is_stopping() => return Ok(()),
                Look::Moved => {
                    let Some(live) = self.find(Scope::Admin, task).await? else { return Ok(()) };
                    match self.moved(&live, head.run, &upstream).await {
                        Ok(()) => return Ok(()),
                        Err(error) => tracing::error!(%task, %error, "that an agent went on is not recorded yet"),
                    }
                }
            }
            let asked_again = head.run.saturating_sub(head.turn);
            tokio::time::sleep(pause(self.since(head.status_at), asked_again)).await;
        }
    }

    /// Has another run tell what the agent does by itself, unless one does already.
    pub(super) async fn moved(self: &Arc<Self>, live: &LiveRef, run: u32, upstream: &Upstream) -> Result<(), Error> {
        self.change(live, || Command::Moved { run, upstream: Box::new(upstream.clone()) }).await.map(|_| ())
    }

    /// Nothing of the task is held after that: it may wait for long.
    async fn how_it_waits(&self, task: TaskId) -> Result<Option<Waits>, Fault> {
        let _turn = self.lookout.reads.acquire().await.map_err(|_| Fault::new("the hub has stopped"))?;
        let Some(live) = self.find(Scope::Admin, task).await? else { return Ok(None) };
        let Some(head) = live.committed().filter(Head::waits_for_caller) else { return Ok(None) };
        let changes = match live.whole() {
            Some((_, changes)) => changes,
            None => self.whole_log(task).await?,
        };
        let asks = |change: &&Arc<Change>| change.events.iter().any(|event| matches!(event, Event::Asked { .. }));
        let asked_at = changes.iter().rev().find(asks).map_or(head.created_at, |change| change.at);
        let worker = Past::of(&changes).given.map(|(_, worker)| worker);
        let Fold { upstream, status, artifacts, .. } = folded(Fold::default(), &changes);
        let held = artifacts.iter().map(|artifact| (artifact.artifact_id.clone(), Held::of(&artifact.parts)));
        let artifacts = Arc::new(held.collect());
        Ok(Some(Waits { head, upstream, said: status.message, artifacts, worker, asked_at }))
    }

    fn since(&self, at: Millis) -> Duration {
        Duration::from_millis(u64::try_from(self.clock.now().0 - at.0).unwrap_or(0))
    }
}

/// An agent that asks again and again by itself is looked at less often each time.
fn pause(waited: Duration, asked_again: u32) -> Duration {
    let least = FIRST.mul_f64(1.5f64.powi(asked_again.min(64).cast_signed())).min(LONGEST);
    (waited / 2).clamp(least, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::{FIRST, LONGEST, pause};
    use std::time::Duration;

    #[test]
    fn pauses_grow_with_the_wait_and_with_every_question() {
        let seconds = Duration::from_secs;
        assert_eq!([0, 1, 10, 600].map(|waited| pause(seconds(waited), 0)), [FIRST, FIRST, seconds(5), LONGEST]);
        assert_eq!(pause(Duration::ZERO, 2), Duration::from_millis(2250));
        assert_eq!(pause(Duration::ZERO, u32::MAX), LONGEST, "however often it asks");
    }
}
