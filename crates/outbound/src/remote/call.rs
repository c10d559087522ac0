//! Calls under way to an agent elsewhere, so that whoever cancels a task finds out how far its call has come.

use flotilla_core::ids::TaskId;
use flotilla_protocol::a2a::model::Task;
use flotilla_protocol::work::Assignment;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc, oneshot};

/// How far a call has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Nothing was sent.
    Waiting,
    /// The message is on its way, or answered without an id so far.
    Sent,
    /// The agent calls the work by this id.
    Linked(String),
    /// Nothing will be sent: the task was canceled first.
    Stopped,
}

/// A task as the agent told it to someone else than the run, and word back when that is in the log.
pub type Letter = (Box<Task>, oneshot::Sender<()>);

pub struct Call {
    stage: Mutex<Stage>,
    changed: Notify,
    mail: mpsc::UnboundedSender<Letter>,
    /// What the agent was sent, so that it can be searched for the task it made of it.
    pub sent: Option<Arc<Assignment>>,
}

impl Call {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().expect("no panic while holding a stage")
    }

    /// Before anything is sent. False if the task was canceled.
    pub fn begin(&self) -> bool {
        let mut stage = self.stage();
        if *stage == Stage::Waiting {
            *stage = Stage::Sent;
        }
        *stage != Stage::Stopped
    }

    /// What was to be sent was not.
    pub fn rewind(&self) {
        let mut stage = self.stage();
        if *stage == Stage::Sent {
            *stage = Stage::Waiting;
        }
        drop(stage);
        self.changed.notify_waiters();
    }

    pub fn link(&self, id: &str) {
        let mut stage = self.stage();
        if !matches!(&*stage, Stage::Linked(known) if known == id) {
            *stage = Stage::Linked(id.to_owned());
            drop(stage);
            self.changed.notify_waiters();
        }
    }

    /// Stops a call that has not begun, or waits for the id of one that has.
    pub async fn stop_or_link(&self) -> Stage {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let mut stage = self.stage();
                match &*stage {
                    Stage::Waiting => *stage = Stage::Stopped,
                    Stage::Sent => {}
                    Stage::Linked(_) | Stage::Stopped => return stage.clone(),
                }
                if *stage == Stage::Stopped {
                    return Stage::Stopped;
                }
            }
            changed.await;
        }
    }

    /// Hands the run a task, and waits until it is in the log. False if the run is over.
    pub async fn tell(&self, task: Box<Task>) -> bool {
        let (done, told) = oneshot::channel();
        self.mail.send((task, done)).is_ok() && told.await.is_ok()
    }
}

/// All calls of one agent, by the hub's task.
#[derive(Default)]
pub struct Calls(Mutex<HashMap<TaskId, Arc<Call>>>);

impl Calls {
    fn all(&self) -> MutexGuard<'_, HashMap<TaskId, Arc<Call>>> {
        self.0.lock().expect("no panic while holding the calls")
    }

    pub fn get(&self, task: TaskId) -> Option<Arc<Call>> {
        self.all().get(&task).cloned()
    }

    pub fn enter(
        self: &Arc<Self>,
        task: TaskId,
        sent: Option<Arc<Assignment>>,
    ) -> (Entered, mpsc::UnboundedReceiver<Letter>) {
        let (mail, letters) = mpsc::unbounded_channel();
        let call = Arc::new(Call { stage: Mutex::new(Stage::Waiting), changed: Notify::new(), mail, sent });
        self.all().insert(task, Arc::clone(&call));
        (Entered { calls: Arc::clone(self), task, call }, letters)
    }
}

/// A call's place among all, as long as it lasts.
pub struct Entered {
    calls: Arc<Calls>,
    task: TaskId,
    pub call: Arc<Call>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut all = self.calls.all();
        // The next run of the task may have come already.
        if all.get(&self.task).is_some_and(|call| Arc::ptr_eq(call, &self.call)) {
            all.remove(&self.task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Calls, Stage};
    use flotilla_core::ids::TaskId;
    use std::sync::Arc;

    #[tokio::test]
    async fn a_call_is_stopped_before_it_begins_or_waited_for() {
        let calls = Arc::new(Calls::default());
        let task = TaskId::fresh();
        let (entered, _letters) = calls.enter(task, None);
        assert!(entered.call.begin());
        entered.call.rewind();
        assert_eq!(calls.get(task).unwrap().stop_or_link().await, Stage::Stopped);
        assert!(!entered.call.begin(), "what was canceled is not sent");
        let (next, _letters) = calls.enter(task, None);
        drop(entered);
        assert!(next.call.begin());
        let call = calls.get(task).expect("the next run's");
        let (stage, ()) = tokio::join!(call.stop_or_link(), async { next.call.link("theirs") });
        assert_eq!(stage, Stage::Linked("theirs".into()));
        drop(next);
        assert!(calls.get(task).is_none());
    }
}
